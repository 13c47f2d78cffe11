"""Reminders on real stores: who is due is asked for once, and nothing piles up."""

from __future__ import annotations

import pytest

from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.protocols import Store
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.hold import HoldChange, Note
from holdfast.types.outbox import OutboxState
from tests.holds.timing.places import HOUR, MINUTE
from tests.holds.timing.waits import asked, delivered, sweeper, told

pytestmark = pytest.mark.anyio


@pytest.mark.covers("RE-1", "RE-5", "HOLD-TIME-02")
async def test_many_sweepers_at_once_ask_for_one_ping(kit: StoreKit) -> None:
    hold = await asked(kit, expires_at=None, reminder_interval=30, remind_at=kit.clock.now() + 30 * MINUTE)
    kit.clock.advance(minutes=31)

    async def contend(store: Store, _: int) -> int:
        return (await HoldSweeper(store, kit.clock).sweep()).reminded

    assert sum(await kit.race(4, contend)) == 1
    assert await told(kit, hold, "hold.reminded") == 1
    assert (await kit.hold(hold)).reminder_count == 0


@pytest.mark.covers("RE-3", "HOLD-TIME-02")
async def test_pings_that_nobody_delivers_do_not_pile_up(kit: StoreKit) -> None:
    hold = await asked(kit, expires_at=None, reminder_interval=15, remind_at=kit.clock.now() + 15 * MINUTE)
    for _ in range(20):
        kit.clock.advance(minutes=15)
        await sweeper(kit).sweep()

    assert await told(kit, hold, "hold.reminded") == 1


@pytest.mark.covers("RE-2")
async def test_a_ping_that_was_given_up_is_followed_by_another(kit: StoreKit) -> None:
    hold = await asked(kit, expires_at=None, reminder_interval=15, remind_at=kit.clock.now() + 15 * MINUTE)
    kit.clock.advance(minutes=15)
    await sweeper(kit).sweep()
    await delivered(kit, OutboxState.dead)
    kit.clock.advance(minutes=15)
    await sweeper(kit).sweep()

    assert await told(kit, hold, "hold.reminded") == 2
    assert (await kit.hold(hold)).reminder_count == 0


@pytest.mark.covers("RE-4")
@pytest.mark.parametrize(("kind", "pinged"), [("user", [0, 1]), ("group", [1, 1])])
async def test_a_snooze_of_the_assignee_puts_the_ping_off(
    kit: StoreKit, kind: str, pinged: list[int]
) -> None:
    """One's own sleep is not a group's, be it called the same."""
    hold = await asked(kit, assignee_type=kind, expires_at=None, reminder_interval=15,
                       remind_at=kit.clock.now() + 15 * MINUTE)  # fmt: skip
    row, now = await kit.hold(hold), kit.clock.now()
    notes = tuple(
        Note(hold=hold, kind="snooze", slot=who, person=f"user:{who}", at=now, until=now + until)
        for who, until in (("dana", 2 * HOUR), ("sam", 9 * HOUR))
    )
    await kit.store.change_hold(HoldChange(hold=hold, version=row.version, at=now, notes=notes))
    seen: list[int] = []
    for _ in range(2):
        kit.clock.advance(minutes=60)
        await sweeper(kit).sweep()
        seen.append(await told(kit, hold, "hold.reminded"))

    assert seen == pinged
