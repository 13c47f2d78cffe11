"""Row P: rows A and D on the PostgreSQL server that HOLDFAST_TEST_POSTGRES names. Without one: no lines."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from bench.flows import line_of
from bench.lines import Line
from bench.measure import Plan, interleaved, line, ratios
from bench.steps import EACH, RUNS, STEPS, crowd, timed_line
from holdfast import Holdfast

COMMITS = 50


def row_p(plan: Plan) -> list[Line]:
    server = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if not server:
        note = "HOLDFAST_TEST_POSTGRES names no server"
        return [Line(row="P", name="PostgreSQL, not measured", value=None, unit="", note=note)]
    return asyncio.run(_row_p(plan, server))


@asynccontextmanager
async def _database(server: str) -> AsyncGenerator[tuple[str, Any]]:
    """A new one, with a connection to it; dropped afterwards."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    name = f"holdfast_test_{secrets.token_hex(6)}"
    above = await driver.connect(server)
    await above.execute(f"CREATE DATABASE {name}")
    parts = urlsplit(server)
    address = urlunsplit((parts.scheme, parts.netloc, f"/{name}", parts.query, ""))
    inside = await driver.connect(address)
    try:
        yield address, inside
    finally:
        await inside.close()
        await above.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await above.close()


async def _row_p(plan: Plan, server: str) -> list[Line]:
    async with _database(server) as (address, inside):
        await inside.execute("CREATE TABLE t (run text, seq bigint, body bytea, PRIMARY KEY (run, seq))")
        body, number = os.urandom(1000), count()

        async def raw() -> float:
            began = perf_counter()
            for _ in range(COMMITS):
                await inside.execute("INSERT INTO t VALUES ('r', $1, $2)", next(number), body)
            return (perf_counter() - began) / COMMITS

        async with Holdfast(address) as house:
            alone = await interleaved(
                plan.rounds,
                raw=raw,
                strict=timed_line(line_of(STEPS, "strict"), house),
                barrier=timed_line(line_of(STEPS, "barrier"), house),
            )
            many = await interleaved(plan.few, barrier=crowd(house, "barrier"), strict=crowd(house, "strict"))
    speeds = {kind: [RUNS * EACH / seconds for seconds in took] for kind, took in many.items()}
    by_raw = {kind: ratios(alone[kind], alone["raw"]) for kind in ("strict", "barrier")}
    said = f"PostgreSQL, {RUNS} runs of {EACH} steps at once"
    return [
        line("P", "floor: one raw commit", alone["raw"], "us", scale=1e6),
        line("P", "PostgreSQL strict, a step", by_raw["strict"], "x commit", target="P-strict"),
        line("P", "PostgreSQL barrier, a step", by_raw["barrier"], "x commit", target="P-barrier"),
        line("P", f"{said}, barrier", speeds["barrier"], "steps/s", target="P-crowd"),
        line("P", f"{said}, strict", speeds["strict"], "steps/s"),
    ]
