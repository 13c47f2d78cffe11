"""Row T: what it takes to read a pipeline of many stages and to check it, and what a stage of one costs."""

from __future__ import annotations

import asyncio
import resource
import shutil
import subprocess
from itertools import count
from pathlib import Path
from time import perf_counter, process_time

from bench.flows import line_of
from bench.lines import Line
from bench.measure import Measure, Plan, aimed, folder, interleaved, line, ratios
from bench.pipeline_growth import growth_lines
from bench.steps import STEPS, timed_line
from bench.worktrees import worktree_lines
from holdfast import Holdfast, Outcome
from holdfast.attractor.runner import Runner
from holdfast.frontends.dot.diagnostics import DiagnosticSeverity
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.validate import validate
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Graph
from holdfast.model.program import NodeHandler, Program
from holdfast.model.state_schema import StateSchema
from holdfast.types.status import RunStatus

MANY, FEW = 10_000, 1_000
_BY_NOP = "10,000 stages read and checked, by Graphviz's nop"


def row_t(plan: Plan) -> list[Line]:
    with folder() as place:
        rows = (_row_t, _steps, growth_lines, worktree_lines)
        return [each for row in rows for each in asyncio.run(row(plan, place))]


async def _steps(plan: Plan, place: Path) -> list[Line]:
    """A stage as the engine has it, beside a node of row A; then one that is simulated, with its files."""
    async with Holdfast("memory:") as hf:
        found = await interleaved(
            plan.some,
            walk=walking(program_of_stages(STEPS), hf),
            flow=timed_line(line_of(STEPS), hf),
            simulated=simulating(line_of_stages(STEPS, 'prompt="Do it"'), hf, place),
        )
    return [
        line("T", "a stage, memory", found["walk"], "us", scale=1e6, target="T-step"),
        line("T", "a stage, by a node of row A", ratios(found["walk"], found["flow"]), "x"),
        line("T", "a simulated stage with its files, memory", found["simulated"], "us", scale=1e6),
    ]


def walking(program: Program, hf: Holdfast) -> Measure:
    async def measure() -> float:
        service = await hf.service()
        hf.register(program)
        began = perf_counter()
        started = await service.start(program, {})
        assert isinstance(started, tuple)
        status, _ = await service.runtime.drive(*started)
        took = (perf_counter() - began) / STEPS
        assert status is RunStatus.completed, status
        return took

    return measure


def simulating(text: str, hf: Holdfast, place: Path) -> Measure:
    runner, number = Runner(hf), count()

    async def measure() -> float:
        began = perf_counter()
        found = await runner.run(text, logs_root=place / f"logs-{next(number)}")
        assert found.succeeded, found.outcome
        return (perf_counter() - began) / STEPS

    return measure


def program_of_stages(stages: int) -> Program:
    """A line of stages that do nothing, as those of row A: what is left is the engine."""
    spec = lower(parse(line_of_stages(stages, "shape=diamond")).pipeline)

    async def nothing() -> Outcome:
        return Outcome()

    handlers = {node.id: NodeHandler(fn=nothing, is_async=True, takes=(), waits=False) for node in spec.nodes}
    return Program(
        Graph(spec),
        version=graph_fingerprint(spec),
        code=dict.fromkeys(handlers, "bench"),
        handlers=handlers,
        routers={},
        schema=StateSchema(),
        children={},
    )


def line_of_stages(stages: int, attributes: str) -> str:
    names = " -> ".join(f"s{number}" for number in range(stages))
    return f"digraph Line {{ start; exit; node [{attributes}]; start -> {names} -> exit }}"


async def _row_t(plan: Plan, place: Path) -> list[Line]:
    many, few = pipeline_of(MANY), pipeline_of(FEW)
    file = place / "many.dot"
    file.write_text(many)
    measures = {"many": reading(many), "few": reading(few), "parse": parsing(many)}
    if shutil.which("nop"):
        measures["nop"] = graphviz(file)
    found = await interleaved(plan.some, **measures)
    return [
        _by_nop(found),
        line("T", "10,000 stages by 1,000, CPU", ratios(found["many"], found["few"]), "x", target="T-size"),
        line("T", "10,000 stages read and checked, CPU", found["many"], "ms", scale=1e3),
        line("T", "of that, reading, CPU", found["parse"], "ms", scale=1e3),
    ]


def _by_nop(found: dict[str, list[float]]) -> Line:
    if "nop" not in found:
        return aimed("T", _BY_NOP, None, "x", "T-nop", note="Graphviz is not installed")
    return line("T", _BY_NOP, ratios(found["many"], found["nop"]), "x", target="T-nop")


def reading(source: str) -> Measure:
    async def measure() -> float:
        began = process_time()
        result = validate(parse(source).pipeline)
        took = process_time() - began
        assert not any(one.severity is DiagnosticSeverity.error for one in result), result[:3]
        return took

    return measure


def parsing(source: str) -> Measure:
    async def measure() -> float:
        began = process_time()
        parse(source)
        return process_time() - began

    return measure


def graphviz(file: Path) -> Measure:
    async def measure() -> float:
        return nop_of(file)

    return measure


def nop_of(file: Path) -> float:
    """CPU seconds of the whole process: that of others on the machine is no part of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["nop", str(file)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pipeline_of(stages: int) -> str:
    """A long line of stages, each tenth a choice that goes on or one back. Graphviz reads it too."""
    lines = [
        "digraph Many {",
        '    graph [goal="Do a lot", rankdir=LR]',
        '    node [shape=box, timeout="900s"]',
        "    start [shape=Mdiamond]",
        "    exit [shape=Msquare]",
    ]
    for number in range(stages):
        lines += _stage(number, "exit" if number == stages - 1 else f"s{number + 1}")
    return "\n".join([*lines, "    start -> s0", "}", ""])


def _stage(number: int, following: str) -> list[str]:
    name = f"s{number}"
    if number % 10 == 9:
        return [
            f'    {name} [shape=diamond, label="Is part {number} good?"]',
            f'    {name} -> {following} [label="Yes", condition="outcome=success"]',
            f'    {name} -> s{number - 1} [label="No", condition="outcome!=success"]',
        ]
    return [
        f'    {name} [label="Part {number}", prompt="Do part {number} of $goal", max_retries=2, class="a,b"]',
        f"    {name} -> {following} [weight={number % 5}]",
    ]
