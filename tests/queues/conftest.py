"""An instance whose holds ask in a queue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.queues.service import QueueService
from holdfast.queues.settings import QueueSettings
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import MessageRow
from holdfast.types.terms import Actor, operator

PLACE = ("support", "reviews")
DANA = Actor(id="user:dana@acme")


class Harness:
    """`asks` opens a hold that asks in `support/reviews`; `queues` works on its message."""

    def __init__(self, hf: Holdfast, queues: QueueService, store: Store, clock: FakeClock) -> None:
        self.hf = hf
        self.queues = queues
        self.store = store
        self.clock = clock

    async def asks(self, queue: str | None = "support/reviews", **asked: Any) -> HoldRow:
        flow = Flow("refund", effect="pure")
        given = {"prompt": "Pay 250?", "options": ["approve", "reject"], "assignee": DANA.id, **asked}
        flow.hold("approve", queue=queue, **given)
        (hold,) = (await flow.run({"amount": 250}, on=self.hf)).holds
        return await self.hold(hold.id)

    async def hold(self, hold: str) -> HoldRow:
        row = await self.store.hold(HoldId(hold))
        assert row is not None
        return row

    async def message(self, hold: HoldRow) -> MessageRow:
        """Of an open or decided hold, after the bridge has worked."""
        await self.queues.work()
        row = await self.hold(hold.id)
        assert row.message_id is not None
        found = await self.store.queue_message(row.tenant, row.message_id)
        assert found is not None
        return found

    async def claimed(self, hold: HoldRow, by: str = DANA.id) -> MessageRow:
        row = await self.message(hold)
        return await self.queues.claim_one(Actor(id=by), *PLACE, row.id)

    async def actions(self, hold: str | None) -> list[str]:
        rows = await self.store.audit("default")
        return [row.action for row in rows if row.hold == hold]


def anybody() -> Actor:
    return operator("user:olga@acme")


@pytest.fixture
async def harness(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    clock = FakeClock()
    settings = QueueSettings(base_url="https://holdfast.example")
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        store = await hf.open()
        yield Harness(hf, await hf.queues(), store, clock)
