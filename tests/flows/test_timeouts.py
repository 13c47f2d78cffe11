from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Retry, RunStatus
from tests.deadlines import HANG
from tests.flows.places import told

pytestmark = pytest.mark.anyio


@pytest.mark.covers("G-26", "CORE-FLOW-27")
async def test_the_work_is_really_cancelled_when_a_node_takes_too_long(hf: Holdfast) -> None:
    flow = Flow("slow")
    log: list[str] = []

    @flow.node(effect="read", timeout=0.02)
    async def slow() -> dict[str, Any]:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        return {}

    result = await flow.run(on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "node_timeout"
    assert log == ["cancelled"]
    (failed,) = await told(hf, result, "node.failed")
    assert failed.data["error"]["code"] == "node_timeout"


@pytest.mark.covers("G-26")
async def test_an_error_is_no_timeout_of_the_node_when_the_handler_raises_a_timeout_error_itself(
    hf: Holdfast,
) -> None:
    flow = Flow("socket")

    @flow.node(effect="read", timeout=10)
    async def fetch() -> dict[str, Any]:
        raise TimeoutError("the socket")

    result = await flow.run(on=hf)
    assert result.error is not None
    assert (result.error.code, result.error.type) == ("node_failed", "TimeoutError")


@pytest.mark.covers("G-26", "CORE-FLOW-27")
async def test_a_timed_out_attempt_is_retried_when_attempts_are_left(hf: Holdfast) -> None:
    flow = Flow("slow")

    @flow.node(effect="read", timeout=0.02, retry=Retry(2, delay=0, retry_on=[TimeoutError]))
    async def slow(ctx: Context) -> dict[str, Any]:
        if ctx.attempt == 1:
            await asyncio.sleep(10)
        return {"attempt": ctx.attempt}

    assert (await flow.run(on=hf)).state == {"attempt": 2}


@pytest.mark.covers("D-15")
async def test_an_effect_is_in_doubt_when_it_takes_too_long(hf: Holdfast) -> None:
    flow = Flow("slow")

    @flow.node(effect="external", timeout=0.02, retry=Retry(3, delay=0))
    async def pay() -> dict[str, Any]:
        await asyncio.sleep(10)
        return {}

    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert result.holds[0].type == "in_doubt"


@pytest.mark.covers("D-16")
async def test_a_threads_result_is_dropped_and_its_context_raises_when_it_took_too_long(
    hf: Holdfast,
) -> None:
    flow = Flow("thread")
    gate, ended = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    @flow.node(effect="read", timeout=0.02)
    def slow(ctx: Context) -> dict[str, Any]:
        gate.wait(HANG)
        for use in (lambda: ctx.emit("late"), lambda: ctx.artifact("a", 1), lambda: ctx.step("s", print)):
            try:
                use()
            except RuntimeError as error:
                raised.append(error)
        ended.set()
        return {"late": True}

    result = await flow.run(on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "node_timeout"
    gate.set()
    assert await asyncio.to_thread(ended.wait, HANG)
    assert len(raised) == 3
    assert "timeout passed" in str(raised[0])
    assert not await told(hf, result, "node.emitted")
    assert not await told(hf, result, "node.completed")


@pytest.mark.covers("G-26")
async def test_the_timeout_does_not_run_while_a_person_thinks(hf: Holdfast) -> None:
    from holdfast import RunSettings

    flow = Flow("thinks")

    @flow.script(timeout=0.05)
    async def asks(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Well?", options=["yes"])
        return {"said": reply.decision}

    hot = Holdfast(await hf.open(), settings=RunSettings(hot_hold=30.0, poll=0.01))
    hf.register(flow.program())
    driving = asyncio.create_task(flow.run(on=hot))
    service = await hot.service()
    while not (open_holds := await service.holds()):
        await service.store.wait_change(0.05)
    (hold,) = open_holds
    await asyncio.sleep(0.1)  # longer than the handler may take
    await service.answer(hold.id, "yes")
    result = await asyncio.wait_for(driving, HANG)
    await hot.close()
    assert result.state == {"said": "yes"}


@pytest.mark.covers("G-25")
async def test_a_handler_that_cancels_itself_is_a_failure(hf: Holdfast) -> None:
    flow = Flow("odd")

    @flow.node(effect="read")
    async def odd() -> dict[str, Any]:
        raise asyncio.CancelledError

    @flow.script
    async def script(ctx: Context) -> dict[str, Any]:
        raise asyncio.CancelledError

    flow.edge(odd, script)
    result = await flow.run(on=hf)
    assert result.failed
    assert result.failed_node == "odd"
