"""Messages of the outbox: claimed for a time by a dispatcher."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.outbox import SELECT, message_row
from holdfast.types.outbox import OutboxRow

_DUE = """outbox.state = 'waiting' AND outbox.due_at <= ?::bigint
AND (outbox.claimed_until IS NULL OR outbox.claimed_until <= ?::bigint)"""
# One index lookup for each topic: messages that no dispatcher takes stay for ever, and cost nothing.
_TOPICS = """
SELECT array(WITH RECURSIVE known (topic) AS (
    SELECT min(topic) FROM @outbox WHERE state = 'waiting'
    UNION ALL SELECT (SELECT min(topic) FROM @outbox WHERE state = 'waiting' AND topic > known.topic)
    FROM known WHERE known.topic IS NOT NULL)
SELECT topic FROM known WHERE topic IS NOT NULL)"""
# Rows that another dispatcher is claiming are skipped.
_CLAIM = f"""
WITH due AS (
    SELECT outbox.id FROM @outbox AS outbox WHERE outbox.topic = ANY(coalesce(?::text[], ({_TOPICS})))
    AND {_DUE} ORDER BY outbox.due_at, outbox.id LIMIT ? FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE @outbox AS outbox SET claimed_until = ?::bigint, attempts = attempts + 1
    FROM due WHERE outbox.id = due.id RETURNING outbox.*)
{SELECT.replace("@outbox AS outbox", "taken AS outbox")} ORDER BY outbox.due_at, outbox.id"""


async def claim(conn: Conn, now: int, limit: int, lease: int, topics: Sequence[str]) -> list[OutboxRow]:
    wanted = list(topics) or None
    return [message_row(v) for v in await conn.rows(_CLAIM, wanted, now, now, limit, now + lease)]
