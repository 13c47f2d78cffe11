"""Behind a pooler that gives a connection for one transaction only, nothing of a session can be relied on."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from holdfast import Flow, Holdfast, Limits
from holdfast.errors import SettingsError
from holdfast.store.open import open_store
from holdfast.store.rows import Capability
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.record import RunBatch
from tests.deadlines import HANG
from tests.fleet.conftest import schema_of
from tests.services import pgbouncer, postgres

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def pooled() -> Iterator[str]:
    with pgbouncer.pooler() as address:
        yield postgres.with_setting(address, schema=f"t_{secrets.token_hex(4)}")


@pytest.mark.covers("FLEET-PG-06")
async def test_store_finds_out_that_a_pooler_is_between(pooled: str) -> None:
    store = await open_store(pooled)
    assert Capability.notifies not in store.capabilities
    await store.close()


@pytest.mark.covers("FLEET-PG-06")
async def test_many_writers_share_few_connections_behind_a_pooler(pooled: str) -> None:
    kit = StoreKit(lambda clock: open_store(pooled, clock=clock))
    await kit.start()
    try:
        leases = [await kit.claimed() for _ in range(12)]

        async def work(number: int) -> None:
            for seq in range(1, 11):
                (answer,) = await kit.store.settle([RunBatch(leases[number], [kit.record(seq)])])
                assert answer.refusal is None
                assert await kit.store.send(leases[number].run, "note", b"", event=kit.event())

        await asyncio.gather(*(work(number) for number in range(12)))
        assert {(await kit.row(lease.run)).head for lease in leases} == {10}
    finally:
        await kit.stop()


@pytest.mark.covers("FLEET-PG-06")
async def test_flow_asks_and_goes_on_behind_a_pooler(pooled: str) -> None:
    flow = Flow("asking", effect="pure")
    flow.hold("approve", prompt="Go on?", options=["yes", "no"])
    async with Holdfast(pooled) as hf:
        result = await flow.run({}, on=hf)
        service = await hf.service()
        (hold,) = await service.holds(result.run_id)
        await service.answer(hold.id, "yes")
        assert (await flow.resume(result.run_id, on=hf)).completed


@pytest.mark.covers("FLEET-PG-03")
async def test_waiter_wakes_behind_a_pooler_by_looking(pooled: str) -> None:
    kit = StoreKit(lambda clock: open_store(postgres.with_setting(pooled, poll="0.05"), clock=clock))
    await kit.start()
    try:
        while await kit.store.wait_change(0.2):
            pass
        waiting = asyncio.create_task(kit.store.wait_change(HANG))
        await asyncio.sleep(0.1)
        await kit.race(1, lambda store, _number: store.create(kit.new_run()))
        assert await asyncio.wait_for(waiting, HANG) is True
    finally:
        await kit.stop()


@pytest.mark.covers("FLEET-BAD-05")
async def test_pooler_by_statements_is_refused_in_one_sentence_and_nothing_is_made() -> None:
    schema = f"t_{secrets.token_hex(4)}"
    with pgbouncer.pooler("statement") as address, pytest.raises(SettingsError) as caught:
        await open_store(postgres.with_setting(address, schema=schema))
    assert "pools statements" in caught.value.message
    assert "\n" not in caught.value.message
    assert "pool_mode = transaction" in str(caught.value.hint)
    assert postgres.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == []


@pytest.mark.covers("FLEET-BAD-05")
async def test_pooler_by_statements_is_refused_also_where_the_schema_is_there(address: str) -> None:
    """Every write of several statements would fail otherwise, each with words that help nobody."""
    await (await open_store(address)).close()
    with pgbouncer.pooler("statement") as pooled, pytest.raises(SettingsError, match="pools statements"):
        await open_store(postgres.with_setting(pooled, schema=schema_of(address)))


@pytest.mark.covers("FLEET-BAD-05")
async def test_pooler_by_sessions_serves_a_run() -> None:
    flow = Flow("greeting", effect="pure")
    flow.node(id="greet")(lambda s: {"said": "hello"})
    with pgbouncer.pooler("session") as address:
        async with Holdfast(postgres.with_setting(address, schema=f"t_{secrets.token_hex(4)}")) as hf:
            assert (await flow.run({}, on=hf)).completed


@pytest.mark.covers("FLEET-PG-06", "FLEET-WORK-03")
async def test_limits_hold_behind_a_pooler(pooled: str) -> None:
    flow = Flow("limited", effect="pure", limits=Limits(concurrency=2))
    inside: list[int] = []

    async def work(s: object) -> dict[str, int]:
        inside.append(1)
        await asyncio.sleep(0.05)
        most = len(inside)
        inside.pop()
        return {"most": most}

    flow.node(id="work", effect="pure")(work)
    async with Holdfast(pooled) as hf:
        results = await asyncio.gather(*(flow.run({}, on=hf) for _ in range(6)))
    assert {result.completed for result in results} == {True}
    assert max(result.state["most"] for result in results) == 2
