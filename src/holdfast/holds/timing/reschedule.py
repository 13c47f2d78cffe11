"""Recomputes the deadlines of open holds when their calendar changes (EX-12).

A deadline that was extended by hand stays: only one that is still exactly what the old calendar gave is
recomputed.
"""

from __future__ import annotations

from typing import Any

from holdfast.holds.actions.audit_entries import RESCHEDULED, entry, event
from holdfast.holds.queries.audit import records_of
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.deadlines import after, calendar_name, counts_business_time, length_at
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.store.protocols import Store
from holdfast.types.clock import iso
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldFilter, HoldRow
from holdfast.types.status import HoldStatus

PAGE = 500


async def change_calendar(
    store: Store, tenant: str, name: str, rules: Any, *, by: str
) -> tuple[Calendar, list[HoldRow]]:
    """The new calendar, and the open holds whose deadlines moved.

    Raises SettingsError for an invalid calendar, DocumentChangedError if another writer was first."""
    calendars = Calendars(store)
    before = await calendars.find(tenant, name)
    now = await calendars.put(tenant, name, rules)
    return now, await reschedule(store, tenant, before, now, by=by)


async def reschedule(
    store: Store, tenant: str, before: Calendar | None, now: Calendar, *, by: str
) -> list[HoldRow]:
    """Recompute the deadlines of open holds. Idempotent."""
    moved: list[HoldRow] = []
    where, place = HoldFilter(tenant=tenant, status=(HoldStatus.pending,)), None
    while page := await store.list_holds(where, after=place, limit=PAGE):
        place = page[-1][1]
        for row, _ in page:
            if counts_business_time(row) and calendar_name(row) == now.name:
                found = await _reschedule(store, row, before, now, by)
                moved += [found] if found is not None else []
    return moved


async def _reschedule(
    store: Store, row: HoldRow, before: Calendar | None, now: Calendar, by: str
) -> HoldRow | None:
    current: HoldRow | None = row
    while current is not None and current.status is HoldStatus.pending:
        change = _moved(current, await _begun_at(store, current), before, now, by, store.now())
        if change is None:
            return None
        found = await store.change_hold(change)
        if isinstance(found, HoldRow):
            return found
        current = await store.hold(row.id) if found is ChangeRefusal.stale else None
    return None


def _moved(
    row: HoldRow, begun: int, before: Calendar | None, now: Calendar, by: str, at: int
) -> HoldChange | None:
    length = length_at(row, row.escalation_count)
    if length is None:
        return None
    old = None if before is None else after(begun, length, before)
    new = after(begun, length, now)
    if row.expires_at != old or new == old:
        return None
    facts = {"calendar": now.name, "expires_at": iso(new)}
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=at,
        fields={"expires_at": new, "original_timeout": row.original_timeout or new - begun},
        audit=(entry(row, by, "rescheduled", at, **facts),),
        event=event(row, RESCHEDULED, at, by=by, **facts),
    )


async def _begun_at(store: Store, row: HoldRow) -> int:
    """The start of the present deadline: the opening, or the last escalation."""
    if row.escalation_count == 0:
        return row.created_at
    entries = await records_of(store, row.tenant, hold=row.id)
    return max((each.at for each in entries if each.action == "escalated"), default=row.created_at)
