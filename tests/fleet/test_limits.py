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
from tests.fleet.conftest import schema_of
from tests.fleet.workers import Crew, until
from tests.services import postgres

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
            await until(lambda: all_done(service, 36), "all runs end")
            (flow, _, _), *_ = await service.store.limits(prefix="flow:pay")
    lines = ledger(tmp_path)
    most, of_key = most_at_once(lines, kills)
    assert 2 <= most <= 3  # a busy machine may never have three at once
    assert set(of_key.values()) == {1}
    assert len({line.pid for line in lines}) >= 2
    assert (flow.concurrency, flow.fixed) == (3, False)


COUNTED = """
CREATE TABLE {s}.counted (at bigint);
CREATE FUNCTION {s}.count_start() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO {s}.counted VALUES (NEW.at); RETURN NULL; END $$;
CREATE TRIGGER counted AFTER INSERT ON {s}.gate_starts FOR EACH ROW EXECUTE FUNCTION {s}.count_start();
"""
UNCOUNTED = "DROP TRIGGER counted ON {s}.gate_starts; DROP FUNCTION {s}.count_start; DROP TABLE {s}.counted"


@pytest.mark.covers("FLEET-WORK-04")
async def test_workers_together_keep_a_rate(tmp_path: Path, address: str) -> None:
    """By the times at which the store counts the starts: a worker on a busy machine begins a while later."""
    schema = schema_of(address)
    with crew_with(tmp_path, address, 'Limits(rate="8/1s")', 0.01) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            postgres.execute(COUNTED.format(s=schema))
            try:
                await asyncio.gather(*(crew.start() for _ in range(3)))
                await submit(service, crew.flow("pay"), 24, keys=1)
                await until(lambda: all_done(service, 24), "all runs start")
                starts = [at for (at,) in postgres.execute(f"SELECT at FROM {schema}.counted ORDER BY at")]
            finally:
                postgres.execute(UNCOUNTED.format(s=schema))
    assert len([line for line in ledger(tmp_path) if line.word == "begin"]) == len(starts) == 24
    # The ninth a second after the first, and so on. The line stood still twice, and was not forgotten.
    assert min(later - at for at, later in zip(starts, starts[8:], strict=False)) >= 1_000_000


@pytest.mark.covers("FLEET-WORK-03")
async def test_limit_that_an_operator_sets_holds_at_once_for_every_worker(
    tmp_path: Path, address: str
) -> None:
    with crew_with(tmp_path, address, "None", 0.05) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            harness = await hf.limits()
            await asyncio.gather(*(crew.start() for _ in range(2)))
            await harness.set("flow:pay", concurrency=0)
            await submit(service, crew.flow("pay"), 10, keys=1)
            await asyncio.sleep(0.5)
            assert ledger(tmp_path) == []
            (limit,) = await harness.list()
            assert (limit.running, limit.waiting) == (0, 10)
            await harness.set("flow:pay", concurrency=2)
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
