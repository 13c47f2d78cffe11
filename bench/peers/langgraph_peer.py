"""LangGraph with its SQLite and PostgreSQL savers, in each durability mode that it has."""

from __future__ import annotations

import asyncio
import contextlib
import operator
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from kit import (
    DATABASE,
    EACH,
    GROWTH,
    LONG,
    PEOPLE,
    PERSON,
    RESUME,
    RUNS,
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
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

MESSAGES = [message(number) for number in range(LONG + 100)]


class Count(TypedDict):
    x: int


class Grow(TypedDict):
    messages: Annotated[list, operator.add]


class Carry(TypedDict):
    weight: str
    n: int


@contextlib.contextmanager
def saver(kind: str) -> Iterator[tuple[Any, Path]]:
    with folder() as place:
        if kind == "sqlite":
            with SqliteSaver.from_conn_string(str(place / "langgraph.db")) as found:
                yield found, place
        else:
            yield (InMemorySaver() if kind == "memory" else None), place


def config(limit: int = 100_000) -> dict[str, Any]:
    return {"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": limit}


def line_of(count: int, keeper: Any) -> Any:
    graph = StateGraph(Count)
    for i in range(count):
        graph.add_node(f"n{i}", lambda state, i=i: {"x": i})
        graph.add_edge(f"n{i - 1}" if i else START, f"n{i}")
    graph.add_edge(f"n{count - 1}", END)
    return graph.compile(checkpointer=keeper)


def loop_of(state: type, keeper: Any, times: list[float], steps: int, body: Callable[[Any], Any]) -> Any:
    def step(values: Any) -> Any:
        times.append(now())
        return body(values)

    graph = StateGraph(state)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda _: END if len(times) >= steps else "step", ["step", END])
    return graph.compile(checkpointer=keeper)


def row_a() -> None:
    for kind, mode in [
        ("none", None),
        ("memory", None),
        ("sqlite", "sync"),
        ("sqlite", "async"),
        ("sqlite", "exit"),
    ]:
        with saver(kind) as (keeper, _):
            graph = line_of(STEPS, keeper)
            extra = {"durability": mode} if mode else {}

            def once(graph: Any = graph, extra: Any = extra) -> float:
                began = now()
                graph.invoke({"x": 0}, config(), **extra)
                return (now() - began) / STEPS

            measure("A", f"LangGraph {kind} {mode or ''}".strip(), once, STEP)


def row_b() -> None:
    def once() -> tuple[float, float]:
        with saver("sqlite") as (keeper, place):
            times: list[float] = []
            graph = loop_of(Grow, keeper, times, LONG, lambda s: {"messages": [MESSAGES[len(s["messages"])]]})
            graph.invoke({"messages": []}, config(), durability="sync")
            return ends(times), stored(place)

    measure("B", "LangGraph sqlite sync", once, GROWTH, STORED, rounds=2, warm=0)


def row_c() -> None:
    weight = heavy()

    def once() -> tuple[float, float]:
        with saver("sqlite") as (keeper, place):
            graph = loop_of(Carry, keeper, [], STEPS, lambda s: {"n": s["n"] + 1})
            began = now()
            graph.invoke({"weight": weight, "n": 0}, config(), durability="sync")
            return (now() - began) / STEPS, stored(place)

    measure("C", "LangGraph sqlite sync", once, STEP, STORED, rounds=3)


def row_d() -> None:
    """Many runs at once, on one pool of 20 connections. Each run is a thread of its own."""
    for mode in ("sync", "async", "exit"):
        crowd = Crowd(mode)
        measure("D", f"LangGraph postgres {mode}", crowd.once, STEP, rounds=3, finish=crowd.close)


class Crowd:
    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._pool: Any = None
        self._graph: Any = None

    async def once(self) -> float:
        if self._pool is None:
            await self._open()
        began = now()
        runs = [self._graph.ainvoke({"x": 0}, config(), durability=self._mode) for _ in range(RUNS)]
        await asyncio.gather(*runs)
        return (now() - began) / (RUNS * EACH)

    async def _open(self) -> None:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self._pool = AsyncConnectionPool(DATABASE, max_size=20, open=False, kwargs=options)
        await self._pool.open()
        keeper = AsyncPostgresSaver(self._pool)
        await keeper.setup()
        graph = StateGraph(Count)

        async def step(state: Count) -> Count:
            return {"x": state["x"] + 1}

        graph.add_node("step", step)
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda s: END if s["x"] >= EACH else "step", ["step", END])
        self._graph = graph.compile(checkpointer=keeper)

    async def close(self) -> None:
        await self._pool.close()


def row_e() -> None:
    with saver("sqlite") as (keeper, _):
        times: list[float] = []
        where = config(LONG)

        def graph() -> Any:
            grow = lambda s: {"messages": [MESSAGES[len(s["messages"]) % LONG]]}  # noqa: E731
            return loop_of(Grow, keeper, times, 10**9, grow)

        with contextlib.suppress(GraphRecursionError):
            graph().invoke({"messages": []}, where, durability="sync")
        where["recursion_limit"] = 100_000

        def once() -> float:
            fresh = graph()
            began = now()
            fresh.invoke(None, where, durability="sync", interrupt_after=["step"])
            return now() - began

        measure("E", "LangGraph sqlite sync", once, RESUME)


def row_f() -> None:
    with saver("sqlite") as (keeper, _):
        graph = StateGraph(Count)
        graph.add_node("before", lambda _: {"x": 1})
        graph.add_node("ask", lambda _: {"x": interrupt({"question": "approve?"})})
        graph.add_node("after", lambda s: {"x": s["x"] + 1})
        for source, target in [(START, "before"), ("before", "ask"), ("ask", "after"), ("after", END)]:
            graph.add_edge(source, target)
        ready = graph.compile(checkpointer=keeper)

        def once() -> float:
            began = now()
            for _ in range(PEOPLE):
                where = config()
                assert "__interrupt__" in ready.invoke({"x": 0}, where, durability="sync")
                assert ready.invoke(Command(resume=41), where, durability="sync")["x"] == 42
            return (now() - began) / PEOPLE

        measure("F", "LangGraph sqlite sync", once, PERSON)


if __name__ == "__main__":
    main({"A": row_a, "B": row_b, "C": row_c, "D": row_d, "E": row_e, "F": row_f})
