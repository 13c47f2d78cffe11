"""Row Y: graphs of LangGraph with our saver, beside the same graphs with LangGraph's own savers.

The time in a saver is that of a step with it, less that of the same step without one. All commit before the
next step starts (`durability="sync"`). With 200 threads at once the time of LangGraph itself is part of the
figure, so the same graphs with a saver that stores nothing are the most that any saver could reach.
"""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from bench.lines import Line
from bench.measure import Plan, folder, interleaved, line, ratios, stored
from bench.server import ABSENT, database, server
from holdfast.integrations.langgraph import HoldfastSaver

THREADS, EACH, POOL = 200, 5, 16
# Nothing that a database could compress.
WEIGHT = os.urandom(500_000).hex()
Opens = Callable[[], AbstractAsyncContextManager[Any]]


class Small(TypedDict):
    n: int


class Appended(TypedDict):
    messages: Annotated[list[str], operator.add]
    n: int


class Carried(TypedDict):
    weight: str
    n: int


def loop_of(kind: type, steps: int, keeper: Any) -> Any:
    """A graph that calls one node so many times."""

    async def step(state: Any) -> Any:
        changed: dict[str, Any] = {"n": state["n"] + 1}
        if kind is Appended:
            changed["messages"] = [os.urandom(500).hex()]
        return changed

    graph = StateGraph(kind)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda s: END if s["n"] >= steps else "step", ["step", END])
    return graph.compile(checkpointer=keeper)


def first_of(state: type) -> dict[str, Any]:
    more = {Appended: {"messages": []}, Carried: {"weight": WEIGHT}}
    return {"n": 0, **more.get(state, {})}


async def timed(state: type, steps: int, keeper: Any, graph: Any = None) -> float:
    """Seconds of a whole run. `graph`: if it is compiled already."""
    graph = graph or loop_of(state, steps, keeper)
    config = {"configurable": {"thread_id": uuid4().hex}, "recursion_limit": steps + 10}
    extra = {} if keeper is None else {"durability": "sync"}
    began = perf_counter()
    await graph.ainvoke(first_of(state), config, **extra)
    return perf_counter() - began


class StoresNothing(BaseCheckpointSaver[str]):
    """What remains is what LangGraph does for any saver."""

    async def aget_tuple(self, config: Any) -> None:
        return None

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        pass

    def get_next_version(self, current: str | None, channel: None) -> str:
        return f"{0 if current is None else int(current) + 1:032}"


def row_y(plan: Plan) -> list[Line]:
    found = asyncio.run(_sqlite(plan))
    with server() as place:
        if place is None:
            return [*found, Line(row="Y", name="PostgreSQL, not measured", value=None, unit="", note=ABSENT)]
        with database(place) as address:
            return [*found, *asyncio.run(_postgres(plan, address))]


# ---------------------------------------------------------------------- SQLite


async def _sqlite(plan: Plan) -> list[Line]:
    appends = 300 if plan.quick else 1000
    small = await _in_saver(plan.some, Small, 100, _ours_on_files, _theirs_on_files)
    grown = await _in_saver(plan.few, Appended, appends, _ours_on_files, _theirs_on_files)
    by_theirs = ratios(await _bytes(Appended, appends, _ours_at), await _bytes(Appended, appends, _theirs_at))
    said = f"{appends:,} appends of 1 KB, SQLite"
    return [
        line("Y", "small state, SQLite", small, "x theirs", target="Y-small-sqlite"),
        line("Y", said, grown, "x theirs", target="Y-appends"),
        line("Y", f"{said}, bytes", by_theirs, "x theirs", target="Y-appends-bytes"),
    ]


async def _in_saver(rounds: int, state: type, steps: int, ours: Opens, theirs: Opens) -> list[float]:
    """Our time in the saver by theirs, for each round."""
    async with ours() as mine, theirs() as other:
        found = await interleaved(
            rounds,
            none=_run(state, steps, None),
            ours=_run(state, steps, mine),
            theirs=_run(state, steps, other),
        )
    rows = zip(found["ours"], found["theirs"], found["none"], strict=True)
    return [max(mine - none, 0.0) / max(other - none, 1e-9) for mine, other, none in rows]


def _run(state: type, steps: int, keeper: Any) -> Callable[[], Awaitable[float]]:
    return lambda: timed(state, steps, keeper)


@asynccontextmanager
async def _ours_at(place: Path) -> AsyncIterator[Any]:
    async with HoldfastSaver.open(f"sqlite:{place}/ours.db") as found:
        yield found


@asynccontextmanager
async def _theirs_at(place: Path) -> AsyncIterator[Any]:
    async with AsyncSqliteSaver.from_conn_string(f"{place}/theirs.db") as found:
        yield found


@asynccontextmanager
async def _ours_on_files() -> AsyncIterator[Any]:
    with folder() as place:
        async with _ours_at(place) as found:
            yield found


@asynccontextmanager
async def _theirs_on_files() -> AsyncIterator[Any]:
    with folder() as place:
        async with _theirs_at(place) as found:
            yield found


async def _bytes(
    state: type, steps: int, opens: Callable[[Path], AbstractAsyncContextManager[Any]]
) -> list[float]:
    with folder() as place:
        async with opens(place) as keeper:
            await timed(state, steps, keeper)
        return [float(stored(place))]


# ---------------------------------------------------------------------- PostgreSQL


async def _postgres(plan: Plan, address: str) -> list[Line]:
    @asynccontextmanager
    async def theirs() -> AsyncIterator[Any]:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        async with AsyncConnectionPool(address, min_size=POOL, max_size=POOL, kwargs=options) as pool:
            keeper = AsyncPostgresSaver(pool)  # pyright: ignore[reportArgumentType]
            await keeper.setup()
            yield keeper

    def ours() -> Any:
        return HoldfastSaver.open(address)

    small = await _in_saver(plan.some, Small, 50, ours, theirs)
    async with ours() as mine, theirs() as other:
        crowds = await interleaved(
            plan.few,
            ours=lambda: _crowd(mine),
            theirs=lambda: _crowd(other),
            none=lambda: _crowd(StoresNothing()),
        )
        mine_size = await _added(address, lambda: timed(Carried, 100, mine))
        other_size = await _added(address, lambda: timed(Carried, 100, other))
    speeds = {kind: [THREADS * EACH / seconds for seconds in took] for kind, took in crowds.items()}
    most = ratios(speeds["none"], speeds["theirs"])
    said = f"{THREADS} threads of {EACH} steps at once, PostgreSQL"
    return [
        line("Y", "small state, PostgreSQL", small, "x theirs", target="Y-small-postgres"),
        line("Y", said, ratios(speeds["ours"], speeds["theirs"]), "x their steps/s", target="Y-crowd"),
        line("Y", f"{said}, a saver that stores nothing", most, "x their steps/s"),
        line("Y", f"{said}, ours", speeds["ours"], "steps/s"),
        line("Y", f"{said}, a saver that stores nothing", speeds["none"], "steps/s"),
        line(
            "Y", "constant 1 MB over 100 steps, PostgreSQL, bytes", [mine_size / other_size], "x theirs",
            target="Y-constant-bytes",
        ),
    ]  # fmt: skip


async def _crowd(keeper: Any) -> float:
    # Compiled once, as applications do: 200 compilations would count as time of the steps.
    graph = loop_of(Small, EACH, keeper)
    began = perf_counter()
    await asyncio.gather(*(timed(Small, EACH, keeper, graph) for _ in range(THREADS)))
    return perf_counter() - began


async def _added(address: str, work: Callable[[], Awaitable[float]]) -> int:
    """The bytes by which the database grows."""
    before = await _size(address)
    await work()
    return await _size(address) - before


async def _size(address: str) -> int:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    connection = await driver.connect(address)
    try:
        return int(await connection.fetchval("SELECT pg_database_size(current_database())"))
    finally:
        await connection.close()
