"""Deletes a run with everything that belongs to it. Retention deletes thousands: few round trips for each."""

from __future__ import annotations

from holdfast.store.sql.delete import BY_KEY, OF_HOLD, OF_RUN, close_holds
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.mariadb.dialect import MariadbConn
from holdfast.store.sql.mariadb.statement import statement
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED

_FIND = "SELECT key, lease_until, status, tenant FROM @runs WHERE id = ? FOR UPDATE"
_HOLDS = "SELECT id FROM @holds WHERE run_key = ? ORDER BY number"


async def delete(conn: MariadbConn, now: int, run: RunId, ended: bool) -> bool:
    found = await conn.row(_FIND, run)
    if found is None or (found[1] is not None and found[1] > now) or (ended and found[2] not in ENDED):
        return False
    key, tenant = found[0], found[3]
    holds = [hold for (hold,) in await conn.rows(_HOLDS, key)]
    await close_holds(conn, now, RunRef(key, run, tenant), holds)
    records = (key << 32, key << 32 | 0xFFFF_FFFF)
    texts = [_filled(f"DELETE FROM @{name} WHERE key BETWEEN ? AND ?", *records) for name in BY_KEY]
    texts += [_filled(f"DELETE FROM @{name} WHERE run_key = ?", key) for name in OF_RUN]
    if holds:
        texts += [_filled(f"DELETE FROM @{name} WHERE hold = ANY(?::text[])", holds) for name in OF_HOLD]
    await conn.send_all([*texts, _filled("DELETE FROM @runs WHERE key = ?", key)])
    return True


def _filled(text: str, *args: object) -> str:
    return statement(text).filled(args)
