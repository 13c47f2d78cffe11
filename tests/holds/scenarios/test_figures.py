"""What a review found in figures: what they counted that they should not, and what they did not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast import Flow, Holdfast, Policy, Rule
from holdfast.errors import HoldfastError
from holdfast.holds.queries import metrics
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldFilter
from holdfast.types.outbox import OutboxState
from holdfast.types.terms import Actor
from tests.holds.actions.scene import ADMIN, DANA, FINN, SAM, Scene

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MX-1")]


@pytest.fixture
async def scene(anyio_backend: str) -> AsyncIterator[Scene]:
    clock = FakeClock()
    small = Policy("small", Rule(name="all", when="flow == 'refund' && priority == 'low'", decide="approve"))
    async with Holdfast("memory:", clock=clock, policies=small) as hf:
        yield Scene(hf, clock, await hf.holds())


async def test_only_refused_decisions_are_conflicts(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    await scene.holds.resolve(SAM, row.id, "approve")
    for act in (scene.holds.cancel, scene.holds.claim, scene.holds.release):
        with pytest.raises(HoldfastError):
            await act(ADMIN, row.id)
    assert (await scene.holds.metrics(ADMIN)).conflict_rate == 0
    with pytest.raises(HoldfastError):
        await scene.holds.resolve(FINN, row.id, "reject")
    assert (await scene.holds.metrics(ADMIN)).conflict_rate == 0.5


async def test_the_time_to_a_decision_is_that_of_people(scene: Scene) -> None:
    small = Flow("refund", effect="pure")
    small.hold("approve", prompt="Pay 2?", options=["approve", "reject"], priority="low")
    assert (await small.run({}, on=scene.hf)).completed
    row = await scene.asks()
    scene.clock.advance(minutes=10)
    await scene.holds.resolve(DANA, row.id, "approve")
    figures = await scene.holds.metrics(ADMIN)
    assert (figures.time_to_decision.count, figures.time_to_decision.p50) == (1, 600)
    assert figures.auto_rate == 0.5


async def test_a_deadline_that_nobody_met_is_a_breach_whatever_came_of_it(scene: Scene) -> None:
    await scene.asks(timeout="1h", on_timeout="cancel")
    scene.clock.advance(hours=2)
    assert (await scene.holds.metrics(ADMIN)).breach_rate == 1
    await HoldSweeper(scene.holds.store, scene.clock).sweep()
    assert (await scene.holds.metrics(ADMIN)).breach_rate == 1


async def test_messages_that_were_given_up_count_for_a_caller_who_sees_their_holds(scene: Scene) -> None:
    await scene.asks()
    store = scene.holds.store
    (message,) = await store.claim_outbox(limit=1, lease=1)
    await store.finish_outbox(message.id, attempt=message.attempts, state=OutboxState.dead)
    assert (await scene.holds.metrics(DANA)).notifier_failures == 1
    assert (await scene.holds.metrics(Actor(id="user:nobody@acme"))).notifier_failures == 0


async def test_figures_are_the_same_of_few_and_of_many(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        row = await scene.asks()
        scene.clock.advance(minutes=1)
        await scene.holds.claim(DANA, row.id)
        await scene.holds.seen(DANA, row.id)
    where = HoldFilter(created_from=row.created_at)
    few = [await scene.holds.metrics(ADMIN), await scene.holds.metrics(ADMIN, where=where)]
    monkeypatch.setattr(metrics, "FEW", 0)
    assert few == [await scene.holds.metrics(ADMIN), await scene.holds.metrics(ADMIN, where=where)]
    assert [each.time_to_claim.count for each in few] == [3, 1]
