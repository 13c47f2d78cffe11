"""Which run goes to whom on PostgreSQL: lanes, priorities, fair shares between tenants, versions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.cli.main import run as command
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.fleet.workers import Crew, until

pytestmark = pytest.mark.anyio


async def done(service: RunService, flow: str = "jobs") -> int:
    where = RunFilter(status=(RunStatus.completed,), flow=flow)
    return len(await service.store.list_runs(where, after=None, limit=1000))


def acted(crew: Crew) -> list[str]:
    return [job for job, _ in crew.ledger("act")]


@pytest.mark.covers("FLEET-WORK-02")
async def test_worker_serves_its_lanes_only(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            program = crew.flow("jobs").program()
            fast, slow = await asyncio.gather(
                crew.start("--lane", "fast"), crew.start("--lane", "slow", "--lane", "bulk")
            )
            for lane in ("fast", "slow", "bulk", "nobody") * 4:
                await service.create(program, {"job": lane}, lane=lane)
            await until(lambda: len(acted(crew)) == 12)
            await asyncio.sleep(0.3)
    served = set(crew.ledger("act"))
    assert served == {("fast", fast.pid), ("slow", slow.pid), ("bulk", slow.pid)}


@pytest.mark.covers("FLEET-WORK-02")
async def test_higher_priority_goes_first_a_caller_who_waits_longer(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            program = crew.flow("jobs").program()
            for priority in (0, -5, 9, 0, 9):
                await service.create(program, {"job": str(priority)}, priority=priority)
            await crew.start("--concurrency", "1")
            await until(lambda: len(acted(crew)) == 5)
    assert acted(crew) == ["9", "9", "0", "0", "-5"]


@pytest.mark.covers("FLEET-WORK-02")
async def test_tenant_with_hundreds_of_runs_does_not_starve_another(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address) as hf:
            service = await hf.service()
            program = crew.flow("jobs").program()
            for _ in range(200):
                await service.create(program, {"job": "big"}, tenant="big")
            for _ in range(8):
                await service.create(program, {"job": "small"}, tenant="small")
            await asyncio.gather(*(crew.start("--concurrency", "2") for _ in range(2)))
            await until(lambda: acted(crew).count("small") == 8)
            order = acted(crew)
    # Turn by turn: about as many of the big one's as of the small one's, not two hundred.
    assert order.count("big") < 40


@pytest.mark.covers("FLEET-WORK-05")
async def test_worker_takes_runs_of_the_versions_that_it_carries(
    tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Crew(tmp_path, address) as crew:
        first = crew.flow("jobs")
        async with Holdfast(address) as hf:
            service = await hf.service()
            old = await crew.start()
            # The next version is rolled out beside the old one.
            text = (tmp_path / "jobs.py").read_text()
            (tmp_path / "jobs.py").write_text(text.replace('Flow("jobs"', 'Flow("jobs", version="2"'))
            second = crew.flow("jobs")
            new = await crew.start()
            assert first.program().version != second.program().version
            third = Flow("jobs", version="3", effect="pure")
            third.node(id="think", effect="read")(dict)
            for number in range(6):
                await service.create(first.program(), {"job": f"old{number}"})
                await service.create(second.program(), {"job": f"new{number}"})
            row, _ = await service.create(third.program(), {"job": "nobody's"})
            await until(lambda: len(acted(crew)) == 12)
            await asyncio.sleep(0.3)
            assert {(job[:3], pid) for job, pid in crew.ledger("act")} == {("old", old.pid), ("new", new.pid)}
            left = await service.get(row.id)
            assert (left.status, left.worker, left.term) == (RunStatus.pending, None, 0)
            # Nobody carries it: it waits, and whoever looks after the store hears of it.
            await asyncio.to_thread(command, ["doctor", "--store", address])
            output = capsys.readouterr().out
            assert "they cannot be resumed here" in output
            assert third.program().version[:11] in output
            verdicts = await second.check_runs(on=hf)
            assert [verdict.run for verdict in verdicts] == [row.id]
