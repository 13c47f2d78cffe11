"""What a claim has to know of the limits. It locks their rows by name and counts after that, so that nothing
else is admitted in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.sql.concurrency_limits import AT, INSIDE, limit_row
from holdfast.store.sql.postgres.connect import PostgresConnection

_LOCKED = f"{AT} FOR UPDATE"
_INSIDE_NOW = f"""
SELECT @now(?::bigint), inside.gate, inside.count
FROM (SELECT 1) AS one LEFT JOIN ({INSIDE}) AS inside ON true"""
_STARTED = """
SELECT w.nth, s.gate, count(*), min(s.at)
FROM unnest(?::text[], ?::text[], ?::bigint[]) WITH ORDINALITY AS w (low, high, since, nth)
JOIN @gate_starts AS s ON s.gate >= w.low COLLATE "C" AND s.gate <= w.high COLLATE "C" AND s.at > w.since
GROUP BY w.nth, s.gate"""
_START = """
INSERT INTO @gate_starts (gate, at, run_key, until)
SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[]) ON CONFLICT DO NOTHING"""
# A few more than one claim adds, so that the table does not grow.
_FORGET = """
DELETE FROM @gate_starts WHERE (gate, at, run_key) IN (
    SELECT gate, at, run_key FROM @gate_starts WHERE until <= ? LIMIT ? FOR UPDATE SKIP LOCKED)"""


async def load_admission(
    conn: PostgresConnection, now: int | None, roots: Iterable[str], *, lock: bool
) -> Admission:
    """Without locks it may be out of date at once. The locks last as long as the transaction."""
    rows = await conn.rows(_LOCKED if lock else AT, sorted(set(roots)))
    inside = await conn.rows(_INSIDE_NOW, now)
    found = Admission([limit_row(values) for values in rows], inside[0][0])
    for _, limit, count in inside:
        if limit is not None:
            found.holds(limit, count)
    windows = found.windows()
    if windows:
        columns = [w.low for w in windows], [w.high for w in windows], [w.since for w in windows]
        for nth, limit, count, oldest in await conn.rows(_STARTED, *columns):
            found.started(windows[int(nth) - 1], limit, count, oldest)
    return found


async def write_starts(conn: PostgresConnection, starts: Sequence[tuple[int, CountedStart]]) -> None:
    """With the keys of the runs that started."""
    if starts:
        columns = (
            [start.limit for _, start in starts],
            [start.at for _, start in starts],
            [key for key, _ in starts],
            [start.until for _, start in starts],
        )
        await conn.run(_START, *columns)
        await conn.run(_FORGET, starts[0][1].at, 4 * len(starts))
