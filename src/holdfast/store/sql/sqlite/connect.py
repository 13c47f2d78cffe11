"""Connections: how a database file is opened, with which pragmas, and how rows are fetched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, cast

import apsw
import msgspec

Row = tuple[Any, ...]
Args = Sequence[Any] | Mapping[str, Any]

PAGE_SIZE = 4096


UNSYNCED_WARNING = "sync=normal: what was acknowledged in the last moments before a power cut is lost"


class SqliteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sync="normal"` is faster and survives the death of the process, but not a power cut."""

    path: str
    sync: Literal["full", "normal"] = "full"
    busy_timeout: Annotated[float, msgspec.Meta(ge=0)] = (
        10.0  # seconds that a write waits for another process
    )

    @property
    def busy_ms(self) -> int:
        return int(self.busy_timeout * 1000)


class Connection(Protocol):
    """What this folder uses of apsw.Connection (its own annotations are half known to checkers)."""

    @property
    def in_transaction(self) -> bool: ...

    @property
    def system_errno(self) -> int: ...

    def cursor(self) -> Cursor: ...

    def execute(self, statements: str, bindings: Args = ..., /) -> Cursor: ...

    def changes(self) -> int: ...

    def set_busy_timeout(self, milliseconds: int, /) -> None: ...

    def create_scalar_function(
        self, name: str, function: Callable[..., Any], numargs: int, /, *, deterministic: bool
    ) -> None: ...

    def pragma(self, name: str, value: str, /) -> Any: ...

    def config(self, op: int, /, *args: Any) -> int: ...

    def close(self) -> None: ...


class Cursor(Protocol):
    """What it uses of apsw.Cursor."""

    @property
    def connection(self) -> Connection: ...

    def execute(self, statements: str, bindings: Args = ..., /) -> Cursor: ...

    def executemany(self, statements: str, bindings: Sequence[Args], /) -> Cursor: ...

    def fetchall(self) -> list[Row]: ...


def open_file(path: str, flags: int) -> Connection:
    return cast("Connection", apsw.Connection(path, flags))


def connect(settings: SqliteSettings) -> Connection:
    """A connection to an existing, migrated file. It waits for locks as the settings say."""
    conn = open_file(settings.path, apsw.SQLITE_OPEN_READWRITE)
    conn.set_busy_timeout(settings.busy_ms)
    # Plans do not depend on bound values: otherwise many statements are compiled anew for each call.
    conn.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    conn.execute(f"PRAGMA synchronous = {settings.sync.upper()}")
    conn.execute("PRAGMA temp_store = MEMORY")
    # SQLite's own lower() knows ASCII only.
    conn.create_scalar_function("folded", str.casefold, 1, deterministic=True)
    if sys.platform == "darwin":
        # fsync on macOS leaves data in the drive's cache.
        conn.execute("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1")
    return conn


def connect_reader(settings: SqliteSettings) -> Connection:
    conn = connect(settings)
    conn.execute("PRAGMA query_only = 1")
    return conn


def rows(cur: Cursor, sql: str, args: Args = ()) -> list[Row]:
    return cur.execute(sql, args).fetchall()


def row(cur: Cursor, sql: str, args: Args = ()) -> Row | None:
    """The first row. The statement is finished, so that a commit may follow."""
    found = cur.execute(sql, args).fetchall()
    return found[0] if found else None


def library_version() -> str:
    """Of SQLite itself."""
    return apsw.sqlite_lib_version()
