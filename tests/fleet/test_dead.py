"""Runs that kill their workers: given up after a bound, with the evidence, and gone on with when mended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import RunEndedError
from holdfast.runs.service import RunService
from holdfast.store.rows import ClaimRequest, RunRow
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, RunStatus
from tests.deadlines import HANG
from tests.fleet.poison import BOUND, SETTINGS, smoothies
from tests.services import prefork

ROOT = Path(__file__).parents[2]
GOOD = 6

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-WORK-11")]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'runs.db'}"
    return request.getfixturevalue("address")


def start(address: str, ledger: Path) -> prefork.Child:
    return prefork.Child("tests.fleet.poison", [address, ledger], cwd=ROOT, env=os.environ)


@contextmanager
def fleet(address: str, ledger: Path, size: int) -> Iterator[list[int]]:
    """Workers that are replaced when they die, as a supervisor does it. Yields how many have died."""
    workers = [start(address, ledger) for _ in range(size)]
    died = [0]

    async def replace() -> None:
        while True:
            for place, worker in enumerate(workers):
                if worker.poll() is not None:
                    died[0] += 1
                    worker.communicate()
                    workers[place] = start(address, ledger)
            await asyncio.sleep(0.02)

    task = asyncio.get_running_loop().create_task(replace())
    try:
        yield died
    finally:
        task.cancel()
        for worker in workers:
            worker.kill()
            worker.communicate(timeout=HANG)


async def until(done: Callable[[], Awaitable[bool]], seconds: float = HANG) -> None:
    async with asyncio.timeout(seconds):
        while not await done():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.covers("R-61")
async def test_run_that_kills_its_workers_is_given_up_and_goes_on_when_it_is_repaired(
    tmp_path: Path, place: str
) -> None:
    ledger = tmp_path / "ledger.txt"
    program = smoothies(ledger).program()
    async with Holdfast(place, settings=SETTINGS) as hf:
        service = await hf.service()
        with fleet(place, ledger, 2) as died:
            poisoned, _ = await service.create(program, {"order": "bad", "poisoned": True})
            good = [(await service.create(program, {"order": f"o-{n}"}))[0].id for n in range(GOOD)]
            await until(lambda: ended(service, [poisoned.id, *good]))
            await evidence_is_kept(service, poisoned, died[0])
            assert {(await service.get(run)).status for run in good} == {RunStatus.completed}
            (tmp_path / "mended").touch()
            row = await service.retry_dead(poisoned.id, by="user:dana")
            assert (row.dead, row.recoveries) == (False, 0)
            await until(lambda: ended(service, [poisoned.id]))
        row = await service.get(poisoned.id)
        assert (row.status, row.dead) == (RunStatus.completed, False)
        # The deaths stay as history; the effect that was settled before the first was not repeated.
        assert len((await service.deaths(row.id)).counted) == BOUND + 1
        assert ledger.read_text().split().count("bad") == 1
        with pytest.raises(RunEndedError, match="not a dead letter"):
            await service.retry_dead(poisoned.id)


@pytest.mark.covers("SAFE-FLEET-01")
async def test_runs_beside_one_that_kills_its_worker_complete_and_only_that_one_is_given_up(
    tmp_path: Path,
) -> None:
    ledger, place = tmp_path / "ledger.txt", f"sqlite:{tmp_path / 'runs.db'}"
    program = smoothies(ledger).program()
    async with Holdfast(place, settings=SETTINGS) as hf:
        service = await hf.service()
        slow = [(await service.create(program, {"order": f"o-{n}", "slow": True}))[0].id for n in range(3)]
        poisoned, _ = await service.create(program, {"order": "bad", "poisoned": True})
        with fleet(place, ledger, 1):
            await until(lambda: ended(service, [poisoned.id, *slow]))
        assert [row.id for row in await service.dead()] == [poisoned.id]
        assert {(await service.get(run)).status for run in slow} == {RunStatus.completed}
        for run in slow:
            assert {death.alone for death in await service.store.deaths(run)} == {False}
        # The first two deaths could not be told from those beside it; those that count were its own.
        alone = [death.alone for death in await service.store.deaths(poisoned.id)]
        assert alone == [False, False, *[True] * (BOUND + 1)]


async def evidence_is_kept(service: RunService, poisoned: RunRow, died: int) -> None:
    (row,) = await service.dead()
    assert (row.id, row.status, row.recoveries) == (poisoned.id, RunStatus.failed, BOUND + 1)
    found = await service.deaths(row.id)
    # On a slow machine another run may have been beside it at its first death, which then is not counted.
    assert len(found.counted) == BOUND + 1 <= died
    assert len({autopsy.death.worker for autopsy in found.counted}) == BOUND + 1
    assert {autopsy.nodes for autopsy in found.counted} == {("blend",)}
    assert found.suspects == [("blend", BOUND + 1)]
    assert row.error is not None
    assert all(autopsy.death.worker in row.error for autopsy in found.counted)
    lines = [event for event in await service.events(row.id) if event.type.startswith("run.")]
    kinds = [event.type for event in lines if event.type in ("run.recovered", "run.given_up")]
    assert kinds == ["run.recovered"] * (len(found.deaths) - 1) + ["run.given_up"]
    assert lines[-1].data["recoveries"] == BOUND + 1


async def ended(service: RunService, runs: list[RunId]) -> bool:
    return all([(await service.get(run)).status in ENDED for run in runs])


async def test_dead_run_that_is_discarded_ends_as_cancelled_and_runs_nothing_again(
    tmp_path: Path, place: str
) -> None:
    ledger = tmp_path / "ledger.txt"
    program = smoothies(ledger).program()
    async with Holdfast(place, settings=SETTINGS) as hf:
        service = await hf.service()
        with fleet(place, ledger, 1) as died:
            row, _ = await service.create(program, {"order": "bad", "poisoned": True})
            await until(lambda: ended(service, [row.id]))
            before = died[0]
            await service.discard_dead(row.id, reason="ordered twice", by="user:dana")
            await until(lambda: ended(service, [row.id]))
            assert died[0] == before
        found = await service.get(row.id)
        assert (found.status, found.dead) == (RunStatus.cancelled, False)
        asked = [event for event in await service.events(row.id) if event.type == "run.cancel_requested"]
        assert asked[-1].data == {"reason": "ordered twice", "by": "user:dana"}


async def test_run_that_kills_a_caller_who_loads_it_is_discarded_without_a_worker(place: str) -> None:
    flow = Flow("heavy", effect="pure")
    flow.hold("approve", prompt="Go on?", options=["yes", "no"])
    async with Holdfast(place, settings=SETTINGS) as hf:
        runs = [(await flow.run({}, on=hf)).run_id for _ in range(2)]
    async with Holdfast(place, settings=SETTINGS) as hf:  # which has no code of that flow
        service = await hf.service()
        for run, unread in zip(runs, (False, True), strict=True):
            await die(service, run)
            if not unread:
                await service.discard_dead(run, reason="too much", by="user:dana")
                await die(service, run)
            row = await service.discard_dead(run, reason="too much", by="user:dana", unread=unread)
            assert (row.status, row.dead, row.worker) == (RunStatus.cancelled, False, None)
            assert row.error == "RunCancelledError: too much"
            assert "run.cancelled" in [event.type for event in await service.events(row.id)][-2:]
            assert await service.holds(row.id) == []
            assert (await service.latest(row.id)).seq == row.head
            assert await service.store.pending(row.id) == (row.inbox_seq, [])
            with pytest.raises(RunEndedError, match="not a dead letter"):
                await service.discard_dead(run)


async def die(service: RunService, run: str) -> None:
    """Somebody takes it up, and is not heard of again."""
    await service.store.send(RunId(run), "note", b"")
    assert await service.store.claim(ClaimRequest(worker=f"ghost-{run}", ttl=1000, run=RunId(run)))
    await asyncio.sleep(0.01)
    (row,) = await service.store.reclaim(limit=9, max_recoveries=0)
    assert row.dead
