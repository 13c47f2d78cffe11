"""The limits as a claim needs them. The write lock keeps other processes from claiming meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.sql.concurrency_limits import ALL, INSIDE, limit_row
from holdfast.store.sql.sqlite.connect import Cursor, rows, statement

_ALL = statement(ALL)
_INSIDE = statement(INSIDE)
_STARTED = """
SELECT gate, count(*), min(at) FROM gate_starts WHERE gate >= ? AND gate <= ? AND at > ? GROUP BY gate"""
_START = "INSERT INTO gate_starts (gate, at, run_key, until) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
# A few more than one claim adds, so that the table does not grow.
_FORGET = """
DELETE FROM gate_starts WHERE (gate, at, run_key) IN (
    SELECT gate, at, run_key FROM gate_starts WHERE until <= ? LIMIT 20)"""


def load_admission(cur: Cursor, now: int) -> Admission:
    found = Admission([limit_row(values) for values in rows(cur, _ALL)], now)
    for limit, count in rows(cur, _INSIDE):
        found.holds(limit, count)
    for window in found.windows():
        for limit, count, oldest in rows(cur, _STARTED, (window.low, window.high, window.since)):
            found.started(window, limit, count, oldest)
    return found


def write_starts(cur: Cursor, starts: Sequence[tuple[int, CountedStart]]) -> None:
    if starts:
        cur.executemany(_START, [(start.limit, start.at, key, start.until) for key, start in starts])
        cur.execute(_FORGET, (starts[0][1].at,))
