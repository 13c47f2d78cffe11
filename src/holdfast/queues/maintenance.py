"""What a worker does for queues beside its runs. Any number of workers may do it."""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.errors import StoreError
from holdfast.queues.bridge import QueueBridge, ReconcileCounts
from holdfast.queues.relay import QueueRelay
from holdfast.queues.run_claims import RunClaims
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import MICROS, Clock
from holdfast.types.document import Document
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.outbox import QUEUE, OutboxMessage, OutboxState
from holdfast.types.queue_message import MessageFilter, MessageRow

_EVERY: Final = 1.0  # seconds between two rounds of a worker
_BATCH: Final = 500
_RECONCILE: Final = 300 * MICROS
RECONCILED: Final = "queues_reconciled"
_TURN: Final = "last"


class QueueMaintenance:
    store: Store
    clock: Clock
    bridge: QueueBridge
    relay: QueueRelay
    run_claims: RunClaims
    reconciled_at: int

    async def serve(self) -> None:
        """Until cancelled."""
        receiving = asyncio.create_task(self.relay.serve())
        try:
            due = self.clock.monotonic()
            while True:
                seen = self.store.queue_changes()
                try:
                    # What this process commits wakes it at once; the round is for what others commit.
                    if self.clock.monotonic() >= due:
                        due = self.clock.monotonic() + _EVERY
                        await self.work()
                    else:
                        await self.bridge.work()
                except StoreError as error:
                    log.warning("queues could not be served: %s", error)
                if receiving.done():
                    receiving.result()  # an unexpected error: the caller starts both again
                await self.store.wait_queues(seen, max(0.0, due - self.clock.monotonic()))
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
            await self.relay.close()

    async def work(self) -> None:
        """Publish the messages of holds, sweep claims that have lapsed and messages whose time has passed."""
        await self.bridge.work()
        await self.run_claims.settle()
        while (await self.store.sweep_messages(limit=_BATCH, notice=self._ended)).total >= _BATCH:
            pass
        if self.store.now() - self.reconciled_at >= _RECONCILE and await self._is_its_turn():
            await self.bridge.reconcile(holds=await self._is_in_use())

    def _ended(self, row: MessageRow) -> list[OutboxMessage]:
        return self.relay.notice(row.id, row.scope, row.queue, f"{row.state}:{row.updated_at}")

    async def _is_its_turn(self) -> bool:
        """One worker of a store reconciles at a time: the one that writes the time of the last turn."""
        last = await self.store.document(DEFAULT_TENANT, RECONCILED, _TURN)
        now = self.reconciled_at = self.store.now()
        if last is not None and now - last.updated_at < _RECONCILE:
            self.reconciled_at = last.updated_at
            return False
        mine = Document(tenant=DEFAULT_TENANT, kind=RECONCILED, name=_TURN, body=b"{}")
        expect = 0 if last is None else last.revision
        return await self.store.put_document(mine, expect=expect) is not None

    async def _is_in_use(self) -> bool:
        """Most stores have no queues: their open holds need not be read."""
        if await self.store.list_messages(MessageFilter(), limit=1):
            return True
        return bool(await self.store.list_outbox(state=OutboxState.waiting, topic=QUEUE, limit=1))

    async def reconcile(self) -> ReconcileCounts:
        """Compare open holds with their messages, and repair what was missed."""
        await self.bridge.work()
        return await self.bridge.reconcile()
