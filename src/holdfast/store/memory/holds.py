"""Holds: read, listed, and changed by one compare-and-set."""

from __future__ import annotations

from heapq import nlargest, nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.store.hold_order import place_of, require_place
from holdfast.store.hold_transitions import (
    ENGINE,
    change_messages,
    changed_row,
    refusal_of,
    require_blob,
    require_changeable,
)
from holdfast.store.memory.settle import MemoryRunHolds
from holdfast.store.queue_rules import changed_message
from holdfast.types.hold import ChangeRefusal, Due, HoldKey, HoldOrder, has_text
from holdfast.types.queue_message import MessageRow
from holdfast.types.status import ENDED, HoldStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from holdfast.store.memory.tables import MemoryRun
    from holdfast.types.hold import HoldChange, HoldFilter, HoldRow, Note
    from holdfast.types.ids import HoldId, RunId


class MemoryHolds(MemoryRunHolds):
    async def hold(self, hold: HoldId) -> HoldRow | None:
        with self._lock:
            return self._holds.get(hold)

    async def holds(
        self,
        *,
        run: RunId | None = None,
        status: HoldStatus | None = None,
        tenant: str | None = None,
        limit: int = 100,
    ) -> list[HoldRow]:
        with self._lock:
            found = [
                row
                for row in self._holds.values()
                if (run is None or row.run == run)
                and (status is None or row.status is status)
                and (tenant is None or row.tenant == tenant)
            ]
        return sorted(found, key=lambda row: row.created_at)[:limit]

    async def list_holds(
        self,
        where: HoldFilter,
        *,
        order: HoldOrder = HoldOrder.oldest,
        after: Sequence[Any] | None = None,
        limit: int = 50,
    ) -> list[tuple[HoldRow, tuple[Any, ...]]]:
        require_place(after, order)
        with self._lock:
            found = [(place_of(row, self._hold_numbers[row.id], order), row) for row in self._matching(where)]
        least = nlargest if order is HoldOrder.newest else nsmallest
        if after is not None:
            found = [pair for pair in found if _is_beyond(pair[0], tuple(after), order)]
        return [(row, place) for place, row in least(limit, found, key=lambda pair: pair[0])]

    async def count_holds(self, where: HoldFilter, *, limit: int = 10_000) -> int:
        with self._lock:
            return sum(1 for _ in islice(self._matching(where), limit))

    def _matching(self, where: HoldFilter) -> Iterator[HoldRow]:
        return (row for row in self._holds.values() if matches(row, where, self._notes.get(row.id, {})))

    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        require_changeable(change)
        with self._lock:
            row = self._holds.get(change.hold)
            if row is None:
                return ChangeRefusal.unknown
            refusal = self._used(change) or refusal_of(row, change)
            if refusal is not None:
                return refusal
            now = self._now()
            after = changed_row(row, change, now)
            self._keep_blobs(self._ids[row.run], change)
            if not self._change_message(after, change, now):
                return ChangeRefusal.message_lost
            self._holds[row.id] = after
            self._write_beside(change)
            self._write_messages(after, change, now)
            for message in change_messages(row, after):
                self._put_message(row.tenant, row.run, message, now)
        if change.mail is not None or change.outbox:
            self._changes.notify()
        if after.terms.queue is not None:
            self._queue_changes.notify()
        return after

    def _change_message(self, after: HoldRow, change: HoldChange, now: int) -> bool:
        """The message of a queue that asked the same question. False if it cannot be changed as asked."""
        if change.message is not None:
            known = self._messages.get((change.message.tenant, change.message.id))
            made = None if known is None else changed_message(known, change.message, now)
            if not isinstance(made, MessageRow):
                return False
            self._messages[made.tenant, made.id] = made
        elif after.status is not HoldStatus.pending and after.message_id is not None and change.fields:
            self._end_messages(self._messages_of(after.id), after.status, now)
        return True

    def _used(self, change: HoldChange) -> ChangeRefusal | None:
        if change.key is not None and (change.hold, change.key.actor, change.key.key) in self._hold_keys:
            return ChangeRefusal.key_used
        return ChangeRefusal.link_used if change.link in self._hold_links else None

    def _write_beside(self, change: HoldChange) -> None:
        notes = self._notes.setdefault(change.hold, {})
        for dropped in change.drop_notes:
            notes.pop(dropped, None)
        for note in change.notes:
            notes[note.kind, note.slot] = note
        if change.link is not None:
            self._hold_links[change.link] = change.hold
        if change.key is not None:
            self._hold_keys[change.hold, change.key.actor, change.key.key] = change.key.digest

    def _keep_blobs(self, run: MemoryRun, change: HoldChange) -> None:
        for digest in change.blobs:
            blob = self._blobs.get(digest)
            require_blob(digest, standing=blob is not None and not blob.condemned)
        for digest in change.blobs:
            run.blobs.add(digest)
            self._blobs[digest].runs.add(run.key)
        for digest in run.blobs.intersection(change.released_blobs):
            run.blobs.discard(digest)
            self._blobs[digest].runs.discard(run.key)

    def _write_messages(self, row: HoldRow, change: HoldChange, now: int) -> None:
        run = self._ids[row.run]
        self._chain(row.tenant, change.audit)
        for message in change.outbox:
            self._put_message(row.tenant, row.run, message, now)
        if change.mail is not None:
            self._add_inbox(run, *change.mail, now)
        for event in (change.event, *change.more_events):
            self._add_event(run, event)

    async def due_holds(self, due: Due, *, now: int, limit: int) -> list[HoldRow]:
        with self._lock:
            found = [(at, row) for at, row in self._due(due) if at <= now]
            found.sort(key=lambda pair: (pair[0], self._hold_numbers[pair[1].id]))
        return [row for _, row in found[:limit]]

    def _due(self, due: Due) -> Iterator[tuple[int, HoldRow]]:
        for row in self._holds.values():
            at = None if row.read_only else _INSTANTS[due](row)
            if at is not None and (due is not Due.resume or self._ids[row.run].status not in ENDED):
                yield at, row

    async def next_due_hold(self) -> int | None:
        with self._lock:
            return min((at for due in _WAITING for at, _ in self._due(due)), default=None)

    async def hold_key(self, hold: HoldId, actor: str, key: str) -> HoldKey | None:
        with self._lock:
            digest = self._hold_keys.get((hold, actor, key))
            return None if digest is None else HoldKey(actor, key, digest)

    async def hold_notes(self, hold: HoldId, *, kinds: Sequence[str] = ()) -> list[Note]:
        with self._lock:
            notes = self._notes.get(hold, {}).values()
            return [note for note in notes if not kinds or note.kind in kinds]

    async def count_notes(self, holds: Sequence[HoldId], *, kinds: Sequence[str]) -> dict[HoldId, int]:
        with self._lock:
            found = {hold: [note.kind for note in self._notes.get(hold, {}).values()] for hold in holds}
            counts = {hold: sum(kind in kinds for kind in noted) for hold, noted in found.items()}
            return {hold: count for hold, count in counts.items() if count}


_WAITING = (Due.expiry, Due.reminder, Due.placed)


def _when_open(at: Callable[[HoldRow], int | None]) -> Callable[[HoldRow], int | None]:
    return lambda row: at(row) if row.status is HoldStatus.pending else None


def _decided_at(row: HoldRow) -> int | None:
    """When it was decided, if the run has not been sent the outcome. An outcome of the run's own engine is
    not sent."""
    if row.status is HoldStatus.pending or row.resumed_at is not None or row.closed_by == ENGINE:
        return None
    return row.resolved_at if row.resolved_at is not None else row.closed_at


_INSTANTS = {
    Due.expiry: _when_open(lambda row: row.expires_at if row.paused_at is None else None),
    Due.reminder: _when_open(lambda row: row.remind_at),
    Due.placed: _when_open(lambda row: row.placed_until),
    Due.resume: _decided_at,
}


def _is_beyond(place: tuple[Any, ...], after: tuple[Any, ...], order: HoldOrder) -> bool:
    return place < after if order is HoldOrder.newest else place > after


def matches(row: HoldRow, where: HoldFilter, notes: Mapping[tuple[str, str], Note]) -> bool:
    return (
        _is_whose(row, where)
        and _is_of_run(row, where)
        and _is_what(row, where)
        and _is_when(row, where)
        and _is_noted(where, notes)
    )


def _is_whose(row: HoldRow, where: HoldFilter) -> bool:
    return (
        (where.tenant is None or row.tenant == where.tenant)
        and (where.assignees is None or _is_for(row, where.assignees))
        and _in(row.resolved_by, where.resolved_by)
        and not (where.live and row.read_only)
    )


def _is_for(row: HoldRow, assignees: Collection[tuple[str, str]]) -> bool:
    if (row.assignee_type, row.assignee_value) in assignees:
        return True
    also = row.terms.also_for
    return bool(also) and any(f"{kind}:{value}" in also for kind, value in assignees)


def _is_of_run(row: HoldRow, where: HoldFilter) -> bool:
    return (
        _in(row.run, where.run)
        and _in(row.flow, where.flow)
        and _in(row.core_id, where.deployment)
        and _in(row.instance_key, where.instance_key)
        and _in(row.started_by, where.started_by)
    )


def _is_what(row: HoldRow, where: HoldFilter) -> bool:
    return (
        _in(row.id, where.ids)
        and _in(row.status, where.status)
        and _in(row.type, where.type)
        and row.type not in where.not_type
        and _in(row.priority, where.priority)
        and (not where.tags or not set(where.tags).isdisjoint(row.tags))
        and (not where.text or has_text(row, where.text.casefold()))
    )


def _is_when(row: HoldRow, where: HoldFilter) -> bool:
    return (
        _is_between(row.created_at, where.created_from, where.created_to)
        and _is_between(row.expires_at, where.expires_from, where.expires_to)
        and _is_between(row.resolved_at, where.resolved_from, where.resolved_to)
    )


def _is_between(at: int | None, first: int | None, end: int | None) -> bool:
    if at is None:
        return first is None and end is None
    return (first is None or at >= first) and (end is None or at < end)


def _is_noted(where: HoldFilter, notes: Mapping[tuple[str, str], Note]) -> bool:
    if where.noted is not None and where.noted not in notes:
        return False
    if where.not_noted is None:
        return True
    kind, slot, now = where.not_noted
    note = notes.get((kind, slot))
    return note is None or (note.until is not None and note.until <= now)


def _in(value: str | None, wanted: Collection[str]) -> bool:
    return not wanted or value in wanted
