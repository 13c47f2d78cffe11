"""Messages to the outside: written in the transaction that they report, claimed for a time, finished."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.hold_transitions import require_findable
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.outbox import OutboxMessage, OutboxRow, OutboxState

_FIELDS = OutboxRow.__struct_fields__
_COLUMNS = ", ".join("runs.id" if field == "run" else f"outbox.{field}" for field in _FIELDS)
SELECT = f"SELECT {_COLUMNS} FROM @outbox AS outbox LEFT JOIN @runs AS runs ON runs.key = outbox.run_key"
_INDEXES = {OutboxState.waiting: "outbox_due", OutboxState.dead: "outbox_dead"}
_OF_HOLD = "outbox.key >= ? AND outbox.key < ? AND outbox.hold = ?"
_OF_RUN = "outbox.run_key = ? AND outbox.hold IS NULL"
_UNDER_WAY = "outbox.state = 'waiting' AND outbox.claimed_until IS NOT NULL"
_DROP = f"DELETE FROM @outbox AS outbox WHERE NOT ({_UNDER_WAY}) AND "
_EMPTY = f"""
UPDATE @outbox AS outbox SET state = 'skipped', payload = ?::bytea, run_key = NULL WHERE {_UNDER_WAY} AND """
_DETACH = f"UPDATE @outbox AS outbox SET run_key = NULL WHERE {_OF_HOLD}"
_PUT = """
INSERT INTO @outbox (tenant, run_key, hold, at, topic, key, due_at, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
# Fenced by the attempt: a dispatcher whose claim expired must not finish what another one is sending now.
_FINISH = """
UPDATE @outbox SET state = ?::text, error = ?, claimed_until = NULL,
                   due_at = CASE WHEN ?::text = 'waiting' THEN ?::bigint ELSE due_at END
WHERE id = ? AND attempts = ? AND state = 'waiting'"""
_REPLAY = """
UPDATE @outbox SET state = 'waiting', attempts = 0, due_at = ?, claimed_until = NULL, error = NULL
WHERE id = ? AND state = 'dead'"""
_STATES = {str(state): state for state in OutboxState}


async def put(conn: Conn, now: int, tenant: str, run_key: int | None, message: OutboxMessage) -> None:
    """Written once for each key."""
    require_findable(message)
    due = now if message.due_at is None else message.due_at
    await conn.run(
        _PUT, tenant, run_key, message.hold, now, message.topic, message.key, due, message.payload
    )  # fmt: skip


async def finish(
    conn: Conn, _now: int, message: int, attempt: int, state: OutboxState, error: str | None, due_at: int
) -> bool:
    return await conn.run(_FINISH, state, error, state, due_at, message, attempt) == 1


async def select(
    conn: Conn,
    tenant: str | None,
    state: OutboxState | None,
    hold: str | None,
    topic: str | None,
    due_before: int | None,
    before: int | None,
    limit: int,
) -> list[OutboxRow]:
    conditions: list[tuple[str, tuple[str | int, ...]]] = [("true", ())]
    if hold is not None:
        conditions.append((_OF_HOLD, _of(hold)))
    if tenant is not None:
        conditions.append(("outbox.tenant = ?", (tenant,)))
    if topic is not None:
        conditions.append(("outbox.topic = ?", (topic,)))
    if due_before is not None:
        conditions.append(("outbox.due_at < ?", (due_before,)))
    if before is not None:
        conditions.append(("outbox.id < ?", (before,)))
    if state is not None:
        # In the text: the partial indexes name a state.
        conditions.append((f"outbox.state = '{state}'", ()))
    text = " AND ".join(condition for condition, _ in conditions)
    args = [value for _, values in conditions for value in values]
    index = _INDEXES.get(state) if state is not None and hold is None and before is None else None
    source = SELECT.replace("@outbox", f"@outbox[{index}]") if index else SELECT
    order = "outbox.topic, outbox.due_at, outbox.id" if index == "outbox_due" else "outbox.id"
    order = "outbox.id DESC" if before is not None else order
    found = await conn.rows(f"{source} WHERE {text} ORDER BY {order} LIMIT ?", *args, limit)
    return [message_row(values) for values in found]


async def drop(conn: Conn, run_key: int, holds: Sequence[str]) -> None:
    """For a run that is about to be deleted. A message that is being sent keeps its number, without content:
    so a dispatcher that finishes it late does not finish another message."""
    for act, given in ((_DROP, ()), (_EMPTY, (b"{}",))):
        await conn.run(act + _OF_RUN, *given, run_key)
        await conn.many(act + _OF_HOLD, [(*given, *_of(hold)) for hold in holds])


async def detach_from_run(conn: Conn, holds: Sequence[str]) -> None:
    """Messages about these holds that are still to be sent outlive their run."""
    await conn.many(_DETACH, [_of(hold) for hold in holds])


def _of(hold: str) -> tuple[str, str, str]:
    """The range of keys that begin with the hold's id and a colon; in ASCII a semicolon follows the colon."""
    return f"{hold}:", f"{hold};", hold


async def replay(conn: Conn, now: int, message: int) -> bool:
    return await conn.run(_REPLAY, now, message) == 1


def message_row(values: Row) -> OutboxRow:
    fields = dict(zip(_FIELDS, values, strict=True))
    fields["state"] = _STATES[fields["state"]]
    return OutboxRow(**fields)
