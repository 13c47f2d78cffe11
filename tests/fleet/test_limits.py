"""Limits with real worker processes: an outside ledger of beginnings and ends tells what went on at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast import Flow, Holdfast
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.fleet.workers import Crew, until

pytestmark = pytest.mark.anyio

PAY = """
import asyncio, os, time
from pathlib import Path
from holdfast import Flow, Limits

HERE = Path(__file__).parent

def note(word, s):
    with (HERE / "ledger").open("a") as file:
        file.write(f"{time.monotonic_ns()} {word} {s['job']} {s['who']} {os.getpid()}\\n")

pay = Flow("pay", effect="pure", limits=LIMITS)

@pay.node(effect="read")
async def work(s):
    note("begin", s)
    await asyncio.sleep(LASTS)
    note("end", s)
"""


class Line(NamedTuple):
    at: int
    word: str
    job: str
    who: str
    pid: int


def crew_with(folder: Path, address: str, limits: str, lasts: float) -> Crew:
    crew = Crew(folder, address)
    text = PAY.replace("LIMITS", limits).replace("LASTS", str(lasts))
    (folder / "jobs.py").write_text(text)
    return crew


def ledger(folder: Path) -> list[Line]:
    file = folder / "ledger"
    words = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return sorted(Line(int(at), word, job, who, int(pid)) for at, word, job, who, pid in words)


def most_at_once(lines: list[Line], kills: dict[int, int]) -> tuple[int, Counter[str]]:
    """(of all, of each key). What a killed process had begun ended with it, at the moment given."""
    inside: dict[tuple[str, int], str] = {}
    most, of_key = 0, Counter[str]()
    for line in lines:
        for pid, at in kills.items():
            if at <= line.at:
                inside = {key: who for key, who in inside.items() if key[1] != pid}
        if line.word == "begin":
            inside[line.job, line.pid] = line.who
        else:
            inside.pop((line.job, line.pid), None)
        most = max(most, len(inside))
        for who, count in Counter(inside.values()).items():
            of_key[who] = max(of_key[who], count)
    return most, of_key


async def submit(service: RunService, flow: Flow, count: int, keys: int) -> None:
    for number in range(count):
        await service.create(flow.program(), {"job": f"j{number}", "who": f"k{number % keys}"})


async def all_done(service: RunService, count: int) -> bool:
    done = RunFilter(status=(RunStatus.completed,))
    return len(await service.store.list_runs(done, after=None, limit=count + 1)) == count


@pytest.mark.covers("FLEET-WORK-03")
async def test_workers_together_keep_limits_of_a_flow_and_of_each_key(tmp_path: Path, address: str) -> None:
    limits = 'Limits(concurrency=3, key="{{who}}", per_key=1)'
    with crew_with(tmp_path, address, limits, 0.08) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            workers = await asyncio.gather(*(crew.start("--lease", "1s") for _ in range(3)))
            await submit(service, crew.flow("pay"), 36, keys=6)
            await until(lambda: len(ledger(tmp_path)) > 20)
            # One dies in the middle: what it had counts until its leases are taken away, and not after.
            workers[0].kill()
            kills = {workers[0].pid: time.monotonic_ns()}
            await until(lambda: all_done(service, 36), "all runs end", 30)
            (flow, _, _), *_ = await service.store.limits(prefix="flow:pay")
    lines = ledger(tmp_path)
    most, of_key = most_at_once(lines, kills)
    assert 2 <= most <= 3  # a busy machine may never have three at once
    assert set(of_key.values()) == {1}
    assert len({line.pid for line in lines}) >= 2
    assert (flow.concurrency, flow.fixed) == (3, False)


@pytest.mark.covers("FLEET-WORK-04")
async def test_workers_together_keep_a_rate(tmp_path: Path, address: str) -> None:
    with crew_with(tmp_path, address, 'Limits(rate="8/2s")', 0.01) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            await asyncio.gather(*(crew.start() for _ in range(3)))
            await submit(service, crew.flow("pay"), 24, keys=1)
            await until(lambda: all_done(service, 24), "all runs start", 30)
    begun = [line.at / 1e9 for line in ledger(tmp_path) if line.word == "begin"]
    assert len(begun) == 24
    # The ledger hears of a start a little after the store counted it: half a second is left for that.
    assert max(sum(at <= other < at + 1.5 for other in begun) for at in begun) == 8
    # Twice the line stood still for two seconds, and was not forgotten: the third eight follow at once.
    assert 4.0 - 0.5 < begun[-1] - begun[0] < 4.0 + 3.0


@pytest.mark.covers("FLEET-WORK-03")
async def test_limit_that_an_operator_sets_holds_at_once_for_every_worker(
    tmp_path: Path, address: str
) -> None:
    with crew_with(tmp_path, address, "None", 0.05) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            desk = await hf.limits()
            await asyncio.gather(*(crew.start() for _ in range(2)))
            await desk.set("flow:pay", concurrency=0)
            await submit(service, crew.flow("pay"), 10, keys=1)
            await asyncio.sleep(0.5)
            assert ledger(tmp_path) == []
            (limit,) = await desk.list()
            assert (limit.running, limit.waiting) == (0, 10)
            await desk.set("flow:pay", concurrency=2)
            await until(lambda: all_done(service, 10), "all runs end")
    assert most_at_once(ledger(tmp_path), {})[0] == 2


@pytest.mark.covers("FLEET-WORK-03")
async def test_program_that_runs_a_flow_itself_waits_in_line_behind_workers(
    tmp_path: Path, address: str
) -> None:
    with crew_with(tmp_path, address, "Limits(concurrency=1)", 0.3) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            await crew.start("--concurrency", "1")
            flow = crew.flow("pay")
            await submit(service, flow, 2, keys=1)
            await until(lambda: len(ledger(tmp_path)) > 0)
            done = await asyncio.gather(*(flow.run({"job": f"own{n}", "who": "me"}, on=hf) for n in "ab"))
            assert {result.status for result in done} == {RunStatus.completed}
            await until(lambda: all_done(service, 4))
    assert most_at_once(ledger(tmp_path), {})[0] == 1
