"""Puts of several threads in one statement, on PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.types.graph_thread import GraphClaim, GraphExtension
from tests.deadlines import HANG
from tests.integrations.langgraph.test_saver import checkpoint_of, config_of
from tests.services import postgres

driver: Any = asyncpg


@pytest.mark.anyio
@pytest.mark.covers("IN-12")
async def test_a_thread_that_is_locked_does_not_hold_up_those_put_with_it() -> None:
    await postgres.empty("locked_savers")
    address = postgres.with_setting(postgres.database(), schema="locked_savers")
    async with HoldfastSaver.open(address) as saver, saver.own("a"), saver.own("b"):
        other = await driver.connect(postgres.database())
        lock = other.transaction()
        await lock.start()
        await other.fetch("SELECT FROM locked_savers.graph_threads WHERE thread = 'a' FOR UPDATE")
        puts = [
            asyncio.ensure_future(saver.aput(config_of(thread), checkpoint_of("1", {}, {}), {}, {}))
            for thread in ("a", "b")
        ]
        await puts[1]
        assert not puts[0].done()
        assert await saver.aget_tuple(config_of("b")) is not None
        await lock.rollback()
        await other.close()
        await puts[0]
        assert await saver.aget_tuple(config_of("a")) is not None


@pytest.mark.anyio
@pytest.mark.covers("IN-22")
async def test_a_thread_that_is_locked_does_not_hold_up_the_renewal_of_others() -> None:
    await postgres.empty("renewed_savers")
    address = postgres.with_setting(postgres.database(), schema="renewed_savers")
    async with HoldfastSaver.open(address, lease="10m") as saver, saver.own("a"), saver.own("b"):
        store = await saver.store()
        claims = {row.thread: row.claim for row in await store.graph_threads("default")}
        other = await driver.connect(postgres.database())
        lock = other.transaction()
        await lock.start()
        await other.fetch("SELECT FROM renewed_savers.graph_threads WHERE thread = 'a' FOR UPDATE")
        given = [GraphExtension(tenant="default", thread=t, claim=claims[t]) for t in ("a", "b") if claims[t]]
        wrong = GraphExtension(tenant="default", thread="b", claim=GraphClaim("nobody", 1, 0))
        renewed = asyncio.ensure_future(store.extend_graph_claims([*given, wrong], 3_600_000_000))
        try:
            async with asyncio.timeout(HANG):
                while (await store.graph_threads("default", thread="b"))[0].claim == claims["b"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert not renewed.done()
        finally:
            await lock.rollback()
            await other.close()
        assert await renewed == [True, True, False]


@pytest.mark.anyio
@pytest.mark.covers("IN-23")
async def test_a_claim_whose_caller_was_cancelled_is_given_up() -> None:
    await postgres.empty("cancelled_savers")
    address = postgres.with_setting(postgres.database(), schema="cancelled_savers")
    async with HoldfastSaver.open(address, lease="10m") as saver, HoldfastSaver.open(address) as reader:
        async with reader.own("a"):
            await reader.aput(config_of("a"), checkpoint_of("1", {}, {}), {}, {})
        store = await reader.store()
        other = await driver.connect(postgres.database())
        lock = other.transaction()
        await lock.start()
        await other.fetch("SELECT FROM cancelled_savers.graph_threads WHERE thread = 'a' FOR UPDATE")
        claimed = asyncio.ensure_future(saver.owners.claim("a"))
        while not await other.fetch("SELECT FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        claimed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claimed
        await lock.rollback()
        await other.close()
        async with asyncio.timeout(60):
            while (await store.graph_threads("default"))[0].claim is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await saver.owners.claim("a")
