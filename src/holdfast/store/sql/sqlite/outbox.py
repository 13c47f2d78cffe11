"""Messages to the outside: written with what they tell of, claimed for a while, finished."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.types.outbox import OutboxMessage, OutboxRow, OutboxState

_FIELDS = OutboxRow.__struct_fields__
_COLUMNS = ", ".join("runs.id" if field == "run" else f"outbox.{field}" for field in _FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM outbox LEFT JOIN runs ON runs.key = outbox.run_key"
_PUT = """
INSERT INTO outbox (tenant, run_key, hold, at, topic, key, due_at, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
_DUE = """outbox.state = 'waiting' AND outbox.due_at <= ?
AND (outbox.claimed_until IS NULL OR outbox.claimed_until <= ?)"""
_ANY_DUE = f"SELECT 1 FROM outbox WHERE {_DUE} LIMIT 1"
_CLAIM = "UPDATE outbox SET claimed_until = ?, attempts = attempts + 1 WHERE id = ?"
_FINISH = """
UPDATE outbox SET state = ?, error = ?, due_at = iif(?1 = 'waiting', ?, due_at), claimed_until = NULL
WHERE id = ? AND attempts = ? AND state = 'waiting'"""
_REPLAY = """
UPDATE outbox SET state = 'waiting', attempts = 0, due_at = ?, claimed_until = NULL, error = NULL
WHERE id = ? AND state = 'dead'"""
_STATES = {str(state): state for state in OutboxState}


def put(cur: Cursor, now: int, tenant: str, run_key: int | None, message: OutboxMessage) -> None:
    """Once by its key."""
    due = now if message.due_at is None else message.due_at
    values = (tenant, run_key, message.hold, now, message.topic, message.key, due, message.payload)
    cur.execute(_PUT, values)


def any_due(cur: Cursor, now: int) -> bool:
    """A look without the write lock: most claims of an idle dispatcher end here."""
    return row(cur, _ANY_DUE, (now, now)) is not None


def claim(cur: Cursor, now: int, limit: int, lease: int, topics: Sequence[str]) -> list[OutboxRow]:
    of = f" AND outbox.topic IN ({', '.join('?' * len(topics))})" if topics else ""
    sql = f"{_SELECT} WHERE {_DUE}{of} ORDER BY outbox.due_at, outbox.id LIMIT ?"
    claimed: list[OutboxRow] = []
    for values in rows(cur, sql, (now, now, *topics, limit)):
        message = _message(values)
        cur.execute(_CLAIM, (now + lease, message.id))
        claimed.append(replace(message, claimed_until=now + lease, attempts=message.attempts + 1))
    return claimed


def finish(
    cur: Cursor, _now: int, message: int, attempt: int, state: OutboxState, error: str | None, due_at: int
) -> bool:
    cur.execute(_FINISH, (state, error, due_at, message, attempt))
    return cur.connection.changes() == 1


def select(
    cur: Cursor, tenant: str | None, state: OutboxState | None, hold: str | None, limit: int
) -> list[OutboxRow]:
    given = {"tenant": tenant, "state": state, "hold": hold}
    wanted = {column: value for column, value in given.items() if value is not None}
    text = " AND ".join(f"outbox.{column} = ?" for column in wanted) or "1"
    sql = f"{_SELECT} WHERE {text} ORDER BY outbox.id LIMIT ?"
    return [_message(values) for values in rows(cur, sql, (*wanted.values(), limit))]


def replay(cur: Cursor, now: int, message: int) -> bool:
    cur.execute(_REPLAY, (now, message))
    return cur.connection.changes() == 1


def _message(values: Row) -> OutboxRow:
    fields = dict(zip(_FIELDS, values, strict=True))
    fields["state"] = _STATES[fields["state"]]
    return OutboxRow(**fields)
