"""Gates: written, listed, and what a porter has to know. Whoever claims at a gate locks the rows of its
flow's gates first, by name, and counts after that: so nobody takes a run in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.store.limits import Admission, CountedStart, limit_overview
from holdfast.store.sql.postgres.connect import Conn, Row
from holdfast.store.sql.postgres.listen import notify
from holdfast.types.limit_rows import LimitRow, flow_limit, flow_of, root_of

_COLUMNS = "name, concurrency, rate, per, fixed, updated_at"
_ALL = f"SELECT {_COLUMNS} FROM @gates"
_AT = f"SELECT {_COLUMNS} FROM @gates WHERE root = ANY(?::text[]) ORDER BY name, fixed"
_LOCKED = f"{_AT} FOR UPDATE"
_PUT = f"""
INSERT INTO @gates (root, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (root, name, fixed) DO UPDATE SET concurrency = excluded.concurrency, rate = excluded.rate,
    per = excluded.per, updated_at = excluded.updated_at"""
_DROP = "DELETE FROM @gates WHERE root = ? AND name = ? AND fixed = ?"
_FIXED = "SELECT 1 FROM @gates WHERE root = ? AND name = ? AND fixed"
# Runs of the flow that stand at no gate yet, in the order in which settles lock them too.
_GATHER = """
UPDATE @runs AS runs SET gate = ? FROM (
    SELECT key FROM @runs WHERE flow = ? AND gate = '' AND NOT read_only
    AND status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable')
    ORDER BY key FOR UPDATE) AS found
WHERE runs.key = found.key"""
_INSIDE = "SELECT gate, count(*) FROM @runs WHERE worker IS NOT NULL AND gate <> '' GROUP BY gate"
_INSIDE_NOW = f"""
SELECT @now(?::bigint), inside.gate, inside.count
FROM (SELECT 1) AS one LEFT JOIN ({_INSIDE}) AS inside ON true"""
_WAITING = """
SELECT gate, count(*) FROM @runs WHERE worker IS NULL AND ready_at <= @now(?::bigint) AND gate <> ''
GROUP BY gate"""
_STARTED = """
SELECT w.nth, s.gate, count(*), min(s.at)
FROM unnest(?::text[], ?::text[], ?::bigint[]) WITH ORDINALITY AS w (low, high, since, nth)
JOIN @gate_starts AS s ON s.gate >= w.low COLLATE "C" AND s.gate <= w.high COLLATE "C" AND s.at > w.since
GROUP BY w.nth, s.gate"""
_START = """
INSERT INTO @gate_starts (gate, at, run_key, until)
SELECT * FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[]) ON CONFLICT DO NOTHING"""
# On the way, a few more than come.
_FORGET = """
DELETE FROM @gate_starts WHERE (gate, at, run_key) IN (
    SELECT gate, at, run_key FROM @gate_starts WHERE until <= ? LIMIT ? FOR UPDATE SKIP LOCKED)"""


def limit_row(values: Row) -> LimitRow:
    return LimitRow(**dict(zip(_COLUMNS.split(", "), values, strict=True)))


async def put(conn: Conn, now: int, gate: LimitRow) -> LimitRow:
    await conn.run(_PUT, gate.root, gate.name, *_limit_values(gate), gate.fixed, now)
    flow = flow_of(gate.name)
    if gate.fixed and flow is not None:
        await conn.run(_GATHER, gate.name, flow)
    await notify(conn)
    return msgspec.structs.replace(gate, updated_at=now)


async def declare(conn: Conn, now: int, gates: Sequence[LimitRow]) -> None:
    """Written only where it is news: nearly every run finds what another has written."""
    if not gates:
        return
    found = [limit_row(values) for values in await conn.rows(_AT, sorted({gate.root for gate in gates}))]
    known = {(gate.name, gate.fixed): _limit_values(gate) for gate in found}
    for gate in sorted(gates, key=_name):
        if known.get((gate.name, gate.fixed)) != _limit_values(gate):
            await put(conn, now, gate)


def _name(gate: LimitRow) -> str:
    return gate.name


def _limit_values(gate: LimitRow) -> tuple[int | None, int | None, int]:
    return gate.concurrency, gate.rate, gate.per


async def is_fixed(conn: Conn, flow: str) -> bool:
    """Whether an operator fixed a gate for the whole flow."""
    name = flow_limit(flow)
    return await conn.row(_FIXED, name, name) is not None


async def drop(conn: Conn, name: str, fixed: bool) -> bool:
    dropped = await conn.run(_DROP, root_of(name), name, fixed) == 1
    await notify(conn)
    return dropped


async def list_limits(
    conn: Conn, now: int | None, prefix: str, after: str, limit: int
) -> list[tuple[LimitRow, int, int]]:
    gates = [limit_row(values) for values in await conn.rows(_ALL)]
    inside = _counts(await conn.rows(_INSIDE))
    waiting = _counts(await conn.rows(_WAITING, now))
    return limit_overview(gates, inside, waiting, prefix=prefix, after=after, limit=limit)


def _counts(found: list[Row]) -> Mapping[str, int]:
    return dict(found)


async def load_admission(conn: Conn, now: int | None, roots: Iterable[str], *, lock: bool) -> Admission:
    """Not locked, it may be wrong by the time that it is asked. The locks last as long as the transaction."""
    rows = await conn.rows(_LOCKED if lock else _AT, sorted(set(roots)))
    inside = await conn.rows(_INSIDE_NOW, now)
    found = Admission([limit_row(values) for values in rows], inside[0][0])
    for _, gate, count in inside:
        if gate is not None:
            found.holds(gate, count)
    windows = found.windows()
    if windows:
        columns = [w.low for w in windows], [w.high for w in windows], [w.since for w in windows]
        for nth, gate, count, oldest in await conn.rows(_STARTED, *columns):
            found.started(windows[int(nth) - 1], gate, count, oldest)
    return found


async def write_starts(conn: Conn, starts: Sequence[tuple[int, CountedStart]]) -> None:
    """With the keys of the runs that started."""
    if starts:
        columns = (
            [start.gate for _, start in starts],
            [start.at for _, start in starts],
            [key for key, _ in starts],
            [start.until for _, start in starts],
        )
        await conn.run(_START, *columns)
        await conn.run(_FORGET, starts[0][1].at, 4 * len(starts))
