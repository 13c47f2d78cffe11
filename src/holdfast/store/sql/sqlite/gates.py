"""Gates: written, listed, and what a porter has to know. Everything here is asked inside the one transaction
that may write, so nobody takes a run in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.store.limits import Admission, CountedStart, limit_overview
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.types.limit_rows import LimitRow, flow_limit, flow_of, root_of

_COLUMNS = "name, concurrency, rate, per, fixed, updated_at"
_ALL = f"SELECT {_COLUMNS} FROM gates ORDER BY name, fixed"
_ONE = f"SELECT {_COLUMNS} FROM gates WHERE root = ? AND name = ? AND fixed = ?"
_PUT = f"""
INSERT INTO gates (root, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (root, name, fixed) DO UPDATE SET concurrency = excluded.concurrency, rate = excluded.rate,
    per = excluded.per, updated_at = excluded.updated_at"""
_DROP = "DELETE FROM gates WHERE root = ? AND name = ? AND fixed = ?"
# Runs of the flow that stand at no gate yet.
_GATHER = """
UPDATE runs INDEXED BY runs_by_status SET gate = ?
WHERE flow = ? AND gate = '' AND NOT read_only
AND status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable')"""
_INSIDE = """
SELECT gate, count(*) FROM runs INDEXED BY runs_inside WHERE worker IS NOT NULL AND gate <> ''
GROUP BY gate"""
_WAITING = """
SELECT gate, count(*) FROM runs INDEXED BY runs_ready WHERE worker IS NULL AND ready_at <= ? AND line <> ''
GROUP BY gate"""
_STARTED = """
SELECT gate, count(*), min(at) FROM gate_starts WHERE gate >= ? AND gate <= ? AND at > ? GROUP BY gate"""
_START = "INSERT INTO gate_starts (gate, at, run_key, until) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
# On the way, a few more than come.
_FORGET = """
DELETE FROM gate_starts WHERE (gate, at, run_key) IN (
    SELECT gate, at, run_key FROM gate_starts WHERE until <= ? LIMIT 20)"""


def limit_row(values: Row) -> LimitRow:
    name, concurrency, rate, per, fixed, updated_at = values
    return LimitRow(
        name=name, concurrency=concurrency, rate=rate, per=per, fixed=bool(fixed), updated_at=updated_at
    )


def put(cur: Cursor, now: int, gate: LimitRow) -> LimitRow:
    cur.execute(_PUT, (gate.root, gate.name, gate.concurrency, gate.rate, gate.per, gate.fixed, now))
    flow = flow_of(gate.name)
    if gate.fixed and flow is not None:
        cur.execute(_GATHER, (gate.name, flow))
    return msgspec.structs.replace(gate, updated_at=now)


def declare(cur: Cursor, now: int, gates: Iterable[LimitRow]) -> None:
    """Written only where it is news: nearly every run finds what another has written."""
    for gate in gates:
        found = row(cur, _ONE, (gate.root, gate.name, gate.fixed))
        if found is None or _limit_values(limit_row(found)) != _limit_values(gate):
            put(cur, now, gate)


def _limit_values(gate: LimitRow) -> tuple[int | None, int | None, int]:
    return gate.concurrency, gate.rate, gate.per


def fixed_for(cur: Cursor, flow: str) -> str:
    """The gate of that flow, where an operator fixed one."""
    name = flow_limit(flow)
    return "" if row(cur, _ONE, (name, name, True)) is None else name


def drop(cur: Cursor, _now: int, name: str, fixed: bool) -> bool:
    cur.execute(_DROP, (root_of(name), name, fixed))
    return cur.connection.changes() == 1


def list_limits(
    cur: Cursor, now: int, prefix: str, after: str, limit: int
) -> list[tuple[LimitRow, int, int]]:
    gates = [limit_row(values) for values in rows(cur, _ALL)]
    inside, waiting = _counts(rows(cur, _INSIDE)), _counts(rows(cur, _WAITING, (now,)))
    return limit_overview(gates, inside, waiting, prefix=prefix, after=after, limit=limit)


def _counts(found: list[Row]) -> Mapping[str, int]:
    return dict(found)


def load_admission(cur: Cursor, now: int) -> Admission:
    found = Admission([limit_row(values) for values in rows(cur, _ALL)], now)
    for gate, count in rows(cur, _INSIDE):
        found.holds(gate, count)
    for window in found.windows():
        for gate, count, oldest in rows(cur, _STARTED, (window.low, window.high, window.since)):
            found.started(window, gate, count, oldest)
    return found


def write_starts(cur: Cursor, now: int, key: int, starts: Sequence[CountedStart]) -> None:
    if starts:
        cur.executemany(_START, [(start.gate, start.at, key, start.until) for start in starts])
        cur.execute(_FORGET, (now,))
