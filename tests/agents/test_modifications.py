"""What a person changes when they approve: the arguments of a call, the answer, what is to be done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import AnswerInvalidError, Approval, Flow, Holdfast, RunStatus, Scripted, tool_call
from holdfast.agents.agent import Agent
from holdfast.agents.messages import FINAL
from holdfast.testing.clock import FakeClock
from tests.agents.helpers import World, a_flow, results, spoken
from tests.agents.test_approvals import PAY, decide

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-LIFE-15", "G-47")
@pytest.mark.parametrize("name", ["arguments", "tool_args"])
async def test_changed_arguments_and_instructions_reach_the_call_and_the_model(
    hf: Holdfast, name: str
) -> None:
    world = World()
    model = Scripted(PAY, "Paid less.")
    flow = a_flow(model, world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    changes = {name: {"amount": 50}, "instructions": "Tell them that more comes in June."}
    await decide(hf, result.holds[0], "approve", data={"modifications": changes})
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert world.done == ["pay 50 c-9"]
    (told_model,) = results(model.requests[-1])
    assert "A person adds: Tell them that more comes in June." in told_model.text


@pytest.mark.covers("HOLD-LIFE-15")
async def test_changes_of_a_refused_call_change_nothing(hf: Holdfast) -> None:
    world = World()
    flow = a_flow(Scripted(PAY, "Not paid."), world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    await decide(hf, result.holds[0], "reject", data={"modifications": {"arguments": {"amount": 1}}})
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert world.done == []


@pytest.mark.covers("HOLD-LIFE-15", "G-47")
@pytest.mark.parametrize(
    "changes", [{"arguments": {"amount": "much"}}, {"tone": "warm"}, {"instructions": 3}]
)
async def test_changes_that_do_not_fit_are_refused_and_it_stays_open(hf: Holdfast, changes: Any) -> None:
    flow = a_flow(Scripted(PAY, "Paid."), World().pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    with pytest.raises(AnswerInvalidError):
        await decide(hf, result.holds[0], "approve", data={"modifications": changes})
    assert (await flow.resume(result.run_id, on=hf)).status is RunStatus.pending_input


@pytest.mark.covers("HOLD-LIFE-15", "G-47")
@pytest.mark.parametrize("changed", [None, "Rather: tomorrow."])
async def test_an_answer_counts_when_a_person_lets_it_pass(hf: Holdfast, changed: str | None) -> None:
    model = Scripted("Today.")
    flow = a_flow(model, approval=Approval(assignee="role:editor", prompt="Say {{answer}}?"))
    result = await flow.run({"prompt": "When?"}, on=hf)
    (hold,) = result.holds
    assert (hold.prompt, hold.assignee) == ("Say Today.?", "role:editor")
    data = {"modifications": {"output": changed}} if changed else None
    await decide(hf, hold, "approve", data=data)
    done = await flow.resume(result.run_id, on=hf)
    assert done.state["answer"] == (changed or "Today.")
    assert len(model.requests) == 1


@pytest.mark.covers("HOLD-LIFE-15", "G-47")
async def test_an_answer_that_is_refused_is_repaired_by_the_model(hf: Holdfast) -> None:
    model = Scripted("Today.", "Tomorrow.")
    flow = a_flow(model, approval=True)
    result = await flow.run({"prompt": "When?"}, on=hf)
    changes = {"modifications": {"instructions": "Look at the calendar."}}
    await decide(hf, result.holds[0], "reject", comment="We are closed.", data=changes)
    result = await flow.resume(result.run_id, on=hf)
    assert spoken(model.requests[-1])[-1] == (
        "user",
        "A person did not accept this answer. We are closed. Look at the calendar.",
    )
    assert result.holds[0].prompt == "The agent bot has an answer. Accept it?"
    await decide(hf, result.holds[0], "approve")
    assert (await flow.resume(result.run_id, on=hf)).state["answer"] == "Tomorrow."


class Plan(msgspec.Struct):
    days: int


@pytest.mark.covers("HOLD-LIFE-15")
async def test_a_typed_answer_is_changed_to_one_of_its_type(hf: Holdfast) -> None:
    flow = a_flow(Scripted(tool_call(FINAL, days=3)), returns=Plan, approval="answer.days > 2")
    result = await flow.run({"prompt": "Plan"}, on=hf)
    with pytest.raises(AnswerInvalidError):
        await decide(hf, result.holds[0], "approve", data={"modifications": {"output": {"days": "few"}}})
    await decide(hf, result.holds[0], "approve", data={"modifications": {"output": {"days": 2}}})
    assert (await flow.resume(result.run_id, on=hf)).state["answer"] == {"days": 2}
    short = a_flow(Scripted(tool_call(FINAL, days=1)), returns=Plan, approval="answer.days > 2")
    assert (await short.run({"prompt": "Plan"}, on=hf)).completed


@pytest.mark.covers("HOLD-LIFE-15")
async def test_a_sub_agent_is_reported_what_a_person_adds(hf: Holdfast) -> None:
    helper = Agent("helper", model=Scripted("Done."))
    flow = a_flow(Scripted(tool_call("helper", task="Find it"), "Found."), helper.as_tool(approval=True))
    result = await flow.run({"prompt": "Go"}, on=hf)
    changes = {"arguments": {"task": "Find it, but only in the archive"}, "instructions": "Take your time."}
    await decide(hf, result.holds[0], "approve", data={"modifications": changes})
    assert (await flow.resume(result.run_id, on=hf)).completed
    asked = helper.model.requests[0]  # type: ignore[attr-defined]
    assert spoken(asked)[-1] == ("user", "Find it, but only in the archive\n\nTake your time.")


@pytest.mark.covers("G-47")
@pytest.mark.parametrize(
    ("silence", "done"), [("reject", []), ("approve", ["pay 250 c-9"]), (None, []), ("error", [])]
)
async def test_silence_means_what_the_approval_says(silence: str | None, done: list[str]) -> None:
    clock = FakeClock(auto=True)
    world = World()
    flow: Flow = a_flow(
        Scripted(PAY, "Well."), world.pays(approval=Approval(timeout="30s", on_timeout=silence))
    )
    async with Holdfast("memory:", clock=clock) as hf:
        result = await flow.run({"prompt": "Pay"}, on=hf)
        assert world.done == []
        clock.advance(minutes=1)
        await (await hf.service()).runtime.sweeper.sweep()
        assert (await flow.resume(result.run_id, on=hf)).completed
        assert world.done == done
