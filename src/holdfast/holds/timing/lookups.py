"""Lookups before a sweep decides: the assignee of a rung, the calendar, snoozes."""

from __future__ import annotations

from holdfast.holds.actions.context import HoldContext
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.assignees import UNROUTED
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.deadlines import calendar_name, counts_business_time
from holdfast.holds.timing.escalate import next_rung
from holdfast.holds.timing.expire import ExpiryFacts
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.hold import HoldRow, Note
from holdfast.types.terms import Assignee


class SweepLookups:
    def __init__(
        self,
        store: Store,
        calendars: Calendars,
        *,
        directory: Directory | None = None,
    ) -> None:
        self.store = store
        self.calendars = calendars
        self.ctx = HoldContext(store, directory=directory)

    async def ahead(self, row: HoldRow) -> ExpiryFacts:
        rung = next_rung(row)
        return ExpiryFacts(
            assignee=None if rung is None else await self._route(row, rung.to),
            calendar=None if rung is None else await self.calendar(row),
        )

    async def calendar(self, row: HoldRow) -> Calendar | None:
        """If the calendar is missing, plain time is used and a warning is logged."""
        if not (counts_business_time(row) or row.reminder_interval is not None):
            return None
        found = await self.calendars.find(row.tenant, row.terms.calendar)
        if found is None and counts_business_time(row):
            log.warning(
                "hold %s uses calendar %r, which does not exist any more; using plain time",
                row.id,
                calendar_name(row),
            )
        return found

    async def snoozes(self, row: HoldRow, now: int) -> list[Note]:
        """Snoozes of the assignee, under any of their names. In a group a snooze of one member does not stop
        reminders to the others."""
        if row.assignee_type != "user":
            return []
        notes = await self.store.hold_notes(row.id, kinds=("snooze",))
        lasting = [note for note in notes if (note.until or 0) > now]
        if not lasting:
            return []
        known = await self.ctx.known(Assignee("user", row.assignee_value), row.tenant)
        names = {row.assignee_value} if known is None else known.people
        return [note for note in lasting if note.slot in names]

    async def _route(self, row: HoldRow, raw: str) -> Assignee:
        found = await self.ctx.route(raw, row)
        if found.type == UNROUTED:
            about = {"hold": row.id, "run": row.run}
            log.error(
                "hold %s was escalated, but has no assignee: %s",
                row.id,
                found.reason or repr(raw),
                extra=about,
            )
        return found
