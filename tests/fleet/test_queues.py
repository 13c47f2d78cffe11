"""What a claim costs on PostgreSQL where very many runs are ready, or stand behind a shut gate."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.store.rows import ClaimRequest
from holdfast.store.sql.postgres import claim
from holdfast.store.sql.postgres.connect import statement
from holdfast.types.concurrency_limits import LimitRow
from tests.fleet.conftest import schema_of

NEW_SCHEMA = True  # one from which many rows were deleted is read more slowly
pytestmark = pytest.mark.anyio

MANY = 5000
FILL = """
INSERT INTO {s}.runs (head, event_seq, updated_at, priority, lane, id, tenant, flow, version, code,
                      created_at, ready_at, gate)
SELECT 0, 0, 0, $4, 'main', $1 || n, 't' || n % 3, $1, 'v1', 'c', n, n, $2
FROM generate_series(1, $3::int) AS n"""


async def filled(address: str, store: Store, flow: str, gate: str, priority: int = 0) -> Any:
    connection: Any = await asyncpg.connect(address.partition("?")[0])
    await connection.execute(FILL.format(s=schema_of(address)), flow, gate, MANY, priority)
    await connection.execute(f"ANALYZE {schema_of(address)}.runs")
    return connection


async def blocks(connection: Any, address: str) -> int:
    """How many pages the claim's question reads."""
    text = statement(claim._IN_WINDOW[False], schema_of(address))  # pyright: ignore[reportPrivateUsage]
    explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}"
    (found,) = await connection.fetchrow(
        explained, None, ["main"], ["v1"], [], False, None, None, None, None, 10, 10, 10
    )
    plan = json.loads(found)[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.mark.covers("FLEET-WORK-02")
async def test_claim_reads_a_few_runs_however_many_are_ready(address: str) -> None:
    store = await open_store(address)
    connection = await filled(address, store, "many", "")
    try:
        # Three tenants, ten runs of each, and how many each has at work: not the thousands behind them.
        assert await blocks(connection, address) < 200
        assert len(await store.claim(ClaimRequest(worker="w", ttl=10**9, limit=10, lanes=("main",)))) == 10
    finally:
        await connection.close()
        await store.close()


@pytest.mark.covers("FLEET-WORK-03")
async def test_thousands_behind_a_reached_limit_cost_nobody_anything(address: str) -> None:
    store = await open_store(address)
    await store.put_limit(LimitRow(name="flow:shut", concurrency=0))
    connection = await filled(address, store, "shut", "flow:shut/key", priority=9)
    try:
        await connection.execute(FILL.format(s=schema_of(address)), "free", "", 20, 0)
        assert await blocks(connection, address) < 200
        want = ClaimRequest(worker="w", ttl=10**9, limit=5)
        taken = [claimed.run.flow for _ in range(4) for claimed in await store.claim(want)]
        assert taken == ["free"] * 20
        assert await store.claim(want) == []
    finally:
        await connection.close()
        await store.close()
