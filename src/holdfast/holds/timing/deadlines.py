"""Deadlines of holds: computed once as an instant, and again only when the calendar changes (EX-12)."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast.errors import SettingsError
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.stored_calendars import DEFAULT, Calendars
from holdfast.types.clock import micros
from holdfast.types.duration import BusinessDuration, is_business, parse_length
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.terms import Rung

Length = timedelta | BusinessDuration


class Deadlines:
    """A step of the hold preparation: completes the ladder, and converts business time to an instant."""

    def __init__(self, calendars: Calendars) -> None:
        self.calendars = calendars

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return bool(hold.terms.ladder or hold.terms.timeout)

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        """Raises DurationError for an invalid duration, SettingsError if the calendar is missing."""
        hold = with_ladder(hold)
        calendar = await self.calendar(hold, facts.tenant)
        for rung in range(len(hold.terms.ladder)):
            length_at(hold, rung)
        return armed(hold, calendar)

    async def calendar(self, hold: NewHold, tenant: str) -> Calendar | None:
        """The calendar for the hold's durations; None if none of them is business time."""
        if not counts_business_time(hold):
            return None
        return await self.calendars.named(tenant, hold.terms.calendar)


def counts_business_time(hold: NewHold) -> bool:
    return is_business(hold.terms.timeout) or any(is_business(rung.after) for rung in hold.terms.ladder)


def calendar_name(hold: NewHold) -> str:
    return hold.terms.calendar or DEFAULT


def with_ladder(hold: NewHold) -> NewHold:
    """`escalation_target` is the next rung. A target given besides a ladder is its first rung."""
    ladder, target = hold.terms.ladder, hold.escalation_target
    if not ladder:
        return hold
    if target is not None and ladder[0].to != target:
        ladder = (Rung(target), *ladder)
    terms = msgspec.structs.replace(hold.terms, ladder=ladder)
    return msgspec.structs.replace(
        hold, terms=terms, escalation_target=ladder[0].to, expiry_action=hold.expiry_action or "escalate"
    )


def rungs_of(hold: NewHold) -> tuple[Rung, ...]:
    if hold.terms.ladder:
        return hold.terms.ladder
    return (Rung(hold.escalation_target),) if hold.escalation_target is not None else ()


def armed(hold: NewHold, calendar: Calendar | None) -> NewHold:
    """With its first deadline; sets `original_timeout` if it is not set yet."""
    length = length_at(hold, 0)
    if length is None:
        return hold
    expires_at = after(hold.created_at, length, calendar)
    original = hold.original_timeout or expires_at - hold.created_at
    return msgspec.structs.replace(hold, expires_at=expires_at, original_timeout=original)


def length_at(hold: NewHold, rung: int) -> Length | None:
    """The timeout after that many escalations; None: no timeout. Raises DurationError."""
    ladder = hold.terms.ladder
    written = (ladder[rung].after if rung < len(ladder) else "") or hold.terms.timeout
    if written:
        return parse_length(written)
    if hold.original_timeout is not None:
        return timedelta(microseconds=hold.original_timeout)
    # A rung without a duration uses that of the nearest rung below, else the first one.
    below = [each.after for each in ladder[:rung] if each.after]
    above = [each.after for each in ladder[rung:] if each.after]
    found = below[-1:] or above[:1]
    return parse_length(found[0]) if found else None


def after(start: int, length: Length, calendar: Calendar | None) -> int:
    """Raises SettingsError if business time has no calendar."""
    if isinstance(length, timedelta):
        return start + micros(length)
    if calendar is None:
        raise SettingsError(
            "business time needs a calendar.", hint=f"Create one: holdfast calendars set {DEFAULT} FILE."
        )
    return calendar.add(start, length)
