"""Runs that wait at a hold, and a sweeper over their store."""

from __future__ import annotations

from typing import Any

from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.testing.conformance.kit import StoreKit
from holdfast.testing.conformance.leases import park
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxState
from holdfast.types.status import RunStatus
from tests.holds.timing.places import HOUR, MINUTE


async def asked(kit: StoreKit, **given: Any) -> HoldId:
    """A run that is parked at a hold which is due in two hours."""
    now = kit.clock.now()
    fields = {"expires_at": now + 2 * HOUR, "original_timeout": 2 * HOUR, "assignee": "user:dana",
              "assignee_type": "user", "assignee_value": "dana"}  # fmt: skip
    lease = await kit.claimed()
    hold = await kit.asked(lease, kit.new_hold(**{**fields, **given}))
    await park(kit.store, lease, status=RunStatus.pending_input)
    await delivered(kit, OutboxState.done)
    return hold


async def delivered(kit: StoreKit, state: OutboxState) -> None:
    """Everything that was to be told came to this end."""
    for message in await kit.store.claim_outbox(limit=100, lease=MINUTE):
        await kit.store.finish_outbox(message.id, attempt=message.attempts, state=state, error="as said")


def sweeper(kit: StoreKit, **given: Any) -> HoldSweeper:
    return HoldSweeper(kit.store, kit.clock, **given)


async def mail(kit: StoreKit, run: RunId) -> list[tuple[str, bytes]]:
    return [(row.kind, row.payload) for row in (await kit.store.pending(run))[1]]


async def told(kit: StoreKit, hold: HoldId, topic: str) -> int:
    return len([row for row in await kit.store.list_outbox(hold=hold) if row.topic == topic])


async def actions(kit: StoreKit, hold: HoldId) -> list[str]:
    return [row.action for row in await kit.store.audit("default", hold=hold)]
