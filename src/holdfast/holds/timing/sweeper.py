"""Acts on deadlines and reminders of holds. Any number of sweepers may run (EX-1, RE-1, RM-5).

A sweep reads what is due, lets the pure modules decide, and writes by compare-and-set. A second sweeper
finds the row changed and skips it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import StoreError, VetoedError
from holdfast.holds.actions.close import placed_is_due
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.finalize import due_change
from holdfast.holds.directory.base import Directory
from holdfast.holds.policies.final_check import apply_guardrails
from holdfast.holds.timing.escalate import SYSTEM
from holdfast.holds.timing.expire import ExpiryFacts, expire, is_due
from holdfast.holds.timing.lookups import SweepLookups
from holdfast.holds.timing.reminders import NOTICES, remind
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.store.protocols import Store
from holdfast.telemetry import crashpoint, log
from holdfast.types.clock import MICROS, Clock
from holdfast.types.hold import Due, HoldChange, HoldRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxState
from holdfast.types.status import PARKED, HoldStatus

if TYPE_CHECKING:
    from holdfast.holds.policies.guardrails import Guardrails

BATCH: Final = 100
MOST_OF_A_RUN: Final = 10_000
PATIENCE: Final = 60 * MICROS
"""How long a run may take to receive a decision before the message is sent again (RM-5)."""

Act = Callable[[HoldRow, int], Awaitable[HoldChange | None]]


class SweepCounts(msgspec.Struct, kw_only=True):
    """The number of rows that were changed, by kind of work; `failed` rows are retried."""

    placed: int = 0
    expired: int = 0
    reminded: int = 0
    resumed: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.placed + self.expired + self.reminded + self.resumed


class HoldSweeper:
    """Checks every `look` seconds whether a row is due, and sweeps then, or after `every` seconds. The
    minimum interval of reminders is in the row."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        directory: Directory | None = None,
        guardrails: Guardrails | None = None,
        every: float = 300.0,
        look: float = 1.0,
    ) -> None:
        self.store = store
        self.clock = clock
        self.every = every
        self.look = look
        self.guardrails = guardrails
        self.ctx = HoldContext(store, directory=directory)
        self.scout = SweepLookups(store, Calendars(store), directory=directory)
        self._complained: dict[HoldId, int] = {}

    async def sweep(self, run: RunId | None = None) -> SweepCounts:
        """Act on everything that is due, or on what is due of one run. A row that fails does not stop the
        others.

        Raises StoreError if the store is unavailable."""
        swept = SweepCounts()
        # Placed decisions first: they were made in time, and must win against a deadline that passed since.
        swept.placed = await self._each(Due.placed, run, self._place, swept)
        swept.expired = await self._each(Due.expiry, run, self._expire, swept)
        swept.reminded = await self._each(Due.reminder, run, self._remind, swept)
        swept.resumed = await self._each(Due.resume, run, self._wake_run, swept)
        return swept

    async def serve(self) -> None:
        """Until cancelled."""
        last: int | None = None
        while True:
            try:
                now = self.store.now()
                # One cheap query per second; the full sweep also finds
                # runs that missed a decision, which have no due time.
                if last is None or now - last >= self.every * MICROS or await self._something_is_due(now):
                    last = now
                    await self.sweep()
            except StoreError as error:
                log.warning("holds could not be swept: %s", error)
            await self.clock.sleep(self.look)

    async def _something_is_due(self, now: int) -> bool:
        due = await self.store.next_due_hold()
        return due is not None and due <= now

    async def _each(self, due: Due, run: RunId | None, act: Act, swept: SweepCounts) -> int:
        """Returns the number of changed rows. Rows that stay due are processed once."""
        changed, looked = 0, set[HoldId]()
        while True:
            # The page grows with the rows that stay due, so that they do not hide the rest.
            found = await self._due(due, run, BATCH + 2 * len(looked))
            rows = [row for row in found if row.id not in looked]
            if not rows:
                return changed
            for row in rows:
                if await self._one(row, act, swept):
                    changed += 1
                else:
                    looked.add(row.id)

    async def _due(self, due: Due, run: RunId | None, limit: int) -> list[HoldRow]:
        now = self.store.now()
        if run is None:
            # A run normally receives its decision by message within
            # moments; sent at once, this would wake each run twice.
            since = now - PATIENCE if due is Due.resume else now
            return await self.store.due_holds(due, now=since, limit=limit)
        if due is Due.resume:
            return []
        rows = await self.store.holds(run=run, status=HoldStatus.pending, limit=MOST_OF_A_RUN)
        return [row for row in rows if _OF_RUN[due](row, now)]

    async def _one(self, row: HoldRow, act: Act, swept: SweepCounts) -> bool:
        try:
            change = await act(row, self.store.now())
            changed = change is not None and isinstance(await self.store.change_hold(change), HoldRow)
            if changed and change is not None and change.mail is not None:
                crashpoint("after_lapse")
            return changed
        except Exception as error:
            # If the store is unavailable, it is so for every row.
            if isinstance(error, StoreError) and error.retryable:
                raise
            swept.failed += 1
            self._complain(row, error)
            return False

    def _complain(self, row: HoldRow, error: Exception) -> None:
        """Logged once for each version of a row, because the same error occurs at every sweep."""
        if self._complained.get(row.id) != row.version:
            self._complained[row.id] = row.version
            about = {"hold": row.id, "run": row.run, "flow": row.flow}
            log.error("hold %s of run %s could not be swept: %s", row.id, row.run, error, extra=about)

    async def _place(self, row: HoldRow, now: int) -> HoldChange | None:
        return await due_change(self.ctx, row, now) if placed_is_due(row, now) else None

    async def _expire(self, row: HoldRow, now: int) -> HoldChange | None:
        made = expire(row, now, await self.scout.ahead(row)) if is_due(row, now) else None
        try:
            return None if made is None else await apply_guardrails(self.guardrails, row, made, SYSTEM)
        except VetoedError as error:
            return expire(row, now, ExpiryFacts(vetoed=error.message))

    async def _remind(self, row: HoldRow, now: int) -> HoldChange | None:
        waiting = await self.store.list_outbox(hold=row.id, state=OutboxState.waiting)
        return remind(
            row,
            now,
            calendar=await self.scout.calendar(row),
            snoozed=await self.scout.snoozes(row, now),
            under_way=any(message.topic in NOTICES for message in waiting),
        )

    async def _wake_run(self, row: HoldRow, now: int) -> HoldChange | None:
        """The run of a decided hold is still parked and has no message: its wake-up was lost."""
        run = await self.store.get_run(row.run)
        # A run that is active or has a message receives the decision by itself.
        if run is None or run.status not in PARKED or (await self.store.pending(row.run))[1]:
            return None
        log.warning("run %s has not received the outcome of hold %s; sending it again", row.run, row.id)
        kind = "answer" if row.status is HoldStatus.resolved else "lapse"
        return HoldChange(hold=row.id, version=row.version, at=now, mail=(kind, row.id.encode()))


def _reminder_is_due(row: HoldRow, now: int) -> bool:
    return row.remind_at is not None and row.remind_at <= now


_OF_RUN: Final[dict[Due, Callable[[HoldRow, int], bool]]] = {
    Due.placed: placed_is_due,
    Due.expiry: is_due,
    Due.reminder: _reminder_is_due,
}
