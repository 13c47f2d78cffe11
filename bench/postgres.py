"""Row P: rows A and D on PostgreSQL (see server.py for which one)."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from time import perf_counter
from typing import Any

from bench.flows import line_of
from bench.lines import Line
from bench.measure import Plan, interleaved, line, ratios
from bench.server import ABSENT, database, server
from bench.steps import EACH, RUNS, STEPS, crowd, timed_line
from holdfast import Holdfast

COMMITS = 50


def row_p(plan: Plan) -> list[Line]:
    with server() as found:
        if found is None:
            return [Line(row="P", name="PostgreSQL, not measured", value=None, unit="", note=ABSENT)]
        with database(found) as address:
            return asyncio.run(_row_p(plan, address))


async def _row_p(plan: Plan, address: str) -> list[Line]:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    inside = await driver.connect(address)
    await inside.execute("CREATE TABLE t (run text, seq bigint, body bytea, PRIMARY KEY (run, seq))")
    body, number = os.urandom(1000), count()

    async def raw() -> float:
        began = perf_counter()
        for _ in range(COMMITS):
            await inside.execute("INSERT INTO t VALUES ('r', $1, $2)", next(number), body)
        return (perf_counter() - began) / COMMITS

    async with Holdfast(address) as hf:
        alone = await interleaved(
            plan.rounds,
            raw=raw,
            strict=timed_line(line_of(STEPS, "strict"), hf),
            barrier=timed_line(line_of(STEPS, "barrier"), hf),
        )
        many = await interleaved(plan.few, barrier=crowd(hf, "barrier"), strict=crowd(hf, "strict"))
    await inside.close()
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
