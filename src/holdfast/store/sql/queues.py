"""Messages of queues: rows that are read under a lock, changed by the shared rules, and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from holdfast.store.change_signal import ChangeSignal
from holdfast.store.queue_rules import (
    changed_message,
    claimed_message,
    concern_queues,
    lapsed_message,
    message_end,
    new_row,
)
from holdfast.store.sql import outbox as outbox_rows
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.outbox import OutboxMessage
from holdfast.types.queue_message import (
    EVENTS,
    EndNotice,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessagePlace,
    MessageRefusal,
    MessageRow,
    MessageState,
    MessageSweep,
    NewMessage,
    QueueCounts,
)
from holdfast.types.record import Record
from holdfast.types.status import HoldStatus
from holdfast.types.terms import PRIORITIES

_FIELDS = MessageRow.__struct_fields__
_COLUMNS = ", ".join(f"m.{field}" for field in _FIELDS)
_FROM = "FROM @queue_messages AS m"
_SELECT = f"SELECT {_COLUMNS} {_FROM}"
_SELECT_CLAIMED = _SELECT.replace("@queue_messages", "@queue_messages[queue_messages_claimed]")
_ONE = f"{_SELECT} WHERE m.tenant = ? AND m.id = ?"
_LOCK_ONE = f"{_ONE} FOR UPDATE"
# The number is the database's; the urgency and the time of deletion are in indexes.
_WRITTEN = (*(field for field in _FIELDS if field != "number"), "urgency", "drop_at")
_INSERT = f"""
INSERT INTO @queue_messages ({", ".join(_WRITTEN)}) VALUES ({", ".join("?" * len(_WRITTEN))})
ON CONFLICT DO NOTHING"""
_CHANGEABLE = (
    "scope", "queue", "priority", "payload", "visible_at", "expires_at", "state", "attempts", "claimed_by",
    "claim_token", "claim_until", "result", "completed_by", "error", "updated_at", "ended_at", "urgency",
    "drop_at",
)  # fmt: skip
_UPDATE = f"UPDATE @queue_messages SET {' = ?, '.join(_CHANGEABLE)} = ? WHERE number = ?"
_CLAIM = """
UPDATE @queue_messages SET state = 'claimed', claimed_by = ?, claim_token = ?, claim_until = ?, updated_at = ?
WHERE number = ?"""
# Of a group one is claimed at a time, the oldest first. But an event that no condition accepts does not hold
# up those behind it: only one that could not be given to its run now, and is tried again later.
_OF_GROUP = """other.tenant = m.tenant AND other.scope = m.scope AND other.queue = m.queue
    AND other.group_key = m.group_key"""
_READY = f"""m.tenant = ? AND m.scope = ? AND m.queue = ? AND m.state = 'ready' AND m.visible_at <= ?
AND (m.expires_at IS NULL OR m.expires_at > ?)
AND (m.group_key IS NULL OR (
    NOT EXISTS (SELECT 1 FROM @queue_messages AS other WHERE {_OF_GROUP} AND other.state = 'claimed')
    AND (m.scope = '{EVENTS}' OR NOT EXISTS (
        SELECT 1 FROM @queue_messages AS other
        WHERE {_OF_GROUP} AND other.state = 'ready' AND other.number < m.number))
    AND (m.scope <> '{EVENTS}' OR NOT EXISTS (
        SELECT 1 FROM @queue_messages[queue_messages_ready] AS other
        WHERE {_OF_GROUP} AND other.state = 'ready' AND other.urgency = m.urgency AND other.visible_at > ?
        AND other.number < m.number))))"""
# One index lookup for each priority: messages that are not visible yet are never read.
_NEXT = f"""
SELECT {_COLUMNS} FROM @queue_messages[queue_messages_ready] AS m WHERE {_READY} AND m.urgency = ?
ORDER BY m.visible_at, m.number LIMIT ? FOR UPDATE OF m SKIP LOCKED"""
# Events in the order in which they were sent, also those that were tried before.
_NEXT_EVENT = f"""{_SELECT} WHERE {_READY} AND m.urgency = ?
ORDER BY m.number LIMIT ? FOR UPDATE OF m SKIP LOCKED"""
_NAMED = f"{_SELECT} WHERE {_READY} AND m.id = ? FOR UPDATE OF m"
_LISTED = f"""
SELECT {_COLUMNS} FROM @queue_messages[queue_messages_ready] AS m
WHERE {_READY} AND m.visible_at > ? AND (m.urgency > ? OR (m.urgency = ? AND (m.visible_at > ?
      OR (m.visible_at = ? AND m.number > ?))))
ORDER BY m.urgency, m.visible_at, m.number LIMIT ?"""
_NO_REVIEWS = ("AND m.state = 'ready'", "AND m.state = 'ready' AND m.hold IS NULL")
# Each from its own index.
_ANY_DUE = """
SELECT EXISTS (SELECT 1 FROM @queue_messages WHERE state = 'claimed' AND claim_until <= ?)
OR EXISTS (SELECT 1 FROM @queue_messages
           WHERE state IN ('ready', 'claimed') AND expires_at IS NOT NULL AND expires_at <= ?)
OR EXISTS (SELECT 1 FROM @queue_messages WHERE drop_at IS NOT NULL AND drop_at <= ?)"""
_LAPSED = f"{_SELECT} WHERE m.state = 'claimed' AND m.claim_until <= ? LIMIT ? FOR UPDATE SKIP LOCKED"
_EXPIRED = f"""
{_SELECT} WHERE m.state IN ('ready', 'claimed') AND m.expires_at IS NOT NULL AND m.expires_at <= ?
LIMIT ? FOR UPDATE SKIP LOCKED"""
_OLD = """
SELECT number FROM @queue_messages WHERE drop_at IS NOT NULL AND drop_at <= ? LIMIT ?
FOR UPDATE SKIP LOCKED"""
_DROP = "DELETE FROM @queue_messages WHERE number = ANY(?::bigint[])"
_OF_HOLDS = f"{_SELECT} WHERE m.hold = ANY(?::text[]) AND m.state IN ('ready', 'claimed', 'dead') FOR UPDATE"
_COUNTS = """
SELECT tenant, scope, queue, state, count(*), sum(CASE WHEN visible_at > ?::bigint THEN 1 ELSE 0 END),
       min(visible_at)
FROM @queue_messages WHERE state IN ('ready', 'claimed', 'dead') {of}
GROUP BY tenant, scope, queue, state ORDER BY tenant, scope, queue"""
# The run first, as a settle does it: otherwise the two could wait for each other.
_LOCK_RUN = "SELECT key FROM @runs WHERE key = (SELECT run_key FROM @holds WHERE id = ?) FOR UPDATE"
_LOCK_HOLD = "SELECT status, message_id FROM @holds WHERE id = ? AND tenant = ? AND NOT read_only FOR UPDATE"
_NAME_MESSAGE = "UPDATE @holds SET message_id = ? WHERE id = ?"
CLAIMED_ONCE: Final = "queue_messages_once"
"""The index that refuses a second claim in a group, where two transactions did not see each other's."""
_STATES = {str(state): state for state in MessageState}
_FIRST: Final[MessagePlace] = (-1, 0, 0)
_URGENCIES: Final = range(len(PRIORITIES))


def message_row(values: Row) -> MessageRow:
    fields = dict(zip(_FIELDS, values, strict=True))
    fields["state"] = _STATES[fields["state"]]
    return MessageRow(**fields)


async def publish(
    conn: Conn, now: int, new: NewMessage, outbox: Sequence[OutboxMessage]
) -> tuple[MessageRow, bool] | None:
    if new.hold is not None:
        return await _ask(conn, now, new, new.hold)
    row, fresh = await _inserted(conn, now, new)
    if fresh:
        for message in outbox:
            await outbox_rows.put(conn, now, new.tenant, None, message)
    return row, fresh


async def _inserted(conn: Conn, now: int, new: NewMessage) -> tuple[MessageRow, bool]:
    row = new_row(new, 0, now)
    fresh = await conn.run(_INSERT, *(getattr(row, name) for name in _WRITTEN)) == 1
    found = await conn.row(_ONE, new.tenant, new.id)
    assert found is not None
    return message_row(found), fresh


async def _ask(conn: Conn, now: int, new: NewMessage, hold: str) -> tuple[MessageRow, bool] | None:
    """The message of an open hold. One that is not its own may have the id, because callers choose theirs;
    it would be completed without the rights that the hold needs, so the hold does not name it."""
    if conn.locks_rows:
        await conn.row(_LOCK_RUN, hold)
    found = await conn.row(_LOCK_HOLD, hold, new.tenant)
    if found is None or found[0] != HoldStatus.pending:
        return None
    named = None if found[1] is None else await get(conn, new.tenant, found[1])
    if named is not None and named.hold == hold:
        return named, False
    row, fresh = await _inserted(conn, now, new)
    if row.hold == hold:
        await conn.run(_NAME_MESSAGE, row.id, hold)
    return row, fresh


async def get(conn: Conn, tenant: str, message: str) -> MessageRow | None:
    found = await conn.row(_ONE, tenant, message)
    return None if found is None else message_row(found)


async def select(conn: Conn, where: MessageFilter, after: int | None, limit: int) -> list[MessageRow]:
    given: dict[str, Any] = {
        f"m.{name} = ?": value
        for name in ("tenant", "scope", "queue", "type", "correlation_id", "hold")
        if (value := getattr(where, name)) is not None
    }
    if where.states:
        given["m.state = ANY(?::text[])"] = [str(state) for state in where.states]
    if where.claimed_beyond is not None:
        given["m.state = 'claimed' AND m.claim_until > ?"] = where.claimed_beyond
    if after is not None:
        given["m.number < ?"] = after
    text = " AND ".join(given) or "true"
    source = _SELECT if where.claimed_beyond is None else _SELECT_CLAIMED
    found = await conn.rows(f"{source} WHERE {text} ORDER BY m.number DESC LIMIT ?", *given.values(), limit)
    return [message_row(values) for values in found]


async def claim(conn: Conn, now: int, want: MessageClaim) -> list[MessageRow]:
    claimed: list[MessageRow] = []
    for row in await _claimable(conn, now, want):
        taken = claimed_message(row, want, now)
        await conn.run(
            _CLAIM, taken.claimed_by, taken.claim_token, taken.claim_until, taken.updated_at, taken.number
        )
        claimed.append(taken)
    return claimed


async def _claimable(conn: Conn, now: int, want: MessageClaim) -> list[MessageRow]:
    place = (want.tenant, want.scope, want.queue, now, now, now)
    if want.id is not None:
        return [message_row(values) for values in await conn.rows(_of(want, _NAMED), *place, want.id)]
    found: list[Row] = []
    text = _of(want, _NEXT_EVENT if want.scope == EVENTS else _NEXT)
    for urgency in _URGENCIES:
        if len(found) == want.limit:
            break
        found += await conn.rows(text, *place, urgency, want.limit - len(found))
    return [message_row(values) for values in found]


def _of(want: MessageClaim, text: str) -> str:
    return text if want.reviews else text.replace(*_NO_REVIEWS, 1)


async def ready(
    conn: Conn, now: int, want: MessageClaim, after: MessagePlace, since: int
) -> list[MessageRow]:
    place, (urgency, visible_at, number) = (want.tenant, want.scope, want.queue, now, now, now), after
    behind = (urgency, urgency, visible_at, visible_at, number)
    found = await conn.rows(_of(want, _LISTED), *place, since, *behind, want.limit)
    return [message_row(values) for values in found]


async def change(
    conn: Conn, now: int, change: MessageChange, outbox: Sequence[OutboxMessage]
) -> MessageRow | MessageRefusal:
    row = await locked(conn, change)
    after = MessageRefusal.unknown if row is None else changed_message(row, change, now)
    if isinstance(after, MessageRow) and after != row:
        await write(conn, after)
        for message in outbox:
            await outbox_rows.put(conn, now, after.tenant, None, message)
    return after


async def locked(conn: Conn, change: MessageChange) -> MessageRow | None:
    found = await conn.row(_LOCK_ONE, change.tenant, change.id)
    return None if found is None else message_row(found)


async def write(conn: Conn, row: MessageRow) -> None:
    await conn.run(_UPDATE, *(getattr(row, name) for name in _CHANGEABLE), row.number)


async def end_of_holds(conn: Conn, now: int, holds: Sequence[str], status: HoldStatus) -> None:
    """The messages of holds that ended elsewhere end with them (QB-9)."""
    for values in await conn.rows(_OF_HOLDS, list(holds)):
        row = message_row(values)
        ends = MessageChange(tenant=row.tenant, id=row.id, act=message_end(status))
        after = changed_message(row, ends, now)
        if isinstance(after, MessageRow):
            await write(conn, after)


async def any_due(conn: Conn, now: int) -> bool:
    """Checks without the write lock: most sweeps end here."""
    found = await conn.row(_ANY_DUE, now, now, now)
    return bool(found and found[0])


async def sweep(conn: Conn, now: int, limit: int, notice: EndNotice | None) -> MessageSweep:
    lapsed = await _each(conn, _LAPSED, now, limit, lambda row: lapsed_message(row, now), notice)
    expired = await _each(conn, _EXPIRED, now, limit, lambda row: _expired(row, now), notice)
    old = [number for (number,) in await conn.rows(_OLD, now, limit)]
    if old:
        await conn.run(_DROP, old)
    return MessageSweep(lapsed=lapsed, expired=expired, dropped=len(old))


async def _each(
    conn: Conn,
    query: str,
    now: int,
    limit: int,
    act: Callable[[MessageRow], MessageRow],
    notice: EndNotice | None,
) -> int:
    found = await conn.rows(query, now, limit)
    for values in found:
        after = act(message_row(values))
        await write(conn, after)
        for message in notice(after) if notice is not None and not after.is_open else ():
            await outbox_rows.put(conn, now, after.tenant, None, message)
    return len(found)


def _expired(row: MessageRow, now: int) -> MessageRow:
    ends = MessageChange(tenant=row.tenant, id=row.id, act=message_end(HoldStatus.expired))
    after = changed_message(row, ends, now)
    assert isinstance(after, MessageRow)
    return after


async def counts(conn: Conn, now: int, tenant: str | None) -> list[QueueCounts]:
    of = "" if tenant is None else "AND tenant = ?"
    given = () if tenant is None else (tenant,)
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for whose, scope, queue, state, number, delayed, first in await conn.rows(
        _COUNTS.format(of=of), now, *given
    ):
        figures = found.setdefault((whose, scope, queue), {})
        figures[state] = int(number)
        if state == MessageState.ready:
            figures["delayed"] = int(delayed)
            figures["oldest"] = max(now - int(first), 0)
    return [
        QueueCounts(tenant=place[0], scope=place[1], queue=place[2], **figures)
        for place, figures in found.items()
    ]


class SqlQueues(SqlAccess):
    """The part of the store that keeps the messages of queues."""

    _queue_changes: ChangeSignal

    def queue_changes(self) -> int:
        return self._queue_changes.count

    async def wait_queues(self, seen: int, timeout: float) -> None:
        await self._queue_changes.wait_beyond(seen, timeout)

    def _wake_queues(self, records: Sequence[Record]) -> None:
        """After the commit of these records."""
        if concern_queues(records):
            self._queue_changes.notify()

    async def publish_message(
        self, new: NewMessage, *, outbox: Sequence[OutboxMessage] = ()
    ) -> tuple[MessageRow, bool] | None:
        # The outbox still has the note about a hold whose message a power cut has lost.
        done = await self._write(partial(publish, new=new, outbox=outbox), flushed=new.hold is None)
        self._queue_changes.notify()
        return done

    async def queue_message(self, tenant: str, message: str) -> MessageRow | None:
        return await self._peek(partial(get, tenant=tenant, message=message))

    async def list_messages(
        self, where: MessageFilter, *, after: int | None = None, limit: int = 50
    ) -> list[MessageRow]:
        return await self._read(partial(select, where=where, after=after, limit=limit))

    async def ready_messages(
        self, want: MessageClaim, *, after: MessagePlace | None = None, since: int = 0
    ) -> list[MessageRow]:
        query = partial(ready, now=self.now(), want=want, after=after or _FIRST, since=since)
        return await self._read(query)

    async def claim_messages(self, want: MessageClaim) -> list[MessageRow]:
        return await self._write(partial(claim, want=want))

    async def change_message(
        self, change: MessageChange, *, outbox: Sequence[OutboxMessage] = ()
    ) -> MessageRow | MessageRefusal:
        done = await self._write(partial(_change, given=change, outbox=outbox))
        self._queue_changes.notify()
        return done

    async def sweep_messages(self, *, limit: int = 500, notice: EndNotice | None = None) -> MessageSweep:
        if not await self._read(partial(any_due, now=self.now())):
            return MessageSweep()
        return await self._write(partial(sweep, limit=limit, notice=notice))

    async def queue_counts(self, tenant: str | None = None) -> list[QueueCounts]:
        # Counts every open message, which may be many.
        return await self._read(partial(counts, now=self.now(), tenant=tenant), slow=True)


async def _change(
    conn: Conn, now: int, given: MessageChange, outbox: Sequence[OutboxMessage]
) -> MessageRow | MessageRefusal:
    return await change(conn, now, given, outbox)
