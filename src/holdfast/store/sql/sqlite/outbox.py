"""Messages to the outside: written with what they tell of, claimed for a while, finished."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice

from holdfast.store.hold_rules import require_findable
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.types.outbox import OutboxMessage, OutboxRow, OutboxState

_FIELDS = OutboxRow.__struct_fields__
_COLUMNS = ", ".join("runs.id" if field == "run" else f"outbox.{field}" for field in _FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM outbox LEFT JOIN runs ON runs.key = outbox.run_key"
_OF_HOLD = "outbox.key >= ? AND outbox.key < ? AND outbox.hold = ?"
_OF_RUN = "run_key = ? AND hold IS NULL"
_UNDER_WAY = "state = 'waiting' AND claimed_until IS NOT NULL"
_DROP = f"DELETE FROM outbox WHERE NOT ({_UNDER_WAY}) AND "
_EMPTY = f"UPDATE outbox SET state = 'skipped', payload = x'7b7d', run_key = NULL WHERE {_UNDER_WAY} AND "
_DETACH = f"UPDATE outbox SET run_key = NULL WHERE {_OF_HOLD}"
_INDEXES = {OutboxState.waiting: "outbox_due", OutboxState.dead: "outbox_dead"}
_PUT = """
INSERT INTO outbox (tenant, run_key, hold, at, topic, key, due_at, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
_DUE = """outbox.state = 'waiting' AND outbox.topic = ? AND outbox.due_at <= ?
AND (outbox.claimed_until IS NULL OR outbox.claimed_until <= ?)"""
_ANY_DUE = f"SELECT 1 FROM outbox INDEXED BY outbox_due WHERE {_DUE} LIMIT 1"
_NEXT = f"""
SELECT outbox.due_at, outbox.id FROM outbox INDEXED BY outbox_due WHERE {_DUE}
ORDER BY outbox.due_at, outbox.id LIMIT ?"""
# One step into the index for each topic.
_TOPICS = """
WITH RECURSIVE known (topic) AS (
    SELECT min(topic) FROM outbox WHERE state = 'waiting'
    UNION ALL SELECT (SELECT min(topic) FROM outbox WHERE state = 'waiting' AND topic > known.topic)
    FROM known WHERE known.topic IS NOT NULL)
SELECT topic FROM known WHERE topic IS NOT NULL"""
_BY_ID = f"{_SELECT} WHERE outbox.id = ?"
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
    require_findable(message)
    due = now if message.due_at is None else message.due_at
    values = (tenant, run_key, message.hold, now, message.topic, message.key, due, message.payload)
    cur.execute(_PUT, values)


def any_due(cur: Cursor, now: int, topics: Sequence[str]) -> bool:
    """A look without the write lock: most claims of an idle dispatcher end here."""
    return any(row(cur, _ANY_DUE, (topic, now, now)) is not None for topic in _topics(cur, topics))


def claim(cur: Cursor, now: int, limit: int, lease: int, topics: Sequence[str]) -> list[OutboxRow]:
    due = [rows(cur, _NEXT, (topic, now, now, limit)) for topic in _topics(cur, topics)]
    claimed: list[OutboxRow] = []
    for _, number in islice(merge(*due), limit):
        cur.execute(_CLAIM, (now + lease, number))
        (values,) = rows(cur, _BY_ID, (number,))
        claimed.append(_message(values))
    return claimed


def _topics(cur: Cursor, given: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(given)) if given else [topic for (topic,) in rows(cur, _TOPICS)]


def finish(
    cur: Cursor, _now: int, message: int, attempt: int, state: OutboxState, error: str | None, due_at: int
) -> bool:
    cur.execute(_FINISH, (state, error, due_at, message, attempt))
    return cur.connection.changes() == 1


def select(
    cur: Cursor, tenant: str | None, state: OutboxState | None, hold: str | None, limit: int
) -> list[OutboxRow]:
    conditions: list[tuple[str, tuple[str, ...]]] = []
    if hold is not None:
        conditions.append((_OF_HOLD, _of(hold)))
    if tenant is not None:
        conditions.append(("outbox.tenant = ?", (tenant,)))
    if state is not None:
        # In the text: partial indexes are of a state.
        conditions.append((f"outbox.state = '{state}'", ()))
    index = _INDEXES.get(state) if state is not None and hold is None else None
    source = _SELECT.replace("FROM outbox", f"FROM outbox INDEXED BY {index}") if index else _SELECT
    order = "outbox.topic, outbox.due_at, outbox.id" if index == "outbox_due" else "outbox.id"
    text = " AND ".join(condition for condition, _ in conditions) or "1"
    args = [value for _, values in conditions for value in values]
    return [_message(v) for v in rows(cur, f"{source} WHERE {text} ORDER BY {order} LIMIT ?", (*args, limit))]


def drop(cur: Cursor, run_key: int, holds: Sequence[str]) -> None:
    """Of a run about to be deleted. What somebody is just telling keeps its number, without content: whoever
    finishes it late finishes no other message."""
    for act in (_DROP, _EMPTY):
        cur.execute(act + _OF_RUN, (run_key,))
        for hold in holds:
            cur.execute(act + _OF_HOLD, _of(hold))


def detach_from_run(cur: Cursor, holds: Sequence[str]) -> None:
    """What is still to be told of these outlives their run."""
    for hold in holds:
        cur.execute(_DETACH, _of(hold))


def _of(hold: str) -> tuple[str, str, str]:
    """The stretch of keys that begin with the hold's id and a colon; a semicolon follows it."""
    return f"{hold}:", f"{hold};", hold


def replay(cur: Cursor, now: int, message: int) -> bool:
    cur.execute(_REPLAY, (now, message))
    return cur.connection.changes() == 1


def _message(values: Row) -> OutboxRow:
    fields = dict(zip(_FIELDS, values, strict=True))
    fields["state"] = _STATES[fields["state"]]
    return OutboxRow(**fields)
