"""What a claim has to know of the limits. It locks their rows by name and counts after that, so that nothing
else is admitted in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.sql.concurrency_limits import AT, INSIDE, limit_row
from holdfast.store.sql.mariadb.connect import MariadbConnection

_LOCKED = f"{AT} FOR UPDATE"
_STARTED = """
SELECT gate, count(*), min(at) FROM @gate_starts WHERE gate >= ? AND gate <= ? AND at > ? GROUP BY gate"""
_START = "INSERT INTO @gate_starts (gate, at, run_key, until) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
# A few more than one claim adds, so that the table does not grow.
_OVER = "SELECT gate, at, run_key FROM @gate_starts WHERE until <= ? LIMIT ? FOR UPDATE SKIP LOCKED"
_FORGET = "DELETE FROM @gate_starts WHERE gate = ? AND at = ? AND run_key = ?"


async def load_admission(
    conn: MariadbConnection, now: int | None, roots: Iterable[str], *, lock: bool
) -> Admission:
    """Without locks it may be out of date at once. The locks last as long as the transaction."""
    rows = await conn.rows(_LOCKED if lock else AT, sorted(set(roots)))
    at = await conn.row("SELECT @now(?::bigint)", now)
    assert at is not None
    found = Admission([limit_row(values) for values in rows], at[0])
    for limit, count in await conn.rows(INSIDE):
        found.holds(limit, count)
    for window in found.windows():
        for limit, count, oldest in await conn.rows(_STARTED, window.low, window.high, window.since):
            found.started(window, limit, count, oldest)
    return found


async def write_starts(conn: MariadbConnection, starts: Sequence[tuple[int, CountedStart]]) -> None:
    """With the keys of the runs that started."""
    if starts:
        await conn.many(_START, [(start.limit, start.at, key, start.until) for key, start in starts])
        await conn.many(_FORGET, await conn.rows(_OVER, starts[0][1].at, 4 * len(starts)))
