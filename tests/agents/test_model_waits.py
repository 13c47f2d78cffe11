"""A provider that asks to come back in minutes: the run waits on a durable timer, and no process has to."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Budget, ModelUnavailableError, Worker
from holdfast.types.ids import RunId
from tests.agents.conftest import Naps, a_model
from tests.agents.helpers import World, a_flow
from tests.agents.provider import Answer, Provider, Refusal
from tests.flows.places import RUN, Place, told

pytestmark = pytest.mark.anyio


async def started(place: Place, flow: Any) -> Any:
    hf = await place.hf()
    await (await hf.service()).create(flow.compile(), {}, run_id=RUN)
    await Worker(flow, on=hf).run_until_idle()
    return hf


@pytest.mark.covers("CP2-L6")
async def test_the_run_waits_as_long_as_the_provider_asks_and_another_process_goes_on(
    place: Place, provider: Provider, kind: str, naps: Naps
) -> None:
    world = World()
    provider.says(
        Answer("I look.", [("c1", "look", {"place": "Kiel"})]),
        Refusal(429, {"retry-after": "1800"}),
        Refusal(503, {"retry-after": "600"}),
        Answer("Calm."),
    )
    flow = a_flow(a_model(kind, provider, naps), world.looks(), prompt="Go", budget=Budget(tokens=100_000))
    hf = await started(place, flow)
    assert (await flow.result(RUN, on=hf)).status == "waiting"
    assert len(provider.seen) == 2

    place.clock.advance(minutes=29)
    place.lapse()
    later = await place.hf()
    await Worker(flow, on=later).run_until_idle()
    assert len(provider.seen) == 2

    place.clock.advance(minutes=1)
    await Worker(flow, on=later).run_until_idle()
    assert len(provider.seen) == 3
    place.clock.advance(minutes=10)
    last = await place.hf()
    await Worker(flow, on=last).run_until_idle()
    result = await flow.result(RUN, on=last)
    assert result.expect().state["answer"] == "Calm."
    # Neither the tool nor an answer was asked for again, and what was sent is the same.
    assert world.done == ["look Kiel"]
    assert len(set(provider.bodies[1:])) == 1
    assert naps.taken == []
    assert (await last.replay(RunId(RUN))).same
    said = [str(event.data) for event in await told(last, RUN, "node.emitted")]
    assert sum("asks to wait 1800 s" in each for each in said) == 1


@pytest.mark.covers("CP2-L6")
async def test_a_wait_of_more_than_an_hour_and_one_too_many_fail(place: Place, provider: Provider) -> None:
    provider.says(Refusal(429, {"retry-after": "3601"}))
    flow = a_flow(a_model("openai", provider), prompt="Go")
    hf = await started(place, flow)
    result = await flow.result(RUN, on=hf)
    assert result.status == "failed"
    assert result.error is not None
    assert ModelUnavailableError.code in str(result.error)
    assert "3601" in str(result.error)


async def test_a_provider_that_puts_off_for_ever_is_given_up(place: Place, provider: Provider) -> None:
    provider.says(*[Refusal(429, {"retry-after": "120"})] * 9)
    flow = a_flow(a_model("openai", provider), prompt="Go")
    hf = await started(place, flow)
    for _ in range(8):
        place.clock.advance(minutes=2)
        await Worker(flow, on=hf).run_until_idle()
    assert (await flow.result(RUN, on=hf)).status == "failed"
    assert len(provider.seen) == 6


async def test_what_may_have_been_paid_before_a_wait_counts(place: Place, provider: Provider) -> None:
    provider.says(Answer("Calm wat", cut=3), Refusal(429, {"retry-after": "120"}), Answer("Calm."))
    flow = a_flow(a_model("openai", provider), prompt="Go", budget=Budget(tokens=100_000))
    hf = await started(place, flow)
    place.clock.advance(minutes=2)
    await Worker(flow, on=hf).run_until_idle()
    result = await flow.result(RUN, on=hf)
    assert result.expect().state["answer"] == "Calm."
    # The attempt that broke off: all that was reserved for it; then the answer.
    assert result.totals["tokens"] > 16_384 + 15
