"""Messages of queues in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.store.memory.settle import MemoryRunHolds
from holdfast.store.queue_rules import changed_message, claimed_message, lapsed_message, new_row
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import (
    EVENTS,
    MessageRefusal,
    MessageRow,
    MessageState,
    MessageSweep,
    QueueCounts,
)
from holdfast.types.status import HoldStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.types.outbox import OutboxMessage
    from holdfast.types.queue_message import (
        EndNotice,
        MessageChange,
        MessageClaim,
        MessageFilter,
        MessagePlace,
        NewMessage,
    )


class MemoryQueues(MemoryRunHolds):
    def queue_changes(self) -> int:
        return self._queue_changes.count

    async def wait_queues(self, seen: int, timeout: float) -> None:
        await self._queue_changes.wait_beyond(seen, timeout)

    async def publish_message(
        self, new: NewMessage, *, outbox: Sequence[OutboxMessage] = ()
    ) -> tuple[MessageRow, bool] | None:
        with self._lock:
            hold = None if new.hold is None else self._asking(new)
            if new.hold is not None and hold is None:
                return None
            known = self._messages.get((new.tenant, new.id))
            if hold is not None:
                named = self._messages.get((new.tenant, hold.message_id or ""))
                known = named if named is not None and named.hold == hold.id else known
                if known is None or known.hold == hold.id:
                    named_id = new.id if known is None else known.id
                    self._holds[hold.id] = replace(hold, message_id=named_id)
            if known is not None:
                return known, False
            now = self._now()
            row = new_row(new, next(self._numbers), now)
            self._messages[new.tenant, new.id] = row
            for message in outbox:
                self._put_message(new.tenant, None, message, now)
        self._queue_changes.notify()
        return row, True

    async def queue_message(self, tenant: str, message: str) -> MessageRow | None:
        with self._lock:
            return self._messages.get((tenant, message))

    async def list_messages(
        self, where: MessageFilter, *, after: int | None = None, limit: int = 50
    ) -> list[MessageRow]:
        with self._lock:
            found = [
                row
                for row in self._messages.values()
                if _matches(row, where) and (after is None or row.number < after)
            ]
        return sorted(found, key=lambda row: -row.number)[:limit]

    async def ready_messages(
        self, want: MessageClaim, *, after: MessagePlace | None = None, since: int = 0
    ) -> list[MessageRow]:
        with self._lock:
            found = self._ready(want, self._now())
        return [row for row in found if row.visible_at > since and (after is None or row.place > after)][
            : want.limit
        ]

    def _ready(self, want: MessageClaim, now: int) -> list[MessageRow]:
        found = [row for row in self._messages.values() if self._is_claimable(row, want, now)]
        return sorted(found, key=lambda row: row.place)

    async def claim_messages(self, want: MessageClaim) -> list[MessageRow]:
        with self._lock:
            now = self._now()
            ready = self._ready(want, now)
            if want.scope == EVENTS:
                ready.sort(key=lambda row: row.number)  # also those that were tried before
            claimed = [claimed_message(row, want, now) for row in ready[: want.limit]]
            for row in claimed:
                self._messages[row.tenant, row.id] = row
            return claimed

    async def change_message(
        self, change: MessageChange, *, outbox: Sequence[OutboxMessage] = ()
    ) -> MessageRow | MessageRefusal:
        with self._lock:
            row, now = self._messages.get((change.tenant, change.id)), self._now()
            after = MessageRefusal.unknown if row is None else changed_message(row, change, now)
            if isinstance(after, MessageRow) and after != row:
                self._messages[after.tenant, after.id] = after
                for message in outbox:
                    self._put_message(after.tenant, None, message, now)
        self._queue_changes.notify()
        return after

    async def sweep_messages(self, *, limit: int = 500, notice: EndNotice | None = None) -> MessageSweep:
        with self._lock:
            now = self._now()
            rows = list(self._messages.values())
            lapsed = [lapsed_message(row, now) for row in rows if _is_past(row.claim_until, now)][:limit]
            self._write_messages_back(lapsed)
            rows = list(self._messages.values())
            over = [row for row in rows if row.is_open and _is_past(row.expires_at, now)][:limit]
            self._end_messages(over, HoldStatus.expired, now)
            for row in (*lapsed, *over):
                after = self._messages[row.tenant, row.id]
                for message in notice(after) if notice is not None and not after.is_open else ():
                    self._put_message(row.tenant, None, message, now)
            old = [row for row in self._messages.values() if _is_past(row.drop_at, now)][:limit]
            for row in old:
                del self._messages[row.tenant, row.id]
            return MessageSweep(lapsed=len(lapsed), expired=len(over), dropped=len(old))

    async def queue_counts(self, tenant: str | None = None) -> list[QueueCounts]:
        with self._lock:
            now = self._now()
            rows = [row for row in self._messages.values() if tenant in (None, row.tenant)]
        places = sorted({(row.tenant, row.scope, row.queue) for row in rows if _is_counted(row)})
        return [
            _counts(place, [row for row in rows if (row.tenant, row.scope, row.queue) == place], now)
            for place in places
        ]

    def _asking(self, new: NewMessage) -> HoldRow | None:
        """The open hold whose message it is."""
        hold = self._holds.get(HoldId(new.hold or ""))
        if hold is None or hold.tenant != new.tenant or hold.read_only:
            return None
        return hold if hold.status is HoldStatus.pending else None

    def _is_claimable(self, row: MessageRow, want: MessageClaim, now: int) -> bool:
        return (
            (row.tenant, row.scope, row.queue) == (want.tenant, want.scope, want.queue)
            and want.id in (None, row.id)
            and (want.reviews or row.hold is None)
            and row.state is MessageState.ready
            and row.visible_at <= now
            and not _is_past(row.expires_at, now)
            and (row.group_key is None or self._is_first_of_group(row, now))
        )

    def _is_first_of_group(self, row: MessageRow, now: int) -> bool:
        place = (row.tenant, row.scope, row.queue, row.group_key)
        # An event that no condition accepts does not hold up those behind it: only one that is tried again.
        since = now if row.scope == EVENTS else -1
        return not any(
            other.state is MessageState.claimed or (other.number < row.number and other.visible_at > since)
            for other in self._messages.values()
            if other.is_open and (other.tenant, other.scope, other.queue, other.group_key) == place
        )

    def _write_messages_back(self, rows: Iterable[MessageRow]) -> None:
        for row in rows:
            self._messages[row.tenant, row.id] = row


def _is_past(instant: int | None, now: int) -> bool:
    return instant is not None and instant <= now


def _is_counted(row: MessageRow) -> bool:
    return row.is_open or row.state is MessageState.dead


def _matches(row: MessageRow, where: MessageFilter) -> bool:
    names = ("tenant", "scope", "queue", "type", "correlation_id", "hold")
    if where.claimed_beyond is not None and (row.claim_until or 0) <= where.claimed_beyond:
        return False
    return (not where.states or row.state in where.states) and all(
        getattr(where, name) in (None, getattr(row, name)) for name in names
    )


def _counts(place: tuple[str, str, str], rows: Sequence[MessageRow], now: int) -> QueueCounts:
    by_state = {state: [row for row in rows if row.state is state] for state in MessageState}
    ready = by_state[MessageState.ready]
    return QueueCounts(
        tenant=place[0],
        scope=place[1],
        queue=place[2],
        ready=len(ready),
        delayed=sum(row.visible_at > now for row in ready),
        claimed=len(by_state[MessageState.claimed]),
        dead=len(by_state[MessageState.dead]),
        oldest=max((now - row.visible_at for row in ready), default=0) if ready else 0,
    )
