"""Row F: a person in the loop. Row V: what each answer would lead to."""

from __future__ import annotations

import asyncio
from itertools import count
from time import perf_counter
from typing import Any

from bench.floor import Sketch, sketched_person
from bench.flows import person
from bench.lines import Line
from bench.measure import Plan, against, folder, line, ratios
from holdfast import Flow, Holdfast

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


STEPS = 50
PREVIEWS = 40


def row_v(plan: Plan) -> list[Line]:
    return asyncio.run(_row_v(plan))


async def _row_v(plan: Plan) -> list[Line]:
    """A hold with three options after 50 recorded steps; ten pure steps follow each option."""
    flow = Flow[Any]("previewed", effect="pure")
    names = [f"step_{number}" for number in range(STEPS)]
    for name in names:
        flow.node(id=name)(_note)
    flow.hold("ask", prompt="Go?", options=["yes", "no", "later"])
    after = [f"after_{number}" for number in range(10)]
    for name in after:
        flow.node(id=name)(_note)
    flow.chain(*names, "ask", *after)
    with folder() as place:
        async with Holdfast(f"sqlite:{place}/h.db") as hf:
            paused = await flow.run({}, on=hf)
            service = await hf.service()
            hold = (await service.holds(paused.run_id))[0]
            await service.preview(hold)

            async def preview() -> float:
                began = perf_counter()
                await service.preview(hold)
                return perf_counter() - began

            took = [sorted([await preview() for _ in range(PREVIEWS)]) for _ in range(plan.rounds)]
    p95 = [each[int(PREVIEWS * 0.95) - 1] for each in took]
    median = [each[PREVIEWS // 2] for each in took]
    return [
        line("V", "preview of three options after 50 steps, p95", p95, "ms", scale=1e3, target="V-preview"),
        line("V", "the same, median", median, "ms", scale=1e3),
    ]


def _note(state: dict[str, Any]) -> dict[str, Any]:
    return {"n": state.get("n", 0) + 1}


FLOW = person()


async def answered(hf: Holdfast) -> float:
    """Seconds from start to end; the person answers at once."""
    began = perf_counter()
    paused = await FLOW.run({}, on=hf)
    service = await hf.service()
    await service.answer(paused.holds[0].id, "yes")
    (await FLOW.resume(paused.run_id, on=hf)).expect()
    return perf_counter() - began
