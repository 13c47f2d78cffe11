"""Row G: what the size of a graph costs."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from statistics import median
from time import perf_counter

from bench.flows import Count, Looped, count_up, siblings
from bench.lines import Line
from bench.measure import Measure, Plan, interleaved, line, ratios
from holdfast import Flow, Holdfast

STEPS = 200


def row_g(plan: Plan) -> list[Line]:
    return asyncio.run(_row_g(plan))


async def _row_g(plan: Plan) -> list[Line]:
    small, large = (Looped("sized", Count, count_up, after=nodes - 1) for nodes in (10, 10_000))
    began = perf_counter()
    large.flow.compile()
    compiling = [perf_counter() - began]
    few, many = siblings(100), siblings(1_000)
    async with Holdfast("memory:") as hf:
        steps = await interleaved(plan.few, small=looping(small, hf), large=looping(large, hf))
        fans = await interleaved(plan.few, few=whole(few, hf), many=whole(many, hf))
    return [
        line(
            "G",
            "a step among 10,000 nodes by one among 10",
            ratios(steps["large"], steps["small"]),
            "x",
            target="G-size",
        ),
        line("G", "1,000 ready siblings by 100", ratios(fans["many"], fans["few"]), "x", target="G-siblings"),
        line("G", "1,000 ready siblings, each", fans["many"], "us", scale=1e3),
        line("G", "compiling a graph of 10,000 nodes", compiling, "s"),
    ]


def looping(looped: Looped, hf: Holdfast) -> Measure:
    """Seconds for a step inside the loop; creating and ending the run are left out."""

    async def measure() -> float:
        looped.times.clear()
        (await looped.flow.run({"limit": STEPS}, on=hf)).expect()
        times = looped.times
        return median([after - before for before, after in pairwise(times)])

    return measure


def whole(flow: Flow, hf: Holdfast) -> Measure:
    async def measure() -> float:
        flow.compile()
        began = perf_counter()
        (await flow.run({}, on=hf)).expect()
        return perf_counter() - began

    return measure
