"""Whoever is too fast waits: by actor, by hold, by link."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast, InputError, Pace, RateLimitedError
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.terms import Actor
from tests.holds.actions.scene import DANA, FOREIGN, SAM

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-SEC-15")]

SWEEP = Actor(id="system:expiry", channel="system")


def taken(pace: Pace, who: Actor, now: float, hold: str = "h", link: str | None = None) -> bool:
    try:
        pace.take(who, hold, int(now * MICROS), link=link)
    except RateLimitedError:
        return False
    return True


def test_actor_waits_when_they_are_too_fast_and_goes_on_evenly() -> None:
    pace = Pace(actor=3, seconds=60)
    assert [taken(pace, DANA, 0, hold) for hold in "abcd"] == [True, True, True, False]
    assert taken(pace, SAM, 0)
    assert [taken(pace, DANA, now) for now in (19, 20, 21, 40)] == [False, True, False, True]
    assert [taken(pace, DANA, 500) for _ in range(4)] == [True, True, True, False]
    assert all(taken(pace, SWEEP, 0) for _ in range(10)), "the instance itself is not held up"


def test_hold_and_link_are_counted_by_themselves_and_another_tenant_uses_up_nothing() -> None:
    pace = Pace(hold=2, link=1)
    assert [taken(pace, FOREIGN, 0) for _ in range(3)] == [True, True, False]
    assert [taken(pace, who, 0) for who in (DANA, SAM, DANA)] == [True, True, False]
    assert [taken(pace, DANA, 0, "other", link) for link in ("j", "j", "k")] == [True, False, True]


def test_try_that_is_refused_does_not_count() -> None:
    pace = Pace(actor=1, hold=1, seconds=1)
    assert taken(pace, DANA, 0)
    assert not taken(pace, SAM, 0.5), "the hold is not free"
    assert taken(pace, SAM, 0.5, "other")


@pytest.mark.parametrize("given", [{"actor": 0}, {"hold": -1}, {"link": 1, "seconds": 0}])
def test_pace_that_lets_nobody_do_anything_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="at least 1 action"):
        Pace(**given)


async def test_service_says_how_long_to_wait() -> None:
    clock = FakeClock()
    flow = Flow("asking", effect="pure")
    flow.hold("gate", prompt="Pay?", options=["approve", "reject"], assignee="user:dana@acme")
    async with Holdfast("memory:", clock=clock, pace=Pace(actor=2)) as hf:
        holds, hold = await hf.holds(), (await flow.run({}, on=hf)).holds[0].id
        for _ in range(2):
            await holds.comment(DANA, hold, "Hm.")
        with pytest.raises(
            RateLimitedError, match="more than 2 actions in 60 seconds by one actor"
        ) as caught:
            await holds.resolve(DANA, hold, "approve")
        assert (caught.value.status, caught.value.retryable) == (429, True)
        assert caught.value.facts["retry_after"] == 30
        assert (await holds.get(DANA, hold)).status == "pending"
        clock.advance(seconds=30)
        assert (await holds.resolve(DANA, hold, "approve")).row.status == "resolved"
