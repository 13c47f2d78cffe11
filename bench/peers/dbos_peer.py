"""DBOS Transact on SQLite and PostgreSQL: outputs of steps are replayed in a recovery."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sqlite3.sqlite_version_info < (3, 42):
    # DBOS needs a newer SQLite than some Pythons carry; the raw commit is then measured with the same one.
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from dbos import DBOS, SetWorkflowID
from kit import (
    DATABASE,
    EACH,
    GROWTH,
    LONG,
    PERSON,
    RESUME,
    RUNS,
    STEP,
    STEPS,
    STORED,
    ends,
    folder,
    heavy,
    main,
    measure,
    message,
    now,
    stored,
)

logging.disable(logging.WARNING)
MESSAGES = [message(number) for number in range(LONG + 100)]
WEIGHT = heavy()
TIMES: list[float] = []


@DBOS.step()
def trivial(i: int) -> dict[str, int]:
    return {"x": i}


@DBOS.workflow()
def linear(count: int) -> None:
    for i in range(count):
        trivial(i)


@DBOS.step()
def produce(i: int) -> dict[str, Any]:
    TIMES.append(now())
    return MESSAGES[i]


@DBOS.step()
def produce_state(i: int) -> list[dict[str, Any]]:
    """Hands back the whole state, as a node of a graph would."""
    TIMES.append(now())
    return MESSAGES[: i + 1]


@DBOS.workflow()
def grow(count: int) -> int:
    state: list[dict[str, Any]] = []
    for i in range(count):
        state = produce_state(i)
    return len(state)


@DBOS.step()
def weigh(weight: str, n: int) -> int:
    return n + 1


@DBOS.workflow()
def carry(count: int) -> int:
    n = 0
    for _ in range(count):
        n = weigh(WEIGHT, n)
    return n


@DBOS.workflow()
def long_run(count: int) -> float:
    """Dies hard after `count` steps the first time; replays them and goes on the second."""
    for i in range(count):
        produce(i)
    if os.environ.get("BENCH_DIE"):
        os._exit(9)
    produce(count)
    return now()


@DBOS.workflow()
def person() -> int:
    trivial(0)
    said = DBOS.recv("approve", timeout_seconds=60)
    trivial(said)
    return said + 1


@DBOS.step()
async def trivial_async(i: int) -> dict[str, int]:
    return {"x": i}


@DBOS.workflow()
async def linear_async(count: int) -> None:
    for i in range(count):
        await trivial_async(i)


@contextlib.contextmanager
def launched(place: Path | str, executor: str = "local", **more: Any) -> Iterator[None]:
    """`place`: a folder for a file of SQLite, or the address of a database."""
    DBOS(
        config={
            "name": "peer",
            "system_database_url": place if isinstance(place, str) else f"sqlite:///{place / 'dbos.db'}",
            "log_level": "CRITICAL",
            "application_version": "1",
            "executor_id": executor,
            **more,
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


def row_a() -> None:
    with folder() as place, launched(place):

        def once() -> float:
            began = now()
            linear(STEPS)
            return (now() - began) / STEPS

        measure("A", "DBOS sqlite", once, STEP)


def row_b() -> None:
    def once() -> tuple[float, float]:
        with folder() as place:
            with launched(place):
                TIMES.clear()
                grow(LONG)
            return ends(TIMES), stored(place)

    measure("B", "DBOS sqlite, steps return the state", once, GROWTH, STORED, rounds=2, warm=0)


def row_c() -> None:
    def once() -> tuple[float, float]:
        with folder() as place:
            with launched(place):
                began = now()
                carry(STEPS)
                took = (now() - began) / STEPS
            return took, stored(place)

    measure("C", "DBOS sqlite, value not stored", once, STEP, STORED, rounds=3, warm=0)


def row_d() -> None:
    """Many workflows at once, on its pool of 20 connections."""
    with launched(DATABASE, sys_db_pool_size=20):

        async def once() -> float:
            began = now()
            handles = [await DBOS.start_workflow_async(linear_async, EACH) for _ in range(RUNS)]
            await asyncio.gather(*(handle.get_result(polling_interval_sec=0.05) for handle in handles))
            return (now() - began) / (RUNS * EACH)

        measure("D", "DBOS postgres", once, STEP, rounds=2, warm=0)


def row_e() -> None:
    def once() -> float:
        with folder() as place:
            name = uuid.uuid4().hex
            child = [sys.executable, __file__, "die", str(place), name]
            subprocess.run(child, env={**os.environ, "BENCH_DIE": "1"}, check=False, timeout=300)
            # Another executor, so that launching does not begin the recovery by itself.
            with launched(place, "second"):
                began = now()
                found = [h for h in DBOS._recover_pending_workflows(["local"]) if h.workflow_id == name]
                return found[0].get_result() - began

    measure("E", "DBOS sqlite", once, RESUME, rounds=2, warm=0)


def row_f() -> None:
    """From the answer to the end: start and pause are not counted, and it looks for answers a hundred times
    a second (its default is once), which is in its favour."""
    with folder() as place, launched(place, notification_listener_polling_interval_sec=0.01):

        def once() -> float:
            took = 0.0
            for _ in range(3):
                handle = DBOS.start_workflow(person)
                time.sleep(0.05)  # lets it reach its wait
                ended: list[float] = []

                def wait(handle: Any = handle, ended: list[float] = ended) -> None:
                    handle.get_result(polling_interval_sec=0.005)
                    ended.append(now())

                waiting = threading.Thread(target=wait)
                waiting.start()
                time.sleep(0.01)
                began = now()
                DBOS.send(handle.workflow_id, 41, "approve")
                waiting.join()
                took += ended[0] - began
            return took / 3

        measure("F", "DBOS sqlite, answer to end only, poll 10 ms", once, PERSON)


if __name__ == "__main__":
    if sys.argv[1:2] == ["die"]:
        with launched(Path(sys.argv[2])), SetWorkflowID(sys.argv[3]):
            long_run(LONG)
    main({"A": row_a, "B": row_b, "C": row_c, "D": row_d, "E": row_e, "F": row_f})
