"""Apache Burr: bare, and with its SQLite persister, which writes the whole state at each step."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit import (
    GROWTH,
    LONG,
    RESUME,
    STEP,
    STEPS,
    STORED,
    ends,
    folder,
    heavy,
    main,
    measure,
    message,
    now,
    stored,
)

os.environ.setdefault("BURR_TELEMETRY_ENABLED", "false")
from burr.core import ApplicationBuilder, State, action, default, expr
from burr.core.persistence import SQLitePersister

MESSAGES = [message(number) for number in range(LONG + 100)]
TIMES: list[float] = []


@contextlib.contextmanager
def persister() -> Iterator[tuple[Any, Path]]:
    with folder() as place:
        keeper = SQLitePersister(str(place / "burr.db"), connect_kwargs={"check_same_thread": False})
        keeper.initialize()
        yield keeper, place
        keeper.connection.close()


def build(
    actions: Any, transitions: Any, state: dict[str, Any], entry: str, keeper: Any, app: str = ""
) -> Any:
    builder = (
        ApplicationBuilder()
        .with_actions(**actions)
        .with_transitions(*transitions)
        .with_identifiers(app_id=app or uuid.uuid4().hex, partition_key="p")
        .with_state(**state)
        .with_entrypoint(entry)
    )
    return (builder.with_state_persister(keeper) if keeper is not None else builder).build()


@action(reads=["messages"], writes=["messages"])
def append(state: State) -> State:
    TIMES.append(now())
    return state.append(messages=MESSAGES[len(state["messages"]) % LONG])


@action(reads=["n"], writes=["n"])
def count(state: State) -> State:
    return state.update(n=state["n"] + 1)


@action(reads=[], writes=[])
def stop(state: State) -> State:
    return state


def line_of(length: int) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    nodes = {}
    for i in range(length):

        @action(reads=[], writes=["x"])
        def node(state: State, i: int = i) -> State:
            return state.update(x=i)

        nodes[f"n{i}"] = node
    return nodes, [(f"n{i}", f"n{i + 1}") for i in range(length - 1)]


def row_a() -> None:
    nodes, ways = line_of(STEPS)

    def run(keeper: Any) -> float:
        app = build(nodes, ways, {"x": 0}, "n0", keeper)
        began = now()
        app.run(halt_after=[f"n{STEPS - 1}"])
        return (now() - began) / STEPS

    measure("A", "Burr none", lambda: run(None), STEP)
    with persister() as (keeper, _):
        measure("A", "Burr sqlite", lambda: run(keeper), STEP)


def row_b() -> None:
    def once() -> tuple[float, float]:
        with persister() as (keeper, place):
            TIMES.clear()
            ways = [("append", "append", expr(f"len(messages) < {LONG}")), ("append", "stop", default)]
            build({"append": append, "stop": stop}, ways, {"messages": []}, "append", keeper).run(
                halt_after=["stop"]
            )
            return ends(TIMES), stored(place)

    measure("B", "Burr sqlite", once, GROWTH, STORED, rounds=2, warm=0)


def row_c() -> None:
    weight = heavy()

    def once() -> tuple[float, float]:
        with persister() as (keeper, place):
            ways = [("count", "count", expr(f"n < {STEPS}")), ("count", "stop", default)]
            app = build({"count": count, "stop": stop}, ways, {"weight": weight, "n": 0}, "count", keeper)
            began = now()
            app.run(halt_after=["stop"])
            return (now() - began) / STEPS, stored(place)

    measure("C", "Burr sqlite", once, STEP, STORED, rounds=3, warm=0)


def row_e() -> None:
    ways = [("append", "append", expr("len(messages) < 100000")), ("append", "stop", default)]
    nodes, name = {"append": append, "stop": stop}, uuid.uuid4().hex
    with persister() as (keeper, _):
        app = build(nodes, ways, {"messages": []}, "append", keeper, name)
        for _ in range(LONG):
            app.step()

        def once() -> float:
            began = now()
            again = (
                ApplicationBuilder()
                .with_actions(**nodes)
                .with_transitions(*ways)
                .with_identifiers(app_id=name, partition_key="p")
                .initialize_from(
                    keeper,
                    resume_at_next_action=True,
                    default_state={"messages": []},
                    default_entrypoint="append",
                )
                .with_state_persister(keeper)
                .build()
            )
            again.step()
            return now() - began

        measure("E", "Burr sqlite", once, RESUME)


if __name__ == "__main__":
    main({"A": row_a, "B": row_b, "C": row_c, "E": row_e})
