"""Row T, growth: long walks, wide fan-outs, files of a stage, claims beside runs that nobody can serve, long
conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench.lines import Line
from bench.measure import Measure, Plan, interleaved, line, ratios
from holdfast import Flow, Holdfast, Scripted, tool, tool_call
from holdfast.attractor import directory_sync, run_files
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.prepare import input_of, prepare_pipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.runs.worker.served_versions import ServedVersions
from holdfast.store.rows import ClaimRequest

CLAIMS = 20
_TTL = 60_000_000


async def growth_lines(plan: Plan, place: Path) -> list[Line]:
    rows = (_walks, _branches, _claims, _turns)
    return [each for row in rows for each in await row(plan, place)]


# ---------------------------------------------------------------------- stages


async def _walks(plan: Plan, place: Path) -> list[Line]:
    few, many = (100, 1_000) if plan.quick else (1_000, 10_000)
    async with Holdfast("memory:") as hf:
        found = await interleaved(plan.few, few=_walk(few, hf, place), many=_walk(many, hf, place))
        files, none = _walk(100, hf, place), _without_files(100, hf, place)
        beside = await interleaved(plan.some, files=files, none=none)
    return [
        line("T", f"{many:,} stages by {few:,}, with their files", ratios(found["many"], found["few"]), "x",
             target="T-long"),
        line("T", "a stage with its files, by one without", ratios(beside["files"], beside["none"]), "x",
             target="T-files"),
    ]  # fmt: skip


_number = count()


def _walk(stages: int, hf: Holdfast, place: Path) -> Measure:
    names = " -> ".join(f"s{number}" for number in range(stages))
    text = f'digraph Line {{ start; exit; node [prompt="Do it"]; start -> {names} -> exit }}'
    runner = Runner(hf)

    async def measure() -> float:
        began = process_time()
        found = await runner.run(text, logs_root=place / f"walk-{next(_number)}")
        assert found.succeeded, found.outcome
        return process_time() - began

    return measure


def _without_files(stages: int, hf: Holdfast, place: Path) -> Measure:
    measure = _walk(stages, hf, place)

    async def refused() -> float:
        with _no_files():
            return await measure()

    return refused


@contextmanager
def _no_files() -> Iterator[None]:
    """As for an encrypted store, but without its encryption."""
    before = run_files.is_refused
    modules = [module for module in (run_files, directory_sync) if hasattr(module, "is_refused")]
    for module in modules:
        module.is_refused = lambda _: True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.is_refused = before  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- branches


async def _branches(plan: Plan, _place: Path) -> list[Line]:
    found = await interleaved(plan.some, few=_lowered(1_000), many=_lowered(2_000))
    by_few = ratios(found["many"], found["few"])
    return [line("T", "2,000 branches lowered, by 1,000, CPU", by_few, "x", target="T-branches")]


def _lowered(branches: int) -> Measure:
    ways = " ".join(f"fan -> b{number} -> join;" for number in range(branches))
    ends = "start; exit; fan [shape=component]; join [shape=tripleoctagon]; start -> fan; join -> exit;"
    pipeline = parse(f"digraph Wide {{ {ends} {ways} }}").pipeline

    async def measure() -> float:
        began = process_time()
        lower(pipeline)
        return process_time() - began

    return measure


# ---------------------------------------------------------------------- claims


class _Deploy:
    def execute(self, node: Any, context: Any, graph: Any, logs_root: Path) -> StageOutcome:
        return StageOutcome()


async def _claims(plan: Plan, place: Path) -> list[Line]:
    """Of a worker that lacks the handler of so many ready runs."""
    others = 1_000 if plan.quick else 10_000
    async with _store(place / "none.db", 0) as alone, _store(place / "others.db", others) as crowded:
        found = await interleaved(plan.few, alone=_claim(alone), crowded=_claim(crowded))
    by_alone = ratios(found["crowded"], found["alone"])
    what = f"a claim beside {others:,} runs that cannot be served, SQLite"
    return [line("T", what, by_alone, "x one alone", target="T-claim")]


@asynccontextmanager
async def _store(file: Path, others: int) -> AsyncIterator[Holdfast]:
    setup = PipelineSetup(registry=HandlerRegistry({"deploy": _Deploy()}), simulate=True)
    async with Holdfast(f"sqlite:{file}") as hf:
        service = await hf.service()
        needing = prepare_pipeline("digraph D { start; exit; a [type=deploy]; start -> a -> exit }", setup)
        for _ in range(others):
            await service.create(needing.program, input_of(needing.pipeline))
        yield hf


def _claim(hf: Holdfast) -> Measure:
    async def measure() -> float:
        service = await hf.service()
        setup = PipelineSetup(simulate=True)
        ready = prepare_pipeline("digraph S { start; exit; a [prompt=x]; start -> a -> exit }", setup)
        for _ in range(CLAIMS):
            await service.create(ready.program, input_of(ready.pipeline))
        served = ServedVersions(service.runtime)
        await served.names()  # reads what is stored, once
        took = 0.0
        for _ in range(CLAIMS):
            began = perf_counter()
            want = ClaimRequest(worker="bench", ttl=_TTL, versions=await served.names())
            claimed = await service.store.claim(want)
            took += perf_counter() - began
            assert claimed[0].run.flow == "S"
        return took / CLAIMS

    return measure


# ---------------------------------------------------------------------- conversations


async def _turns(plan: Plan, place: Path) -> list[Line]:
    """CPU of a turn that calls one tool; the model answers from a list."""
    async with Holdfast(f"sqlite:{place}/turns.db") as hf:
        found = [await _conversation(hf) for _ in range(plan.few)]
    by_early = ratios([late for late, _ in found], [early for _, early in found])
    return [line("T", "turn 200 of an agent, by turn 20, CPU", by_early, "x", target="T-turns")]


async def _conversation(hf: Holdfast) -> tuple[float, float]:
    began: list[float] = []

    @tool(name="look", effect="read")
    async def look() -> str:
        began.append(process_time())
        return "x" * 500

    flow = Flow[Any]("turns")
    replies = [tool_call("look")] * 206
    flow.agent("work", model=Scripted(*replies, "Done."), tools=[look], prompt="Look.", max_turns=300)
    (await flow.run({}, on=hf)).expect()

    def each(turn: int) -> float:
        """The mean of ten around it."""
        return (began[turn + 5] - began[turn - 5]) / 10

    return each(200), each(20)
