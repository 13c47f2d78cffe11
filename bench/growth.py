"""Rows B and E: what a long run costs, at its end and when it is resumed."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from statistics import mean, median
from time import perf_counter

from bench.flows import Grow, Looped, grow
from bench.lines import Line
from bench.measure import Plan, ends, folder, line, stored
from holdfast import Holdfast

KB = 1000  # what one message weighs
SHORT, LONG = 1_000, 10_000  # steps


def row_b(plan: Plan) -> list[Line]:
    short = asyncio.run(_row_b(plan, SHORT, "", "B-stored-short"))
    return short + asyncio.run(_row_b(plan, LONG, "B-last-step", "B-stored"))


async def _row_b(plan: Plan, steps: int, last_step: str, stored_for: str) -> list[Line]:
    medians: list[float] = []
    means: list[float] = []
    kept: list[float] = []
    step: list[float] = []
    empty = await _empty_store()
    for _ in range(plan.some if steps <= 1_000 else plan.few):
        looped = Looped("grow", Grow, grow)
        with folder() as place:
            async with Holdfast(f"sqlite:{place}/h.db") as hf:
                (await looped.flow.run({"limit": steps}, on=hf)).expect()
            kept.append((stored(place) - empty) / (steps * KB))
        first, last = ends(looped.times)
        medians.append(median(last) / median(first))
        means.append(mean(last) / mean(first))
        step.append((looped.times[-1] - looped.times[0]) / steps)
    return [
        line("B", f"last step by first, {steps:,} steps, medians", medians, "x", target=last_step),
        # Medians do not see what happens every few hundred steps (snapshots, checkpoints); means do.
        line("B", f"last step by first, {steps:,} steps, means", means, "x"),
        line("B", f"a step, {steps:,} steps, mean", step, "us", scale=1e6),
        line("B", f"stored for each further KB, {steps:,} steps", kept, "KB", target=stored_for),
        line("B", "an empty store beside it", [empty], "KB", scale=1 / KB),
    ]


async def _empty_store() -> int:
    """Bytes: the schema is paid once, and not by each KB."""
    with folder() as place:
        async with Holdfast(f"sqlite:{place}/h.db") as hf:
            await hf.service()
        return stored(place)


def row_e(plan: Plan) -> list[Line]:
    lines = asyncio.run(_row_e(plan, 1_000, "E-1000"))
    return lines + asyncio.run(_row_e(plan, 10_000, "E-10000"))


async def _row_e(plan: Plan, steps: int, target: str) -> list[Line]:
    """Each round resumes a run of its own: a run can be finished only once."""
    rounds = plan.some if steps <= 1_000 else plan.few
    opened: list[float] = []
    resumed: list[float] = []
    for _ in range(rounds):
        with folder() as place:
            run = await interrupted(place, steps)
            began = perf_counter()
            looped = Looped("grow", Grow, touch_counter)
            async with Holdfast(f"sqlite:{place}/h.db") as hf:
                await hf.service()
                ready = perf_counter()
                result = await looped.flow.resume(run, on=hf)
                resumed.append(perf_counter() - ready)
                length = len(result.expect().state.messages)
            opened.append(ready - began)
            if length != steps:
                raise AssertionError(f"{length} messages came back instead of {steps}")
            if len(looped.times) != 1:
                raise AssertionError(f"{len(looped.times)} steps were done instead of one")
    return [
        line("E", f"resume after {steps:,} steps, one more, end", resumed, "ms", scale=1e3, target=target),
        line("E", "opening the store before that", opened, "ms", scale=1e3),
    ]


async def interrupted(place: Path, steps: int) -> str:
    """A run that was stopped in the middle of step `steps` + 1."""
    reached = asyncio.Event()

    async def until_there(state: Grow) -> dict[str, object]:
        if state.n == steps:
            reached.set()
            await asyncio.Event().wait()
        return await grow(state)

    looped = Looped("grow", Grow, until_there)
    run = "00000000-0000-4000-8000-000000000001"
    async with Holdfast(f"sqlite:{place}/h.db") as hf:
        running = asyncio.ensure_future(looped.flow.run({"limit": steps + 1}, on=hf, run_id=run))
        waiting = asyncio.ensure_future(reached.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            (await running).expect()
    return run


async def touch_counter(state: Grow) -> dict[str, object]:
    return {"n": state.n + 1}
