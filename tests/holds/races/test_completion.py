"""A decision that comes before its question is there to be seen: never lost, never taken twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from holdfast import Holdfast, RunBusyError
from holdfast.errors import HoldNotFoundError
from holdfast.holds.actions.decide import ResolveResult
from holdfast.holds.service import HoldService
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus, RunStatus
from tests.holds.races.acts import DANA
from tests.holds.races.race import Arena

pytestmark = pytest.mark.anyio


async def foreseen(arena: Arena, number: int) -> HoldRow:
    """The hold that a run of this number will ask: its id follows from the run's."""
    async with Holdfast("memory:", clock=FakeClock()) as elsewhere:
        run = str(UUID(int=number, version=4))
        (hold,) = (await arena.flow.run({"n": 1}, on=elsewhere, run_id=run)).holds
        return hold


@pytest.mark.covers("RC-9", "HOLD-PROOF-05", "HOLD-PROOF-01")
async def test_a_sender_that_knocks_until_the_question_is_there_is_heard_once(arena: Arena) -> None:
    """As a queue does that hands a completion over again until it is taken."""
    arena.asking()
    too_early: list[int] = []
    numbers = iter(range(1, 1000))

    async def over() -> HoldRow:
        return await foreseen(arena, next(numbers))

    async def asks(store: Store, row: HoldRow) -> Any:
        hf = Holdfast(store, clock=arena.clock)
        try:
            return await arena.flow.run({"n": 1}, on=hf, run_id=row.run)
        finally:
            await hf.close()

    async def knocks(store: Store, row: HoldRow) -> Any:
        for times in range(100_000):
            try:
                done = await HoldService(store).resolve(DANA, row.id, "approve", idempotency_key="message-1")
            except HoldNotFoundError:
                await asyncio.sleep(0)
            else:
                too_early.append(times)
                # Handed over once more: the bus did not hear that it was taken.
                again = await HoldService(store).resolve(DANA, row.id, "approve", idempotency_key="message-1")
                assert (done.replay, again.replay) == (False, True)
                return done
        return None

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        asked, answer = done
        assert not isinstance(asked, Exception), asked
        assert isinstance(answer, ResolveResult), answer
        try:
            assert (await arena.goes_on(row)).completed
        except RunBusyError:
            pytest.fail("whoever asked has not let go of the run")
        after = await arena.row(row.id)
        assert (after.status, await arena.effective(row)) == (HoldStatus.resolved, ["resolved"])
        assert after.resumed_at is not None
        assert (arena.payments(row), await arena.mail(row)) == (1, [])
        return "taken at once" if asked.status is RunStatus.completed else "found waiting"

    await arena.race(asks, knocks, judge=judge, over=over)
    assert any(too_early), "nobody came too early"


@pytest.mark.covers("RC-9", "HOLD-PROOF-05", "HOLD-BAD-03")
async def test_what_came_too_early_leaves_nothing_behind(arena: Arena) -> None:
    arena.asking()
    row = await foreseen(arena, 7)
    for _ in range(3):
        with pytest.raises(HoldNotFoundError):
            await arena.holds.resolve(DANA, row.id, "approve", idempotency_key="message-1")
    result = await arena.flow.run({"n": 1}, on=arena.hf, run_id=RunId(row.run))
    assert [hold.id for hold in result.holds] == [row.id]
    assert result.status is RunStatus.pending_input
    assert (await arena.audit(row))[0].action == "created"
    done = await arena.holds.resolve(DANA, row.id, "approve", idempotency_key="message-1")
    assert not done.replay
    assert (await arena.goes_on(row)).completed
