"""A SQLite file as one end of a move."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

from holdfast.store.blob.local import LocalBlobs, folder_beside
from holdfast.store.copy import (
    BATCH,
    BLOB_BYTES,
    GENERATED_COLUMNS,
    JSON_LIST_COLUMNS,
    NOT_COPIED,
    CopyProgress,
    CopyRule,
    Counters,
    MoveMark,
    TableShape,
    Values,
    WorkerLeases,
    batch_size,
    copy_progress,
    require_state,
    select,
)
from holdfast.store.sql.sqlite import move_barrier
from holdfast.store.sql.sqlite.connect import Connection, Cursor, SqliteSettings, connect, row, rows
from holdfast.store.sql.sqlite.errors import translated
from holdfast.store.sql.sqlite.migrate import prepare
from holdfast.store.sql.sqlite.store import IN_ROW
from holdfast.store.sql.sqlite.writer import transact
from holdfast.types.own_threads import in_thread

T = TypeVar("T")

_LISTED = frozenset(table for table, _ in JSON_LIST_COLUMNS)
_COUNTED = (("id",), ("number",))  # keys that are assigned in order

_HELD = """
SELECT worker, count(*), max(lease_until) FROM runs WHERE worker IS NOT NULL AND lease_until > ?
GROUP BY worker ORDER BY worker"""
_LAST_POSITION = """
SELECT coalesce(max(pos), 0) FROM (SELECT pos FROM feed UNION ALL SELECT pos FROM feed_marks)"""
_REACH = """
UPDATE moved_tables SET after = ?, rows = ?, done = ? WHERE name = ? AND rows = ? AND done = ?"""


class SqliteMoveEndpoint:
    """Connects on first use. Calls are made one at a time."""

    def __init__(self, settings: SqliteSettings) -> None:
        self._settings = settings
        self._path = Path(settings.path).absolute()
        self.where = f"sqlite:{self._path}"
        self._blobs = LocalBlobs(folder_beside(settings.path))
        self._conn: Connection | None = None
        self._lock = threading.Lock()

    # For both ends.

    async def exists(self) -> bool:
        return self._path.is_file() and self._path.stat().st_size > 0

    async def prepare(self) -> None:
        await in_thread(prepare, self._settings)

    async def identity(self) -> str:
        return f"sqlite:{await in_thread(os.path.realpath, self._path)}"

    async def mark(self) -> MoveMark | None:
        return await self._read(move_barrier.read_mark)

    async def shapes(self) -> dict[str, TableShape]:
        return await self._read(_shapes)

    async def count(self, rule: CopyRule) -> int:
        def counting(cur: Cursor) -> int:
            found = row(cur, f"SELECT count(*) FROM {rule.table} WHERE {rule.where}")
            return 0 if found is None else found[0]

        return await self._read(counting)

    async def rows(self, shape: TableShape, after: Values | None) -> list[Values]:
        def batch(cur: Cursor) -> list[Values]:
            limit = BATCH if shape.table != "blobs" else _batch_size(cur, after)
            found = rows(cur, select(shape, shape.table, begun=after is not None), (*(after or ()), limit))
            if shape.table == "blobs":
                return [self._with_bytes(shape, values) for values in found]
            return [_portable_values(shape, values) for values in found] if shape.table in _LISTED else found

        return await self._read(batch)

    async def now(self) -> int:
        return _now()

    async def close(self) -> None:
        def closing() -> None:
            with self._lock:
                if self._conn is not None:
                    self._conn.close()
                    self._conn = None

        await in_thread(closing)

    # As the source.

    async def leases(self) -> list[WorkerLeases]:
        return [WorkerLeases(*found) for found in await self._read(lambda cur: rows(cur, _HELD, (_now(),)))]

    async def stop_claims(self, mark: MoveMark) -> None:
        await self._write(lambda cur: move_barrier.stop_claims(cur, mark))

    async def block_writes(self, *, fence: bool) -> None:
        def sealed(cur: Cursor) -> None:
            mark = move_barrier.read_mark(cur)
            require_state(mark, "closing", "sealed")
            move_barrier.unguard(cur)
            if fence:
                move_barrier.fence(cur, _now())
            move_barrier.set_state(cur, "sealed")
            move_barrier.guard(cur, "sealed", mark.peer if mark is not None else "")

        await self._write(sealed)

    async def settle(self) -> None:
        def settled(cur: Cursor) -> None:
            require_state(move_barrier.read_mark(cur), "sealed", "moved")
            move_barrier.set_state(cur, "moved")

        await self._write(settled)

    async def cancel_move(self) -> None:
        await self._write(move_barrier.forget)

    async def counters(self) -> dict[str, int]:
        return await self._read(_counters)

    # As the target.

    async def feed_floor(self) -> int | None:
        return None  # positions continue after the last one

    async def begin(self, mark: MoveMark) -> None:
        def begun(cur: Cursor) -> None:
            require_state(move_barrier.read_mark(cur), None)
            move_barrier.write_mark(cur, mark)
            move_barrier.guard(cur, "filling", mark.peer)

        await self._write(begun)

    async def reached(self) -> dict[str, CopyProgress]:
        found = await self._read(lambda cur: rows(cur, "SELECT name, after, rows, done FROM moved_tables"))
        return {name: copy_progress(after, count, done) for name, after, count, done in found}

    async def put(
        self, shape: TableShape, batch: Sequence[Values], was: CopyProgress, now: CopyProgress
    ) -> bool:
        kept = [self._kept(shape, values) for values in batch]
        names, places = ", ".join(shape.columns), ", ".join("?" * len(shape.columns))

        def putting(cur: Cursor) -> bool:
            require_state(move_barrier.read_mark(cur), "filling")
            cur.execute(
                "INSERT INTO moved_tables (name, rows, done) VALUES (?, 0, 0) ON CONFLICT DO NOTHING",
                (shape.table,),
            )
            after = None if now.after is None else msgspec.msgpack.encode(now.after)
            cur.execute(_REACH, (after, now.rows, now.done, shape.table, was.rows, was.done))
            if cur.connection.changes() != 1:
                return False
            cur.execute("UPDATE moved SET busy = 1")
            cur.executemany(f"INSERT INTO {shape.table} ({names}) VALUES ({places})", kept)
            cur.execute("UPDATE moved SET busy = 0")
            return True

        return await self._write(putting)

    async def open_for_work(self, counters: Counters) -> None:
        def opened(cur: Cursor) -> None:
            # Only once: workers may have used numbers of the target since.
            require_state(move_barrier.read_mark(cur), "filling")
            move_barrier.forget(cur)
            # Only runs have a counter here: the key of a deleted run is never used again.
            cur.execute("DELETE FROM sqlite_sequence WHERE name = 'runs'")
            cur.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', ?)", (counters.get("runs", 0),)
            )

        await self._write(opened)

    async def clear(self) -> None:
        files = await self._read(lambda cur: rows(cur, "SELECT digest FROM blobs WHERE place = 'file'"))
        await self._write(move_barrier.clear)
        for (digest,) in files:
            await self._blobs.delete(digest)

    # Rows.

    def _with_bytes(self, shape: TableShape, values: Values) -> Values:
        """A blob's bytes are copied with its row if they are in the folder beside the file: that is where
        this store and an instance without other settings put them."""
        found = dict(zip(shape.columns, values, strict=True))
        here = found["place"] == "elsewhere" and self._blobs.has_now(found["digest"])
        if found["place"] == "file" or here:
            found |= {"place": "row", "data": self._blobs.get_now(found["digest"])}
        return tuple(found.values())

    def _kept(self, shape: TableShape, values: Values) -> Values:
        if shape.table not in _LISTED and shape.table != "blobs":
            return values
        found = dict(zip(shape.columns, values, strict=True))
        for name in shape.columns:
            if (shape.table, name) in JSON_LIST_COLUMNS:
                found[name] = msgspec.json.encode(found[name]).decode() if found[name] else "[]"
        if shape.table == "blobs" and found["place"] == "row" and len(found["data"]) > IN_ROW:
            # The file first: a file without a row is garbage, a row without its file is data loss.
            self._blobs.put_now(found["digest"], found["data"])
            found |= {"place": "file", "data": None}
        return tuple(found.values())

    # The connection.

    async def _read(self, query: Callable[[Cursor], T]) -> T:
        return await in_thread(self._locked, query)

    async def _write(self, work: Callable[[Cursor], T]) -> T:
        def written(cur: Cursor) -> T:
            return transact(cur, lambda cur, _at: work(cur), _now)

        return await in_thread(self._locked, written)

    def _locked(self, act: Callable[[Cursor], T]) -> T:
        with self._lock:
            try:
                if self._conn is None:
                    self._conn = connect(self._settings)
                return act(self._conn.cursor())
            except apsw.Error as error:
                raise translated(error, self._settings.path) from error


def _now() -> int:
    return time.time_ns() // 1000


def _shapes(cur: Cursor) -> dict[str, TableShape]:
    return {table: _shape(cur, table) for table in move_barrier.tables(cur) if table not in NOT_COPIED}


def _shape(cur: Cursor, table: str) -> TableShape:
    # cid, name, type, notnull, default, pk (its place in the key), hidden (2 and 3: generated of the others)
    found = rows(cur, f"PRAGMA table_xinfo({table})")
    own = GENERATED_COLUMNS.get(table, frozenset())
    key = [r[1] for r in sorted(found, key=lambda r: r[5]) if r[5]]
    return TableShape(table, tuple(key), tuple(sorted(r[1] for r in found if r[6] == 0 and r[1] not in own)))


def _portable_values(shape: TableShape, values: Values) -> Values:
    return tuple(
        msgspec.json.decode(value) if (shape.table, name) in JSON_LIST_COLUMNS else value
        for name, value in zip(shape.columns, values, strict=True)
    )


def _batch_size(cur: Cursor, after: Values | None) -> int:
    """The number of the next blobs that are read at once."""
    sql = "SELECT size FROM blobs WHERE NOT condemned AND number > ? ORDER BY number LIMIT ?"
    return batch_size((size for (size,) in rows(cur, sql, ((after or (-1,))[0], BATCH))), BLOB_BYTES)


def _counters(cur: Cursor) -> dict[str, int]:
    """Runs count in a table of SQLite's own; the others continue after their last row."""
    found = row(cur, "SELECT seq FROM sqlite_sequence WHERE name = 'runs'")
    counters = {"runs": 0 if found is None else int(found[0])}
    counted = {shape.table: shape.key[0] for shape in _shapes(cur).values() if shape.key in _COUNTED}
    for table, column in {**counted, "turns": "turn"}.items():
        ((last,),) = rows(cur, f"SELECT coalesce(max({column}), 0) FROM {table}")
        counters[table] = last
    ((counters["feed"],),) = rows(cur, _LAST_POSITION)
    return counters
