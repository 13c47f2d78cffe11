"""Reading the journal and the events; and pruning."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import BlobMissingError
from holdfast.store.errors import require_places
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.side_changes import missing_blob, refer
from holdfast.telemetry import crashpoint
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Record
from holdfast.types.status import ENDED

# A row's key is the run's key in the upper 32 bits and the record's number in the lower: so the records of a
# run lie side by side, and a range of keys is a range of records.
LAST = 0xFFFF_FFFF
_RECORD = (
    "journal.key & 4294967295, kind, at, term, node, visit, attempt, scope, effect, outcome, listed, events, "
    "{payload}, digest, NULL, event_from, length(payload)"
)
_WHOLE = _RECORD.format(payload="payload")
_BARE = _RECORD.format(payload="?::bytea")
_RANGE = "FROM @journal AS journal WHERE journal.key BETWEEN ? AND ?"

# From one record to another of the run with this id, in one statement.
_OF_RUN = """
FROM @journal AS journal WHERE journal.key BETWEEN
    ((SELECT key FROM @runs WHERE id = ?) << 32) + ?::bigint AND
    ((SELECT key FROM @runs WHERE id = ?) << 32) + ?::bigint"""
_READ = f"SELECT {_WHOLE} {_OF_RUN} ORDER BY journal.key"
_READ_BARE = f"SELECT {_BARE} {_OF_RUN} ORDER BY journal.key"
_LISTED = f"""
SELECT {_BARE} {_OF_RUN} AND listed AND (?::text IS NULL OR node = ?::text)
ORDER BY journal.key DESC LIMIT ?"""
_LAST_SNAPSHOT = f"""
SELECT journal.key & 4294967295 {_OF_RUN} AND kind IN ({Kind.created:d}, {Kind.snapshot:d})
ORDER BY journal.key DESC LIMIT 1"""
_EVENT_FROM = "SELECT event_from, events FROM @journal WHERE key = ?"
_WITH_EVENTS = f"SELECT {_WHOLE} {_RANGE} AND events > 0 ORDER BY journal.key LIMIT ?"
_EVENTS = """
SELECT key & 4294967295, at, type, payload FROM @events WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"""
_HEADS = "SELECT id, event_seq FROM @runs WHERE id = ANY(?::text[])"
_REPLACE = """
UPDATE @journal SET kind = ?, at = ?, term = ?, node = ?, visit = ?, attempt = ?, scope = ?, effect = ?,
                    outcome = ?, listed = ?, events = ?, digest = ?, payload = ?
WHERE key = ?"""


def _record(values: Row) -> Record:
    record = Record(*values)
    record.listed = bool(record.listed)
    return record


async def read(conn: Conn, run: RunId, first: int, last: int | None, payloads: bool) -> list[Record]:
    low, high = max(first, 0), LAST if last is None else min(last, LAST)
    bounds = (run, low, run, high)
    found = await (conn.rows(_READ, *bounds) if payloads else conn.rows(_READ_BARE, b"", *bounds))
    return [_record(r) for r in found]


async def checkpoint_records(
    conn: Conn, run: RunId, node: str | None, before: int | None, limit: int
) -> list[Record]:
    high = LAST if before is None else before - 1
    found = await conn.rows(_LISTED, b"", run, 0, run, high, node, node, limit or LAST)
    return [_record(r) for r in found]


async def last_snapshot(conn: Conn, run: RunId, at_most: int) -> int | None:
    if at_most < 0:
        return None
    found = await conn.row(_LAST_SNAPSHOT, run, 0, run, min(at_most, LAST))
    return None if found is None else found[0]


async def events(conn: Conn, run: RunId, after: int, limit: int) -> list[Record | EventRow]:
    found = await conn.row("SELECT key, horizon, head FROM @runs WHERE id = ?", run)
    if found is None:
        return []
    key, horizon, head = found
    base = key << 32
    first = base | await _first_after(conn, base, horizon, head + 1, after)
    records = await conn.rows(_WITH_EVENTS, first, base | LAST, limit)
    numbered: list[tuple[int, Record | EventRow]] = [
        (record.event_from, record) for record in map(_record, records)
    ]
    others = await conn.rows(_EVENTS, base | after + 1, base | LAST, limit)
    numbered += [(r[0], EventRow(*r)) for r in others]
    numbered.sort(key=lambda pair: pair[0])
    return [event for _, event in numbered[:limit]]


async def _first_after(conn: Conn, base: int, low: int, high: int, after: int) -> int:
    """The first seq below `high` whose last event number is > after, else `high`. Numbers grow with seq, so a
    binary search finds it without an index that every settle would have to update."""
    if after <= 0:
        return low
    while low < high:
        middle = (low + high) // 2
        found = await conn.row(_EVENT_FROM, base | middle)
        if found is not None and found[0] + found[1] - 1 > after:
            high = middle
        else:
            low = middle + 1
    return max(low, 0)


async def event_heads(conn: Conn, runs: Sequence[RunId]) -> dict[RunId, int]:
    return {RunId(run): last for run, last in await conn.rows(_HEADS, list(runs))}


async def prune(
    conn: Conn,
    _now: int,
    run: RunId,
    horizon: int,
    replace: Record | None,
    later: Sequence[Record],
    ended: bool,
    blobs: Sequence[bytes] | None,
) -> int:
    # Locked and checked again here: the run may have been resumed, or pruned by another worker, since the
    # caller looked.
    found = await conn.row("SELECT key, horizon, head, status FROM @runs WHERE id = ? FOR UPDATE", run)
    if found is None or not found[1] <= horizon <= found[2] or (ended and found[3] not in ENDED):
        return 0
    key = found[0]
    require_places(horizon, replace, later)
    for record in (*later, *([replace] if replace is not None else ())):
        await _rewrite(conn, key, record)
    gone = (key << 32, (key << 32 | horizon) - 1)
    deleted = await conn.run("DELETE FROM @journal WHERE key BETWEEN ? AND ?", *gone)
    await conn.run("DELETE FROM @projections WHERE key BETWEEN ? AND ?", *gone)
    await conn.run("UPDATE @runs SET horizon = ? WHERE key = ?", horizon, key)
    if blobs is not None:
        sql = "DELETE FROM @blob_refs WHERE run_key = ? AND digest <> ALL(?::bytea[])"
        await conn.run(sql, key, list(blobs))
    crashpoint("inside_prune")
    return deleted


async def _rewrite(conn: Conn, key: int, r: Record) -> None:
    """The record keeps its place and its first event number; of its side only the blobs matter."""
    if r.side is not None:
        missing = await missing_blob(conn, [r.side])
        if missing is not None:
            raise BlobMissingError(
                f"the blob {missing.hex()} of the snapshot at {r.seq} is not in the store."
            )
        await refer(conn, key, r.side.blobs)
    await conn.run(
        _REPLACE, r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect, r.outcome, r.listed,
        r.events, r.digest, r.payload, key << 32 | r.seq,
    )  # fmt: skip
