"""A hold node whose approver changes what they approve."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import AnswerInvalidError, Flow, FlowInvalidError, Holdfast
from holdfast.holds.interactions.builders import approval
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator

pytestmark = pytest.mark.anyio

MODIFIES = {"arguments": "call", "output": "draft", "instructions": "hints"}
GIVEN = {"call": {"amount": 250, "to": "c-9"}, "draft": "Dear all", "hints": ""}
CHANGES = {"arguments": {"amount": 50}, "output": "Hello", "instructions": "be brief"}
CHANGED = {"call": {"amount": 50, "to": "c-9"}, "draft": "Hello", "hints": "be brief"}


def a_flow(**hold: Any) -> Flow:
    flow = Flow("send", effect="pure")
    asked: dict[str, Any] = {"prompt": "Send?", "options": ["approve", "reject"], "modifies": MODIFIES}
    flow.hold("gate", **{**asked, **hold})

    @flow.node
    async def send(s: Any) -> dict[str, Any]:
        return {"sent": {name: s[name] for name in GIVEN}}

    flow.start("gate")
    flow.edge("gate", send)
    return flow


async def answered(flow: Flow, decision: str, data: Any) -> Any:
    async with Holdfast("memory:") as hf:
        result = await flow.run(GIVEN, on=hf)
        service = await hf.holds()
        await service.resolve(operator(), result.holds[0].id, decision=decision, response_data=data)
        done = await flow.resume(result.run_id, on=hf)
        assert done.completed, done.error
        return done.state["sent"]


@pytest.mark.covers("HOLD-LIFE-15", "G-47")
@pytest.mark.parametrize(
    ("decision", "data", "expected"),
    [
        ("approve", {"modifications": CHANGES}, CHANGED),
        ("approve", {"modifications": {"output": "Hello"}}, {**GIVEN, "draft": "Hello"}),
        ("approve", {"modifications": {"output": None}}, GIVEN),
        ("approve", None, GIVEN),
        ("reject", {"modifications": CHANGES}, GIVEN),
    ],
)
async def test_what_an_approver_changes_is_what_goes_on(decision: str, data: Any, expected: Any) -> None:
    assert await answered(a_flow(), decision, data) == expected


@pytest.mark.covers("HOLD-LIFE-15")
async def test_a_form_takes_the_changes_too() -> None:
    sections = [{"type": "decision", "options": ["approve", "reject"]}]
    flow = a_flow(options=None, sections=sections)
    assert await answered(flow, "approve", {"modifications": CHANGES}) == CHANGED
    ready = approval("Send?").for_hold()
    assert (
        await answered(a_flow(**{**ready, "options": None}), "approve", {"modifications": CHANGES}) == CHANGED
    )


@pytest.mark.covers("HOLD-LIFE-15")
@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize(
    "changes", [{"tone": "warm"}, {"arguments": "none"}, {"instructions": 3}, {"output": 1, "extra": 2}]
)
async def test_a_change_of_anything_else_is_refused_and_it_stays_open(changes: Any, form: bool) -> None:
    sections = [{"type": "decision", "options": ["approve", "reject"]}]
    flow = a_flow(options=None, sections=sections) if form else a_flow()
    async with Holdfast("memory:") as hf:
        result = await flow.run(GIVEN, on=hf)
        service = await hf.holds()
        with pytest.raises(AnswerInvalidError):
            await service.resolve(
                operator(), result.holds[0].id, decision="approve", response_data={"modifications": changes}
            )
        assert (await service.get(operator(), result.holds[0].id)).status is HoldStatus.pending


@pytest.mark.covers("HOLD-LIFE-15", "HOLD-BAD-02")
@pytest.mark.parametrize("modifies", [{"prompt": "x"}, {"output": "not a name"}])
def test_a_hold_that_modifies_what_there_is_not_is_refused(modifies: dict[str, str]) -> None:
    with pytest.raises(FlowInvalidError):
        a_flow(modifies=modifies).program()
