"""Connections: how a database file is opened, with which pragmas, and how rows are fetched."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast

import apsw
import msgspec

T = TypeVar("T")

Row = tuple[Any, ...]
Args = Sequence[Any] | Mapping[str, Any]

# Of new files: an empty store has a page for each of its about ninety tables and indexes, and a record of
# 1 KB takes little more than one page.
PAGE_SIZE = 1024
# After so many bytes the log is folded into the file, by the process that commits then. In pages, as SQLite
# counts, small pages would fold it four times as often.
LOG_SIZE = 4 << 20


UNSYNCED_WARNING = "sync=normal: a power cut loses what was acknowledged in the last moments"


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
    """What this package uses of apsw.Connection (its own annotations are incomplete for type checkers)."""

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

    def executemany(self, statements: str, bindings: Iterable[Args], /) -> Cursor: ...

    def fetchall(self) -> list[Row]: ...


def open_file(path: str, flags: int) -> Connection:
    conn = apsw.Connection(path, flags)
    # Called only for what SQLite cannot store, so arguments that are no lists cost nothing.
    conn.convert_binding = _list_as_json
    return cast("Connection", conn)


def _list_as_json(_cursor: object, _number: int, value: object) -> str:
    """A list is one argument, read with `json_each`. JSON has no bytes, so they are written in hex."""
    if not isinstance(value, list):
        raise TypeError(f"SQLite stores no {type(value).__name__}.")
    values = cast("list[Any]", value)
    if values and type(values[0]) is bytes:
        values = [cast("bytes", each).hex() for each in values]
    return msgspec.json.encode(values).decode()


def connect(settings: SqliteSettings) -> Connection:
    """A connection to an existing, migrated file. It waits for locks as the settings say."""
    conn = open_file(settings.path, apsw.SQLITE_OPEN_READWRITE)
    conn.set_busy_timeout(settings.busy_ms)
    # Plans do not depend on bound values: otherwise many statements would be compiled again for each call.
    conn.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    conn.execute(f"PRAGMA synchronous = {settings.sync.upper()}")
    ((page_size,),) = conn.execute("PRAGMA page_size").fetchall()
    conn.execute(f"PRAGMA wal_autocheckpoint = {LOG_SIZE // page_size}").fetchall()
    conn.execute("PRAGMA temp_store = MEMORY")
    # SQLite's own lower() knows ASCII only.
    conn.create_scalar_function("folded", str.casefold, 1, deterministic=True)
    if sys.platform == "darwin":
        # fsync on macOS leaves data in the drive's cache; F_FULLFSYNC does not.
        conn.execute("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1")
    return conn


def connect_reader(settings: SqliteSettings) -> Connection:
    conn = connect(settings)
    conn.execute("PRAGMA query_only = 1")
    return conn


def rows(cur: Cursor, sql: str, args: Args = ()) -> list[Row]:
    return cur.execute(sql, args).fetchall()


def row(cur: Cursor, sql: str, args: Args = ()) -> Row | None:
    """The first row. The statement is finished, so that a commit can follow."""
    found = cur.execute(sql, args).fetchall()
    return found[0] if found else None


# What the notation of `Conn` means in SQLite. There are no row locks: a writing transaction locks the file.
_NOTATION = (
    (re.compile(r"= ANY\(\?::bytea\[\]\)"), "IN (SELECT unhex(value) FROM json_each(?))"),
    (re.compile(r"<> ALL\(\?::bytea\[\]\)"), "NOT IN (SELECT unhex(value) FROM json_each(?))"),
    (re.compile(r"= ANY\(\?::\w+\[\]\)"), "IN (SELECT value FROM json_each(?))"),
    (re.compile(r"::\w+(\[\])?"), ""),
    (re.compile(r"@now\("), "("),
    (re.compile(r"@(\w+)\[(\w+)\]( AS \w+)?"), r"\1\3 INDEXED BY \2"),
    (re.compile(r"@(\w+)"), r"\1"),
    (re.compile(r"\bgreatest\("), "max("),
    (re.compile(r"\bleast\("), "min("),
    (re.compile(r"\bstrpos\("), "instr("),
    (re.compile(r"\s+FOR (NO KEY |KEY )?(UPDATE|SHARE)( OF \w+)?( SKIP LOCKED)?\b"), ""),
)


@lru_cache(2048)
def statement(text: str) -> str:
    """Translates the notation of the shared modules."""
    for pattern, meaning in _NOTATION:
        text = pattern.sub(meaning, text)
    return text


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine of the shared modules to its end, in place: with SQLite none of it ever waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("work on SQLite must not suspend.")


def library_version() -> str:
    """Of SQLite itself."""
    return apsw.sqlite_lib_version()
