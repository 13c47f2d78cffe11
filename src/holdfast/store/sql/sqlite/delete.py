"""Deletes a run with everything that belongs to it."""

from __future__ import annotations

from holdfast.store.sql.delete import BY_KEY, OF_HOLD, OF_RUN, close_holds
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.sqlite.connect import Cursor, row, rows, run_now
from holdfast.store.sql.sqlite.dialect import SqliteConn
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED


def delete(cur: Cursor, now: int, run: RunId, ended: bool) -> bool:
    found = row(cur, "SELECT key, lease_until, status, tenant FROM runs WHERE id = ?", (run,))
    if found is None or (found[1] is not None and found[1] > now) or (ended and found[2] not in ENDED):
        return False
    key = found[0]
    for table in BY_KEY:
        cur.execute(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", (key << 32, key << 32 | 0xFFFF_FFFF))
    _delete_holds(cur, now, RunRef(key, run, found[3]))
    for table in OF_RUN:
        cur.execute(f"DELETE FROM {table} WHERE run_key = ?", (key,))
    cur.execute("DELETE FROM runs WHERE key = ?", (key,))
    return True


def _delete_holds(cur: Cursor, now: int, run: RunRef) -> None:
    holds = [hold for (hold,) in rows(cur, "SELECT id FROM holds WHERE run_key = ?", (run.key,))]
    run_now(close_holds(SqliteConn(cur), now, run, holds))
    for hold in holds:
        for table in OF_HOLD:
            cur.execute(f"DELETE FROM {table} WHERE hold = ?", (hold,))
