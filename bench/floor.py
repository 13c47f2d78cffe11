"""The floors: one raw commit, and a sketch of the least that a durable runtime must do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw
import msgspec

Update = dict[str, Any]
Work = Callable[[Update], Awaitable[Update]]

TIMEOUT = 60.0
_SCHEMA = """
CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT UNIQUE, owner TEXT, head INTEGER);
CREATE TABLE log (key INTEGER PRIMARY KEY, body BLOB);
"""


def open_wal(path: Path) -> apsw.Connection:
    conn = apsw.Connection(str(path))
    conn.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    return conn


class RawCommit:
    """One row of 1,000 bytes in one durable transaction, under the key of a log of runs: run and number."""

    def __init__(self, place: Path) -> None:
        self._conn = open_wal(place / "raw.db")
        self._conn.execute("CREATE TABLE t (run TEXT, seq INTEGER, body BLOB, PRIMARY KEY (run, seq))")
        self._body = os.urandom(1000)
        self._seq = count()

    def measure(self, times: int = 50) -> float:
        """Seconds for one."""
        execute, body = self._conn.execute, self._body
        began = perf_counter()
        for _ in range(times):
            execute("BEGIN IMMEDIATE")
            execute("INSERT INTO t (seq, run, body) VALUES (?, 'r', ?)", (next(self._seq), body))
            execute("COMMIT")
        return (perf_counter() - began) / times

    async def __call__(self) -> float:
        return self.measure()

    def close(self) -> None:
        self._conn.close()


class RawWrite:
    """What the disk alone needs: 4 KB in place in a file that has its size already, and fdatasync."""

    PAGES = 256

    def __init__(self, place: Path) -> None:
        self._page = os.urandom(4096)
        self._file = os.open(place / "raw.bin", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(self._file, self._page * self.PAGES)
        os.fsync(self._file)
        self._next = count()

    async def __call__(self, times: int = 50) -> float:
        """Seconds for one."""
        began = perf_counter()
        for _ in range(times):
            os.pwrite(self._file, self._page, next(self._next) % self.PAGES * 4096)
            os.fdatasync(self._file)
        return (perf_counter() - began) / times

    def close(self) -> None:
        os.close(self._file)


class Sketch:
    """Runs of nodes that follow each other; appended lists are stored as what was added."""

    def __init__(self, place: Path) -> None:
        self._conn = open_wal(place / "sketch.db")
        self._conn.execute(_SCHEMA)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder().decode
        self._queue: list[tuple[tuple[int, int, bytes], asyncio.Future[None]]] = []

    def close(self) -> None:
        self._conn.close()

    def create(self, name: str) -> int:
        self._conn.execute("INSERT INTO run (name, owner, head) VALUES (?, 'me', -1)", (name,))
        return self._conn.last_insert_rowid()

    def commit(self, rows: list[tuple[int, int, bytes]]) -> None:
        execute = self._conn.execute
        execute("BEGIN IMMEDIATE")
        for run, seq, body in rows:
            execute("UPDATE run SET head = ? WHERE id = ? AND owner = 'me' AND head = ?", (seq, run, seq - 1))
            if self._conn.changes() != 1:
                raise RuntimeError("fenced off")
            execute("INSERT INTO log VALUES (?, ?)", (run << 32 | seq, body))
        execute("COMMIT")

    def append(self, run: int, seq: int, what: Any) -> None:
        self.commit([(run, seq, self._encode(what))])

    async def append_together(self, run: int, seq: int, what: Any) -> None:
        """Rows of all runs that are ready in one turn of the event loop share a commit."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._queue:
            loop.call_soon(self._flush)
        self._queue.append(((run, seq, self._encode(what)), done))
        await done

    def _flush(self) -> None:
        queue, self._queue = self._queue, []
        self.commit([row for row, _ in queue])
        for _, done in queue:
            done.set_result(None)

    async def steps(self, run: int, state: Update, work: Work, count: int, first: int = 0) -> None:
        for seq in range(first, first + count):
            update = await called(work, state)
            merge(state, update)
            self.append(run, seq, update)

    async def steps_together(self, run: int, state: Update, work: Work, count: int) -> None:
        for seq in range(count):
            update = await called(work, state)
            merge(state, update)
            await self.append_together(run, seq, update)

    def load(self, name: str) -> tuple[int, int, Update]:
        found: Any = self._conn.execute("SELECT id, head FROM run WHERE name = ?", (name,)).fetchall()
        run, head = found[0]
        state: Update = {}
        where = (run << 32, run << 32 | head)
        for (body,) in self._conn.execute("SELECT body FROM log WHERE key BETWEEN ? AND ?", where):
            merge(state, self._decode(body))
        return run, head, state


async def called(work: Work, state: Update) -> Update:
    """A handler runs in a task of its own under a timeout, so that one that hangs can be stopped."""
    async with asyncio.timeout(TIMEOUT):
        update = await asyncio.create_task(work(state))  # pyright: ignore[reportArgumentType]
    if not isinstance(update, dict) or not all(isinstance(key, str) for key in update):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a node returns a mapping of names, not {update!r}")
    return update


def merge(state: Update, update: Update) -> None:
    for key, value in update.items():
        if isinstance(value, list):
            state.setdefault(key, []).extend(value)
        else:
            state[key] = value


async def count_up(state: Update) -> Update:
    return {"n": state["n"] + 1}


async def sketched_steps(sketch: Sketch, name: str, count: int = 100) -> float:
    """Seconds for a step of a run of trivial nodes, its creation included."""
    began = perf_counter()
    await sketch.steps(sketch.create(name), {"n": 0}, count_up, count)
    return (perf_counter() - began) / count


async def sketched_crowd(sketch: Sketch, name: str, runs: int, steps: int) -> float:
    """Seconds for many runs at once, each created by itself."""
    began = perf_counter()
    ids = [sketch.create(f"{name}-{number}") for number in range(runs)]
    await asyncio.gather(*(sketch.steps_together(run, {"n": 0}, count_up, steps) for run in ids))
    return perf_counter() - began


async def sketched_person(sketch: Sketch, name: str) -> float:
    """Seconds: created, one step, waits for a person; read back, answered, two steps more."""
    began = perf_counter()
    run = sketch.create(name)
    await sketch.steps(run, {"n": 0}, count_up, 1)
    sketch.append(run, 1, {"asked": True})
    run, head, state = sketch.load(name)
    sketch.append(run, head + 1, {"answer": "yes"})
    await sketch.steps(run, state, count_up, 2, head + 2)
    return perf_counter() - began
