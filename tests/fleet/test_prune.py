"""What grows and what trims it: thousands of runs leave no more behind than the same number did before."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from holdfast import Flow, Holdfast, Retention, RunSettings
from holdfast.errors import FeedTrimmedError
from holdfast.runs.retention import RetentionSweep
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.kit import TTL, StoreKit
from holdfast.types.lease import Lease
from holdfast.types.record import RunBatch, Side
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.fleet.conftest import schema_of
from tests.services import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-10")]

WITH_THE_RUN = "goes with its run"
RULES = {
    "runs": "retention",
    "journal": WITH_THE_RUN,
    "events": WITH_THE_RUN,
    "inbox": WITH_THE_RUN,
    "timers": WITH_THE_RUN,
    "late_reports": WITH_THE_RUN,
    "blob_refs": WITH_THE_RUN,
    "deaths": WITH_THE_RUN,
    "projections": WITH_THE_RUN,
    "holds": WITH_THE_RUN,
    "hold_notes": WITH_THE_RUN,
    "hold_keys": WITH_THE_RUN,
    "hold_links": WITH_THE_RUN,
    "outbox": WITH_THE_RUN,
    "blobs": "collected a day after the last run let go of it",
    "feed": "trimmed after `feed_kept`",
    "feed_marks": "one for each sweep of `feed_kept`",
    "queue_messages": "ended ones after the retention of their queue",
    "gate_starts": "trimmed as runs start",
    "workers": "forgotten after a day of silence",
    "projected": "one",
    "turns": "one for each tenant",
    "audit_heads": "one for each tenant",
    "flows": "one for each version of a flow",
    "codes": "one for each version of its code",
    "gates": "one for each limit that is declared",
    "schedules": "until it is dropped",
    "documents": "until it is dropped",
    "memories": "what nodes remember beyond a run: the program's own",
    "graph_threads": "until it is deleted, or pruned by the saver's retention",
    "graph_checkpoints": "likewise",
    "graph_values": "with the last checkpoint that needs it",
    "graph_writes": "with its checkpoint",
    "migrations": "one for each number",
    "halves": "one for each number, until it is finished",
    "timelines": "one for each failover",
}
FOR_EVER = {"audit": "who did what outlives the runs"}
"""docs/how-to/retention.md has the same table."""


def counts(schema: str) -> dict[str, int]:
    tables = postgres.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    parts = [f"SELECT '{name}', count(*) FROM {schema}.{name}" for (name,) in tables]
    return {str(name): int(str(count)) for name, count in postgres.execute(" UNION ALL ".join(parts))}


async def all_told(schema: str) -> None:
    """Open transactions of others on the same server hold the feed back, and with it its marks."""
    horizon = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20"
    async with asyncio.timeout(HANG):
        while postgres.execute(f"SELECT max(pos) < {horizon} FROM {schema}.feed") != [(True,)]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_every_table_has_a_rule(address: str) -> None:
    """A table without one grows until somebody notices."""
    await (await open_store(address)).close()
    assert counts(schema_of(address)).keys() <= RULES.keys() | FOR_EVER.keys()


def asking() -> Flow:
    flow = Flow("asking", effect="pure", retention=Retention(keep=1, older="1d"))
    first = flow.node(id="first")(lambda s: {"n": s["n"] + 1})
    ask = flow.hold("ask", prompt="Go on?", options=["yes", "no"], assignee="user:dana@acme")
    flow.start(first)
    flow.edge(first, ask)
    return flow


async def many(kit: StoreKit, count: int) -> None:
    """Runs that ended, each with records and a message, and some with an event of others."""

    async def begun() -> Lease:
        until = kit.clock.now() + TTL
        row = await kit.created(flow="asking", claimed_by="w", lease_until=until, ready_at=None)
        return Lease(row.id, row.key, row.term, "w")

    ends = Side(status=RunStatus.completed)
    for _ in range(0, count, 100):
        leases = await asyncio.gather(*(begun() for _ in range(100)))
        for lease in leases[:10]:
            await kit.store.send(lease.run, "note", b"", event=kit.event())
        batches = [RunBatch(lease, [kit.record(1), kit.record(2, side=ends)]) for lease in leases]
        assert all(answer.refusal is None for answer in await kit.store.settle(batches))


async def a_day_of_work(hf: Holdfast, kit: StoreKit, count: int) -> None:
    await many(kit, count)
    flow, service = asking(), await hf.service()
    for n in range(5):
        result = await flow.run({"n": n}, on=hf)
        (hold,) = await service.holds(result.run_id)
        await service.answer(hold.id, "yes", by="user:dana@acme")
        assert (await flow.resume(result.run_id, on=hf)).completed


LONG = [pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.mark.parametrize("a_day", [100, pytest.param(1500, marks=LONG)])
async def test_days_of_runs_under_retention_leave_the_tables_as_large_as_two(
    address: str, a_day: int
) -> None:
    clock = FakeClock()

    async def opened(_clock: object) -> Store:
        return await open_store(address, clock=clock)

    kit = StoreKit(opened, address=address)
    kit.clock = clock
    await kit.start()
    after: list[dict[str, int]] = []
    try:
        async with Holdfast(address, clock=clock, settings=RunSettings(feed_kept=86_400)) as hf:
            hf.register(asking().program())
            keeper = RetentionSweep(await hf.service())
            for _day in range(4):
                await a_day_of_work(hf, kit, a_day)
                await all_told(schema_of(address))
                await keeper.sweep()
                after.append(counts(schema_of(address)))
                clock.advance(timedelta(days=1, hours=1))
            await keeper.sweep()
    finally:
        await kit.stop()
    _, second, _, last = after
    grown = {name: (second[name], last[name]) for name in last if last[name] > second[name]}
    assert grown.keys() <= FOR_EVER.keys() | {"feed_marks"}, grown
    assert last["runs"] <= 2 * (a_day + 5), "two days of them at most"
    # And after the last has gone, nothing of any run is left.
    left = counts(schema_of(address))
    assert {name: left[name] for name, rule in RULES.items() if rule in (WITH_THE_RUN, "retention")} == {
        name: 0 for name, rule in RULES.items() if rule in (WITH_THE_RUN, "retention")
    }
    assert left["feed"] <= 2 * (a_day + 5) * 3


async def test_reader_of_the_feed_that_was_away_for_too_long_is_reported(address: str) -> None:
    clock = FakeClock()
    async with Holdfast(address, clock=clock, settings=RunSettings(feed_kept=3600)) as hf:
        service = await hf.service()
        keeper, flow = RetentionSweep(service), Flow("short", effect="pure")
        flow.node(id="only")(lambda s: {})
        await flow.run({}, on=hf)
        await all_told(schema_of(address))
        await keeper.sweep()
        clock.advance(hours=2)
        await flow.run({}, on=hf)
        await all_told(schema_of(address))
        done = await keeper.sweep()
        assert done.feed > 0
        with pytest.raises(FeedTrimmedError) as caught:
            await service.store.feed(after=0, limit=10)
        floor = caught.value.facts["floor"]
        assert isinstance(floor, int)
        assert "feed_kept" in str(caught.value.hint)
        assert await service.store.feed(after=floor, limit=10)


@pytest.mark.covers("R-42")
async def test_room_that_a_full_store_gets_by_retention_is_used_again(address: str) -> None:
    flow = Flow("large", effect="pure", retention=Retention(keep=None, older="1h"))
    # In small parts: large values are not in the journal.
    flow.node(id="only")(lambda s: {f"part{p}": Random(s["n"] + p).randbytes(2_000) for p in range(20)})
    clock = FakeClock()
    sizes: list[int] = []
    async with Holdfast(address, clock=clock) as hf:
        service = await hf.service()
        for part in range(3):
            for n in range(20):
                await flow.run({"n": part * 100 + n}, on=hf)
            # With what is kept beside the table itself.
            total = f"SELECT pg_total_relation_size('{schema_of(address)}.journal')::bigint"
            sizes += [int(str(size)) for (size,) in postgres.execute(total)]
            clock.advance(hours=2)
            make_room = service.runtime.recorder.make_room
            assert make_room is not None
            await make_room()
    assert sizes[0] > 500_000
    assert sizes[2] < sizes[0] * 1.5, sizes
