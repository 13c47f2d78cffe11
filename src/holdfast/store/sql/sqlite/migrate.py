"""Creates a file or migrates it to the newest schema; does not touch files of other programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import apsw
import msgspec

from holdfast.errors import SchemaTooNewError
from holdfast.store.sql.sqlite.connect import PAGE_SIZE, Connection, SqliteSettings, open_file
from holdfast.store.sql.sqlite.errors import not_a_store, translated

APPLICATION_ID = 0x48464442  # "HFDB"; `file` and SQLite show it
_MAGIC = b"SQLite format 3\0"
# Offsets in SQLite's file header.
_APPLICATION_ID_AT = 68
_WRITE_VERSION_AT = 18


class SqliteMigration(msgspec.Struct, frozen=True):
    number: int
    name: str
    sql: str


@cache
def migrations() -> tuple[SqliteMigration, ...]:
    """The numbered files of schema/, in order; read once, although every file that is opened needs them."""
    return tuple(sorted(_read_migrations(), key=lambda m: m.number))


def _read_migrations() -> Iterator[SqliteMigration]:
    for file in resources.files("holdfast.store.sql.sqlite").joinpath("schema").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            yield SqliteMigration(int(number), name, file.read_text("utf-8"))


def prepare(settings: SqliteSettings) -> None:
    """Create or migrate the file.

    Raises NotAStoreError, SchemaTooNewError (the file stays byte for byte as it was) and StoreError.
    """
    known = migrations()
    try:
        _refuse_foreign(settings.path)
        # Both conditions: a process may have died between creating the tables and switching WAL on.
        if _schema_number(settings.path) != known[-1].number or not _is_wal(settings.path):
            _migrate(settings, known)
    except apsw.Error as error:
        raise translated(error, settings.path) from error


def _refuse_foreign(path: str) -> None:
    """Checks the file's first bytes only: even opening a foreign database could change it. Our own header is
    there from the first commit on, because the file is created before WAL is switched on.
    """
    file = Path(path)
    if not file.is_file() or file.with_name(file.name + "-journal").exists():
        return  # new, or an interrupted creation that SQLite will roll back
    with file.open("rb") as opened:
        header = opened.read(100)
    ours = APPLICATION_ID.to_bytes(4, "big") == header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    if header and not (header.startswith(_MAGIC) and ours):
        raise not_a_store(path)


def _schema_number(path: str) -> int:
    """The number of the newest migration in the file; 0 for a new one. Refuses a newer file than this version
    knows."""
    file = Path(path)
    if not file.is_file() or file.stat().st_size == 0:
        return 0
    # Read-only: such a connection does not fold the WAL into the file when it closes.
    conn = open_file(path, apsw.SQLITE_OPEN_READONLY)
    try:
        conn.set_busy_timeout(1000)
        number = _user_version(conn)
    except (apsw.ReadOnlyError, apsw.CantOpenError):
        return 0  # an interrupted creation: SQLite rolls it back when the file is opened for writing
    finally:
        conn.close()
    _refuse_newer(path, number)
    return number


def _refuse_newer(path: str, number: int) -> None:
    newest = migrations()[-1].number
    if number > newest:
        raise SchemaTooNewError(
            f"{path} has schema {number}, this version of Holdfast knows schemas up to {newest}.",
            hint="Update Holdfast here. The file was not changed.",
        )


def _migrate(settings: SqliteSettings, known: Sequence[SqliteMigration]) -> None:
    conn = open_file(settings.path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        conn.set_busy_timeout(settings.busy_ms)
        conn.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        conn.execute("BEGIN EXCLUSIVE")
        try:
            _apply(conn, settings.path, known)
            conn.execute("COMMIT")
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise
        _switch_to_wal(conn, settings.busy_timeout)
    finally:
        conn.close()


def _apply(conn: Connection, path: str, known: Sequence[SqliteMigration]) -> None:
    # Read again under the lock: another process may have migrated the file meanwhile, or be newer.
    present = _user_version(conn)
    _refuse_newer(path, present)
    if present == 0 and conn.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        raise not_a_store(path)
    for migration in known[present:]:
        conn.execute(migration.sql)
        conn.execute(
            "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, ?)",
            (migration.number, migration.name, time.time_ns() // 1000),
        )
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.execute(f"PRAGMA user_version = {known[-1].number}")


def _is_wal(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(100)[_WRITE_VERSION_AT : _WRITE_VERSION_AT + 1] == b"\2"


def _switch_to_wal(conn: Connection, patience: float) -> None:
    """SQLite does not wait for this change by itself: two processes may be creating the file at once."""
    deadline = time.monotonic() + patience
    while True:
        try:
            conn.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _user_version(conn: Connection) -> int:
    ((number,),) = conn.execute("PRAGMA user_version").fetchall()
    return int(str(number))
