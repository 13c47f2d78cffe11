"""What every runtime's script shares: workloads' data, rounds, a raw commit as reference, and the report.

Standard library only: it runs in the peers' environment, where Holdfast is not installed, as well as in ours.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import inspect
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from time import perf_counter as now
from typing import Any

STEPS = 100
LONG = 1000
PEOPLE = 20
RUNS, EACH = 200, 10
# A database of this measurement's own, where the row needs one.
DATABASE = os.environ.get("HOLDFAST_BENCH_DATABASE", "")
ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "5"))

# One figure per thing that a row measures.
STEP, GROWTH, STORED, RESUME, PERSON = "us a step", "last/first", "MB stored", "ms to resume", "ms a person"


def message(number: int, size: int = 1000) -> dict[str, Any]:
    """About 1 KB that does not compress. No key is called `role` or `id`: some peers take such for chat."""
    body = base64.b64encode(random.Random(number).randbytes(size * 3 // 4)).decode()
    return {"kind": "tool", "seq": number, "content": body[: size - 40]}


def heavy() -> str:
    return base64.b64encode(random.Random(7).randbytes((1 << 20) * 3 // 4)).decode()[: 1 << 20]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-peers-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def stored(place: Path) -> int:
    """Bytes in a folder, once the logs of its databases are folded in."""
    for path in [*place.glob("*.db"), *place.glob("*.sqlite")]:
        with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(path)) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def raw_commit(times: int = 60) -> float:
    """Seconds for one transaction of one row of 1,000 bytes, durable over power loss."""
    with (
        folder() as place,
        contextlib.closing(sqlite3.connect(place / "raw.db", isolation_level=None)) as conn,
    ):
        conn.execute("PRAGMA journal_mode=WAL")
        conn.execute("PRAGMA synchronous=FULL")
        conn.execute("create table t(run text, seq int, v blob, primary key(run, seq))")
        took = []
        for seq in range(times + 5):
            began = now()
            conn.execute("begin immediate")
            conn.execute("insert into t values('r', ?, ?)", (seq, os.urandom(1000)))
            conn.execute("commit")
            took.append(now() - began)
    return statistics.median(took[5:])


def ends(times: list[float]) -> float:
    """How much longer the last tenth of the steps took than the first."""
    took = [after - before for before, after in pairwise(times)]
    tenth = max(5, len(took) // 10)
    return statistics.median(took[-tenth:]) / statistics.median(took[:tenth])


def measure(
    row: str,
    runtime: str,
    once: Callable[[], Any],
    *units: str,
    rounds: int = 0,
    warm: int = 1,
    finish: Callable[[], Any] | None = None,
) -> None:
    """`once` answers one figure a unit, in seconds or as it is, now or as a coroutine. All rounds share one
    event loop, so that a runtime may keep its store open as a program would; `finish` closes it."""
    found: list[tuple[float, ...]] = []
    commits: list[float] = []
    with asyncio.Runner() as runner:
        for number in range((rounds or ROUNDS) + warm):
            gc.collect()
            before = raw_commit(20)
            value = _now(runner, once())
            if number >= warm:
                found.append(value if isinstance(value, tuple) else (value,))
                commits.append((before * raw_commit(20)) ** 0.5)
        if finish is not None:
            _now(runner, finish())
    for index, unit in enumerate(units):
        print_figure(row, runtime, unit, [values[index] for values in found], commits)


def _now(runner: asyncio.Runner, value: Any) -> Any:
    return runner.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value


SCALE = {STEP: 1e6, STORED: 1 / (1 << 20), RESUME: 1e3, PERSON: 1e3}


def print_figure(row: str, runtime: str, unit: str, values: list[float], commits: list[float]) -> None:
    middle = statistics.median(values)
    figure = {
        "row": row,
        "runtime": runtime,
        "unit": unit,
        "value": middle * SCALE.get(unit, 1.0),
        "spread": (max(values) - min(values)) / 2 / middle if middle else 0.0,
        "rounds": len(values),
        "commit_us": statistics.median(commits) * 1e6,
    }
    print(json.dumps(figure), flush=True)


def main(rows: dict[str, Callable[[], None]]) -> None:
    """python X_peer.py A B: those rows that this runtime can do."""
    for name in sys.argv[1:] or rows:
        if name in rows:
            rows[name]()
