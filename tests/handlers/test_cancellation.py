"""Code that swallows its cancellation: timeout, cancel, drain and a caller's own limit hold all the same."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Judgement, Policy, Result, Rule, RunSettings, RunStatus, Worker
from holdfast.model.user_code import boundary
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId
from tests.deadlines import HANG
from tests.handlers import callables

pytestmark = pytest.mark.anyio
SETTINGS = RunSettings(grace=0.05, poll=0.02, hot_timer=0.0)


class Stubborn:
    """Code that goes on until the test ends, however often it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.refused = 0
        self.released = False

    async def wait(self) -> dict[str, bool]:
        self.begun.set()
        while not self.released:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                self.refused += 1
        return {"late": True}


@pytest.fixture
async def stubborn(anyio_backend: str) -> AsyncIterator[Stubborn]:
    made = Stubborn()
    yield made
    made.released = True
    # Its task ends before the loop does.
    await asyncio.sleep(0.03)


def reported(caplog: pytest.LogCaptureFixture) -> list[str]:
    texts = [record.getMessage() for record in caplog.records]
    return [text for text in texts if "did not stop" in text or "its thread runs until" in text]


# Every kind of code in a node, alone in its driver's task and beside others.
OUTSIDE = (callables.judge, callables.check_of_decisions, callables.directory)
KINDS = tuple(kind for kind in callables.BOTH if kind not in OUTSIDE)


@pytest.mark.covers("SAFE-HANDLER-03")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_a_cancelled_run_ends_when_its_code_does_not_stop(
    kind: Callable[[callables.Bad], callables.Case], stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    case = kind(stubborn.wait)
    async with Holdfast("memory:", settings=SETTINGS, **case.options) as hf:
        service = await hf.service()
        async with Worker(case.flow, on=hf, concurrency=1):
            row, _ = await service.create(case.flow.program(), dict(case.given))
            await stubborn.begun.wait()
            await service.cancel(row.id, reason="enough")
            await until(service, row.id, RunStatus.cancelled)
            # The slot is free: another run of the same worker completes.
            await until(service, await start(service, quick()), RunStatus.completed, Worker(quick(), on=hf))
    assert stubborn.refused
    assert reported(caplog)


@pytest.mark.covers("SAFE-HANDLER-03")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_a_worker_drains_when_its_code_does_not_stop(
    kind: Callable[[callables.Bad], callables.Case], stubborn: Stubborn
) -> None:
    case = kind(stubborn.wait)
    async with Holdfast("memory:", settings=SETTINGS, **case.options) as hf:
        service = await hf.service()
        async with Worker(case.flow, on=hf, grace=0.05):
            row, _ = await service.create(case.flow.program(), dict(case.given))
            await stubborn.begun.wait()
        row = await service.get(row.id)
        assert (row.status, row.worker) == (RunStatus.resumable, None)
        assert row.recoveries == 0


@pytest.mark.covers("SAFE-HANDLER-03")
@pytest.mark.parametrize("effect", ["pure", "external"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
async def test_a_timeout_holds_when_the_code_does_not_stop(
    effect: str, beside: bool, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow("slow", effect="pure")
    flow.node(id="work", effect=effect, timeout=0.02)(stubborn.wait)
    if beside:
        flow.node(id="other")(_nothing)
        flow.start("work", "other")
    async with Holdfast("memory:", settings=SETTINGS) as hf:
        result = await flow.run(on=hf)
        if effect == "pure":
            assert result.error is not None
            assert (result.error.code, result.failed_node) == ("node_timeout", "work")
            assert "did not stop" in result.error.message
        else:
            # Its effect may still happen: a person is asked.
            assert result.status is RunStatus.pending_input
        stubborn.released = True
        assert "late" not in result.state
        again = await flow.result(result.run_id, on=hf)
        assert again.status is result.status
    assert len(reported(caplog)) == 1


@pytest.mark.covers("SAFE-HANDLER-03")
async def test_a_callers_limit_holds_when_the_code_does_not_stop(stubborn: Stubborn) -> None:
    flow = Flow("slow", effect="pure")
    flow.node(id="work")(stubborn.wait)
    async with Holdfast("memory:", settings=SETTINGS) as hf:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await flow.run(on=hf)
        (row,) = await (await hf.open()).list_runs(RunFilter(), after=None, limit=2)
        assert row.status is RunStatus.resumable


@pytest.mark.covers("SAFE-HANDLER-03")
async def test_a_disowned_handler_cannot_use_its_context(stubborn: Stubborn) -> None:
    flow, met = Flow("slow", effect="pure"), list[BaseException]()

    @flow.node(timeout=0.02)
    async def work(ctx: Context) -> None:
        await stubborn.wait()
        try:
            ctx.artifact("late", 1)
        except BaseException as error:
            met.append(error)
            raise

    async with Holdfast("memory:", settings=SETTINGS) as hf:
        result = await flow.run(on=hf)
        stubborn.released = True
        async with asyncio.timeout(HANG):
            while not met:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert result.failed
        assert result.artifacts == {}
    assert "is closed" in str(met[0])


@pytest.mark.covers("SAFE-HANDLER-03", "SAFE-HANDLER-05")
async def test_plain_handlers_run_when_many_threads_never_return(caplog: pytest.LogCaptureFixture) -> None:
    """More than the pool of a loop has: each would take a place for ever."""
    caplog.set_level(logging.WARNING)
    flow, over = Flow("stuck", effect="pure"), threading.Event()
    flow.map("each", over="items", body=lambda _item: over.wait(), into="found", timeout=0.05)
    try:
        async with Holdfast("memory:", settings=SETTINGS) as hf:
            stuck = await flow.run({"items": list(range(80))}, on=hf)
            assert stuck.failed
            fine = await quick().run(on=hf)
            assert fine.completed
    finally:
        over.set()
    assert any("its thread runs until the function returns" in r.getMessage() for r in caplog.records)


@pytest.mark.covers("SAFE-HANDLER-03")
async def test_a_judge_that_does_not_stop_leaves_the_decision_to_people(
    stubborn: Stubborn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundary, "GRACE", 0.02)

    async def judge(_facts: Any) -> Judgement:
        await stubborn.wait()
        return Judgement("approve")

    policy = Policy("p", Rule(name="r", judge="j", judge_timeout=0.02), judges={"j": judge})
    flow = Flow("asks", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"])
    async with Holdfast("memory:", settings=SETTINGS, policies=policy) as hf:
        result: Result = await flow.run(on=hf)
        assert result.status is RunStatus.pending_input
        assert stubborn.refused


def quick() -> Flow:
    flow = Flow("quick", effect="pure")
    flow.node(id="work")(lambda: None)
    return flow


async def _nothing() -> None:
    return None


async def start(service: RunService, flow: Flow) -> RunId:
    row, _ = await service.create(flow.program(), {})
    return row.id


async def until(service: RunService, run: RunId, wanted: RunStatus, worker: Worker | None = None) -> None:
    if worker is not None:
        await worker.run_until_idle()
    async with asyncio.timeout(HANG):
        while (await service.get(run)).status is not wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
