"""Who has waited long enough to be reminded, and what a ping that was taken changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.holds.timing.reminders import Ping, accepted, is_wanted, next_reminder, ping_of, remind
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HoldTerms
from tests.holds.timing.places import DAY, HOUR, MINUTE, at, office_hours
from tests.holds.timing.rows import OPENED, a_row

HALF = 30 * MINUTE


def waiting(**fields: Any) -> HoldRow:
    """Reminded each half hour, the first time half an hour after it was opened; no deadline."""
    known = {"expires_at": None, "reminder_interval": 30, "remind_at": OPENED + HALF}
    return a_row(**{**known, **fields})


def pings(change: HoldChange | None) -> list[Ping]:
    return [ping_of(message.payload) for message in change.outbox] if change else []


@pytest.mark.covers("RE-1")
@pytest.mark.parametrize(
    ("minutes", "fields", "is_pinged"),
    [
        (29, {}, False),
        (30, {}, True),
        (45, {"notified_at": OPENED + 20 * MINUTE}, False),  # from the last notice, not from the opening
        (50, {"notified_at": OPENED + 20 * MINUTE}, True),
        (50, {"reminder_interval": None}, False),
        (50, {"status": HoldStatus.resolved}, False),
        (14, {"reminder_interval": 1, "remind_at": OPENED + MINUTE}, False),  # below 15 acts as 15
        (15, {"reminder_interval": 1, "remind_at": OPENED + MINUTE}, True),
        (50, {"type": "debug_breakpoint"}, False),
    ],
)
def test_a_reminder_is_due_after_its_interval(minutes: int, fields: dict[str, Any], is_pinged: bool) -> None:
    row = waiting(**fields)

    assert bool(pings(remind(row, OPENED + minutes * MINUTE))) is is_pinged


@pytest.mark.covers("RE-2")
def test_asking_for_a_ping_counts_nothing() -> None:
    row = waiting()

    change = remind(row, OPENED + HALF)

    assert pings(change) == [Ping(row.id, 1, 1)]
    assert change is not None
    assert set(change.fields) == {"remind_at"}


@pytest.mark.covers("RE-2")
def test_a_ping_that_was_taken_counts() -> None:
    row, now = waiting(reminder_count=1), OPENED + 40 * MINUTE

    change = accepted(row, Ping(row.id, 1, 2), now)

    assert change is not None
    assert (change.fields["reminder_count"], change.fields["notified_at"]) == (2, now)
    assert change.fields["remind_at"] == now + HALF
    assert change.audit[0].action == "reminded"


@pytest.mark.covers("RE-2", "RE-5", "RE-6")
@pytest.mark.parametrize(
    "fields",
    [
        {"reminder_count": 1},  # one of this number was taken already
        {"epoch": 2},  # it went to somebody else
        {"status": HoldStatus.resolved},
    ],
)
def test_a_ping_that_is_late_is_neither_sent_nor_counted(fields: dict[str, Any]) -> None:
    row = waiting(**fields)

    assert not is_wanted(row, Ping(row.id, 1, 1), OPENED + HALF)
    assert accepted(row, Ping(row.id, 1, 1), OPENED + HALF) is None


@pytest.mark.covers("RE-3")
def test_downtime_of_days_causes_one_ping() -> None:
    row = waiting()

    change = remind(row, OPENED + 3 * DAY)

    assert len(pings(change)) == 1
    assert change is not None
    assert change.fields["remind_at"] == OPENED + 3 * DAY + HALF


@pytest.mark.covers("RE-3")
def test_no_second_ping_is_asked_for_while_one_is_under_way() -> None:
    change = remind(waiting(), OPENED + HOUR, under_way=True)

    assert change is not None
    assert (change.outbox, change.fields) == ((), {"remind_at": OPENED + HOUR + HALF})


@pytest.mark.covers("RE-4")
def test_no_ping_after_the_deadline_or_while_somebody_was_asked_back() -> None:
    late = waiting(expires_at=OPENED + HALF)
    asked = waiting(paused_at=OPENED)

    assert pings(remind(late, OPENED + HALF)) == pings(remind(asked, OPENED + HALF)) == []
    assert not is_wanted(late, Ping(late.id, 1, 1), OPENED + HALF)


@pytest.mark.covers("RE-4")
def test_a_ping_that_falls_into_a_snooze_waits_for_its_end() -> None:
    row = waiting()
    snooze = Note(hold=row.id, kind="snooze", slot="dana@acme", person="user:dana@acme", at=OPENED,
                  until=OPENED + 5 * HOUR)  # fmt: skip

    change = remind(row, OPENED + HOUR, snoozed=[snooze])

    assert change is not None
    assert (change.outbox, change.fields["remind_at"]) == ((), OPENED + 5 * HOUR)


@pytest.mark.covers("RE-4")
def test_a_ping_that_falls_into_quiet_hours_waits_for_their_end() -> None:
    night, morning = at("2026-01-05T22:30+01:00"), at("2026-01-06T07:00+01:00")
    calendar = office_hours(quiet="22:00-07:00")

    change = remind(waiting(), night, calendar=calendar)

    assert change is not None
    assert (change.outbox, change.fields["remind_at"]) == ((), morning)
    due = msgspec.structs.replace(waiting(), remind_at=morning)
    assert len(pings(remind(due, morning, calendar=calendar))) == 1
    assert next_reminder(waiting(), at("2026-01-05T21:45+01:00"), calendar) == morning


@pytest.mark.covers("RE-7")
def test_a_cap_ends_the_reminders_and_no_cap_never_does() -> None:
    capped = waiting(reminder_count=2, terms=HoldTerms(max_reminders=2))

    change = remind(capped, OPENED + DAY)

    assert change is not None
    assert (change.outbox, change.fields["remind_at"]) == ((), None)
    assert len(pings(remind(waiting(reminder_count=999), OPENED + DAY))) == 1


@pytest.mark.covers("RE-5")
def test_two_sweeps_ask_under_one_key_and_a_later_try_under_another() -> None:
    row = waiting()
    first, second = (remind(row, OPENED + HALF + each) for each in (0, 3 * MINUTE))
    assert first is not None
    assert second is not None

    assert first.outbox[0].key == second.outbox[0].key
    later = remind(msgspec.structs.replace(row, **first.fields), OPENED + 3 * HOUR)
    assert later is not None
    assert later.outbox[0].key != first.outbox[0].key
