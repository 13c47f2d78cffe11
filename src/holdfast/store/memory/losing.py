"""Runs whose history went back. Here that takes a test: nothing of this store outlives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.store.lost_history import LOST_EVENT, loss_event, loss_message
from holdfast.store.memory.tables import MemoryTables
from holdfast.types.durability import Durability
from holdfast.types.status import ENDED, PARKED, RunStatus

if TYPE_CHECKING:
    from holdfast.store.memory.rows import MemoryRun
    from holdfast.store.protocols import RunRow
    from holdfast.types.acknowledged import AcknowledgedState


class MemoryLostHistory(MemoryTables):
    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        with self._lock:
            run = self._ids.get(known.run)
            if run is None or run.read_only or self._has(run, known) or _has_loss_event(run, known):
                return None
            now, head = self._now(), run.head
            if run.status in PARKED:
                self._set_status(run, RunStatus.running, now)
            if run.status not in ENDED:
                self._set_status(run, RunStatus.failed, now)
            run.error = loss_message(known, head)
            run.term = max(run.term, known.term) + 1
            run.event_seq = max(run.event_seq, known.events)
            self._add_event(run, loss_event(known, head, now))
            return run.row()

    async def durability(self) -> Durability:
        return Durability()  # gone with its process: whoever uses it knows

    def _has(self, run: MemoryRun, known: AcknowledgedState) -> bool:
        """A record below or at the horizon was pruned or rewritten: nothing can be said of it."""
        if run.inbox_seq < known.mail:
            return False
        if known.hold is not None:
            hold = self._holds.get(known.hold)
            if hold is None or hold.version < known.version:
                return False
        if known.head <= run.horizon:
            return True
        if known.head > run.head:
            return False
        record = run.records[known.head - run.horizon]
        return (record.term, record.at) == (known.term, known.at)


def _has_loss_event(run: MemoryRun, known: AcknowledgedState) -> bool:
    return any(event.type == LOST_EVENT and event.at >= known.at for event in run.events)
