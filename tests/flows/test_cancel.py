from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, RunEndedError, RunStatus
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.flows.places import HOT, RUN, Place, kinds, open_holds, told

pytestmark = pytest.mark.anyio


class Slow:
    """A flow whose handler waits until it is stopped."""

    def __init__(self, effect: str = "read", *, takes_ctx: bool = False) -> None:
        self.started, self.stopped = asyncio.Event(), asyncio.Event()
        self.flow = Flow("slow")

        async def work(ctx: Context) -> dict[str, Any]:
            if takes_ctx:
                ctx.emit("half of it")
            return await self._work()

        async def plain() -> dict[str, Any]:
            return await self._work()

        async def after() -> dict[str, Any]:
            raise AssertionError("must not start")

        self.flow.node(id="work", effect=effect)(work if takes_ctx else plain)
        self.flow.node(id="after", effect="pure")(after)
        self.flow.edge("work", "after")

    async def _work(self) -> dict[str, Any]:
        self.started.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.stopped.set()
        return {}

    async def cancelled(self, hf: Holdfast, by: Holdfast) -> Any:
        driving = asyncio.create_task(self.flow.run(on=hf, run_id=RUN))
        await asyncio.wait_for(self.started.wait(), HANG)
        await (await by.service()).cancel(RUN, reason="not needed any more")
        result = await asyncio.wait_for(driving, HANG)
        assert self.stopped.is_set()
        return result


@pytest.mark.parametrize("takes_ctx", [False, True])
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.covers("D-32", "RS-FAIL-4")
async def test_a_handler_is_stopped_when_its_run_is_cancelled(
    place: Place, takes_ctx: bool, other: bool
) -> None:
    hf = await place.hf()
    by = await place.hf() if other else hf
    slow = Slow(takes_ctx=takes_ctx)
    result = await slow.cancelled(hf, by)
    assert result.status is RunStatus.cancelled
    assert (await kinds(hf, RUN))[-2:] == ["run.cancelled", "checkpoint.created"]
    row = await (await hf.service()).get(RUN)
    assert row.status is RunStatus.cancelled
    assert "not needed any more" in (row.error or "")


@pytest.mark.covers("D-32")
async def test_a_run_ends_cancelled_when_its_last_handler_finishes_all_the_same(place: Place) -> None:
    started = asyncio.Event()
    flow = Flow("stubborn", effect="pure")

    @flow.node
    async def work() -> dict[str, Any]:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return {"kept": "what it had"}
        return {}

    hf = await place.hf()
    driving = asyncio.create_task(flow.run(on=hf, run_id=RUN))
    await asyncio.wait_for(started.wait(), HANG)
    await (await hf.service()).cancel(RUN)
    result = await asyncio.wait_for(driving, HANG)
    assert result.status is RunStatus.cancelled
    assert result.state == {"kept": "what it had"}


@pytest.mark.covers("D-32", "D-15")
async def test_open_effects_are_marked_unknown_when_their_run_is_cancelled(place: Place) -> None:
    hf = await place.hf()
    result = await Slow("external").cancelled(hf, hf)
    assert result.status is RunStatus.cancelled
    (unknown,) = await told(hf, RUN, "node.unknown")
    assert unknown.node == "work"
    assert unknown.data["error"]["code"] == "outcome_unknown"


@pytest.mark.covers("CORE-WORK-07", "D-23")
async def test_what_was_streamed_is_kept_when_a_run_is_cancelled(place: Place) -> None:
    hf = await place.hf()
    await Slow(takes_ctx=True).cancelled(hf, hf)
    (emitted,) = await told(hf, RUN, "node.emitted")
    assert emitted.data["data"] == "half of it"


def gated() -> Flow:
    flow = Flow("gated", effect="pure")

    @flow.node
    async def start() -> dict[str, Any]:
        return {}

    flow.hold("gate", prompt="Go?", options=["yes"], timeout="9h")

    @flow.script
    async def asks(ctx: Context) -> dict[str, Any]:
        await ctx.ask("And?", options=["yes"])
        return {}

    flow.edge(start, "gate")
    flow.edge(start, asks)
    return flow


@pytest.mark.covers("D-32")
async def test_holds_and_timers_are_closed_when_a_parked_run_is_cancelled(place: Place) -> None:
    flow = gated()
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert len(result.holds) == 2
    other = await place.hf()
    await (await other.service()).cancel(result.run_id)
    result = await flow.resume(result.run_id, on=other)
    assert result.status is RunStatus.cancelled
    store = await hf.open()
    assert {h.status for h in await store.holds(run=result.run_id)} == {HoldStatus.cancelled}
    assert await store.next_timer() is None
    records = await store.read(result.run_id)
    assert records[-1].outcome == "cancelled"
    assert "hold.asked_again" not in await kinds(other, result)


@pytest.mark.covers("D-32")
async def test_a_run_that_waits_in_memory_ends_when_it_is_cancelled(place: Place) -> None:
    flow = gated()
    hf = await place.hf(HOT)
    driving = asyncio.create_task(flow.run(on=hf, run_id=RUN))
    store = await hf.open()
    while len(await store.holds(run=RunId(RUN), status=HoldStatus.pending)) < 2:
        assert not driving.done()
        await asyncio.sleep(0.001)
    await (await hf.service()).cancel(RUN)
    result = await asyncio.wait_for(driving, HANG)
    assert result.status is RunStatus.cancelled
    assert not await open_holds(hf, RUN)


@pytest.mark.covers("R-14", "R-10")
async def test_a_cancelled_run_stays_cancelled_when_it_is_resumed_or_cancelled_again(place: Place) -> None:
    flow = gated()
    hf = await place.hf()
    service = await hf.service()
    result = await flow.run(on=hf)
    await service.cancel(result.run_id)
    await service.cancel(result.run_id)
    assert (await flow.resume(result.run_id, on=hf)).status is RunStatus.cancelled
    assert (await flow.resume(result.run_id, on=hf)).status is RunStatus.cancelled
    assert (await service.cancel(result.run_id)).status is RunStatus.cancelled
    assert (await kinds(hf, result)).count("run.cancelled") == 1


async def test_a_completed_run_refuses_when_it_is_cancelled(hf: Holdfast) -> None:
    flow = Flow("short", effect="pure")

    @flow.node
    async def only() -> dict[str, Any]:
        return {}

    result = await flow.run(on=hf)
    with pytest.raises(RunEndedError):
        await (await hf.service()).cancel(result.run_id)


@pytest.mark.covers("D-14", "CORE-WORK-08")
async def test_a_run_can_be_claimed_at_once_when_its_instance_closes(place: Place) -> None:
    slow = Slow()
    hf = await place.hf()
    driving = asyncio.create_task(slow.flow.run(on=hf, run_id=RUN))
    await slow.started.wait()
    await asyncio.wait({asyncio.create_task(hf.close())})
    with pytest.raises(asyncio.CancelledError):
        await driving
    row = await (await (await place.hf()).service()).get(RUN)
    assert row.status is RunStatus.resumable
    assert row.worker is None


@pytest.mark.covers("D-14", "CORE-WORK-08")
async def test_an_effect_whose_handler_was_not_called_is_not_in_doubt_when_its_worker_drains(
    place: Place,
) -> None:
    flow = Flow("drains")
    done: list[str] = []
    gate, started = asyncio.Event(), asyncio.Event()

    @flow.node(effect="external")
    async def first() -> dict[str, Any]:
        started.set()
        await gate.wait()
        done.append("first")
        return {}

    @flow.node(effect="external")
    async def second() -> dict[str, Any]:
        done.append("second")
        return {}

    flow.edge(first, second)
    hf = await place.hf()
    driving = asyncio.create_task(flow.run(on=hf, run_id=RUN))
    await started.wait()
    closing = asyncio.create_task(hf.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert (await driving).status is RunStatus.resumable
    assert done == ["first"]
    later = await place.hf()
    result = await flow.resume(RUN, on=later)
    assert result.completed
    assert done == ["first", "second"]
    assert not await told(later, RUN, "hold.opened")
