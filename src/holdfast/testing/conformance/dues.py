"""What sweeps look for: deadlines, reminders, placed decisions, outcomes that no run has consumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.testing.conformance.hold_changes import asked, closed, decided, to, written
from holdfast.types.hold import Due
from holdfast.types.record import Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit

FIELDS = {Due.expiry: "expires_at", Due.reminder: "remind_at", Due.placed: "placed_until"}


async def due(kit: StoreKit, what: Due, now: int, limit: int = 9) -> list[str]:
    return [row.id for row in await kit.store.due_holds(what, now=now, limit=limit)]


@pytest.mark.anyio
class DueSuite:
    @pytest.mark.parametrize("what", list(FIELDS))
    async def test_open_holds_fall_due_by_their_instant(self, kit: StoreKit, what: Due) -> None:
        field = FIELDS[what]
        later, sooner, never = [await asked(kit) for _ in range(3)]
        later = await written(kit, to(later, {field: 20}))
        sooner = await written(kit, to(sooner, {field: 10}))
        assert await due(kit, what, 9) == []
        assert await due(kit, what, 10) == [sooner.id]
        assert await due(kit, what, 99) == [sooner.id, later.id]
        assert await due(kit, what, 99, limit=1) == [sooner.id]
        assert await kit.store.next_due_hold() == 10
        await written(kit, to(sooner, decided()))
        assert await due(kit, what, 99) == [later.id]
        assert await kit.store.next_due_hold() == 20
        await written(kit, to(later, {field: None}))
        assert await due(kit, what, 99) == []
        assert await kit.store.next_due_hold() is None
        assert never.id not in await due(kit, what, 99)

    async def test_next_is_the_earliest_of_all_kinds(self, kit: StoreKit) -> None:
        hold = await asked(kit, expires_at=30, remind_at=20)
        assert await kit.store.next_due_hold() == 20
        row = await written(kit, to(hold, {"placed_until": 10}))
        assert await kit.store.next_due_hold() == 10
        await written(kit, to(row, {"placed_until": None, "remind_at": None}))
        assert await kit.store.next_due_hold() == 30

    async def test_deadline_is_paused_while_a_question_is_open(self, kit: StoreKit) -> None:
        hold = await asked(kit, expires_at=10)
        paused = await written(kit, to(hold, {"paused_at": 5}))
        assert await due(kit, Due.expiry, 99) == []
        assert await kit.store.next_due_hold() is None
        await written(kit, to(paused, {"paused_at": None}))
        assert await due(kit, Due.expiry, 99) == [hold.id]

    async def test_history_from_elsewhere_is_never_due(self, kit: StoreKit) -> None:
        hold = await asked(kit, expires_at=10, remind_at=10)
        history = await kit.store.history(hold.run)
        assert history is not None
        await kit.store.delete_run(hold.run)
        await kit.store.adopt(history)
        assert [await due(kit, what, 99) for what in Due] == [[], [], [], []]
        assert await kit.store.next_due_hold() is None

    @pytest.mark.parametrize("fields", [decided(), closed(HoldStatus.cancelled), closed(HoldStatus.expired)])
    async def test_outcome_is_due_until_the_run_took_it_in(
        self, kit: StoreKit, fields: dict[str, Any]
    ) -> None:
        lease = await kit.claimed()
        hold = await kit.hold(await kit.asked(lease))
        assert await due(kit, Due.resume, 99) == []
        await written(kit, to(hold, fields))
        at = fields.get("resolved_at") or fields["closed_at"]
        assert await due(kit, Due.resume, at - 1) == []
        assert await due(kit, Due.resume, at) == [hold.id]
        await kit.written(lease, kit.record(2, side=Side(resumed_holds=[hold.id])))
        assert await due(kit, Due.resume, 99) == []

    async def test_outcome_is_not_due_for_a_run_that_ended(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        first = await kit.hold(await kit.asked(lease))
        second = kit.new_hold(2, ordinal=1)
        await kit.written(lease, kit.record(2, side=Side(holds=[second])))
        await written(kit, to(first, decided()))
        end = Side(status=RunStatus.failed, error="boom", close_all_holds="over")
        await kit.written(lease, kit.record(3, side=end))
        assert await due(kit, Due.resume, kit.clock.now()) == []
        await kit.store.send(lease.run, "resume", b"")
        assert await due(kit, Due.resume, kit.clock.now()) == [first.id], "not what its own engine closed"
