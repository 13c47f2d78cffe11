"""A standby that was not synchronous is promoted without the last commits: whoever was told of them finds
that out, and the runs stop."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from holdfast import Holdfast, Worker
from holdfast.cli.doctor.store import server_findings
from holdfast.errors import HistoryLostError
from holdfast.runs.service import RunService
from holdfast.store.open import open_store
from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.acknowledgements import Acknowledgements
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.failover import LOSSES
from holdfast.store.sql.postgres.store import PostgresStore
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.ids import RunId
from holdfast.types.record import Refusal, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.fleet.conftest import schema_of
from tests.fleet.pairs import SETTINGS, cut_off, lines, orders, pair, workers
from tests.fleet.test_failover import CAUGHT_UP, quick
from tests.operations import operations
from tests.services.pgcluster import hosts

pytestmark = pytest.mark.anyio


async def until(service: RunService, run: RunId, status: RunStatus) -> None:
    async with asyncio.timeout(HANG):
        while (await service.get(run)).status is not status:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def approve(service: RunService, run: RunId) -> None:
    await until(service, run, RunStatus.pending_input)
    (hold,) = await service.holds(run)
    await service.answer(hold.id, "yes")


@pytest.mark.covers("FLEET-PG-08")
async def test_run_stops_when_its_history_went_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = tmp_path / "ledger"
    flow = orders(ledger)
    with pair(synchronous=False) as (first, second):
        address = hosts(first, second)
        async with Holdfast(address, settings=SETTINGS) as hf:
            service = await hf.service()

            async def order(name: str) -> RunId:
                return (await service.create(flow.program(), {"order": name}))[0].id

            async with Worker(flow, on=hf, poll=0.05):
                approved, whole = await order("approved"), await order("whole")
                for run in (approved, whole):
                    await until(service, run, RunStatus.pending_input)
            begun = await order("begun")
            (said,) = [
                f for f in server_findings(await service.store.durability()) if f.check == "replication"
            ]
            assert (said.state, said.said[:13]) == ("warn", "asynchronous:")
            assert "can be lost" in said.said
            assert said.about[0].startswith("two: streaming, async, ")
            await quick(first.wait_for, CAUGHT_UP)
            await quick(cut_off, second)
            # From here on nothing reaches the standby: a decision, two runs that end, one that begins.
            (hold,) = await service.holds(approved)
            async with Worker(flow, on=hf, poll=0.05):
                await service.answer(hold.id, "yes")
                await approve(service, begun)
                for run in (approved, begun):
                    await until(service, run, RunStatus.completed)
            gone = await order("gone")
            assert sorted(lines(ledger)) == ["approved", "begun"]
            read = (await service.store.feed(after=0, limit=1000))[-1]
            assert read[1] == gone
            await quick(first.kill)
            await quick(second.promote)
            # Somebody new, who knows of nothing and would go on with `begun` from its beginning at once.
            with workers(address, ledger, 1):
                await asyncio.sleep(0.5)
                for run in (approved, begun):
                    await until(service, run, RunStatus.failed)
                assert (await service.get(whole)).status is RunStatus.pending_input
                assert await service.store.get_run(gone) is None
                await approve(service, whole)
                await until(service, whole, RunStatus.completed)
            assert sorted(lines(ledger)) == ["approved", "begun", "whole"]
            # Whoever read the feed up to what was lost misses nothing of what comes now.
            result = await service.store.feed(after=read[0], limit=1000)
            assert [run for _, run, *_ in result][:2] == [approved, begun]
            await going_on_takes_a_word(service, approved, begun)
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    for run in (approved, begun):
        assert any(f"run {run} stops. History lost: " in said for said in errors)
    assert any(f"run {gone}" in said and "is gone" in said for said in errors)


async def going_on_takes_a_word(service: RunService, approved: RunId, begun: RunId) -> None:
    row = await service.get(begun)
    assert row.error is not None
    assert "its newest record is 0" in row.error
    for run in (approved, begun):
        with pytest.raises(HistoryLostError, match="lost part of its history"):
            await service.request_resume(run)
        assert await service.store.claim(ClaimRequest(worker="w", ttl=1, run=run)) == []
    events = [event.type for event in await service.events(begun)]
    assert "run.history_lost" in events
    await service.request_resume(approved, accept_loss=True)
    assert (await service.get(approved)).status is RunStatus.resumable


@pytest.mark.covers("FLEET-PG-08")
@pytest.mark.parametrize("by", ["its maker", "the one that knows", "another"])
async def test_run_that_was_lost_whole_stops_when_it_is_made_anew(address: str, by: str) -> None:
    """By a schedule, or by a caller that tries again: what it did before it would do once more."""
    kit = StoreKit(lambda clock: open_store(address, clock=clock))
    await kit.start()
    raw = await asyncpg.connect(address.partition("?")[0])
    try:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        known: PostgresStore = kit.store  # type: ignore[assignment]
        await raw.execute(f"DELETE FROM {schema_of(address)}.runs WHERE id = $1", lease.run)
        await known._acks.verify(PostgresConnection(raw, schema_of(address)), kit.clock.now)  # pyright: ignore[reportPrivateUsage]
        maker = known if by == "its maker" else await kit.another()
        await maker.create(kit.new_run(id=lease.run))
        if maker is not known:
            await maker.close()
        if by == "another":
            other = await kit.another()
            (taken,) = await other.claim(ClaimRequest(worker="x", ttl=10**9))
            await known.reclaim(limit=9, max_recoveries=9)
            (answer,) = await other.settle([RunBatch(taken.lease, [kit.record(1, term=taken.lease.term)])])
            assert answer.refusal is Refusal.fenced
            await other.close()
        elif by == "the one that knows":
            assert await known.claim(ClaimRequest(worker="w", ttl=10**9)) == []
        row = await kit.row(lease.run)
        assert row.status is RunStatus.failed
        assert "record 1 was acknowledged" in str(row.error)
        # Somebody decided: it is not stopped again.
        await known.send(lease.run, "resume", b"")
        await known.reclaim(limit=9, max_recoveries=9)
        assert len(await known.claim(ClaimRequest(worker="w", ttl=10**9))) == 1
    finally:
        await raw.close()
        await kit.stop()


async def test_thousands_of_runs_that_others_deleted_are_reported_as_a_number(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_store(address)
    await store.close()
    known = Acknowledgements(LOSSES)
    for n in range(2500):
        known.mailed(RunId(f"gone-{n}"), 1, n)
    raw = await asyncpg.connect(address.partition("?")[0])
    try:
        lost = await known.verify(PostgresConnection(raw, schema_of(address)), lambda: None)
    finally:
        await raw.close()
    assert len(lost) == 2500
    result = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(result) == 21
    assert "run gone-2499 is gone" in result[-2]
    assert result[-1] == "and 2480 more that were changed here longer ago"


def test_remembering_a_settle_costs_the_same_however_many_are_remembered() -> None:
    """One entry for each settle, also where the oldest one has to leave: no walk through the others."""
    from holdfast.testing.clock import FakeClock
    from holdfast.types.ids import new_run_id
    from holdfast.types.lease import Lease

    kit = StoreKit(lambda _: None)  # type: ignore[arg-type,return-value]
    kit.clock = FakeClock()
    known = Acknowledgements(LOSSES, most=100)
    batches = [RunBatch(Lease(new_run_id(), n, 1, "w"), [kit.record(1)]) for n in range(1000)]
    each = [operations(partial(known.settled, [batch], [SettleAnswer(batch.lease.run)])) for batch in batches]
    assert len(known._runs) == 100  # pyright: ignore[reportPrivateUsage]
    assert list(known._runs) == [batch.lease.run for batch in batches[-100:]]  # pyright: ignore[reportPrivateUsage]
    assert len(set(each[:100])) == 1
    assert len(set(each[100:])) == 1
    assert max(each) < 20
