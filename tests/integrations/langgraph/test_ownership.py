from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypedDict, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.errors import EmptyInputError
from langgraph.graph import START, StateGraph

from holdfast import Holdfast
from holdfast.errors import LeaseLostError, StoreUnavailableError, ThreadOwnedError
from holdfast.integrations.langgraph import HoldfastSaver, private_names
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.langgraph_ownership import LanggraphOwnershipSuite
from tests.deadlines import HANG
from tests.services import postgres

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


pytestmark = pytest.mark.anyio


class Counted(TypedDict):
    n: int


class SaverKit:
    def __init__(self, address: str) -> None:
        self._address = address
        self._clock = FakeClock()
        self.open = AsyncExitStack()

    async def saver(self, **settings: Any) -> HoldfastSaver:
        hf = await self.open.enter_async_context(Holdfast(self._address, clock=self._clock))
        saver = HoldfastSaver(hf, **settings)
        self.open.push_async_callback(saver.aclose)
        return saver

    def expire(self) -> None:
        self._clock.advance(seconds=31)


@pytest.fixture
async def owners(tmp_path: Path) -> AsyncIterator[SaverKit]:
    kit = SaverKit(f"sqlite:{tmp_path / 'threads.db'}?sync=normal")
    async with kit.open:
        yield kit


class TestOwnership(LanggraphOwnershipSuite):
    pass


def two_steps() -> Any:
    builder = StateGraph(Counted)
    builder.add_node("one", lambda _state: {"n": 1})
    builder.add_node("two", lambda _state: {"n": 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return builder


@pytest.mark.covers("IN-20", "IN-23")
async def test_a_stream_that_waits_for_its_reader_keeps_the_thread(tmp_path: Path) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        graph = two_steps().compile(checkpointer=saver)
        stream = graph.astream({"n": 0}, config)
        await anext(stream)
        with pytest.raises(ThreadOwnedError):
            await graph.ainvoke({"n": 0}, config)
        assert [each async for each in stream]


SEQUENTIAL = 25


def address_of(kind: str, tmp_path: Path) -> str:
    return postgres.emptied("owned") if kind == "postgres" else f"sqlite:{tmp_path / 't.db'}?sync=normal"


@pytest.mark.covers("IN-23")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("sync", [False, True])
async def test_a_second_saver_that_invokes_at_once_is_not_refused(
    kind: str, sync: bool, tmp_path: Path
) -> None:
    address, config = address_of(kind, tmp_path), cast("Any", {"configurable": {"thread_id": "t"}})
    async with HoldfastSaver.open(address) as one, HoldfastSaver.open(address) as other:
        graphs = [failing_once([]).compile(checkpointer=each) for each in (one, other)]
        for _ in range(SEQUENTIAL):
            for graph in graphs:
                if sync:
                    await asyncio.to_thread(graph.invoke, {"n": 0}, config)
                else:
                    await graph.ainvoke({"n": 0}, config)


_OTHER = """
import asyncio, sys
from tests.integrations.langgraph.test_ownership import failing_once
from holdfast.integrations.langgraph import HoldfastSaver

async def main():
    async with HoldfastSaver.open(sys.argv[1]) as saver:
        graph = failing_once([]).compile(checkpointer=saver)
        print("ready", flush=True)
        for _line in sys.stdin:
            await graph.ainvoke({"n": 0}, {"configurable": {"thread_id": "t"}})
            print("done", flush=True)

asyncio.run(main())
"""


@pytest.mark.covers("IN-23")
async def test_a_second_process_that_invokes_at_once_is_not_refused(tmp_path: Path) -> None:
    address, config = address_of("sqlite", tmp_path), cast("Any", {"configurable": {"thread_id": "t"}})
    async with HoldfastSaver.open(address) as saver:
        graph = failing_once([]).compile(checkpointer=saver)
        pipes: Any = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", _OTHER, address, **pipes)
        assert other.stdin is not None
        assert other.stdout is not None
        assert await other.stdout.readline() == b"ready\n"
        for _ in range(SEQUENTIAL):
            await graph.ainvoke({"n": 0}, config)
            other.stdin.write(b"\n")
            assert await other.stdout.readline() == b"done\n"
        other.stdin.close()
        assert await other.wait() == 0


def renewals_of(store: Any) -> list[set[str]]:
    """The threads of each renewal, from now on."""
    renewed, extend = list[set[str]](), store.extend_graph_claims

    async def noted(claims: Any, ttl: int) -> list[bool]:
        renewed.append({each.thread for each in claims})
        return await extend(claims, ttl)

    store.extend_graph_claims = noted
    return renewed


@pytest.mark.covers("IN-23", "IN-25")
@pytest.mark.parametrize("sync", [False, True])
async def test_a_stream_whose_reader_does_not_come_back_loses_the_thread_to_another(
    owners: SaverKit, sync: bool
) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    saver, other = await owners.saver(lease="90ms"), await owners.saver()
    renewed = renewals_of(await saver.store())
    async with saver.own("owned"):
        graph = two_steps().compile(checkpointer=saver)
        stream: Any = graph.stream({"n": 0}, config) if sync else graph.astream({"n": 0}, config)
        await (asyncio.to_thread(next, stream) if sync else anext(stream))
        async with asyncio.timeout(HANG):
            # The block may have been renewed before the stream had begun.
            for threads in ({"owned", "t"}, {"owned"}):
                while threads not in renewed:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                renewed.clear()
        owners.expire()
        assert (await two_steps().compile(checkpointer=other).ainvoke({"n": 0}, config))["n"] == 2
        with pytest.raises(LeaseLostError):
            await (asyncio.to_thread(list, stream) if sync else anext(stream))


@pytest.mark.covers("IN-20", "IN-22")
async def test_a_claim_is_renewed_while_a_node_runs_or_a_stream_is_read(owners: SaverKit) -> None:
    end = asyncio.Event()

    async def talk(_state: Counted) -> Counted:
        write = get_stream_writer()
        while not end.is_set():
            write("more")
            await asyncio.sleep(0.01)
        return {"n": 1}

    saver = await owners.saver(lease="90ms")
    renewed = renewals_of(await saver.store())
    graph = StateGraph(Counted).add_node("talk", talk).add_edge(START, "talk").compile(saver)

    async def read() -> None:
        config: Any = {"configurable": {"thread_id": "read"}}
        async for _ in graph.astream({"n": 0}, config, stream_mode="custom"):
            await asyncio.sleep(0.02)

    both = asyncio.gather(read(), graph.ainvoke({"n": 0}, {"configurable": {"thread_id": "invoked"}}))
    async with asyncio.timeout(HANG):
        while renewed.count({"read", "invoked"}) < 25:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    both_began = renewed.index({"read", "invoked"})
    assert all(each == {"read", "invoked"} for each in renewed[both_began:])
    end.set()
    await both


@pytest.mark.covers("IN-21")
async def test_debug_events_of_a_stream_have_no_claim(tmp_path: Path) -> None:
    builder = StateGraph(Counted)
    builder.add_node("one", lambda _state: {"n": 1})
    builder.add_edge(START, "one")
    config: Any = {"configurable": {"thread_id": "t"}}
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        graph = builder.compile(checkpointer=saver)
        events = [each async for each in graph.astream({"n": 0}, config, stream_mode="debug")]
    assert "config" in str(events)
    assert "claim" not in str(events).lower()


@pytest.mark.covers("IN-20", "IN-23")
async def test_an_invocation_in_another_thread_keeps_the_thread_of_its_graph(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    def step(_state: Any) -> Any:
        begun.set()
        go.wait(HANG)
        return {"n": 1}

    builder = StateGraph(Counted)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    config: Any = {"configurable": {"thread_id": "t"}}
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        graph = builder.compile(checkpointer=saver)
        first = asyncio.ensure_future(asyncio.to_thread(graph.invoke, {"n": 0}, config))
        await asyncio.to_thread(begun.wait, HANG)
        for invoke in (graph.ainvoke, lambda *given: asyncio.to_thread(graph.invoke, *given)):
            with pytest.raises(ThreadOwnedError):
                await invoke({"n": 0}, config)
        go.set()
        assert await first == {"n": 1}


def failing_once(failures: list[Exception]) -> Any:
    """Raises what is left in the list."""

    def step(state: Counted) -> Counted:
        if failures:
            raise failures.pop()
        return {"n": state["n"] + 1}

    builder = StateGraph(Counted)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    return builder


@pytest.mark.covers("IN-23")
@pytest.mark.parametrize("sync", [False, True])
async def test_a_program_that_keeps_the_error_of_an_invocation_can_resume_the_thread(
    tmp_path: Path, sync: bool
) -> None:
    failures = [ValueError("twice"), ValueError("once")]
    config: Any = {"configurable": {"thread_id": "t"}}
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        graph = failing_once(failures).compile(checkpointer=saver)

        async def invoke(given: Any) -> Any:
            return await (
                asyncio.to_thread(graph.invoke, given, config) if sync else graph.ainvoke(given, config)
            )

        kept: list[BaseException] = []
        for given in ({"n": 0}, None):
            with pytest.raises(ValueError) as caught:
                await invoke(given)
            kept.append(caught.value)
        assert await invoke(None) == {"n": 1}
        # It fails before its first step: there is nothing to resume.
        config["configurable"]["thread_id"] = "new"
        with pytest.raises(EmptyInputError) as empty:
            await invoke(None)
        kept.append(empty.value)
        assert await invoke({"n": 5}) == {"n": 6}
        assert all(each.__traceback__ is not None for each in kept)


@pytest.mark.covers("IN-23")
async def test_a_release_that_failed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[Any] = [{"configurable": {"thread_id": f"t{n}"}} for n in range(3)]
    async with HoldfastSaver.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        store, failed = await saver.store(), list[str]()
        release = store.release_graph_claim

        async def away(claim: Any) -> bool:
            # Where the invocation ends, and where it is made again; not where the thread is claimed again.
            if claim.thread not in failed or threading.current_thread().name == "holdfast-saver":
                failed.append(claim.thread)
                raise StoreUnavailableError("on purpose")
            return await release(claim)

        monkeypatch.setattr(store, "release_graph_claim", away)
        graph = failing_once([]).compile(checkpointer=saver)
        await asyncio.gather(*(graph.ainvoke({"n": 0}, each) for each in threads))
        assert sorted(set(failed)) == ["t0", "t1", "t2"]
        for each in threads:
            assert await graph.ainvoke({"n": 1}, each) == {"n": 2}


@pytest.mark.covers("IN-3")
async def test_the_loop_of_langgraph_shows_its_end(tmp_path: Path) -> None:
    seen: list[object] = []

    class Watched(HoldfastSaver):
        async def aget_tuple(self, config: Any) -> Any:
            seen.append(private_names.invocation_of_caller())
            return await super().aget_tuple(config)

        def get_tuple(self, config: Any) -> Any:
            seen.append(private_names.invocation_of_caller())
            return super().get_tuple(config)

    async with Watched.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        graph = failing_once([]).compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        await graph.ainvoke({"n": 0}, config)
        await asyncio.to_thread(graph.invoke, {"n": 0}, config)
        await graph.aget_state(config)
    assert [each is None for each in seen] == [False, False, True], private_names.__file__


@pytest.mark.covers("IN-20", "IN-21")
async def test_a_node_that_invokes_a_graph_on_a_thread_in_use_is_refused(tmp_path: Path) -> None:
    begun, end = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    async def work(state: Counted) -> Counted:
        ran.append(state["n"])
        begun.set()
        await end.wait()
        return state

    async def call(_state: Counted, config: RunnableConfig) -> Counted:
        place = {**(config.get("configurable") or {}), "thread_id": "t", "checkpoint_ns": ""}
        return await agent.ainvoke({"n": 2}, {**config, "configurable": place})

    async with HoldfastSaver.open(f"sqlite:{tmp_path / 't.db'}?sync=normal") as saver:
        agent: Any = StateGraph(Counted).add_node("work", work).add_edge(START, "work").compile(saver)
        outer: Any = StateGraph(Counted).add_node("call", call).add_edge(START, "call").compile(saver)
        first = asyncio.ensure_future(agent.ainvoke({"n": 1}, {"configurable": {"thread_id": "t"}}))
        await begun.wait()
        second = asyncio.ensure_future(outer.ainvoke({"n": 0}, {"configurable": {"thread_id": "outer"}}))
        while not second.done() and len(ran) == 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        end.set()
        with pytest.raises(ThreadOwnedError):
            await second
        await first
        assert ran == [1]
