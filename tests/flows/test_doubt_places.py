"""A question about an unknown outcome names the one effect that it is about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Context, EffectInDoubtError, Flow, RunStatus
from holdfast.model.branch_ordinals import shown_call
from tests.flows.places import Place, open_holds

pytestmark = pytest.mark.anyio

ORDERS = [{"order": "A1", "card": "4111"}, {"order": "A2", "card": "4222"}]


async def act(item: Any) -> None: ...


def child() -> Flow:
    made = Flow("child")

    @made.node(effect="external")
    async def charge(s: Any) -> None: ...

    return made


def mapped() -> Flow:
    flow = Flow("mapped", secrets=["orders.*.card"])
    flow.map("each", over="input.orders", body=act, into="done", effect="external", item_key="order")
    return flow


def mapped_flow() -> Flow:
    flow = Flow("mapped_flow")
    flow.map("each", over="input.orders", body=child(), into="done")
    return flow


def inside() -> Flow:
    flow = Flow("inside")
    flow.subflow("billing", child(), inputs={"n": "1"})
    return flow


def looped() -> Flow:
    flow = Flow("looped")

    @flow.node(effect="external")
    async def turn(s: Any) -> dict[str, Any]:
        return {"n": s.get("n", 0) + 1}

    flow.loop("turn", "turn", when="n < 5", max=5)
    return flow


def scripted() -> Flow:
    flow = Flow("scripted")

    @flow.script
    async def go(s: Any, ctx: Context) -> None:
        for _ in range(3):
            await ctx.step("charge", int, effect="external")

    return flow


def branched() -> Flow:
    flow = Flow("branched")

    @flow.script
    async def go(s: Any, ctx: Context) -> None:
        async def one(item: Any) -> Any:
            return await ctx.step("charge", int, effect="external", key=item["order"])

        await ctx.map(one, s["orders"])

    return flow


PLACES = [
    (mapped, 1, 'Did node \'each[0]\' (item A1: {"card":"***","order":"A1"}) take effect?'),
    (mapped_flow, 1, 'Did node \'each[0]/charge\' (item {"card":"4111","order":"A1"}) take effect?'),
    (inside, 1, "Did node 'billing/charge' take effect?"),
    (looped, 3, "Did node 'turn' (visit 3) take effect?"),
    (scripted, 2, "Did step 'charge' (2nd call) of node 'go' take effect?"),
    (branched, 1, "Did step 'charge' (1st branch, key 'A1') of node 'go' take effect?"),
]


@pytest.mark.parametrize(("make", "nth", "question"), PLACES, ids=[make.__name__ for make, *_ in PLACES])
@pytest.mark.covers("CORE-FLOW-33")
async def test_doubt_names_the_place_and_the_item(place: Place, make: Any, nth: int, question: str) -> None:
    flow = make()
    point = "after_intent" if make in (scripted, branched) else "after_handler"
    run = await place.crash(flow, {"orders": ORDERS}, point, nth=nth)
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    asked = [hold.prompt.partition("?")[0] + "?" for hold in await open_holds(hf, run)]
    assert question in asked
    assert len(set(asked)) == len(asked)
    # What the engine decides again is what the journal has.
    again = await (await hf.service()).replay(run)
    assert again.same, again.difference


@pytest.mark.covers("CORE-FLOW-33")
async def test_doubt_has_the_item_among_its_facts_without_its_secrets(place: Place) -> None:
    flow = mapped()
    run = await place.crash(flow, {"orders": ORDERS}, "after_handler")
    hf = await place.hf()
    await flow.resume(run, on=hf)
    facts = [msgspec.json.decode(hold.context) for hold in await open_holds(hf, run)]
    shown = {each["place"]: (each["key"], each["item"]) for each in facts}
    assert shown == {
        f"each[{at}]": (name, {"order": name, "card": "***"}) for at, name in enumerate(("A1", "A2"))
    }


@pytest.mark.covers("CORE-FLOW-33")
async def test_doubt_about_a_recorded_effect_names_its_key(place: Place) -> None:
    hf = await place.hf()

    @hf.effect(key="refund-{{order}}")
    async def refund(order: str) -> None:
        raise ConnectionError("connection lost")

    with pytest.raises(EffectInDoubtError) as doubt:
        await refund("A17")
    (hold,) = await open_holds(hf, doubt.value.facts["run"])
    assert hold.prompt.startswith("Did effect 'refund' with the key 'refund-A17' take effect?")


@pytest.mark.parametrize(
    ("ordinal", "shown"),
    [
        ("0", "1st call"),
        ("10", "11th call"),
        ("21", "22nd call"),
        ("=paid/now", "key 'paid/now'"),
        ("2/0/0", "1st branch, 1st call"),
        ("+import/+A%2F17/=a/=b", "branch 'A/17', key 'a/=b'"),
        ("0/1/2/0/4", "2nd branch, 1st branch, 5th call"),
    ],
)
def test_call_inside_a_script_is_named_as_people_count(ordinal: str, shown: str) -> None:
    assert shown_call(ordinal) == shown
