"""Messages of the outbox: claimed for a time by a dispatcher."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice

from holdfast.store.sql.outbox import SELECT, message_row
from holdfast.store.sql.sqlite.connect import Cursor, row, rows, statement
from holdfast.types.outbox import OutboxRow

_DUE = """outbox.state = 'waiting' AND outbox.topic = ? AND outbox.due_at <= ?
AND (outbox.claimed_until IS NULL OR outbox.claimed_until <= ?)"""
_ANY_DUE = f"SELECT 1 FROM outbox INDEXED BY outbox_due WHERE {_DUE} LIMIT 1"
_NEXT = f"""
SELECT outbox.due_at, outbox.id FROM outbox INDEXED BY outbox_due WHERE {_DUE}
ORDER BY outbox.due_at, outbox.id LIMIT ?"""
# One index lookup for each topic.
_TOPICS = """
WITH RECURSIVE known (topic) AS (
    SELECT min(topic) FROM outbox WHERE state = 'waiting'
    UNION ALL SELECT (SELECT min(topic) FROM outbox WHERE state = 'waiting' AND topic > known.topic)
    FROM known WHERE known.topic IS NOT NULL)
SELECT topic FROM known WHERE topic IS NOT NULL"""
_BY_ID = f"{statement(SELECT)} WHERE outbox.id = ?"
_CLAIM = "UPDATE outbox SET claimed_until = ?, attempts = attempts + 1 WHERE id = ?"


def any_due(cur: Cursor, now: int, topics: Sequence[str]) -> bool:
    """Checks without the write lock: most claims of an idle dispatcher end here."""
    return any(row(cur, _ANY_DUE, (topic, now, now)) is not None for topic in _topics(cur, topics))


def claim(cur: Cursor, now: int, limit: int, lease: int, topics: Sequence[str]) -> list[OutboxRow]:
    due = [rows(cur, _NEXT, (topic, now, now, limit)) for topic in _topics(cur, topics)]
    claimed: list[OutboxRow] = []
    for _, number in islice(merge(*due), limit):
        cur.execute(_CLAIM, (now + lease, number))
        (values,) = rows(cur, _BY_ID, (number,))
        claimed.append(message_row(values))
    return claimed


def _topics(cur: Cursor, given: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(given)) if given else [topic for (topic,) in rows(cur, _TOPICS)]
