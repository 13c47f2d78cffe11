"""Who works, as each last said of itself."""

from __future__ import annotations

import msgspec

from holdfast.store.sql.sqlite.connect import Cursor, Row, rows
from holdfast.types.fleet import WORKER_ROW_RETENTION, WorkerRow

# Whoever has the name keeps it for as long as it said; its own row it may always write anew.
_ANNOUNCE = """
INSERT INTO workers (name, incarnation, seen_at, until, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, seen_at = excluded.seen_at,
                                 until = excluded.until, body = excluded.body
WHERE workers.incarnation = excluded.incarnation OR workers.until <= excluded.seen_at"""
_FORGET = "DELETE FROM workers WHERE until < ?"
_COLUMNS = "body, seen_at, until"
_HOLDER = f"SELECT {_COLUMNS} FROM workers WHERE name = ?"
_ALL = f"SELECT {_COLUMNS} FROM workers WHERE until >= ? ORDER BY name"
_DISMISS = "DELETE FROM workers WHERE name = ? AND incarnation = ?"


def announce(cur: Cursor, now: int, worker: WorkerRow, ttl: int) -> WorkerRow | None:
    cur.execute(_FORGET, (now - WORKER_ROW_RETENTION,))
    body = msgspec.msgpack.encode(worker)
    cur.execute(_ANNOUNCE, (worker.name, worker.incarnation, now, now + ttl, body))
    if cur.connection.changes() == 1:
        return None
    (holder,) = rows(cur, _HOLDER, (worker.name,))
    return _row(holder)


def workers(cur: Cursor, now: int) -> list[WorkerRow]:
    return [_row(values) for values in rows(cur, _ALL, (now - WORKER_ROW_RETENTION,))]


def dismiss(cur: Cursor, _now: int, name: str, incarnation: str) -> None:
    cur.execute(_DISMISS, (name, incarnation))


def _row(values: Row) -> WorkerRow:
    body, seen_at, until = values
    said = msgspec.msgpack.decode(body, type=WorkerRow)
    return msgspec.structs.replace(said, seen_at=seen_at, until=until)
