"""Real workers that are paused, told to stop, and killed: runs go on elsewhere, and nothing happens twice."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from holdfast import Holdfast, RunSettings
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.fleet.workers import Crew, ended, go_on, settings, stop, until

pytestmark = pytest.mark.anyio


async def is_over(service: RunService, *runs: RunId) -> bool:
    return all([(await service.get(run)).status is RunStatus.completed for run in runs])


async def is_draining(service: RunService, pid: int) -> bool:
    found = await service.store.workers()
    return any(row.draining for row in found if row.pid == pid)


@pytest.mark.covers("FLEET-WORK-06", "D-7", "D-33")
@pytest.mark.parametrize("blocks", [False, True], ids=["waits", "blocks"])
async def test_paused_worker_stops_when_another_took_its_run(
    tmp_path: Path, address: str, blocks: bool
) -> None:
    """Paused past its lease in the middle of a step. When it goes on its handler is cancelled; where that
    cannot be, because it ends at that very moment, what it has to write is refused."""
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            first = await crew.start("--lease", "2s", "--name", "first")
            held = crew.hold_up(first)
            row, _ = await service.create(crew.flow("jobs").program(), {"job": "j", "blocks": blocks})
            await until(lambda: crew.ledger("think") == [("j", first.pid)], "the first began")
            stop(first)
            second = await crew.start("--lease", "2s", "--name", "second")
            await until(lambda: is_over(service, row.id), "the second finished it")
            before = await service.get(row.id)
            if blocks:
                held.unlink()
            go_on(first)
            await until(lambda: "lost the lease on run" in crew.said(first), "the first knows")
            held.unlink(missing_ok=True)
            after = await service.get(row.id)
            state = (await service.latest(row.id)).state
            more, _ = await service.create(crew.flow("jobs").program(), {"job": "k"})
            await until(lambda: is_over(service, more.id), "one of them does the next")
    assert (after.head, after.term, after.recoveries) == (before.head, before.term, 1)
    assert (state["thought_by"], state["acted_by"]) == (second.pid, second.pid)
    assert (("j", first.pid) in crew.ledger("stopped")) is not blocks
    assert (("j", first.pid) in crew.ledger("thought")) is blocks
    assert crew.ledger("act")[0] == ("j", second.pid)
    assert [job for job, _ in crew.ledger("act")] == ["j", "k"]
    assert first.poll() == -signal.SIGKILL  # by the test, at its end: it stayed alive and well


@pytest.mark.covers("FLEET-WORK-07")
async def test_worker_that_is_asked_to_stop_finishes_its_steps_and_gives_its_runs_back(
    tmp_path: Path, address: str
) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(lease_ttl=600)) as hf:
            service = await hf.service()
            # A lease that outlives the test: what goes on elsewhere was given back, and did not lapse.
            first = await crew.start("--lease", "600s", "--concurrency", "3")
            held = crew.hold_up(first)
            program = crew.flow("jobs").program()
            runs = [(await service.create(program, {"job": str(number)}))[0].id for number in range(4)]
            await until(lambda: len(crew.ledger("think")) == 3, "the first has three")
            second = await crew.start("--lease", "600s")
            await until(lambda: len(crew.ledger("act")) == 1, "the second has the fourth")
            first.terminate()
            await until(lambda: "Draining" in crew.said(first), "it says so")
            await until(lambda: is_draining(service, first.pid), "and to the others")
            held.unlink()
            assert await ended(first) == 0
            await until(lambda: is_over(service, *runs), "the second finished them")
            rows = [await service.get(run) for run in runs]
            left = [row.pid for row in await service.store.workers()]
    assert left == [second.pid]
    assert {row.recoveries for row in rows} == {0}
    # Each step was done once, by whoever had begun it.
    assert sorted(crew.ledger("thought")) == sorted(crew.ledger("think"))
    assert len(crew.ledger("think")) == 4
    assert {pid for _, pid in crew.ledger("act")} == {second.pid}


@pytest.mark.covers("FLEET-WORK-08")
async def test_run_of_a_killed_worker_is_finished_within_seconds(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            first = await crew.start("--lease", "2s")
            crew.hold_up(first)
            row, _ = await service.create(crew.flow("jobs").program(), {"job": "j"})
            await until(lambda: crew.ledger("think") == [("j", first.pid)], "the first began")
            second = await crew.start("--lease", "2s")
            first.kill()
            began = time.monotonic()
            await until(lambda: is_over(service, row.id), "the second finished it")
            took = time.monotonic() - began
            after = await service.get(row.id)
            deaths = await service.store.deaths(row.id)
    # The lease of two seconds, a third of it until somebody looks, the run itself; the rest is for a machine
    # that is busy with others.
    assert took < 60
    assert (after.recoveries, len(deaths)) == (1, 1)
    assert crew.ledger("act") == [("j", second.pid)]


@pytest.mark.covers("FLEET-WORK-09", "R-62")
async def test_run_is_kept_for_a_short_wait_and_parked_after_a_long_one(tmp_path: Path, address: str) -> None:
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            await asyncio.gather(
                crew.start("--lane", "hot", "--hot", "30s"), crew.start("--lane", "cold", "--hot", "1s")
            )
            program = crew.flow("asks").program()
            hot, cold = [(await service.create(program, {}, lane=lane))[0].id for lane in ("hot", "cold")]

            async def parked() -> bool:
                row = await service.get(cold)
                return row.status is RunStatus.pending_input and row.worker is None

            await until(parked, "the cold one is parked")
            kept, let_go = await service.get(hot), await service.get(cold)
            for run in (hot, cold):
                (hold,) = await service.holds(run)
                await service.answer(hold.id, "yes")
            await until(lambda: is_over(service, hot, cold), "both ended")
            after = [await service.get(run) for run in (hot, cold)]
            lines = [[event.type for event in await service.events(run)] for run in (hot, cold)]
            states = [(await service.latest(run)).state for run in (hot, cold)]
    assert (kept.status, kept.worker is None) == (RunStatus.pending_input, False)
    assert (let_go.status, let_go.worker) == (RunStatus.pending_input, None)
    assert [row.term for row in after] == [1, 2]
    # The one more says that it was taken up again.
    assert lines[1].count("run.resumed") == 1
    assert lines[0] == [kind for kind in lines[1] if kind != "run.resumed"]
    results = [
        {**state, "decision_result": {**state["decision_result"], "resolved_at": 0}} for state in states
    ]
    assert results[0] == results[1]
    assert results[0]["after"] == "yes"
