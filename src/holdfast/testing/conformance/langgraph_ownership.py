"""Ownership of LangGraph's threads: the suite for a saver with `own(thread_id)`.

Its author makes a fixture `owners`: an `OwnerKit` that opens savers on one store, each as if in a process of
its own, and lets the claims of one expire. Needs pytest, anyio and langgraph.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator
from typing import Annotated, Any, Protocol, TypedDict, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command, interrupt

from holdfast.errors import LeaseLostError, ThreadOwnedError


class OwnerKit(Protocol):
    async def saver(self, **settings: Any) -> Any:
        """Another saver on the store; closed with the kit."""
        ...

    def expire(self) -> None:
        """Every claim that is alive expires, as if its process had been killed."""
        ...


class Lines(TypedDict):
    lines: Annotated[list[str], operator.add]


class Work:
    """A graph of two nodes, of which the first counts its calls and may be held up. `held`: the second, when
    it has its answer."""

    def __init__(
        self, *, asks: bool = False, nested: bool = False, fails: bool = False, held: bool = False
    ) -> None:
        self.calls = 0
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()
        self._asks, self._nested, self._fails, self._held = asks, nested, fails, held

    def graph(self, saver: Any) -> Any:
        async def first(_state: Lines) -> dict[str, list[str]]:
            self.calls += 1
            self.entered.set()
            if self._fails:
                raise RuntimeError("on purpose")
            if not self._asks:
                await self.go_on.wait()
            return {"lines": ["first"]}

        def second(_state: Lines) -> dict[str, list[str]]:
            return {"lines": [str(interrupt("go on?")) if self._asks else "second"]}

        async def held(state: Lines) -> dict[str, list[str]]:
            answered = second(state)
            await self.go_on.wait()
            return answered

        last = held if self._held else second
        inner: Any = cast("Any", StateGraph)(Lines)
        inner.add_node("second", last)
        inner.add_edge(START, "second")
        outer: Any = cast("Any", StateGraph)(Lines)
        outer.add_node("first", first)
        outer.add_node("second", inner.compile() if self._nested else last)
        outer.add_edge(START, "first")
        outer.add_edge("first", "second")
        return outer.compile(checkpointer=saver)


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


async def raw_claim(saver: Any, name: str = "t") -> dict[str, Any]:
    """What the load of a loop gets: the configuration that its writes are made with."""
    config = thread(name)
    config["configurable"] |= {"__pregel_runtime": object(), "checkpoint_ns": ""}
    await saver.aget_tuple(config)
    return config


async def put(saver: Any, config: dict[str, Any], checkpoint: Any = None) -> dict[str, Any]:
    return await saver.aput(config, checkpoint or empty_checkpoint(), {"source": "loop", "step": 0}, {})


async def ids(saver: Any, name: str = "t") -> list[str]:
    return [each.checkpoint["id"] async for each in saver.alist(thread(name))]


@pytest.mark.anyio
class LanggraphOwnershipSuite:
    @pytest.mark.covers("IN-25")
    @pytest.mark.parametrize("nested", [False, True])
    async def test_of_two_resumes_one_runs_and_the_other_is_refused(
        self, owners: OwnerKit, nested: bool
    ) -> None:
        work, saver = Work(asks=True, nested=nested, held=True), await owners.saver()
        graph = work.graph(saver)
        given = thread()
        await graph.ainvoke({"lines": []}, given)
        resumes = [
            asyncio.ensure_future(graph.ainvoke(Command(resume=name), given)) for name in ("one", "two")
        ]
        # The one that runs does not end before the other was refused.
        await asyncio.wait(resumes, return_when=asyncio.FIRST_COMPLETED)
        work.go_on.set()
        both = await asyncio.gather(*resumes, return_exceptions=True)
        refused = [each for each in both if isinstance(each, Exception)]
        assert [type(each) for each in refused] == [ThreadOwnedError]
        assert cast("ThreadOwnedError", refused[0]).facts["owner"]
        state = await graph.aget_state(given)
        assert len([line for line in state.values["lines"] if line in ("one", "two")]) == 1
        assert given == thread()
        assert not [each async for each in saver.alist(given) if "claim" in str(each.metadata)]

    @pytest.mark.covers("IN-20")
    async def test_a_second_start_is_refused_before_any_node_runs(self, owners: OwnerKit) -> None:
        work, mine, other = Work(), await owners.saver(), await owners.saver()
        running = asyncio.ensure_future(work.graph(mine).ainvoke({"lines": []}, thread()))
        await work.entered.wait()
        with pytest.raises(ThreadOwnedError):
            await work.graph(other).ainvoke({"lines": []}, thread())
        assert work.calls == 1
        work.go_on.set()
        assert (await running)["lines"] == ["first", "second"]

    async def test_other_threads_and_reads_are_free(self, owners: OwnerKit) -> None:
        work, mine, other = Work(), await owners.saver(), await owners.saver()
        running = asyncio.ensure_future(work.graph(mine).ainvoke({"lines": []}, thread()))
        await work.entered.wait()
        assert await other.aget_tuple(thread()) is not None
        assert len(await ids(other)) > 0
        free = Work()
        free.go_on.set()
        await free.graph(other).ainvoke({"lines": []}, thread("other"))
        for refused in (other.adelete_thread("t"), other.aprune(["t"]), other.acopy_thread("t", "copy")):
            with pytest.raises(ThreadOwnedError):
                await refused
        work.go_on.set()
        await running

    @pytest.mark.parametrize("end", ["finished", "failed", "cancelled", "abandoned"])
    async def test_the_claim_ends_with_the_invocation(self, owners: OwnerKit, end: str) -> None:
        work, mine = Work(fails=end == "failed"), await owners.saver()
        other = await owners.saver(on_conflict="wait:20s")
        await self._ended(work.graph(mine), work, end)
        again = Work()
        again.go_on.set()
        assert (await again.graph(other).ainvoke({"lines": ["x"]}, thread()))["lines"][-1] == "second"

    async def _ended(self, graph: Any, work: Work, end: str) -> None:
        if end == "abandoned":
            stream = cast("AsyncIterator[Any]", graph.astream({"lines": []}, thread(), stream_mode="debug"))
            await anext(stream)
            await cast("Any", stream).aclose()
            return
        running = asyncio.ensure_future(graph.ainvoke({"lines": []}, thread()))
        await work.entered.wait()
        if end == "cancelled":
            running.cancel()
        work.go_on.set()
        await asyncio.gather(running, return_exceptions=True)

    @pytest.mark.covers("IN-22")
    async def test_a_superseded_owner_writes_nothing(self, owners: OwnerKit) -> None:
        mine, other = await owners.saver(), await owners.saver()
        config = await raw_claim(mine)
        stored = await put(mine, config)
        owners.expire()
        later = await raw_claim(other)
        with pytest.raises(LeaseLostError):
            await put(mine, config)
        stale = {"configurable": config["configurable"] | stored["configurable"]}
        with pytest.raises(LeaseLostError):
            await mine.aput_writes(stale, [("lines", "stale")], "task")
        found = await other.aget_tuple(thread())
        assert found.pending_writes == []
        assert len(await ids(other)) == 1
        await put(other, later)

    async def test_a_claim_without_a_live_process_is_taken_over_when_it_expires(
        self, owners: OwnerKit
    ) -> None:
        mine, other = await owners.saver(), await owners.saver()
        kept = await raw_claim(mine)
        with pytest.raises(ThreadOwnedError):
            await raw_claim(other)
        owners.expire()
        await raw_claim(other)
        assert kept

    async def test_a_repeated_put_of_the_owner_adds_nothing(self, owners: OwnerKit) -> None:
        saver = await owners.saver()
        config, checkpoint = await raw_claim(saver), empty_checkpoint()
        for _ in range(2):
            await put(saver, config, checkpoint)
        assert await ids(saver) == [checkpoint["id"]]

    async def test_a_write_without_a_claim_is_refused_only_while_anothers_lives(
        self, owners: OwnerKit
    ) -> None:
        work, saver, other = Work(asks=True), await owners.saver(), await owners.saver()
        graph = work.graph(other)
        async with saver.own("t"):
            await work.graph(saver).ainvoke({"lines": []}, thread())
            with pytest.raises(ThreadOwnedError):
                await graph.aupdate_state(thread(), {"lines": ["x"]})
            await work.graph(saver).aupdate_state(thread(), {"lines": ["y"]})
        await graph.aupdate_state(thread(), {"lines": ["z"]})
        assert (await graph.aget_state(thread())).values["lines"] == ["first", "y", "z"]

    async def test_invocations_join_the_block_of_own(self, owners: OwnerKit) -> None:
        saver, other = await owners.saver(), await owners.saver()
        work = Work()
        work.go_on.set()
        async with saver.own("t"):
            for _ in range(2):
                await work.graph(saver).ainvoke({"lines": []}, thread())
            with pytest.raises(ThreadOwnedError):
                await work.graph(other).ainvoke({"lines": []}, thread())
        await work.graph(other).ainvoke({"lines": []}, thread())
        assert work.calls == 3
