"""What is looked up before a sweep decides: whom a rung means, which calendar counts, who wants quiet."""

from __future__ import annotations

from holdfast.holds.actions.context import HoldContext
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.assignees import UNROUTED
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.deadlines import calendar_name, counts_business_time
from holdfast.holds.timing.expire import ExpiryFacts, next_rung
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
        self.office = HoldContext(store, directory=directory)

    async def ahead(self, row: HoldRow) -> ExpiryFacts:
        rung = next_rung(row)
        return ExpiryFacts(
            assignee=None if rung is None else await self._route(row, rung.to),
            calendar=None if rung is None else await self.calendar(row),
        )

    async def calendar(self, row: HoldRow) -> Calendar | None:
        """A calendar that is gone holds nobody up: time is then counted plainly, and that is said."""
        if not (counts_business_time(row) or row.reminder_interval is not None):
            return None
        found = await self.calendars.find(row.tenant, row.terms.calendar)
        if found is None and counts_business_time(row):
            log.warning("hold %s counts by calendar %r, which is gone", row.id, calendar_name(row))
        return found

    async def snoozes(self, row: HoldRow, now: int) -> list[Note]:
        """Of the one person it waits for, under whichever of their names. In a group one's sleep is not the
        others'."""
        if row.assignee_type != "user":
            return []
        notes = await self.store.hold_notes(row.id, kinds=("snooze",))
        lasting = [note for note in notes if (note.until or 0) > now]
        if not lasting:
            return []
        known = await self.office.known(Assignee("user", row.assignee_value), row.tenant)
        names = {row.assignee_value} if known is None else known.people
        return [note for note in lasting if note.slot in names]

    async def _route(self, row: HoldRow, raw: str) -> Assignee:
        found = await self.office.route(raw, row)
        if found.type == UNROUTED:
            about = {"hold": row.id, "run": row.run}
            log.error("hold %s escalated to nobody: %s", row.id, found.reason or repr(raw), extra=about)
        return found
