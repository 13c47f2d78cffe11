"""Row F: a person in the loop."""

from __future__ import annotations

import asyncio
from itertools import count
from time import perf_counter

from bench.floor import Sketch, sketched_person
from bench.flows import person
from bench.lines import Line
from bench.measure import Plan, against, folder, line, ratios
from holdfast import Holdfast

TIMES = 20


def row_f(plan: Plan) -> list[Line]:
    return asyncio.run(_row_f(plan))


async def _row_f(plan: Plan) -> list[Line]:
    with folder() as place:
        sketch, name = Sketch(place), count()

        async def sketched() -> float:
            return sum([await sketched_person(sketch, str(next(name))) for _ in range(TIMES)]) / TIMES

        async with Holdfast(f"sqlite:{place}/h.db") as hf:

            async def ours() -> float:
                return sum([await answered(hf) for _ in range(TIMES)]) / TIMES

            found = await against(sketched, ours, plan.rounds)
        sketch.close()
    return [
        line("F", "floor: sketch, start to pause to end", found[1], "ms", scale=1e3),
        line("F", "person in the loop, start to pause to end", found[0], "ms", scale=1e3),
        line("F", "the same, x sketch", ratios(*found), "x sketch", target="F-person"),
    ]


FLOW = person()


async def answered(hf: Holdfast) -> float:
    """Seconds from start to end; the person answers at once."""
    began = perf_counter()
    paused = await FLOW.run({}, on=hf)
    service = await hf.service()
    await service.answer(paused.holds[0].id, "yes")
    (await FLOW.resume(paused.run_id, on=hf)).expect()
    return perf_counter() - began
