"""Rows A, C and D: what a step costs, alone, beside a heavy value, and in a crowd."""

from __future__ import annotations

import asyncio
from itertools import count
from time import perf_counter

from bench.floor import RawCommit, RawWrite, Sketch, sketched_crowd, sketched_steps
from bench.flows import Carry, Looped, count_up, line_of, message, ring_of
from bench.lines import Line
from bench.measure import Measure, Plan, against, folder, interleaved, line, ratios, stored
from holdfast import Flow, Holdfast

STEPS = 100
RUNS, EACH = 200, 10


def timed_line(flow: Flow, hf: Holdfast) -> Measure:
    """Seconds for a step of a line of nodes, creating the run included."""

    async def measure() -> float:
        began = perf_counter()
        (await flow.run({}, on=hf)).expect()
        return (perf_counter() - began) / STEPS

    return measure


def row_a(plan: Plan) -> list[Line]:
    return asyncio.run(_row_a(plan))


async def _row_a(plan: Plan) -> list[Line]:
    with folder() as place:
        raw, sketch, name = RawCommit(place), Sketch(place), count()
        disk = RawWrite(place)

        async def sketched() -> float:
            return await sketched_steps(sketch, str(next(name)))

        async with Holdfast("memory:") as memory, Holdfast(f"sqlite:{place}/h.db") as sqlite:
            disks = await against(raw, disk, plan.rounds)
            sketches = await against(raw, sketched, plan.rounds)
            memories = await interleaved(plan.rounds, memory=timed_line(line_of(STEPS), memory))
            stricts = await against(raw, timed_line(line_of(STEPS, "strict"), sqlite), plan.rounds)
            barriers = await against(raw, timed_line(line_of(STEPS, "barrier"), sqlite), plan.rounds)
        raw.close()
        disk.close()
        sketch.close()
    return [
        line("A", "floor of the disk: 4 KB in place, fdatasync", disks[0], "us", scale=1e6),
        line("A", "floor of the disk: 4 KB in place, fdatasync", ratios(*disks), "x commit"),
        line("A", "floor: one raw commit", stricts[1] + barriers[1], "us", scale=1e6),
        line("A", "floor: sketch, a step", ratios(*sketches), "x commit"),
        line("A", "memory, a step", memories["memory"], "us", scale=1e6, target="A-memory"),
        line("A", "SQLite strict FULL, a step", ratios(*stricts), "x commit", target="A-strict"),
        line("A", "SQLite strict FULL, a step", stricts[0], "us", scale=1e6),
        line("A", "SQLite barrier FULL, a step", ratios(*barriers), "x commit", target="A-barrier"),
        line("A", "SQLite barrier FULL, a step", barriers[0], "us", scale=1e6),
    ]


def row_c(plan: Plan) -> list[Line]:
    return [
        *asyncio.run(_row_c(plan, "barrier", "C-step-barrier", "C-stored-barrier")),
        *asyncio.run(_row_c(plan, "strict", "C-step-strict", "C-stored-strict")),
    ]


async def _row_c(plan: Plan, mode: str, step: str, kept: str) -> list[Line]:
    heavy, light = (Looped(f"carry-{mode}", Carry, count_up, mode).flow for _ in range(2))
    weight = message(7, 1 << 20)
    sizes: list[float] = []

    async def timed(flow: Flow, given: dict[str, object], sizes: list[float] | None = None) -> float:
        with folder() as place:
            async with Holdfast(f"sqlite:{place}/h.db") as hf:
                began = perf_counter()
                (await flow.run({"limit": STEPS, **given}, on=hf)).expect()
                took = (perf_counter() - began) / STEPS
            if sizes is not None:
                sizes.append(stored(place))
        return took

    found = await interleaved(
        plan.rounds,
        light=lambda: timed(light, {}),
        heavy=lambda: timed(heavy, {"weight": weight}, sizes),
    )
    by_light = ratios(found["heavy"], found["light"])
    return [
        line("C", f"a step beside 1 MB, {mode}", by_light, "x small", target=step),
        line("C", f"a step beside 1 MB, {mode}", found["heavy"], "us", scale=1e6),
        line(
            "C", f"stored for 1 MB and {STEPS} steps, {mode}", sizes, "MB", scale=1 / (1 << 20), target=kept
        ),
    ]


def row_d(plan: Plan) -> list[Line]:
    return asyncio.run(_row_d(plan))


async def _row_d(plan: Plan) -> list[Line]:
    with folder() as place:
        sketch, name = Sketch(place), count()
        async with Holdfast(f"sqlite:{place}/h.db") as hf:
            found = await interleaved(
                plan.few,
                sketch=lambda: sketched_crowd(sketch, str(next(name)), RUNS, EACH),
                barrier=crowd(hf, "barrier"),
                strict=crowd(hf, "strict"),
            )
        sketch.close()
    speeds = {kind: [RUNS * EACH / seconds for seconds in took] for kind, took in found.items()}
    return [
        line("D", "floor: sketch, commits shared", speeds["sketch"], "steps/s"),
        line(
            "D",
            f"{RUNS} runs of {EACH} steps at once, barrier",
            speeds["barrier"],
            "steps/s",
            target="D-sqlite",
        ),
        line("D", "the same, x sketch", ratios(speeds["barrier"], speeds["sketch"]), "x sketch"),
        line("D", f"{RUNS} runs of {EACH} steps at once, strict", speeds["strict"], "steps/s"),
    ]


def crowd(hf: Holdfast, mode: str) -> Measure:
    flow = ring_of(1, mode)

    async def measure() -> float:
        began = perf_counter()
        results = await asyncio.gather(*(flow.run({"limit": EACH}, on=hf) for _ in range(RUNS)))
        took = perf_counter() - began
        for result in results:
            result.expect()
        return took

    return measure
