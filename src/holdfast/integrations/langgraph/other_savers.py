"""Threads in the databases of LangGraph's own savers: read without changing them, and written as a file."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

import apsw
import msgspec
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS

from holdfast.errors import CheckpointCorruptError, InputError, SettingsError

_SQLITE: Final = {
    "checkpoints": (
        "thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint",
        "metadata",
    ),
    "writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"),
}  # fmt: skip
_POSTGRES: Final = {
    "checkpoints": (
        "thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata",
    ),
    "checkpoint_blobs": ("thread_id", "checkpoint_ns", "channel", "version", "type", "blob"),
    "checkpoint_writes": (
        "thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "blob",
    ),
}  # fmt: skip
_TABLES: Final = """
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    task_path TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));"""
_SENDS_IN_PARENT: Final = 4
"""Checkpoints below this format have what was sent to nodes among the writes of their parent."""


class ForeignWrite(NamedTuple):
    task: str
    path: str
    idx: int
    channel: str
    type: str
    data: bytes


class ForeignCheckpoint(NamedTuple):
    ns: str
    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    writes: list[ForeignWrite]


class ThreadSource(Protocol):
    """An open database of another saver."""

    async def threads(self) -> list[str]: ...

    def checkpoints(self, thread: str) -> AsyncGenerator[ForeignCheckpoint]:
        """Oldest first. Raises CheckpointCorruptError."""
        ...

    async def size(self, thread: str) -> tuple[int, int]:
        """Checkpoints and writes that the thread has now."""
        ...


@contextlib.asynccontextmanager
async def open_source(address: str, serde: SerializerProtocol) -> AsyncGenerator[ThreadSource]:
    """A file of a SqliteSaver, or the address of a PostgresSaver's database. Raises InputError."""
    if address.partition("://")[0] in ("postgres", "postgresql"):
        async with _postgres(address) as connection:
            yield PostgresThreads(connection, serde, await _require_postgres(connection, address))
        return
    connection = _sqlite(address)
    try:
        yield SqliteThreads(connection, serde, _require_sqlite(connection, address))
    finally:
        connection.close()


FILE_ERRORS: Final = (OSError, apsw.Error)


def new_file(file: Path) -> Any:
    """An open file with the empty tables of a SqliteSaver, in a transaction."""
    connection: Any = apsw.Connection(str(file))
    connection.execute(f"BEGIN; {_TABLES}")
    return connection


def _sqlite(address: str) -> Any:
    file = Path(address.removeprefix("sqlite:"))
    if not file.is_file():
        raise InputError(
            f"{address} is no file.",
            hint="Name the file of a SqliteSaver, or postgres://... of a PostgresSaver.",
        )
    return apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)


def _require_columns(
    address: str, wanted: Mapping[str, tuple[str, ...]], found: Mapping[str, set[str]]
) -> None:
    for table, columns in wanted.items():
        missing = [name for name in columns if name not in found.get(table, set())]
        if missing:
            lacks = f"has no column {missing[0]}" if found.get(table) else "is not there"
            raise InputError(
                f"{address} is not in a known layout: the table {table} {lacks}. Nothing was imported.",
                hint="It must be a database of LangGraph's SqliteSaver or PostgresSaver (not a shallow one).",
                table=table,
            )


# ---------------------------------------------------------------------- SQLite


def _require_sqlite(connection: Any, address: str) -> bool:
    """Whether writes have a path."""
    try:
        found = {
            table: {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}
            for table in _SQLITE
        }
    except apsw.Error as error:
        raise InputError(f"{address} is not a SQLite file: {error}.", hint="Nothing was imported.") from error
    _require_columns(address, _SQLITE, found)
    return "task_path" in found["writes"]


class SqliteThreads:
    def __init__(self, connection: Any, serde: SerializerProtocol, paths: bool) -> None:
        self._connection, self._serde = connection, serde
        self._path = "task_path" if paths else "''"

    async def threads(self) -> list[str]:
        return [
            row[0]
            for row in self._connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")
        ]

    async def size(self, thread: str) -> tuple[int, int]:
        counts = (
            self._connection.execute(
                f"SELECT count(*) FROM {table} WHERE thread_id = ?", (thread,)
            ).fetchone()
            for table in ("checkpoints", "writes")
        )
        checkpoints, writes = (int(row[0]) for row in counts)
        return checkpoints, writes

    async def checkpoints(self, thread: str) -> AsyncGenerator[ForeignCheckpoint]:
        # One read transaction: the thread as of one moment.
        self._connection.execute("BEGIN")
        try:
            rows = self._connection.execute(
                "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata "
                "FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns",
                (thread,),
            )
            for ns, name, parent, kind, data, metadata in rows:
                checkpoint = _loaded(self._serde, kind, data, thread, name)
                sends = self._writes(thread, ns, parent) if parent else []
                _add_sends(self._serde, checkpoint, sends, thread, name)
                known: dict[str, Any] = msgspec.json.decode(metadata) if metadata else {}
                yield ForeignCheckpoint(ns, name, parent, checkpoint, known, self._writes(thread, ns, name))
        finally:
            self._connection.execute("ROLLBACK")

    def _writes(self, thread: str, ns: str, checkpoint: str) -> list[ForeignWrite]:
        rows = self._connection.execute(
            f"SELECT task_id, {self._path}, idx, channel, type, value FROM writes "
            "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY 2, 1, 3",
            (thread, ns, checkpoint),
        )
        return [ForeignWrite(t, p, i, c, k, bytes(data or b"")) for t, p, i, c, k, data in rows]


# ---------------------------------------------------------------------- PostgreSQL


@contextlib.asynccontextmanager
async def _postgres(address: str) -> AsyncGenerator[Any]:
    try:
        import asyncpg  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise SettingsError(
            "reading PostgreSQL needs asyncpg.", hint="pip install 'holdfast-flow[postgres]'"
        ) from error
    try:
        connection: Any = await cast("Any", asyncpg).connect(address, timeout=30)
    except (OSError, asyncpg.PostgresError, ValueError) as error:
        raise InputError(f"the source cannot be opened: {error}.", hint="Check its address.") from error
    try:
        await connection.execute("SET default_transaction_read_only = on")
        yield connection
    finally:
        await connection.close()


async def _require_postgres(connection: Any, address: str) -> bool:
    found: dict[str, set[str]] = {}
    rows = await connection.fetch(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = ANY(current_schemas(false)) AND table_name = ANY($1::text[])",
        list(_POSTGRES),
    )
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    _require_columns(address.rpartition("@")[2], _POSTGRES, found)
    return "task_path" in found["checkpoint_writes"]


class PostgresThreads:
    def __init__(self, connection: Any, serde: SerializerProtocol, paths: bool) -> None:
        self._connection, self._serde = connection, serde
        self._path = "task_path" if paths else "''"

    async def threads(self) -> list[str]:
        rows = await self._connection.fetch("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")
        return [row[0] for row in rows]

    async def size(self, thread: str) -> tuple[int, int]:
        count = "SELECT count(*) FROM {} WHERE thread_id = $1"
        checkpoints, writes = [
            await self._connection.fetchval(count.format(table), thread)
            for table in ("checkpoints", "checkpoint_writes")
        ]
        return checkpoints, writes

    async def checkpoints(self, thread: str) -> AsyncGenerator[ForeignCheckpoint]:
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            cursor = self._connection.cursor(
                "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint::text, metadata::text "
                "FROM checkpoints WHERE thread_id = $1 ORDER BY checkpoint_id, checkpoint_ns",
                thread,
            )
            async for ns, name, parent, text, metadata in cursor:
                checkpoint = msgspec.json.decode(text, type=dict[str, Any])
                values: dict[str, Any] = checkpoint.get("channel_values") or {}
                checkpoint["channel_values"] = values | await self._values(thread, ns, name, checkpoint)
                sends = await self._writes(thread, ns, parent) if parent else []
                _add_sends(self._serde, checkpoint, sends, thread, name)
                writes = await self._writes(thread, ns, name)
                yield ForeignCheckpoint(ns, name, parent, checkpoint, msgspec.json.decode(metadata), writes)

    async def _values(self, thread: str, ns: str, name: str, checkpoint: dict[str, Any]) -> dict[str, Any]:
        versions = {channel: str(version) for channel, version in checkpoint["channel_versions"].items()}
        rows = await self._connection.fetch(
            "SELECT b.channel, b.type, b.blob FROM unnest($3::text[], $4::text[]) AS v (channel, version) "
            "JOIN checkpoint_blobs AS b ON b.channel = v.channel AND b.version = v.version "
            "WHERE b.thread_id = $1 AND b.checkpoint_ns = $2 AND b.type <> 'empty'",
            thread, ns, list(versions), list(versions.values()),
        )  # fmt: skip
        return {channel: _loaded(self._serde, kind, data, thread, name) for channel, kind, data in rows}

    async def _writes(self, thread: str, ns: str, checkpoint: str) -> list[ForeignWrite]:
        rows = await self._connection.fetch(
            f"SELECT task_id, {self._path}, idx, channel, type, blob FROM checkpoint_writes "
            "WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3 ORDER BY 2, 1, 3",
            thread, ns, checkpoint,
        )  # fmt: skip
        return [ForeignWrite(row[0], row[1], row[2], row[3], row[4], bytes(row[5] or b"")) for row in rows]


# ---------------------------------------------------------------------- both


def _loaded(serde: SerializerProtocol, kind: str, data: Any, thread: str, checkpoint: str) -> Any:
    try:
        if kind.partition("+")[0] == "pickle":
            raise ValueError("it is pickled, and pickle is never read")
        return serde.loads_typed((kind, bytes(data or b"")))
    except Exception as error:
        raise CheckpointCorruptError(
            f"checkpoint {checkpoint} of thread {thread!r} in the source cannot be read: {error}.",
            hint="Name the serializer that it was written with: --serde module:factory. Or leave the thread "
            "out: name the others with --thread.",
            thread=thread,
            checkpoint=checkpoint,
        ) from error


def _add_sends(
    serde: SerializerProtocol, checkpoint: dict[str, Any], writes: list[ForeignWrite], thread: str, name: str
) -> None:
    """As LangGraph's savers do when they read an old checkpoint."""
    found = [each for each in writes if each.channel == TASKS]
    if not found or int(checkpoint.get("v", 1)) >= _SENDS_IN_PARENT:
        return
    versions = cast("dict[str, Any]", checkpoint["channel_versions"])
    sends = [_loaded(serde, each.type, each.data, thread, name) for each in found]
    checkpoint["channel_values"] = {**checkpoint["channel_values"], TASKS: sends}
    checkpoint["channel_versions"] = {**versions, TASKS: max(versions.values()) if versions else "1"}
