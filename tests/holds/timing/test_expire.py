"""What becomes of a hold whose deadline has come: decided purely, as one change of its row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.holds.timing.deadlines import after, armed, length_at, with_ladder
from holdfast.holds.timing.escalate import SWEEP_INTERVAL
from holdfast.holds.timing.expire import ExpiryFacts, expire
from holdfast.model.hold_declaration import default_of
from holdfast.types.hold import HoldChange, HoldRow, Option
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Assignee, HoldTerms, Rung
from tests.holds.timing.places import DAY, HOUR, at, office_hours
from tests.holds.timing.rows import APPROVE, DUE, OPENED, REJECT, a_row

LEADS = Assignee("group", "leads")
TO_LEADS: dict[str, Any] = {"expiry_action": "escalate", "escalation_target": "group:leads"}


def changed(row: HoldRow, now: int = DUE, **ahead: Any) -> HoldChange:
    change = expire(row, now, ExpiryFacts(**ahead))
    assert change is not None
    assert (change.hold, change.version, change.at) == (row.id, row.version, now)
    return change


def moved_on(row: HoldRow, change: HoldChange) -> HoldRow:
    """The row as a store would have it afterwards."""
    return msgspec.structs.replace(row, version=row.version + 1, updated_at=change.at, **change.fields)


@pytest.mark.covers("EX-1", "EX-2", "EX-3")
@pytest.mark.parametrize(
    ("fields", "now", "is_due"),
    [
        ({}, DUE, True),  # equality counts
        ({}, DUE - 1, False),
        ({"expires_at": None}, DUE + 1000 * DAY, False),
        ({"expires_at": OPENED - DAY}, OPENED, True),  # due before it was opened
        ({"status": HoldStatus.resolved}, DUE, False),
        ({"status": HoldStatus.expired}, DUE, False),
        ({"paused_at": OPENED}, DUE, False),  # somebody asked back
        ({"placed": b"{}", "placed_until": DUE + 1}, DUE, False),  # somebody decided in time
    ],
)
def test_a_hold_lapses_only_when_it_is_due(fields: dict[str, Any], now: int, is_due: bool) -> None:
    assert (expire(a_row(**fields), now, ExpiryFacts()) is not None) is is_due


@pytest.mark.covers("EX-4")
def test_a_hold_that_cancels_ends_without_a_decision() -> None:
    change = changed(a_row(expiry_action="cancel"))

    assert change.fields["status"] is HoldStatus.cancelled
    assert "resolution" not in change.fields
    assert change.fields["closed_by"] == "system:expiry"
    assert change.mail == ("lapse", change.hold.encode())
    assert [message.topic for message in change.outbox] == ["hold.closed"]
    assert change.audit[0].action == "cancelled"


@pytest.mark.covers("EX-5")
def test_a_hold_with_a_default_is_resolved_by_the_system() -> None:
    row = a_row(expiry_action="default_option", terms=HoldTerms(default_option="reject"))

    change = changed(row)

    assert change.fields["status"] is HoldStatus.resolved
    assert (change.fields["resolved_by"], change.fields["resolved_at"]) == ("system:expiry", DUE)
    resolution = msgspec.json.decode(change.fields["resolution"])
    assert resolution["decision"] == "default"
    assert resolution["effective_decision"] == "reject"
    assert resolution["auto_expired"] is True
    assert change.mail == ("answer", change.hold.encode())
    assert change.event is not None
    assert change.event.type == "hold.resolved"


@pytest.mark.covers("EX-5")
@pytest.mark.parametrize(
    ("options", "named", "decision"),
    [
        ((APPROVE, Option("reject", "Reject", default=True)), "approve", "reject"),
        ((APPROVE, REJECT), "reject", "reject"),
        ((APPROVE, REJECT), None, "default"),
        (None, None, "default"),
    ],
)
def test_the_default_is_what_is_marked_then_what_is_named(
    options: tuple[Option, ...] | None, named: str | None, decision: str
) -> None:
    assert default_of(options, HoldTerms(default_option=named)) == decision


@pytest.mark.covers("EX-5", "EX-8")
def test_a_default_that_is_vetoed_expires_the_hold() -> None:
    row = a_row(expiry_action="default_option", priority="critical")

    change = changed(row, vetoed="nothing critical is decided by default")

    assert change.fields["status"] is HoldStatus.expired
    assert "resolution" not in change.fields
    assert "nothing critical" in change.fields["closed_reason"]


@pytest.mark.covers("EX-8")
def test_a_deadline_without_an_action_expires_the_hold() -> None:
    change = changed(a_row())

    assert change.fields["status"] is HoldStatus.expired
    assert "resolution" not in change.fields
    assert change.mail == ("lapse", change.hold.encode())
    assert change.event is not None
    assert change.event.type == "hold.expired"


@pytest.mark.covers("EX-6", "RE-6")
def test_an_escalation_gives_the_hold_to_somebody_else_with_a_deadline_ahead() -> None:
    row = a_row(**TO_LEADS, claimed_by="user:dana@acme", claim_until=DUE + DAY, reminder_count=4,
                reminder_interval=30, notification_sent=True)  # fmt: skip

    change = changed(row, DUE + HOUR, assignee=LEADS)
    after_it = moved_on(row, change)

    assert after_it.status is HoldStatus.pending
    assert (after_it.assignee, after_it.assignee_type, after_it.assignee_value) == (
        "group:leads", "group", "leads",
    )  # fmt: skip
    assert (after_it.epoch, after_it.escalation_count) == (2, 1)
    assert (after_it.claimed_by, after_it.claim_until, after_it.reminder_count) == (None, None, 0)
    assert after_it.remind_at == DUE + HOUR + HOUR // 2
    assert after_it.expires_at == DUE + HOUR + 2 * HOUR
    assert after_it.escalation_target == "group:leads"
    assert not after_it.notification_sent
    assert change.mail is None
    assert [message.key for message in change.outbox] == [f"{row.id}:hold.escalated:2"]
    assert msgspec.json.decode(change.audit[0].data)["from"] == "user:dana@acme"
    assert expire(after_it, DUE + HOUR, ExpiryFacts(assignee=LEADS)) is None


@pytest.mark.covers("EX-6")
def test_an_escalation_gives_at_least_until_the_next_sweep() -> None:
    row = a_row(**TO_LEADS, original_timeout=1, expires_at=OPENED + 1)

    assert changed(row, assignee=LEADS).fields["expires_at"] == DUE + SWEEP_INTERVAL


@pytest.mark.covers("EX-7", "HOLD-PROOF-04")
def test_an_escalation_ends_after_its_last_rung() -> None:
    """However often nobody answers: one escalation a rung, then the end."""
    terms = HoldTerms(ladder=(Rung("group:leads"), Rung("role:cfo", "1h"), Rung("role:cfo")))
    row, now, seen = with_ladder(a_row(terms=terms)), DUE, list[tuple[str | None, int]]()
    for _ in range(20):
        change = expire(row, now, ExpiryFacts(assignee=Assignee("role", "x")))
        if change is None:
            break
        row = moved_on(row, change)
        seen.append((row.assignee, (row.expires_at or 0) - now))
        now = row.expires_at or now

    assert seen[:3] == [("group:leads", HOUR), ("role:cfo", 2 * HOUR), ("role:cfo", 2 * HOUR)]
    assert row.status is HoldStatus.expired
    assert (row.escalation_count, row.epoch) == (3, 4)


@pytest.mark.covers("EX-7")
@pytest.mark.parametrize(
    ("final", "status"),
    [(None, HoldStatus.expired), ("cancel", HoldStatus.cancelled), ("default_option", HoldStatus.resolved)],
)
def test_the_final_action_follows_the_last_rung(final: str | None, status: HoldStatus) -> None:
    row = a_row(**TO_LEADS, escalation_count=1, terms=HoldTerms(final_action=final))

    assert changed(row).fields["status"] is status


@pytest.mark.covers("EX-7")
def test_a_rung_that_is_the_assignee_already_is_used_up() -> None:
    row = a_row(**TO_LEADS, assignee="group:leads", assignee_type="group", assignee_value="leads")

    after_it = moved_on(row, changed(row, assignee=LEADS))

    assert (after_it.escalation_count, after_it.epoch) == (1, 2)
    assert changed(after_it, after_it.expires_at or 0).fields["status"] is HoldStatus.expired


@pytest.mark.covers("EX-7")
def test_a_rung_that_nobody_knows_is_unrouted_and_stays_open() -> None:
    nobody = Assignee("unrouted", reason="the directory knows no group 'leads'")

    change = changed(a_row(**TO_LEADS), assignee=nobody)

    assert "status" not in change.fields
    assert change.fields["assignee"] == "group:leads"
    assert change.fields["assignee_type"] == "unrouted"
    assert "knows no group" in change.fields["assignee_reason"]
    assert change.fields["expires_at"] == DUE + 2 * HOUR


@pytest.mark.covers("EX-12", "HOLD-TIME-03", "HOLD-TIME-04")
def test_rungs_in_business_time_are_counted_by_the_calendar() -> None:
    terms = HoldTerms(timeout="4bh", ladder=(Rung("group:leads"), Rung("role:cfo", "1bd")))
    friday = at("2026-01-09T15:00+01:00")
    row = with_ladder(a_row(terms=terms, created_at=friday, original_timeout=None, expires_at=None))

    row = armed(row, office_hours())
    assert row.expires_at == at("2026-01-12T11:00+01:00")
    row = moved_on(row, changed(row, row.expires_at, assignee=LEADS, calendar=office_hours()))
    assert row.expires_at == at("2026-01-13T11:00+01:00")
    row = moved_on(row, changed(row, row.expires_at, assignee=LEADS, calendar=office_hours()))
    assert row.expires_at == at("2026-01-13T15:00+01:00")


def test_an_escalation_whose_calendar_is_gone_takes_the_first_length() -> None:
    row = a_row(**TO_LEADS, terms=HoldTerms(timeout="4bh"), original_timeout=70 * HOUR)

    assert changed(row, assignee=LEADS).fields["expires_at"] == DUE + 70 * HOUR


@pytest.mark.covers("EX-6", "HOLD-TIME-03")
def test_a_target_beside_a_ladder_is_its_first_rung() -> None:
    hold = with_ladder(a_row(**TO_LEADS, terms=HoldTerms(ladder=(Rung("role:cfo"),))))

    assert [rung.to for rung in hold.terms.ladder] == ["group:leads", "role:cfo"]
    assert with_ladder(hold) == hold


def test_a_ladder_alone_says_when_and_that_it_escalates() -> None:
    bare = a_row(expires_at=None, original_timeout=None, terms=HoldTerms(ladder=(Rung("role:cfo", "3h"),)))

    hold = armed(with_ladder(bare), None)

    assert (hold.expiry_action, hold.escalation_target) == ("escalate", "role:cfo")
    assert (hold.expires_at, hold.original_timeout) == (OPENED + 3 * HOUR, 3 * HOUR)


def test_a_hold_without_any_length_has_no_deadline() -> None:
    bare = a_row(expires_at=None, original_timeout=None)

    assert length_at(bare, 0) is None
    assert armed(bare, None).expires_at is None


@pytest.mark.covers("EX-12")
def test_plain_time_is_not_moved_by_clocks() -> None:
    length = length_at(a_row(original_timeout=DAY), 0)
    assert length is not None

    assert after(at("2026-03-28T12:00+01:00"), length, office_hours()) == at("2026-03-29T13:00+02:00")
