"""Every way to start a run over HTTP names everybody who had a hand in it as a starter of its holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from holdfast import Flow, Registrar, Worker
from holdfast.types.clock import iso
from tests.api.harness import Harness, harness_of

pytestmark = pytest.mark.anyio
HOUR = 3600 * 1_000_000


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        await Registrar(await found.hf.open()).put_group("default", "finance", ["dana", "sam", "ada"])
        yield found


async def _started(harness: Harness) -> None:
    await harness.ask("ada", "POST", "/v1/runs", {"flow": "pay"}, status=201)


async def _in_a_thread(harness: Harness) -> None:
    await harness.ask("ada", "POST", "/v1/threads/july/runs", {"flow": "pay"}, status=201)


async def _through_a_parent(harness: Harness) -> None:
    await harness.ask("ada", "POST", "/v1/runs", {"flow": "parent"}, status=201)


async def _set(harness: Harness, who: str, every: str = "1h") -> None:
    answer = await harness.send(who, "PUT", "/v1/schedules/nightly", {"flow": "pay", "every": every})
    assert answer.status_code < 300, answer.text


async def _triggered(harness: Harness) -> None:
    await _set(harness, "kim-admin")
    await harness.ask("ada", "POST", "/v1/schedules/nightly/trigger", {}, status=201)


async def _triggered_by_another(harness: Harness) -> None:
    await _set(harness, "ada")
    await harness.ask("kim-admin", "POST", "/v1/schedules/nightly/trigger", {}, status=201)


async def _changed_before_another_triggers(harness: Harness) -> None:
    await _set(harness, "kim-admin")
    await _set(harness, "ada", "2h")
    await harness.ask("kim-admin", "POST", "/v1/schedules/nightly/trigger", {}, status=201)


async def _filled_in_by_another(harness: Harness) -> None:
    await _set(harness, "ada")
    now = harness.clock.now() // HOUR * HOUR
    past = {"first": iso(now - HOUR), "last": iso(now - HOUR)}
    await harness.ask("kim-admin", "POST", "/v1/schedules/nightly/fill", past)


async def _of_a_schedule(harness: Harness) -> None:
    await _set(harness, "ada")
    harness.clock.advance(minutes=61)


WAYS: dict[str, Callable[[Harness], Awaitable[None]]] = {
    "a run": _started,
    "a thread": _in_a_thread,
    "a child run": _through_a_parent,
    "a trigger": _triggered,
    "a trigger of another": _triggered_by_another,
    "a changed schedule": _changed_before_another_triggers,
    "a past instant": _filled_in_by_another,
    "an instant": _of_a_schedule,
}


@pytest.mark.covers("SAFE-CHAIN-02")
@pytest.mark.parametrize("way", WAYS)
async def test_who_had_a_hand_in_the_start_of_a_run_does_not_approve_it(harness: Harness, way: str) -> None:
    pay = Flow("pay", effect="pure")
    pay.hold(
        "approve",
        prompt="Pay?",
        options=["approve", "reject"],
        assignee="group:finance",
        approval={"exclude": ["initiator"]},
    )
    parent = Flow("parent", effect="pure")

    @parent.node
    async def start(s: dict[str, object], ctx: object) -> None:
        await ctx.call(pay, {})  # type: ignore[attr-defined]

    worker = Worker(pay, parent, on=harness.hf)
    harness.hf.register(pay.program())
    harness.hf.register(parent.program())
    await WAYS[way](harness)
    await worker.run_until_idle()
    (hold,) = [each for each in await (await harness.hf.open()).holds(limit=10) if each.flow == "pay"]
    refused = await harness.decide("ada", hold.id)
    assert (refused.status_code, refused.json()["code"]) == (403, "excluded"), refused.text
    assert (await harness.decide("dana", hold.id)).status_code == 200
