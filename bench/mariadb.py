"""Row M: row A on MariaDB, beside a raw commit there (row P has the same on PostgreSQL).

The server is the one that HOLDFAST_TEST_MARIADB names; else one that is started for the measurement, with the
settings that a server has by itself: every commit is flushed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from time import perf_counter
from typing import Any
from urllib.parse import unquote, urlsplit

from bench.flows import line_of
from bench.lines import Line
from bench.measure import Plan, interleaved, line, ratios
from bench.steps import EACH, RUNS, STEPS, crowd, timed_line
from holdfast import Holdfast
from tests.services.mariadb_server import MariadbServer, programs

COMMITS = 50
ABSENT = "HOLDFAST_TEST_MARIADB names no server, and mariadbd is not installed"


def row_m(plan: Plan) -> list[Line]:
    with _server() as found:
        if found is None:
            return [Line(row="M", name="MariaDB, not measured", value=None, unit="", note=ABSENT)]
        return asyncio.run(_row_m(plan, found))


@contextmanager
def _server() -> Iterator[str | None]:
    named = os.environ.get("HOLDFAST_TEST_MARIADB")
    if named or programs() is None:
        yield named or None
        return
    own = MariadbServer("--innodb-buffer-pool-size=256M", "--innodb-log-file-size=512M")
    own.start()
    try:
        yield own.address
    finally:
        own.remove()


async def _connect(address: str) -> Any:
    import asyncmy

    driver: Any = asyncmy
    parts = urlsplit(address)
    return await driver.connect(
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path.lstrip("/"),
        autocommit=True,
    )


async def _row_m(plan: Plan, address: str) -> list[Line]:
    name = f"holdfast_bench_{secrets.token_hex(6)}"
    inside = await _connect(address)
    cursor = inside.cursor()
    await cursor.execute(f"CREATE DATABASE {name}")
    try:
        await cursor.execute(f"USE {name}")
        return await _measured(plan, cursor, address.rpartition("/")[0] + f"/{name}")
    finally:
        await cursor.execute(f"DROP DATABASE {name}")
        await inside.ensure_closed()


async def _measured(plan: Plan, cursor: Any, address: str) -> list[Line]:
    body, number = os.urandom(1000), count()
    # In a database of its own: a store refuses one with other tables.
    apart = f"{address.rpartition('/')[2]}_raw"
    insert = f"INSERT INTO {apart}.t VALUES ('r', %s, %s)"

    async def raw() -> float:
        began = perf_counter()
        for _ in range(COMMITS):
            await cursor.execute(insert, (next(number), body))
        return (perf_counter() - began) / COMMITS

    await cursor.execute(f"CREATE DATABASE {apart}")
    await cursor.execute(
        f"CREATE TABLE {apart}.t (run varchar(40), seq bigint, body blob, PRIMARY KEY (run, seq))"
    )
    try:
        async with Holdfast(address) as hf:
            alone = await interleaved(
                plan.rounds,
                raw=raw,
                strict=timed_line(line_of(STEPS, "strict"), hf),
                barrier=timed_line(line_of(STEPS, "barrier"), hf),
            )
            many = await interleaved(plan.few, barrier=crowd(hf, "barrier"), strict=crowd(hf, "strict"))
    finally:
        await cursor.execute(f"DROP DATABASE {apart}")
    speeds = {kind: [RUNS * EACH / seconds for seconds in took] for kind, took in many.items()}
    by_raw = {kind: ratios(alone[kind], alone["raw"]) for kind in ("strict", "barrier")}
    said = f"MariaDB, {RUNS} runs of {EACH} steps at once"
    return [
        line("M", "floor: one raw commit", alone["raw"], "us", scale=1e6),
        line("M", "MariaDB strict, a step", by_raw["strict"], "x commit", target="M-strict"),
        line("M", "MariaDB barrier, a step", by_raw["barrier"], "x commit"),
        line("M", f"{said}, barrier", speeds["barrier"], "steps/s"),
        line("M", f"{said}, strict", speeds["strict"], "steps/s"),
    ]
