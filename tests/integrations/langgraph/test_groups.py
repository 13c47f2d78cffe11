"""Puts of several threads in one statement, on PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from holdfast.integrations.langgraph import HoldfastSaver
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
