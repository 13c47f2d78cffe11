"""Reading the journal, the events and the feed; and pruning."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.errors import BlobMissingError, StoreError
from holdfast.store.refusals import feed_trimmed
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.side import missing_blob, refer
from holdfast.telemetry import crashpoint
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Record
from holdfast.types.status import ENDED

_LAST = 0xFFFF_FFFF
_RECORD = (
    "key & 0xffffffff, kind, at, term, node, visit, attempt, scope, effect, outcome, listed, events, "
    "{payload}, digest, NULL, event_from, length(payload)"
)
_WHOLE = _RECORD.format(payload="payload")
_BARE = _RECORD.format(payload="x''")
_RANGE = "FROM journal WHERE key BETWEEN ? AND ?"

# From a record to another of the run with this id, in one statement.
_OF_RUN = """
FROM (SELECT key << 32 AS base FROM runs WHERE id = ?1) CROSS JOIN journal
WHERE key BETWEEN base | ?2 AND base | ?3"""
_READ = f"SELECT {_WHOLE} {_OF_RUN} ORDER BY key"
_READ_BARE = f"SELECT {_BARE} {_OF_RUN} ORDER BY key"
_LAST_SNAPSHOT = f"""
SELECT key & 0xffffffff {_OF_RUN} AND kind IN ({Kind.created:d}, {Kind.snapshot:d})
ORDER BY key DESC LIMIT 1"""
_EVENT_FROM = "SELECT event_from, events FROM journal WHERE key = ?"
_WITH_EVENTS = f"SELECT {_WHOLE} {_RANGE} AND events > 0 ORDER BY key LIMIT ?"
_EVENTS = (
    "SELECT key & 0xffffffff, at, type, payload FROM events WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"
)
_HEADS = "SELECT id, event_seq FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_FEED = """
SELECT feed.pos, runs.id, feed.first, feed.last FROM feed JOIN runs ON runs.key = feed.run_key
WHERE feed.pos > ? ORDER BY feed.pos LIMIT ?"""
_FLOOR = "SELECT pos FROM feed_marks WHERE trimmed ORDER BY pos DESC LIMIT 1"
_MARK = """
INSERT INTO feed_marks (pos, at) SELECT max(pos), ? FROM feed WHERE true HAVING max(pos) IS NOT NULL
ON CONFLICT DO NOTHING"""
_OLD = "SELECT max(pos) FROM feed_marks WHERE trimmed OR at <= ?"
_TRIM = """
DELETE FROM feed WHERE pos IN (
    SELECT pos FROM feed WHERE pos <= ? AND pos < (SELECT max(pos) FROM feed) ORDER BY pos LIMIT ?)
RETURNING pos"""
_REPLACE = """
UPDATE journal SET kind = ?, at = ?, term = ?, node = ?, visit = ?, attempt = ?, scope = ?, effect = ?,
                   outcome = ?, listed = ?, events = ?, digest = ?, payload = ?
WHERE key = ?"""


def _record(values: Row) -> Record:
    record = Record(*values)
    record.listed = bool(record.listed)
    return record


def _key(cur: Cursor, run: RunId) -> int | None:
    found = row(cur, "SELECT key FROM runs WHERE id = ?", (run,))
    return None if found is None else found[0]


def read(cur: Cursor, run: RunId, first: int, last: int | None, payloads: bool) -> list[Record]:
    bounds = (run, max(first, 0), _LAST if last is None else last)
    return [_record(r) for r in rows(cur, _READ if payloads else _READ_BARE, bounds)]


def listed(cur: Cursor, run: RunId, node: str | None, before: int | None, limit: int) -> list[Record]:
    key = _key(cur, run)
    if key is None:
        return []
    sql = f"SELECT {_BARE} {_RANGE} AND listed AND (? IS NULL OR node = ?) ORDER BY key DESC LIMIT ?"
    last = key << 32 | _LAST if before is None else (key << 32 | before) - 1
    return [_record(r) for r in rows(cur, sql, (key << 32, last, node, node, limit or -1))]


def last_snapshot(cur: Cursor, run: RunId, at_most: int) -> int | None:
    if at_most < 0:
        return None
    found = row(cur, _LAST_SNAPSHOT, (run, 0, at_most))
    return None if found is None else found[0]


def events(cur: Cursor, run: RunId, after: int, limit: int) -> list[Record | EventRow]:
    found = row(cur, "SELECT key, horizon, head FROM runs WHERE id = ?", (run,))
    if found is None:
        return []
    key, horizon, head = found
    base = key << 32
    first = base | _first_after(cur, base, horizon, head + 1, after)
    numbered: list[tuple[int, Record | EventRow]] = [
        (record.event_from, record)
        for record in map(_record, rows(cur, _WITH_EVENTS, (first, base | _LAST, limit)))
    ]
    numbered += [(r[0], EventRow(*r)) for r in rows(cur, _EVENTS, (base | after + 1, base | _LAST, limit))]
    numbered.sort(key=lambda pair: pair[0])
    return [event for _, event in numbered[:limit]]


def _first_after(cur: Cursor, base: int, low: int, high: int, after: int) -> int:
    """The first seq below `high` whose last event number is > after, else `high`. Numbers grow with seq, so
    halving finds it without an index that every settle would have to keep."""
    while low < high:
        middle = (low + high) // 2
        found = row(cur, _EVENT_FROM, (base | middle,))
        if found is not None and found[0] + found[1] - 1 > after:
            high = middle
        else:
            low = middle + 1
    return max(low, 0)


def event_heads(cur: Cursor, runs: Sequence[RunId]) -> dict[RunId, int]:
    return {RunId(run): last for run, last in rows(cur, _HEADS, (json.dumps(list(runs)),))}


def feed(cur: Cursor, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
    found = [(pos, RunId(run), first, last) for pos, run, first, last in rows(cur, _FEED, (after, limit))]
    # Afterwards: what was trimmed before we read is seen here.
    floor = row(cur, _FLOOR)
    if floor is not None and after < floor[0]:
        raise feed_trimmed(after, floor[0])
    return found


def trim_feed(cur: Cursor, now: int, before: int, limit: int) -> int:
    cur.execute(_MARK, (now,))
    found = row(cur, _OLD, (before,))
    if found is None or found[0] is None:
        return 0
    floor = found[0]
    cur.execute("UPDATE feed_marks SET trimmed = 1 WHERE pos = ?", (floor,))
    cur.execute("DELETE FROM feed_marks WHERE pos < ?", (floor,))
    # The last row stays, whatever its age: SQLite gives the next one the number after it.
    return len(rows(cur, _TRIM, (floor, limit)))


def prune(
    cur: Cursor,
    _now: int,
    run: RunId,
    horizon: int,
    replace: Record | None,
    ended: bool,
    blobs: Sequence[bytes] | None,
) -> int:
    found = row(cur, "SELECT key, horizon, head, status FROM runs WHERE id = ?", (run,))
    if found is None or not found[1] <= horizon <= found[2] or (ended and found[3] not in ENDED):
        return 0
    key = found[0]
    if replace is not None:
        _rewrite(cur, key, horizon, replace)
    cur.execute("DELETE FROM journal WHERE key BETWEEN ? AND ?", (key << 32, (key << 32 | horizon) - 1))
    deleted = cur.connection.changes()
    cur.execute("DELETE FROM projections WHERE key BETWEEN ? AND ?", (key << 32, (key << 32 | horizon) - 1))
    cur.execute("UPDATE runs SET horizon = ? WHERE key = ?", (horizon, key))
    if blobs is not None:
        _release_blobs(cur, key, frozenset(blobs))
    crashpoint("inside_prune")
    return deleted


def _release_blobs(cur: Cursor, key: int, kept: frozenset[bytes]) -> None:
    named = rows(cur, "SELECT digest FROM blob_refs WHERE run_key = ?", (key,))
    gone = [(key, digest) for (digest,) in named if digest not in kept]
    cur.executemany("DELETE FROM blob_refs WHERE run_key = ? AND digest = ?", gone)


def _rewrite(cur: Cursor, key: int, horizon: int, r: Record) -> None:
    """The record keeps its place and its first event number; of a side only the blobs count."""
    if r.seq != horizon:
        raise StoreError(f"The record that replaces {horizon} has seq {r.seq}.")
    if r.side is not None:
        missing = missing_blob(cur, [r.side])
        if missing is not None:
            raise BlobMissingError(
                f"The blob {missing.hex()} of the snapshot at {horizon} is not in the store."
            )
        refer(cur, key, r.side)
    cur.execute(
        _REPLACE,
        (r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect, r.outcome, r.listed, r.events,
         r.digest, r.payload, key << 32 | horizon),
    )  # fmt: skip
