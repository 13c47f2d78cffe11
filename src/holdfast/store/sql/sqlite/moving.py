"""Whole runs, read as of one moment and written as read-only history (D-36)."""

from __future__ import annotations

import msgspec

from holdfast.errors import BlobMissingError, ConflictError
from holdfast.store.protocols import RunHistory, RunRow
from holdfast.store.sql.sqlite import holds, inbox, journal, reclaim
from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.store.sql.sqlite.holds import OWN
from holdfast.store.sql.sqlite.run_holds import column
from holdfast.store.sql.sqlite.runs import FIELDS, get
from holdfast.store.sql.sqlite.settle import APPEND
from holdfast.store.sql.sqlite.side import missing_blob, refer
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.record import Record, Side

_ALL = -1  # LIMIT
_LAST = 0xFFFF_FFFF
_EVENTS = "SELECT key & 0xffffffff, at, type, payload FROM events WHERE key BETWEEN ? AND ? ORDER BY key"
_BLOBS = "SELECT digest FROM blob_refs WHERE run_key = ? ORDER BY digest"

# Each store gives runs keys of its own.
_KEPT = tuple(field for field in FIELDS if field != "key")
_INSERT = f"INSERT INTO runs ({', '.join(_KEPT)}) VALUES ({', '.join('?' * len(_KEPT))}) RETURNING key"
_PUT_HOLD = f"INSERT INTO holds (run_key, {', '.join(OWN)}) VALUES (?, {', '.join('?' * len(OWN))})"
_PUT_EVENT = "INSERT INTO events (key, at, type, payload) VALUES (?, ?, ?, ?)"
_PUT_LATE = "INSERT INTO late_reports (run_key, seq, payload) VALUES (?, ?, ?)"


def history(cur: Cursor, run: RunId) -> RunHistory | None:
    found = get(cur, run)
    if found is None:
        return None
    base = found.key << 32
    return RunHistory(
        run=found,
        records=journal.read(cur, run, 0, None, True),
        events=[EventRow(*r) for r in rows(cur, _EVENTS, (base, base | _LAST))],
        holds=holds.of_run(cur, run, None, None, _ALL),
        late=inbox.late_reports(cur, run),
        blobs=[digest for (digest,) in rows(cur, _BLOBS, (found.key,))],
        deaths=reclaim.deaths(cur, run),
    )


def adopt(cur: Cursor, _now: int, history: RunHistory) -> tuple[RunRow, bool]:
    existing = get(cur, history.run.id)
    if existing is not None:
        return existing, False
    _check(cur, history)
    key = _put_run(cur, history.run)
    refer(cur, key, Side(blobs=history.blobs))
    cur.executemany(APPEND, [_journal_row(key, record) for record in history.records])
    cur.executemany(_PUT_EVENT, [(key << 32 | e.number, e.at, e.type, e.payload) for e in history.events])
    cur.executemany(_PUT_HOLD, [_hold_values(key, hold) for hold in history.holds])
    cur.executemany(_PUT_LATE, [(key, seq, payload) for seq, payload in history.late])
    cur.executemany(reclaim.INSERT_DEATH, [reclaim.values(key, death) for death in history.deaths])
    adopted = get(cur, history.run.id)
    assert adopted is not None
    return adopted, True


def _check(cur: Cursor, history: RunHistory) -> None:
    missing = missing_blob(cur, [Side(blobs=history.blobs)])
    if missing is not None:
        raise BlobMissingError(
            f"The blob {missing.hex()} of run {history.run.id} is not in the store.",
            hint="Put the blobs before the history that names them.",
        )
    for hold in history.holds:
        if row(cur, "SELECT 1 FROM holds WHERE id = ?", (hold.id,)) is not None:
            raise ConflictError(f"The hold {hold.id} is one of another run in this store.", hold=hold.id)


def _put_run(cur: Cursor, run: RunRow) -> int:
    kept = msgspec.structs.replace(run, worker=None, lease_until=None, ready_at=None, read_only=True)
    ((key,),) = rows(cur, _INSERT, tuple(getattr(kept, field) for field in _KEPT))
    return key


def _journal_row(key: int, r: Record) -> tuple[object, ...]:
    return (
        key << 32 | r.seq, r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect, r.outcome,
        r.listed, r.events, r.event_from, r.digest, r.payload,
    )  # fmt: skip


def _hold_values(key: int, hold: HoldRow) -> tuple[object, ...]:
    kept = msgspec.structs.replace(hold, read_only=True)
    return key, *(column(field, getattr(kept, field)) for field in OWN)
