"""Whole runs, read as of one moment and written as read-only history (D-36)."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from holdfast.errors import BlobMissingError, ConflictError
from holdfast.store.rows import RunHistory, RunRow
from holdfast.store.sql import hold_rows as holds
from holdfast.store.sql import journal, reclaim, run_inbox
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.hold_rows import OWN, columns
from holdfast.store.sql.runs import COLUMN_NAMES, FIELDS, get
from holdfast.store.sql.side_changes import missing_blob, refer
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.record import Record, Side

_EVENTS = "SELECT key & 4294967295, at, type, payload FROM @events WHERE key BETWEEN ? AND ? ORDER BY key"
_BLOBS = "SELECT digest FROM @blob_refs WHERE run_key = ? ORDER BY digest"

# The key is assigned by this store.
_KEPT = {column: field for column, field in zip(COLUMN_NAMES, FIELDS, strict=True) if field != "key"}
_INSERT = f"""
INSERT INTO @runs ({", ".join(_KEPT)}) VALUES ({", ".join("?" * len(_KEPT))})
ON CONFLICT (id) DO NOTHING RETURNING key"""
_JOURNAL = (
    "kind", "at", "term", "node", "visit", "attempt", "scope", "effect", "outcome", "listed", "events",
    "digest", "payload",
)  # fmt: skip
_PUT_RECORD = f"""
INSERT INTO @journal (key, event_from, {", ".join(_JOURNAL)})
VALUES ({", ".join("?" * (len(_JOURNAL) + 2))})"""
_PUT_HOLD = f"INSERT INTO @holds (run_key, {', '.join(OWN)}) VALUES (?, {', '.join('?' * len(OWN))})"
_PUT_SHARED_HOLD = _PUT_HOLD.replace("(run_key,", "(run_key, shared,").replace("(?,", "(?, ?,")
_PUT_EVENT = "INSERT INTO @events (key, at, type, payload) VALUES (?, ?, ?, ?)"
_PUT_LATE = "INSERT INTO @late_reports (run_key, seq, payload) VALUES (?, ?, ?)"


async def history(conn: Conn, run: RunId) -> RunHistory | None:
    found = await get(conn, run)
    if found is None:
        return None
    base = found.key << 32
    return RunHistory(
        run=found,
        records=await journal.read(conn, run, 0, None, True),
        events=[EventRow(*r) for r in await conn.rows(_EVENTS, base, base | journal.LAST)],
        holds=await holds.of_run(conn, run, None, None, journal.LAST),
        late=await run_inbox.late_reports(conn, run),
        blobs=[digest for (digest,) in await conn.rows(_BLOBS, found.key)],
        deaths=await reclaim.deaths(conn, run),
    )


async def adopt(conn: Conn, _now: int, history: RunHistory) -> tuple[RunRow, bool]:
    # The row first: a concurrent import of the same run waits for it, and then finds it complete.
    key = await _put_run(conn, history.run)
    if key is not None:
        await _check(conn, history)
        await refer(conn, key, history.blobs)
        await conn.many(_PUT_RECORD, [_journal_row(key, record) for record in history.records])
        await conn.many(_PUT_EVENT, [(key << 32 | e.number, e.at, e.type, e.payload) for e in history.events])
        put_hold = _PUT_SHARED_HOLD if conn.keeps_shared else _PUT_HOLD
        await conn.many(put_hold, [_hold_values(conn, key, hold) for hold in history.holds])
        await conn.many(_PUT_LATE, [(key, seq, payload) for seq, payload in history.late])
        await conn.many(reclaim.INSERT_DEATH, [reclaim.values(key, death) for death in history.deaths])
    adopted = await get(conn, history.run.id)
    assert adopted is not None
    return adopted, key is not None


async def _check(conn: Conn, history: RunHistory) -> None:
    missing = await missing_blob(conn, [Side(blobs=history.blobs)])
    if missing is not None:
        raise BlobMissingError(
            f"the blob {missing.hex()} of run {history.run.id} is not in the store.",
            hint="Put the blobs before the history that names them.",
        )
    taken = await conn.row(
        "SELECT id FROM @holds WHERE id = ANY(?::text[]) LIMIT 1", [hold.id for hold in history.holds]
    )
    if taken is not None:
        raise ConflictError(f"the hold {taken[0]} belongs to another run in this store.", hold=taken[0])


async def _put_run(conn: Conn, run: RunRow) -> int | None:
    kept = msgspec.structs.replace(run, worker=None, lease_until=None, ready_at=None, read_only=True)
    found = await conn.row(_INSERT, *(getattr(kept, field) for field in _KEPT.values()))
    return None if found is None else found[0]


def _journal_row(key: int, r: Record) -> tuple[object, ...]:
    return (key << 32 | r.seq, r.event_from, *(getattr(r, name) for name in _JOURNAL))


def _hold_values(conn: Conn, key: int, hold: HoldRow) -> tuple[object, ...]:
    kept = msgspec.structs.replace(hold, read_only=True)
    shared = (list(hold.terms.also_for),) if conn.keeps_shared else ()
    return key, *shared, *columns(OWN, attrgetter(*OWN)(kept))
