"""What the database itself refuses, and what a reader of the feed may rely on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.store.sql.postgres.connect import statement, to_column
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.audit import NewAudit
from holdfast.types.record import RunBatch, Side
from holdfast.types.status import RunStatus, may_follow
from tests.fleet.conftest import schema_of
from tests.services import postgres

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(address: str) -> AsyncIterator[StoreKit]:
    async def opened(clock: Any) -> Store:
        return await open_store(address, clock=clock)

    kit = StoreKit(opened, address=address)
    await kit.start()
    yield kit
    await kit.stop()


@pytest.mark.covers("FLEET-PG-01")
@pytest.mark.parametrize(
    "act", ["UPDATE {s}.audit SET actor = 'x'", "DELETE FROM {s}.audit", "TRUNCATE {s}.audit"]
)
async def test_audit_cannot_be_changed_by_a_caller_who_asks(kit: StoreKit, address: str, act: str) -> None:
    await kit.store.append_audit("t", [NewAudit(at=1, actor="ada", action="looked")])
    with pytest.raises(asyncpg.CheckViolationError, match="audit"):
        postgres.execute(act.format(s=schema_of(address)))
    assert [row.actor for row in await kit.store.audit("t")] == ["ada"]


@pytest.mark.covers("FLEET-PG-01")
async def test_audit_takes_only_the_next_of_a_chain(kit: StoreKit, address: str) -> None:
    await kit.store.append_audit("t", [NewAudit(at=1, actor="ada", action="looked")])
    insert = "INSERT INTO {s}.audit SELECT 't', {n}, 1, 'x', 'x', NULL, NULL, '', '', ''"
    for number in (1, 3):
        with pytest.raises(asyncpg.PostgresError):
            postgres.execute(insert.format(s=schema_of(address), n=number))


@pytest.mark.covers("FLEET-PG-01")
async def test_database_allows_the_same_changes_of_status_as_the_table(kit: StoreKit, address: str) -> None:
    run = (await kit.created()).id
    schema = schema_of(address)
    connection = await asyncpg.connect(postgres.database())
    try:
        for old in RunStatus:
            for new in RunStatus:
                await connection.execute(f"ALTER TABLE {schema}.runs DISABLE TRIGGER USER")
                await connection.execute(f"UPDATE {schema}.runs SET status = '{old}' WHERE id = '{run}'")
                await connection.execute(f"ALTER TABLE {schema}.runs ENABLE TRIGGER USER")
                change = f"UPDATE {schema}.runs SET status = '{new}' WHERE id = '{run}'"
                if may_follow(old, new):
                    await connection.execute(change)
                else:
                    with pytest.raises(asyncpg.CheckViolationError):
                        await connection.execute(change)
    finally:
        await connection.close()


@pytest.mark.covers("FLEET-PG-05", "D-3-postgres")
async def test_feed_stops_below_a_transaction_that_is_still_open(kit: StoreKit) -> None:
    await kit.created()
    connection = await asyncpg.connect(postgres.database())
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.fetchval("SELECT pg_current_xact_id()::text")
        later = await kit.created()
        seen = await kit.store.feed(after=0, limit=9)
        assert later.id not in [row[1] for row in seen]
        await transaction.rollback()
    finally:
        await connection.close()
    assert later.id in [row[1] for row in await kit.feed_rows(2)]


@pytest.mark.covers("FLEET-PG-04")
async def test_plain_batches_of_many_runs_are_one_statement(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = [await kit.claimed() for _ in range(20)]
    sent: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def counted(self: Any, query: str, *args: Any, **more: Any) -> Any:
        sent.append(query)
        return await fetch(self, query, *args, **more)

    monkeypatch.setattr(asyncpg.Connection, "fetch", counted)
    ends = Side(status=RunStatus.completed)
    batches = [RunBatch(lease, [kit.record(1), kit.record(2, side=ends)]) for lease in leases]
    answers = await kit.store.settle(batches)
    assert [answer.refusal for answer in answers] == [None] * 20
    assert len(sent) == 1


@pytest.mark.covers("FLEET-PG-01")
async def test_text_with_nul_comes_back(kit: StoreKit) -> None:
    """PostgreSQL itself keeps none."""
    lease = await kit.claimed(tenant="a\0b", thread="\ue0c0")
    hold = kit.new_hold(1, prompt="x\0\ue0c00y", tags=("t\0",))
    await kit.asked(lease, hold)
    await kit.written(lease, kit.record(2, side=Side(error="\0")))
    row = await kit.row(lease.run)
    assert (row.tenant, row.thread, row.error) == ("a\0b", "\ue0c0", "\0")
    assert (await kit.hold(hold.id)).prompt == "x\0\ue0c00y"
    assert (await kit.hold(hold.id)).tags == ("t\0",)


@pytest.mark.covers("FLEET-PG-09")
async def test_leases_are_by_the_servers_time_when_no_clock_is_given(kit: StoreKit, address: str) -> None:
    store = await open_store(address)
    try:
        ((server,),) = postgres.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        assert abs(store.now() - int(str(server))) < 2_000_000
        run = (await store.create(kit.new_run(created_at=store.now(), ready_at=0)))[0].id
        from holdfast.store.rows import ClaimRequest

        (claim,) = await store.claim(ClaimRequest(worker="w", ttl=5_000_000, run=run))
        assert claim.run.lease_until is not None
        assert abs(claim.run.lease_until - 5_000_000 - store.now()) < 2_000_000
    finally:
        await store.close()


def test_statement_names_the_schema_and_numbers_its_arguments() -> None:
    assert statement("SELECT ? FROM @runs WHERE id = ?", "s") == 'SELECT $1 FROM "s".runs WHERE id = $2'
    assert to_column(["a\0"]) == ["a\ue0c00"]
