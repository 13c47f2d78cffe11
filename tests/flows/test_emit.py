from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Event, Flow, Holdfast, Retry
from holdfast.types.record import Kind
from tests.deadlines import HANG
from tests.flows.places import Place, answer, kinds, told

pytestmark = pytest.mark.anyio


def texts(events: list[Event]) -> list[Any]:
    return [event.data["data"] for event in events]


@pytest.mark.covers("D-23", "CORE-CTX-03", "R-50")
async def test_what_a_node_emits_is_stored_in_batches_and_reported_in_order(hf: Holdfast) -> None:
    flow = Flow("emits")

    @flow.node(effect="read")
    async def talk(ctx: Context) -> dict[str, Any]:
        for i in range(100):
            ctx.emit(f"t{i}")
        ctx.emit({"done": 1.0}, kind="progress")
        return {}

    result = await flow.run(on=hf)
    emitted = await told(hf, result, "node.emitted")
    assert texts(emitted) == [*(f"t{i}" for i in range(100)), {"done": 1.0}]
    assert emitted[-1].data["kind"] == "progress"
    records = await (await hf.open()).read(result.run_id)
    assert sum(r.kind == Kind.chunk for r in records) == 1
    assert not any(r.listed for r in records if r.kind == Kind.chunk)


@pytest.mark.covers("D-23")
async def test_a_batch_is_written_when_it_is_large(hf: Holdfast) -> None:
    flow = Flow("emits")

    @flow.node(effect="read")
    async def talk(ctx: Context) -> dict[str, Any]:
        for _ in range(4):
            ctx.emit("x" * 3000)
        return {}

    result = await flow.run(on=hf)
    records = await (await hf.open()).read(result.run_id)
    assert sum(r.kind == Kind.chunk for r in records) == 2


@pytest.mark.covers("D-23", "CORE-CTX-03", "CORE-RUN-03", "G-49")
async def test_what_a_node_emits_is_shown_while_it_still_runs(hf: Holdfast) -> None:
    flow = Flow("live")
    seen = asyncio.Event()

    @flow.node(effect="read")
    async def talk(ctx: Context) -> dict[str, Any]:
        ctx.emit("hello")
        await asyncio.wait_for(seen.wait(), HANG)
        return {}

    types: list[str] = []
    async for event in flow.stream(on=hf):
        types.append(event.type)
        if event.type == "node.emitted":
            seen.set()
    assert types.index("node.emitted") < types.index("node.completed")
    assert types[-2] == "run.completed"


@pytest.mark.covers("D-23")
async def test_emits_name_their_attempt_when_a_node_is_retried(hf: Holdfast) -> None:
    flow = Flow("again")

    @flow.node(effect="read", retry=Retry(2, delay=0))
    async def talk(ctx: Context) -> dict[str, Any]:
        ctx.emit(f"try {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError("once more")
        return {}

    result = await flow.run(on=hf)
    emitted = await told(hf, result, "node.emitted")
    assert [(e.data["attempt"], e.data["data"]) for e in emitted] == [(1, "try 1"), (2, "try 2")]


@pytest.mark.covers("D-23")
async def test_a_new_attempt_is_announced_when_a_node_that_emitted_runs_again_after_a_crash(
    place: Place,
) -> None:
    flow = Flow("crash")

    async def nothing() -> None:
        return None

    @flow.script
    async def talk(ctx: Context) -> dict[str, Any]:
        ctx.emit(f"try {ctx.attempt}")
        ctx.flush_chunks()
        # Committing the intent commits what was emitted before it.
        await ctx.step("wire", nothing, effect="external", idempotent=True)
        return {}

    run = await place.crash(flow, {}, "after_intent")
    hf = await place.hf()
    assert (await flow.resume(run, on=hf)).completed
    story = await told(hf, run, "node.emitted", "node.restarted")
    assert [(e.type, e.data["attempt"]) for e in story] == [
        ("node.emitted", 1),
        ("node.restarted", 2),
        ("node.emitted", 2),
    ]


@pytest.mark.covers("D-23", "R-62")
async def test_nothing_is_said_twice_when_a_node_is_entered_again_after_an_answer(place: Place) -> None:
    flow = Flow("talks")

    @flow.script
    async def talk(ctx: Context) -> dict[str, Any]:
        async def think() -> int:
            ctx.emit("thinking")
            return 1

        ctx.emit("one")
        await ctx.step("think", think, effect="read")
        ctx.emit("two")
        await ctx.ask("Well?", options=["yes"])
        ctx.emit("three")
        return {}

    hf = await place.hf()
    result = await flow.run(on=hf)
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert texts(await told(hf, result, "node.emitted")) == ["one", "thinking", "two", "three"]
    assert "node.restarted" not in await kinds(hf, result)


@pytest.mark.covers("CORE-CTX-03", "R-60")
async def test_a_sync_node_emits_too(hf: Holdfast) -> None:
    flow = Flow("thread")

    @flow.node(effect="read")
    def talk(ctx: Context) -> dict[str, Any]:
        for i in range(5):
            ctx.emit(i)
        return {}

    result = await flow.run(on=hf)
    assert texts(await told(hf, result, "node.emitted")) == [0, 1, 2, 3, 4]
