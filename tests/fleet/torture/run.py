"""One torture from its beginning to its judgement."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path

import msgspec

from holdfast import Holdfast
from tests.fleet.torture import stacks
from tests.fleet.torture.chaos import Act, Chaos
from tests.fleet.torture.fleet import Fleet
from tests.fleet.torture.history import History, gather
from tests.fleet.torture.judge import Finding, judge


class Plan(msgspec.Struct, kw_only=True):
    seed: int
    runs: int
    seconds: float
    """of chaos"""
    settle: float = 60.0
    """at most so long after that until every run has begun, and then until every run has ended"""
    workers: int = 4
    sabotage: str = ""


class Outcome(msgspec.Struct, kw_only=True):
    plan: Plan
    history: History
    acts: list[Act]
    findings: list[Finding]
    settled: float
    """seconds from the last fault to the end of the last run"""
    took: float


async def torture(plan: Plan, folder: Path) -> Outcome:
    began = time.monotonic()
    fleet = Fleet(folder, plan.seed, workers=plan.workers, sabotage=plan.sabotage)
    try:
        await fleet.open()
        async with Holdfast(fleet.address) as hf:
            service = await hf.service()  # the schema is there before anybody needs it
            chaos = Chaos(fleet, plan.seed)
            await _begin(fleet, plan, folder)
            await chaos.rage(plan.seconds)
            settled = await _all_ended(fleet, folder, plan)
            await _end(fleet)
            history = await gather(
                service, folder, seed=plan.seed, errors=_errors(fleet), faults=dict(chaos.counts)
            )
    finally:
        await fleet.close()
    took = time.monotonic() - began
    return Outcome(
        plan=plan, history=history, acts=chaos.acts, findings=judge(history), settled=settled, took=took
    )


async def _begin(fleet: Fleet, plan: Plan, folder: Path) -> None:
    people = (folder, plan.runs, plan.seconds * 0.8, plan.seed)
    await asyncio.gather(
        *(fleet.start(name, "worker", name) for name in fleet.names),
        fleet.start("reader", "reader", folder),
        fleet.start("people", "people", *people),
    )


async def _all_ended(fleet: Fleet, folder: Path, plan: Plan) -> float:
    """Nobody does anything about it: no operator, no restart. What has not ended then is a finding."""
    began = waiting = time.monotonic()
    acks, created = folder / "acks.jsonl", False
    while time.monotonic() < waiting + plan.settle:
        if not created and b"all created" in acks.read_bytes():
            created, waiting = True, time.monotonic()
        if created and await fleet.open_runs() == 0:
            return time.monotonic() - began
        await asyncio.sleep(0.2)
    for member in fleet.members.values():
        fleet.signal(member, stacks.ASK)  # their logs say what they wait for
    return time.monotonic() - began


async def _end(fleet: Fleet) -> None:
    """People first, so that nothing is asked any more; the reader last, so that it sees everything."""
    for name in ("people", *fleet.names, "reader"):
        code = await fleet.end(fleet.members[name], signal.SIGTERM)
        if code != 0:
            log = fleet.members[name].log.read_text()[-3000:]
            raise RuntimeError(f"{name} ended with {code}: {log}")


_LOUD = re.compile(r"^(ERROR|CRITICAL) |^Traceback ")
_QUIET = (
    # As it should: the store was away for longer than a checkpoint is tried again. Another worker goes on.
    "stops: its checkpoint cannot be written",
)


def _errors(fleet: Fleet) -> list[str]:
    """Lines at ERROR and above, and what follows a traceback: its last line names the error."""
    found: list[str] = []
    for member in fleet.members.values():
        lines = member.log.read_text().splitlines() if member.log.exists() else []
        for number, line in enumerate(lines):
            said = f"{member.name}: {line} {_last_of(lines, number)}".strip()[:1500]
            if _LOUD.search(line) and not any(quiet in said for quiet in _QUIET):
                found.append(said)
    return found


def _last_of(lines: list[str], number: int) -> str:
    rest = lines[number + 1 : number + 80]
    for line in rest:
        if line and not line.startswith((" ", "Traceback")) and not re.match(r"(INFO|WARNING|ERROR) ", line):
            return line
        if re.match(r"(INFO|WARNING|ERROR) ", line):
            break
    return ""
