"""Writes of tasks and the checkpoint of their step are one transaction; a new thread is not read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from holdfast.errors import StoreBusyError
from holdfast.integrations.langgraph import HoldfastSaver
from tests.deadlines import HANG
from tests.integrations.langgraph.test_saver import checkpoint_of, config_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holdfast.types.graph_thread import GraphBatch

pytestmark = pytest.mark.anyio

Puts = list[tuple[int, int]]
"""(checkpoints, writes) of each put."""


class Counted(TypedDict):
    n: int


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[HoldfastSaver]:
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 'threads.db'}?sync=normal") as opened:
        yield opened


async def puts_of(
    saver: HoldfastSaver, monkeypatch: pytest.MonkeyPatch, *, refused: bool = False, gate: Any = None
) -> Puts:
    """What is put from now on. `refused`: puts of checkpoints fail. `gate`: they wait for it."""
    store: Any = await saver.store()
    put, found = store.put_graph_rows, Puts()

    async def counted(batch: GraphBatch) -> Any:
        found.append((len(batch.checkpoints), len(batch.writes)))
        if batch.checkpoints and gate is not None:
            await gate.wait()
        if batch.checkpoints and refused:
            raise StoreBusyError("the store is busy.", hint="Try again.")
        return await put(batch)

    monkeypatch.setattr(store, "put_graph_rows", counted)
    return found


def counter(saver: HoldfastSaver, steps: int) -> Any:
    async def step(state: Counted) -> Counted:
        return {"n": state["n"] + 1}

    async def onwards(state: Counted) -> str:
        return END if state["n"] >= steps else "step"

    graph = StateGraph(Counted)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", onwards, ["step", END])
    return graph.compile(checkpointer=saver)


@pytest.mark.covers("IN-12")
@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_the_writes_of_a_step_are_put_with_its_checkpoint(
    saver: HoldfastSaver, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    puts = await puts_of(saver, monkeypatch)
    await counter(saver, 3).ainvoke({"n": 0}, config_of("t"), durability=durability)
    # The input, the step that begins the graph, and its three.
    assert [checkpoints for checkpoints, _ in puts] == [1] * 5
    assert [writes > 0 for _, writes in puts] == [False, True, True, True, True]
    stored = [each async for each in saver.alist(config_of("t"))]
    assert [len(each.pending_writes or ()) > 0 for each in reversed(stored)] == [True] * 4 + [False]


@pytest.mark.covers("IN-12")
async def test_writes_that_no_checkpoint_follows_are_put_alone(
    saver: HoldfastSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await saver.aput(config_of("t"), checkpoint_of("1", {}, {}), {}, {})
    puts = await puts_of(saver, monkeypatch)
    async with asyncio.timeout(HANG):
        await saver.aput_writes(config_of("t", "1"), [("lines", "a")], "task")
    assert puts == [(0, 1)]
    found = await saver.aget_tuple(config_of("t"))
    assert found is not None
    assert found.pending_writes == [("task", "lines", "a")]


@pytest.mark.covers("IN-12")
async def test_writes_are_put_though_the_checkpoint_after_them_is_not(
    saver: HoldfastSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await saver.aput(config_of("t"), checkpoint_of("1", {}, {}), {}, {})
    puts = await puts_of(saver, monkeypatch, refused=True)
    async with asyncio.timeout(HANG):
        written, put = await asyncio.gather(
            saver.aput_writes(config_of("t", "1"), [("lines", "a")], "task"),
            saver.aput(config_of("t", "1"), checkpoint_of("2", {}, {}), {}, {}),
            return_exceptions=True,
        )
    assert written is None
    assert isinstance(put, StoreBusyError)
    assert puts == [(1, 1), (0, 1)]
    found = await saver.aget_tuple(config_of("t"))
    assert found is not None
    assert (found.checkpoint["id"], found.pending_writes) == ("1", [("task", "lines", "a")])


@pytest.mark.covers("IN-12")
async def test_writes_wait_for_the_checkpoint_that_they_belong_to(
    saver: HoldfastSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    puts = await puts_of(saver, monkeypatch, gate=gate)
    first = asyncio.ensure_future(saver.aput(config_of("t"), checkpoint_of("1", {}, {}), {}, {}))
    while not puts:  # noqa: ASYNC110
        await asyncio.sleep(0)
    writes = [
        asyncio.ensure_future(saver.aput_writes(config_of("t", "1"), [("lines", task)], task))
        for task in ("cancelled", "kept")
    ]
    for _ in range(50):
        await asyncio.sleep(0)
    assert puts == [(1, 0)]
    writes[0].cancel()
    gate.set()
    async with asyncio.timeout(HANG):
        await asyncio.gather(first, writes[1])
    assert writes[0].cancelled()
    assert puts == [(1, 0), (0, 1)]
    found = await saver.aget_tuple(config_of("t"))
    assert found is not None
    assert found.pending_writes == [("kept", "lines", "kept")]


@pytest.mark.covers("IN-22")
async def test_a_thread_that_an_invocation_has_made_is_not_read(
    saver: HoldfastSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = await saver.store()
    read, reads = store.graph_checkpoint, list[str]()

    async def counted(tenant: str, thread: str, *place: Any) -> Any:
        reads.append(thread)
        return await read(tenant, thread, *place)

    monkeypatch.setattr(store, "graph_checkpoint", counted)
    graph = counter(saver, 1)
    assert await graph.ainvoke({"n": 0}, config_of("t")) == {"n": 1}
    assert reads == []
    # There is nothing to do: the answer is what the thread has.
    assert await graph.ainvoke(None, config_of("t")) == {"n": 1}
    assert reads == ["t"]
    async with saver.own("u"):
        await graph.ainvoke({"n": 0}, config_of("u"))
        assert await graph.ainvoke(None, config_of("u")) == {"n": 1}
    assert reads == ["t", "u", "u"]
