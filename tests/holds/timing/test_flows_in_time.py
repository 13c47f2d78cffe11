"""Whole flows whose people do not answer, from `flow.run` to what the run becomes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from tests.holds.timing.places import HOUR, NINE_TO_FIVE, at

pytestmark = pytest.mark.anyio

OPTIONS = ["approve", {"id": "reject", "label": "Reject", "default": True}]


class State(msgspec.Struct):
    decision: str = ""
    decision_result: dict[str, Any] = {}
    done: str = ""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def hf(clock: FakeClock, tmp_path: Path) -> AsyncIterator[Holdfast]:
    async with Holdfast(f"sqlite:{tmp_path / 'runs.db'}", clock=clock) as hf:
        yield hf


def refund(**terms: Any) -> Flow:
    flow = Flow("refund", state=State, effect="pure")
    flow.hold("review", prompt="Pay?", options=OPTIONS, assignee="user:dana", **terms)

    @flow.node
    async def after(s: State) -> dict[str, Any]:
        return {"done": s.decision}

    flow.edge("review", after)
    return flow


async def swept(hf: Holdfast) -> None:
    await (await hf.service()).runtime.sweeper.sweep()


async def the_hold(hf: Holdfast) -> HoldRow:
    (row,) = await (await hf.open()).holds()
    return row


@pytest.mark.covers("EX-5")
async def test_a_flow_goes_on_with_its_default_when_nobody_answers(hf: Holdfast, clock: FakeClock) -> None:
    flow = refund(timeout="2h", on_timeout="default")
    run = (await flow.run({}, on=hf)).run_id
    clock.advance(hours=2)
    await swept(hf)

    result = await flow.resume(run, on=hf)

    assert (result.status, result.state.done) == ("completed", "reject")
    assert result.state.decision_result["decision"] == "default"
    assert result.state.decision_result["auto_expired"] is True
    assert (await the_hold(hf)).resumed_at is not None


@pytest.mark.covers("EX-4")
async def test_a_flow_that_cancels_ends_as_cancelled(hf: Holdfast, clock: FakeClock) -> None:
    flow = refund(timeout="2h", on_timeout="cancel")
    run = (await flow.run({}, on=hf)).run_id
    clock.advance(hours=2)
    await swept(hf)

    result = await flow.resume(run, on=hf)

    assert result.status == "cancelled"
    assert (await the_hold(hf)).resolution is None


@pytest.mark.covers("EX-8")
async def test_a_flow_without_an_action_fails_and_nothing_is_approved(hf: Holdfast, clock: FakeClock) -> None:
    flow = refund(timeout="2h")
    run = (await flow.run({}, on=hf)).run_id
    clock.advance(hours=2)
    await swept(hf)

    result = await flow.resume(run, on=hf)

    assert result.status == "failed"
    assert "hold_expired" in str(result.error) or "in time" in str(result.error)
    assert (await the_hold(hf)).status is HoldStatus.expired


@pytest.mark.covers("EX-6", "HOLD-TIME-03", "HOLD-TIME-05")
async def test_a_flow_escalates_rung_by_rung_over_restarts_and_is_answered_at_last(
    clock: FakeClock, tmp_path: Path
) -> None:
    flow = refund(timeout="2h", ladder=[("", "group:leads"), ("1d", "role:cfo")])
    address = f"sqlite:{tmp_path / 'runs.db'}"
    async with Holdfast(address, clock=clock) as hf:
        run = (await flow.run({}, on=hf)).run_id
    seen: list[str | None] = []
    for hours in (2, 24):
        clock.advance(hours=hours)
        async with Holdfast(address, clock=clock) as hf:
            await swept(hf)
            row = await the_hold(hf)
            seen.append(row.assignee)
    assert seen == ["group:leads", "role:cfo"]
    assert row.expires_at == clock.now() + 2 * HOUR
    async with Holdfast(address, clock=clock) as hf:
        await (await hf.service()).answer(row.id, "approve", by="user:cfo")
        result = await flow.resume(run, on=hf)

        assert (result.status, result.state.done) == ("completed", "approve")


@pytest.mark.covers("EX-12", "HOLD-TIME-04")
async def test_a_flow_counts_its_timeout_in_business_time(hf: Holdfast, clock: FakeClock) -> None:
    await Calendars(await hf.open()).put("default", "office", NINE_TO_FIVE)
    clock.advance(days=3, hours=14)  # Friday, three in the afternoon in Amsterdam
    await refund(timeout="4bh", on_timeout="cancel", calendar="office").run({}, on=hf)

    assert (await the_hold(hf)).expires_at == at("2030-01-07T11:00+01:00")
