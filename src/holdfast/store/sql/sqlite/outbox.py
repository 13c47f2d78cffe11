"""Messages to the outside: written with what they tell of, claimed for a while, finished."""

from __future__ import annotations

from holdfast.store.sql.sqlite.connect import Cursor
from holdfast.types.outbox import OutboxMessage

_PUT = """
INSERT INTO outbox (tenant, run_key, hold, at, topic, key, due_at, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""


def put(cur: Cursor, now: int, tenant: str, run_key: int | None, message: OutboxMessage) -> None:
    """Once by its key."""
    due = now if message.due_at is None else message.due_at
    values = (tenant, run_key, message.hold, now, message.topic, message.key, due, message.payload)
    cur.execute(_PUT, values)
