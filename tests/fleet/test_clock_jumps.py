"""A clock that is set back or forward strands no run of a dead worker beyond two lease times."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

import holdfast as holdfast_package
from holdfast import Flow, Holdfast
from holdfast.runs.worker.reaper import Reaper
from holdfast.store.protocols import Store
from holdfast.store.rows import ClaimRequest, RunRow
from holdfast.store.sql.sqlite.connect import SqliteSettings
from holdfast.store.sql.sqlite.migrate import prepare
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.status import RunStatus
from tests.fleet.test_doctor_fleet import row as worker_row

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-STORE-03")]
LEASE = 30
TTL = LEASE * 1_000_000
JUMPS = [timedelta(seconds=s) for s in (-31, -45, -59, -61, -90, -3600, -86_400 * 400, 45, 3600)]


class Fleet:
    def __init__(self, hf: Holdfast, clock: FakeClock, store: Store) -> None:
        self.hf, self.clock, self.store = hf, clock, store
        self.reaper = Reaper(store, clock, every=LEASE / 3, backoff=LEASE)

    async def created(self) -> RunId:
        flow = Flow("work", effect="pure")

        @flow.node
        async def node(s: dict) -> dict:
            return {}

        return (await (await self.hf.service()).create(flow.program(), {}))[0].id

    async def claimed(self, worker: str, ttl: int = TTL) -> RunId:
        run = await self.created()
        await self.store.put_worker(replace(worker_row(worker), name=worker), ttl)
        assert await self.store.claim(ClaimRequest(worker=worker, ttl=ttl, run=run))
        return run

    async def until_claimable(self, run: RunId, *, most: float) -> float:
        """Seconds, by sweeps every third of a lease; at most so many."""
        spent = 0.0
        while True:
            await self.reaper.sweep()
            for suspects in (False, True):
                want = ClaimRequest(worker="next", ttl=TTL, limit=9, suspects=suspects)
                if run in [claim.run.id for claim in await self.store.claim(want)]:
                    return spent
            assert spent <= most, "the run is stranded"
            self.clock.advance(seconds=LEASE / 3)
            spent += LEASE / 3


@pytest.fixture(params=["memory", "sqlite"])
async def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Fleet]:
    clock = FakeClock()
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address, clock=clock) as hf:
        yield Fleet(hf, clock, await hf.open())


@pytest.mark.parametrize("jump", JUMPS, ids=str)
@pytest.mark.parametrize("sweeps_before", [0, 1, 2])
async def test_run_of_a_dead_worker_is_claimable_within_two_lease_times(
    fleet: Fleet, jump: timedelta, sweeps_before: int
) -> None:
    run = await fleet.claimed("dead")
    for _ in range(sweeps_before):
        await fleet.reaper.sweep()
        fleet.clock.advance(seconds=LEASE / 3)
    fleet.clock.set_by(jump)
    await fleet.until_claimable(run, most=2 * LEASE)


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_run_that_was_freed_before_the_clock_was_set_is_claimable_as_soon(
    fleet: Fleet, jump: timedelta
) -> None:
    """It is ready from the moment of its recovery on, which may now be in the future."""
    run = await fleet.claimed("dead")
    fleet.clock.advance(seconds=LEASE)
    await fleet.reaper.sweep()
    fleet.clock.set_by(jump)
    await fleet.until_claimable(run, most=LEASE / 3)


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_run_is_claimable_when_the_clock_was_set_while_no_reaper_looked(
    fleet: Fleet, jump: timedelta
) -> None:
    freed, leased = await fleet.claimed("dead"), await fleet.claimed("dead-2")
    fleet.clock.advance(seconds=LEASE - 1)
    row = await fleet.store.get_run(leased)
    assert row is not None
    assert await fleet.store.extend([_lease(row)], TTL) == [True]
    fleet.clock.advance(seconds=1)
    await fleet.reaper.sweep()
    fleet.clock.set_by(jump)
    fleet.reaper = Reaper(fleet.store, fleet.clock, every=LEASE / 3, backoff=LEASE)
    await fleet.until_claimable(freed, most=LEASE / 3)
    await fleet.until_claimable(leased, most=2 * LEASE)


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_new_run_is_claimable_when_the_clock_is_set_after_it_was_created(
    fleet: Fleet, jump: timedelta
) -> None:
    await fleet.reaper.sweep()
    run = await fleet.created()
    fleet.clock.set_by(jump)
    await fleet.until_claimable(run, most=LEASE / 3)


async def test_delay_after_a_recovery_is_as_long_as_it_was_when_the_clock_is_set_back(fleet: Fleet) -> None:
    run = await fleet.claimed("dead")
    for suspects in (False, True):
        fleet.clock.advance(seconds=LEASE)
        await fleet.reaper.sweep()
        await fleet.store.claim(ClaimRequest(worker="dead", ttl=TTL, suspects=suspects))
    fleet.clock.advance(seconds=LEASE)
    await fleet.reaper.sweep()
    fleet.clock.set_by(timedelta(hours=-1))
    assert await fleet.until_claimable(run, most=3 * LEASE) > LEASE / 3


@pytest.mark.parametrize("jump", [each for each in JUMPS if each < timedelta()], ids=str)
async def test_live_worker_keeps_its_run_when_the_clock_is_set_back(fleet: Fleet, jump: timedelta) -> None:
    run = await fleet.claimed("alive")
    row = await fleet.store.get_run(run)
    assert row is not None
    lease = _lease(row)
    fleet.clock.set_by(jump)
    for _ in range(12):
        await fleet.reaper.sweep()
        fleet.clock.advance(seconds=LEASE / 3)
        assert await fleet.store.extend([lease], TTL) == [True]
    assert (await fleet.store.get_run(run) or row).status is RunStatus.running


@pytest.mark.parametrize("jump", [each for each in JUMPS if each > timedelta()], ids=str)
async def test_live_worker_keeps_its_run_when_the_clock_is_set_forward(fleet: Fleet, jump: timedelta) -> None:
    """Or when the machine slept: a worker that lives extends its leases before they count as expired."""
    alive, dead = await fleet.claimed("alive"), await fleet.claimed("dead")
    row = await fleet.store.get_run(alive)
    assert row is not None
    serving = asyncio.create_task(fleet.reaper.serve())
    try:
        await settled(fleet)
        fleet.clock.set_by(jump)
        for _ in range(6):
            fleet.clock.advance(seconds=LEASE / 3)
            await settled(fleet)
            assert await fleet.store.extend([_lease(row)], TTL) == [True]
        found = await fleet.store.get_run(dead)
        assert found is not None
        assert found.worker is None
    finally:
        serving.cancel()


async def settled(fleet: Fleet) -> None:
    for _ in range(100):
        await asyncio.sleep(0)
    assert fleet.clock.sleeping == 1


async def test_leases_that_are_longer_than_the_reapers_own_are_left_alone(fleet: Fleet) -> None:
    """Of a worker that said so, and of a program that is no worker and extends them every third."""
    run, day = await fleet.claimed("patient", ttl=100 * TTL), 100 * TTL
    other = await fleet.created()
    assert await fleet.store.claim(ClaimRequest(worker="program", ttl=day, run=other))
    for nth in range(200):
        await fleet.reaper.sweep()
        fleet.clock.advance(seconds=LEASE / 3)
        if nth and nth % 90 == 0:
            for each in (run, other):
                row = await fleet.store.get_run(each)
                assert row is not None
                assert await fleet.store.extend([_lease(row)], day) == [True]
    for each in (run, other):
        row = await fleet.store.get_run(each)
        assert row is not None
        assert row.worker is not None


def _lease(row: RunRow) -> Lease:
    return Lease(row.id, row.key, row.term, row.worker or "")


@pytest.mark.parametrize(
    ("jump", "alive"), [(-3600, False), (-31, False), (-29, True), (0, True), (31, False)]
)
def test_worker_that_a_clock_set_back_left_in_the_future_is_not_alive(jump: int, alive: bool) -> None:
    """A live one renews its row soon, with the new time."""
    now = 10_000 * 1_000_000
    known = replace(worker_row("w"), seen_at=now, until=now + TTL)
    assert known.is_alive(now + jump * 1_000_000) is alive


def test_every_view_asks_the_row_whether_its_worker_is_alive() -> None:
    source = Path(holdfast_package.__file__).parent
    compared = re.compile(r"\b(row|each|worker)\.until (<|>|<=|>=) ")
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if compared.search(file.read_text())
    }
    assert found <= {"store/memory/workers.py"}


CORRECTED = {
    "runs.lease_until", "runs.ready_at", "queue_messages.visible_at", "queue_messages.claim_until",
    "outbox.due_at", "outbox.claimed_until", "gate_starts.at", "gate_starts.until", "workers.until",
}  # fmt: skip
"""When something becomes ready or free that waits for no instant: a clock that is set back moves it too."""
INSTANTS = {
    "timers.fire_at", "schedules.next_at", "holds.expires_at", "holds.remind_at", "holds.claim_until",
    "holds.placed_until", "hold_notes.until", "queue_messages.expires_at", "queue_messages.drop_at",
    "graph_threads.claimed_until",
}  # fmt: skip
"""They come as much later as the clock was set back (docs/how-to/monitor.md)."""


def test_every_time_in_the_store_that_something_waits_for_is_in_one_of_the_tables(tmp_path: Path) -> None:
    prepare(SqliteSettings(path=str(tmp_path / "h.db")))
    with contextlib.closing(apsw.Connection(str(tmp_path / "h.db"))) as conn:
        named = conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        columns = {
            f"{table}.{column}"
            for (table,) in named
            for _, column, kind, *_ in conn.execute(f"PRAGMA table_info({table})")
            if kind == "INTEGER" and re.search(r"(^|_)(at|until)$", column)
        }
    past = re.compile(
        r".*\.(at|(created|updated|ended|resolved|closed|resumed|notified|paused|seen)_at)"
        r"|.*\.(put|written|applied|last)_at|deaths\.lease_until"
    )
    assert {each for each in columns if not past.fullmatch(each)} | {"gate_starts.at"} == CORRECTED | INSTANTS
