"""Keeps writers away from a file that is being moved: triggers, which cost nothing while there are none."""

from __future__ import annotations

from holdfast.store.copy import NOT_COPIED, MoveMark, MovePhase, barrier_message, require_state
from holdfast.store.sql.sqlite.connect import Cursor, row, rows

# `busy` is 1 only inside the transactions that fill the file: no other transaction ever sees it.
_MAKE = """
CREATE TABLE IF NOT EXISTS moved (
    state TEXT NOT NULL,
    token TEXT NOT NULL,
    peer TEXT NOT NULL,
    at INTEGER NOT NULL,
    anew INTEGER NOT NULL,
    busy INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS moved_tables (
    name TEXT PRIMARY KEY,
    after BLOB,
    rows INTEGER NOT NULL,
    done INTEGER NOT NULL
) STRICT, WITHOUT ROWID"""
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_UNGUARDED = frozenset(NOT_COPIED) - {"workers", "hold_shares"}
# No worker can claim a run. A worker without work gets the error when it renews its registration.
_CLAIMS = """
CREATE TRIGGER moved_claims BEFORE UPDATE OF worker ON runs
WHEN NEW.worker IS NOT NULL AND (OLD.worker IS NULL OR OLD.term <> NEW.term)
BEGIN SELECT RAISE(ABORT, {message}); END;
CREATE TRIGGER moved_starts BEFORE INSERT ON runs WHEN NEW.worker IS NOT NULL
BEGIN SELECT RAISE(ABORT, {message}); END;
CREATE TRIGGER moved_arrivals BEFORE INSERT ON workers
BEGIN SELECT RAISE(ABORT, {message}); END;
CREATE TRIGGER moved_presence BEFORE UPDATE ON workers
BEGIN SELECT RAISE(ABORT, {message}); END"""
_GUARD = """
CREATE TRIGGER moved_{verb}_{table} BEFORE {verb} ON {table} {when}
BEGIN SELECT RAISE(ABORT, {message}); END"""
# A run that is taken away from its worker by a move does not count as a death.
_FENCE = """
UPDATE runs SET term = term + 1, worker = NULL, lease_until = NULL, ready_at = :now, updated_at = :now,
                status = iif(status IN ('pending', 'waiting', 'pending_input'), status, 'resumable')
WHERE lease_until > :now"""


def tables(cur: Cursor) -> list[str]:
    return sorted(name for (name,) in rows(cur, _TABLES))


def read_mark(cur: Cursor) -> MoveMark | None:
    if "moved" not in tables(cur):
        return None
    found = row(cur, "SELECT state, token, peer, at, anew FROM moved")
    if found is None:
        return None
    state, token, peer, at, anew = found
    return MoveMark(state=state, token=token, peer=peer, at=at, anew=bool(anew))


def write_mark(cur: Cursor, mark: MoveMark) -> None:
    cur.execute(_MAKE)
    cur.execute("DELETE FROM moved")
    cur.execute(
        "INSERT INTO moved (state, token, peer, at, anew) VALUES (?, ?, ?, ?, ?)",
        (mark.state, mark.token, mark.peer, mark.at, mark.anew),
    )


def set_state(cur: Cursor, state: MovePhase) -> None:
    cur.execute("UPDATE moved SET state = ?", (state,))


def stop_claims(cur: Cursor, mark: MoveMark) -> None:
    require_state(read_mark(cur), None)
    write_mark(cur, mark)
    unguard(cur)
    cur.execute(_CLAIMS.format(message=_quoted(barrier_message("closing", mark.peer))))


def fence(cur: Cursor, now: int) -> None:
    cur.execute(_FENCE, {"now": now})


def guard(cur: Cursor, state: MovePhase, peer: str) -> None:
    """Every table refuses every change; on a target, those of other processes."""
    unguard(cur)
    when = "WHEN NOT (SELECT busy FROM moved)" if state == "filling" else ""
    for table in tables(cur):
        if table not in _UNGUARDED:
            for verb in ("INSERT", "UPDATE", "DELETE"):
                spoken = _quoted(barrier_message(state, peer))
                cur.execute(_GUARD.format(verb=verb, table=table, when=when, message=spoken))


def unguard(cur: Cursor) -> None:
    found = rows(cur, "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'moved_*'")
    for (name,) in found:
        cur.execute(f'DROP TRIGGER "{name}"')


def forget(cur: Cursor) -> None:
    unguard(cur)
    cur.execute("DROP TABLE IF EXISTS moved; DROP TABLE IF EXISTS moved_tables")


def clear(cur: Cursor) -> None:
    """Deletes every row, of the audit too: it is a copy that was never in use."""
    require_state(read_mark(cur), "filling")
    unguard(cur)
    own = rows(cur, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'audit'")
    for name, _ in own:
        cur.execute(f'DROP TRIGGER "{name}"')
    for table in tables(cur):
        if table not in _UNGUARDED:
            cur.execute(f'DELETE FROM "{table}"')
    for _, sql in own:
        cur.execute(sql)
    cur.execute("DELETE FROM sqlite_sequence")
    forget(cur)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
