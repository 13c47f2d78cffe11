"""Runs that somebody starts and somebody else advances."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Flow, Holdfast, Result, Worker
from holdfast.errors import VersionMismatchError
from holdfast.testing.clock import FakeClock
from tests.deadlines import HANG
from tests.flows.conftest import node

pytestmark = pytest.mark.anyio


def asking() -> Flow:
    flow = Flow("submitted", effect="pure")
    node(flow, "before", {"x": 1})
    flow.hold("agree", prompt="Agreed?", options=["yes", "no"])
    node(flow, "after", {"y": 2})
    flow.chain("before", "agree", "after")
    return flow


@pytest.mark.covers("FLEET-WORK-01")
async def test_submitted_run_stands_until_a_worker_takes_it(bare_hf: Holdfast) -> None:
    flow = asking()
    run = await flow.submit({"given": 7}, on=bare_hf, lane="slow")
    standing = await flow.result(run, on=bare_hf)
    assert standing.status == "pending"
    async with Worker(flow, on=bare_hf, lanes=["slow"], poll=0.05, hot_hold=0.0):
        asked = await flow.result(run, on=bare_hf, wait=60)
        assert asked.status == "pending_input"
        service = await bare_hf.service()
        await service.answer(asked.holds[0].id, "yes", by="user:you")
        done = await asyncio.wait_for(_ended(flow, run, bare_hf), HANG)
    assert done.status == "completed"
    assert done.state["given"] == 7
    assert done.state["y"] == 2


async def _ended(flow: Flow, run: str, hf: Holdfast) -> Result:
    while True:
        found = await flow.result(run, on=hf, wait=None)
        if found.status != "pending_input":
            return found
        await asyncio.sleep(0.02)


async def test_submitting_again_with_the_same_key_gives_the_same_run(bare_hf: Holdfast) -> None:
    flow = asking()
    first = await flow.submit({}, on=bare_hf, idempotency_key="once")
    assert await flow.submit({}, on=bare_hf, idempotency_key="once") == first


async def test_waiting_for_a_result_ends_with_its_time(bare_hf: Holdfast) -> None:
    flow = asking()
    run = await flow.submit({}, on=bare_hf)
    assert (await flow.result(run, on=bare_hf, wait=0.05)).status == "pending"


async def test_a_run_that_is_waited_for_is_looked_at_soon_and_then_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The park of a run may not be notified: whoever waits for it must not lose a quarter of a second."""
    clock, looks = FakeClock(), list[float]()

    async def nothing_happens(timeout: float) -> bool:
        looks.append(timeout)
        clock.advance(seconds=timeout)
        return False

    async with Holdfast("memory:", clock=clock) as hf:
        flow = asking()
        run = await flow.submit({}, on=hf)
        monkeypatch.setattr(await hf.open(), "wait_change", nothing_happens)
        assert (await flow.result(run, on=hf, wait=2)).status == "pending"
    assert looks[0] <= 0.02
    assert looks == sorted(looks[:-1]) + looks[-1:]
    assert max(looks) == 0.25


async def test_result_of_another_flow_is_refused(bare_hf: Holdfast) -> None:
    run = await asking().submit({}, on=bare_hf)
    other = Flow("other", effect="pure")
    node(other, "only", {})
    with pytest.raises(VersionMismatchError):
        await other.result(run, on=bare_hf)
