"""Deadlines in business time: made once, kept over restarts, and moved with their calendar only."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from holdfast.errors import SettingsError
from holdfast.holds.timing.deadlines import Deadlines
from holdfast.holds.timing.reschedule import change_calendar
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.clock import to_datetime
from holdfast.types.duration import DurationError
from holdfast.types.hold import HoldChange, HoldFacts, HoldRow, NewHold
from holdfast.types.ids import HoldId
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HoldTerms, Rung
from tests.conformance.conftest import KITS
from tests.holds.timing.places import DAY, HOUR, NINE_TO_FIVE, at

pytestmark = pytest.mark.anyio

LATE_SHIFT: dict[str, Any] = {**NINE_TO_FIVE, "hours": {"mon-fri": "12:00-20:00"}}
FRIDAY = at("2030-01-04T15:00+01:00")
FACTS = HoldFacts(tenant="default", run="r", flow="refund")


async def opened(kit: StoreKit, **terms: Any) -> HoldRow:
    """A hold of Friday afternoon, as the desk prepares it."""
    _until(kit, FRIDAY)
    prepared = await Deadlines(Calendars(kit.store)).prepare(a_hold(kit, **terms), FACTS)
    return await kit.hold(await kit.asked(await kit.claimed(), prepared))


def a_hold(kit: StoreKit, **terms: Any) -> NewHold:
    return kit.new_hold(terms=HoldTerms(**terms))


def _until(kit: StoreKit, moment: int) -> None:
    kit.clock.advance(seconds=(moment - kit.clock.now()) / 1_000_000)


async def due(kit: StoreKit, hold: HoldId) -> int | None:
    return (await kit.hold(hold)).expires_at


@pytest.mark.covers("EX-12", "HOLD-TIME-04")
async def test_the_preparation_turns_business_time_into_an_instant(kit: StoreKit) -> None:
    await Calendars(kit.store).put("default", "default", NINE_TO_FIVE)

    row = await opened(kit, timeout="4bh")

    assert row.expires_at == at("2030-01-07T11:00+01:00")
    assert row.original_timeout == row.expires_at - FRIDAY


async def test_the_preparation_counts_by_the_calendar_that_the_hold_names(kit: StoreKit) -> None:
    await Calendars(kit.store).put("default", "default", NINE_TO_FIVE)
    await Calendars(kit.store).put("default", "late", LATE_SHIFT)

    assert (await opened(kit, timeout="4bh", calendar="late")).expires_at == at("2030-01-04T19:00+01:00")


@pytest.mark.covers("HOLD-BAD-02")
async def test_a_deadline_that_cannot_be_counted_is_named(kit: StoreKit) -> None:
    with pytest.raises(SettingsError, match="no calendar 'office'"):
        await opened(kit, timeout="4bh", calendar="office")
    with pytest.raises(DurationError, match="banana"):
        await opened(kit, timeout="1h", ladder=(Rung("group:leads"), Rung("role:cfo", "banana")))


async def test_a_calendar_of_another_tenant_is_none(kit: StoreKit) -> None:
    await Calendars(kit.store).put("acme", "default", NINE_TO_FIVE)

    with pytest.raises(SettingsError, match="no calendar"):
        await opened(kit, timeout="4bh")


@pytest.mark.covers("EX-12")
async def test_a_changed_calendar_moves_the_deadlines_that_it_made(kit: StoreKit) -> None:
    await change_calendar(kit.store, "default", "default", NINE_TO_FIVE, by="user:ops")
    mine = await opened(kit, timeout="4bh")
    other = await opened(kit, timeout="4h")
    closed = {**NINE_TO_FIVE, "holidays": ["2030-01-07"]}

    _, moved = await change_calendar(kit.store, "default", "default", closed, by="user:ops")

    assert [row.id for row in moved] == [mine.id]
    assert await due(kit, mine.id) == at("2030-01-08T11:00+01:00")
    assert await due(kit, other.id) == FRIDAY + 4 * HOUR
    last = (await kit.store.audit("default", hold=mine.id))[-1]
    assert (last.action, last.actor) == ("rescheduled", "user:ops")
    assert msgspec.json.decode(last.data)["expires_at"] == "2030-01-08T10:00:00Z"
    assert (await change_calendar(kit.store, "default", "default", closed, by="user:ops"))[1] == []


async def test_a_changed_calendar_leaves_the_deadlines_of_others(kit: StoreKit) -> None:
    await change_calendar(kit.store, "default", "late", LATE_SHIFT, by="user:ops")
    await change_calendar(kit.store, "default", "default", LATE_SHIFT, by="user:ops")
    row = await opened(kit, timeout="4bh", calendar="late")

    assert (await change_calendar(kit.store, "default", "default", NINE_TO_FIVE, by="user:ops"))[1] == []
    assert await due(kit, row.id) == row.expires_at


@pytest.mark.covers("EX-12")
async def test_a_deadline_that_somebody_set_by_hand_stays(kit: StoreKit) -> None:
    await change_calendar(kit.store, "default", "default", NINE_TO_FIVE, by="user:ops")
    row = await opened(kit, timeout="4bh")
    by_hand = HoldChange(hold=row.id, version=row.version, at=FRIDAY, fields={"expires_at": FRIDAY + 9 * DAY})
    await kit.store.change_hold(by_hand)

    assert (await change_calendar(kit.store, "default", "default", LATE_SHIFT, by="user:ops"))[1] == []
    assert await due(kit, row.id) == FRIDAY + 9 * DAY


@pytest.mark.covers("EX-12", "HOLD-TIME-03")
async def test_a_deadline_after_an_escalation_moves_from_there(kit: StoreKit) -> None:
    await change_calendar(kit.store, "default", "default", NINE_TO_FIVE, by="user:ops")
    row = await opened(kit, timeout="4bh", ladder=(Rung("group:leads"),))
    _until(kit, row.expires_at or 0)
    await HoldSweeper(kit.store, kit.clock).sweep()
    assert await due(kit, row.id) == at("2030-01-07T15:00+01:00")

    await change_calendar(kit.store, "default", "default", LATE_SHIFT, by="user:ops")

    assert await due(kit, row.id) == at("2030-01-07T16:00+01:00")


async def test_a_calendar_that_comes_later_gives_waiting_holds_their_deadline(kit: StoreKit) -> None:
    _until(kit, FRIDAY)
    hold = await kit.asked(await kit.claimed(), a_hold(kit, timeout="4bh"))

    await change_calendar(kit.store, "default", "default", NINE_TO_FIVE, by="user:ops")

    assert await due(kit, hold) == at("2030-01-07T11:00+01:00")


@pytest.mark.covers("HOLD-TIME-05", "HOLD-PROOF-06", "EX-12")
@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/New_York", "Australia/Sydney"])
async def test_a_deadline_survives_restarts_and_a_change_of_clocks(tmp_path: Path, zone: str) -> None:
    """Opened before the clocks change, swept by another process afterwards."""
    kit = KITS["sqlite"](tmp_path)
    kit.clock = FakeClock(datetime(2030, 3, 1, tzinfo=UTC))
    await kit.start()
    rules = {"zone": zone, "hours": {"mon-fri": "09:00-17:00"}}
    begun = (await Calendars(kit.store).put("default", "default", rules)).next_open(kit.clock.now())
    prepared = await Deadlines(Calendars(kit.store)).prepare(a_hold(kit, timeout="30bd"), FACTS)
    hold = await kit.asked(await kit.claimed(), prepared)
    before = await due(kit, hold)
    assert before is not None
    await kit.stop()

    again = await kit.another()
    try:
        kit.store = again
        assert await due(kit, hold) == before
        _until(kit, before - 1)
        assert (await HoldSweeper(again, kit.clock).sweep()).expired == 0
        kit.clock.advance(milliseconds=1)
        assert (await HoldSweeper(again, kit.clock).sweep()).expired == 1
        assert (await kit.hold(hold)).status is HoldStatus.expired
    finally:
        await again.close()
    opening, end = (to_datetime(each).astimezone(ZoneInfo(zone)) for each in (begun, before))
    assert opening.time() == end.time()
    assert opening.utcoffset() != end.utcoffset()
