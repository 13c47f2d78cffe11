"""Messages of the outbox: claimed for a time by a dispatcher."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.outbox import SELECT, message_row
from holdfast.types.outbox import OutboxRow

_DUE = "state = 'waiting' AND due_at <= ? AND (claimed_until IS NULL OR claimed_until <= ?)"
# One index lookup for each topic: messages that no dispatcher takes stay for ever, and cost nothing.
_TOPICS = "SELECT topic FROM @outbox WHERE state = 'waiting' GROUP BY state, topic"
_NEXT = f"SELECT due_at, id FROM @outbox WHERE topic = ? AND {_DUE} ORDER BY due_at, id LIMIT ?"
# By their keys: a statement that sorts would lock all that it looks at.
_LOCK = f"SELECT id FROM @outbox WHERE id = ANY(?::bigint[]) AND {_DUE} ORDER BY id FOR UPDATE SKIP LOCKED"
_CLAIM = "UPDATE @outbox SET claimed_until = ?, attempts = attempts + 1 WHERE id = ANY(?::bigint[])"
_BY_ID = f"{SELECT} WHERE outbox.id = ANY(?::bigint[]) ORDER BY outbox.due_at, outbox.id"


async def claim(conn: Conn, now: int, limit: int, lease: int, topics: Sequence[str]) -> list[OutboxRow]:
    asked = list(dict.fromkeys(topics)) or [topic for (topic,) in await conn.rows(_TOPICS)]
    due = [await conn.rows(_NEXT, topic, now, now, limit) for topic in asked]
    first = [number for _, number in islice(merge(*due), limit)]
    if not first:
        return []
    locked = [number for (number,) in await conn.rows(_LOCK, first, now, now)]
    if not locked:
        return []
    await conn.run(_CLAIM, now + lease, locked)
    return [message_row(values) for values in await conn.rows(_BY_ID, locked)]
