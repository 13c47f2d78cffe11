"""People inside an agent: approvals of tool calls, questions that a tool asks, and the prompts afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import (
    Agent,
    AnswerInvalidError,
    Approval,
    Context,
    Flow,
    Holdfast,
    InputError,
    RunStatus,
    Scripted,
    VersionMismatchError,
    ask_person,
    tool,
    tool_call,
)
from holdfast.agents.messages import FINAL, Message, ToolCall, unanswered_calls
from holdfast.types.hold import HoldRow
from tests.agents.conftest import KEY, a_model
from tests.agents.helpers import World, a_flow, asked, results
from tests.agents.provider import Answer, Provider
from tests.flows.places import HOT, Place, told

pytestmark = pytest.mark.anyio

PAY = tool_call("pay", amount=250, to="c-9")


async def decide(hf: Holdfast, hold: HoldRow, decision: str, **more: Any) -> None:
    await (await hf.service()).answer(hold.id, decision, **more)


@pytest.mark.covers("TOOL-AGENT-07", "RS-HITL-5", "R-17", "R-18")
async def test_an_approval_shows_the_call_and_lets_it_run_once(place: Place) -> None:
    world = World()
    model = Scripted(PAY, "Paid.")
    flow = a_flow(model, world.pays(approval=True, assignee="group:finance"))
    hf = await place.hf()
    result = await flow.run({"prompt": "Pay"}, on=hf)
    assert result.status is RunStatus.pending_input
    (hold,) = result.holds
    assert hold.type == "approval"
    assert hold.prompt == "The agent wants to run pay: amount 250, to c-9. Allow it?"
    assert hold.assignee == "group:finance"
    assert [option.id for option in hold.options or ()] == ["approve", "reject"]
    shown = json.loads(hold.context)
    assert shown["entity_id"] == "call_1_1"
    assert (shown["tool"], shown["arguments"]) == ("pay", {"amount": 250, "to": "c-9"})
    assert world.done == []
    (opened,) = await told(hf, result, "hold.opened")
    assert opened.data["entity_id"] == "call_1_1"
    assert opened.data["is_resumed"] is False
    # Looking at it again from elsewhere asks nothing anew, and tells the same question again.
    other = await place.hf()
    again = await flow.resume(result.run_id, on=other)
    assert [h.id for h in again.holds] == [hold.id]
    (repeated,) = await told(other, result, "hold.asked_again")
    assert repeated.data["is_resumed"] is True
    for name in ("entity_id", "prompt", "hold_id", "options", "type"):
        assert repeated.data[name] == opened.data[name]
    await decide(other, hold, "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert world.done == ["pay 250 c-9"]
    assert asked(model) == 2


@pytest.mark.covers("TOOL-AGENT-07", "RS-AGENT-4")
async def test_a_pending_call_is_in_the_checkpoint_exactly_as_the_model_made_it(place: Place) -> None:
    world = World()
    flow = a_flow(
        Scripted([tool_call("look", place="pier"), PAY], "Paid."), world.looks(), world.pays(approval=True)
    )
    hf = await place.hf()
    service = await hf.service()
    result = await flow.run({"prompt": "Pay"}, on=hf)
    for _ in range(2):
        agent = (await service.checkpoint(result.run_id, (await service.get(result.run_id)).head)).agents[
            "bot"
        ]
        assert agent["pending"] == [
            {"id": "call_1_2", "name": "pay", "arguments": '{"amount":250,"to":"c-9"}'}
        ]
        assert agent["turn"] == 1
        assert agent["calls"] == {"look": 1, "pay": 1}
        result = await flow.resume(result.run_id, on=await place.hf())
    await decide(hf, result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert world.done == ["look pier", "pay 250 c-9"]


@pytest.mark.covers("TOOL-AGENT-07")
@pytest.mark.parametrize(
    "data", [{"arguments": {"amount": 50}}, {"modifications": {"arguments": {"amount": 50}}}]
)
async def test_what_runs_is_what_was_approved_when_the_arguments_were_edited(hf: Holdfast, data: Any) -> None:
    world = World()
    model = Scripted(PAY, "Paid less.")
    flow = a_flow(model, world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    await decide(hf, result.holds[0], "approve", data=data, comment="not that much")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    # Given whole, the rest is the tool's default; as modifications, the rest is as the model said.
    to = "c-9"
    assert world.done == [f"pay 50 {to}"]
    (told_model,) = results(model.requests[-1])
    assert "other arguments" in told_model.text
    assert "not that much" in told_model.text
    assert '{"paid":50' in told_model.text


@pytest.mark.covers("TOOL-AGENT-07")
@pytest.mark.parametrize(
    "data",
    [
        {"arguments": {"amount": "lots"}},
        {"arguments": {}},
        {"arguments": {"amount": 1, "x": 2}},
        {"args": {}},
    ],
)
async def test_edited_arguments_that_the_tool_cannot_read_are_refused_at_the_answer(
    hf: Holdfast, data: Any
) -> None:
    world = World()
    flow = a_flow(Scripted(PAY, "Paid."), world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    with pytest.raises(AnswerInvalidError):
        await decide(hf, result.holds[0], "approve", data=data)
    assert world.done == []


@pytest.mark.covers("TOOL-AGENT-07")
async def test_the_model_is_informed_of_a_refusal_and_goes_on(hf: Holdfast) -> None:
    world = World()
    model = Scripted(PAY, "Then not.")
    flow = a_flow(model, world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    await decide(hf, result.holds[0], "reject", comment="wrong customer")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert result.state["answer"] == "Then not."
    assert world.done == []
    (said,) = results(model.requests[-1])
    assert said.failed
    assert "refused" in said.text
    assert "wrong customer" in said.text


@pytest.mark.covers("TOOL-AGENT-07")
@pytest.mark.parametrize(
    "approval",
    [
        "amount > 100",
        lambda arguments: arguments["amount"] > 100,
        Approval(when="amount > 100", prompt="Pay {{amount}}?"),
    ],
    ids=["expression", "function", "whole"],
)
async def test_a_person_is_asked_only_where_the_condition_holds(hf: Holdfast, approval: Any) -> None:
    world = World()
    flow = a_flow(Scripted(tool_call("pay", amount=100), PAY, "Paid."), world.pays(approval=approval))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    assert world.done == ["pay 100 c-9"]
    (hold,) = result.holds
    assert hold.prompt in ("Pay 250?", "The agent wants to run pay: amount 250, to c-9. Allow it?")


@pytest.mark.covers("TOOL-AGENT-07")
async def test_a_condition_that_fails_is_no_permission(hf: Holdfast) -> None:
    world = World()
    flow = a_flow(Scripted(PAY, "Paid."), world.pays(approval=lambda arguments: arguments["limit"] > 3))
    result = await flow.run({"prompt": "Pay"}, on=hf)
    assert result.status is RunStatus.pending_input
    assert world.done == []


async def test_a_changed_condition_does_not_enter_a_conversation_that_has_begun(place: Place) -> None:
    world = World()
    model = Scripted(tool_call("pay", amount=50), PAY, "Paid.")
    hf = await place.hf()
    result = await a_flow(model, world.pays(approval="amount > 100")).run({"prompt": "Pay"}, on=hf)
    assert world.done == ["pay 50 c-9"]
    await decide(hf, result.holds[0], "approve")
    # It would ask about a payment that is made.
    with pytest.raises(VersionMismatchError):
        await a_flow(model, world.pays(approval="amount > 10")).resume(result.run_id, on=hf)


@pytest.mark.covers("TOOL-AGENT-07", "RS-HITL-5")
async def test_nobody_answering_in_time_is_no_permission(place: Place) -> None:
    world = World()
    model = Scripted(PAY, "Then not.")
    flow = a_flow(model, world.pays(approval=Approval(timeout="1h")))
    hf = await place.hf()
    result = await flow.run({"prompt": "Pay"}, on=hf)
    place.clock.advance(hours=2)
    await (await hf.open()).fire_timers(limit=10)
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert world.done == []
    assert "not approved in time" in results(model.requests[-1])[0].text


@pytest.mark.covers("TOOL-AGENT-07", "TOOL-AGENT-08", "R-27", "R-28")
async def test_calls_of_one_turn_are_approved_one_by_one_and_answers_find_theirs(place: Place) -> None:
    world = World()
    calls = [tool_call("pay", amount=n) for n in (1, 2, 3)]
    model = Scripted(calls, "Done.")
    flow = a_flow(model, world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=await place.hf())
    holds = {json.loads(hold.context)["entity_id"]: hold for hold in result.holds}
    assert sorted(holds) == ["call_1_1", "call_1_2", "call_1_3"]
    assert len({hold.id for hold in holds.values()}) == 3
    hf = await place.hf()
    await decide(hf, holds["call_1_3"], "approve")
    result = await flow.resume(result.run_id, on=hf)
    # What is allowed is done; the others wait, and nothing is asked of the model.
    assert world.done == ["pay 3 c-9"]
    assert result.status is RunStatus.pending_input
    assert asked(model) == 1
    await decide(hf, holds["call_1_1"], "reject")
    await decide(hf, holds["call_1_2"], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert world.done == ["pay 3 c-9", "pay 2 c-9"]
    said = results(model.requests[-1])
    assert [message.call for message in said] == ["call_1_1", "call_1_2", "call_1_3"]
    assert [message.failed for message in said] == [True, False, False]


@pytest.mark.covers("TOOL-AGENT-07", "TOOL-AGENT-08", "RM-6")
async def test_a_timeout_does_not_run_while_several_approvals_are_open(place: Place) -> None:
    world = World()
    flow = a_flow(
        Scripted([tool_call("pay", amount=n) for n in (1, 2)], "Paid."), world.pays(approval=True), timeout=30
    )
    # Kept in memory while it waits, so that the answers find the handler at work.
    hf = await place.hf(HOT)
    opened: list[str] = []
    async for event in flow.stream({"prompt": "Go"}, on=hf):
        if event.type == "hold.opened":
            opened.append(event.data["hold_id"])
        if event.type == "hold.opened" and len(opened) == 2:
            for hold in opened:
                await (await hf.service()).answer(hold, "approve")
    assert event.type != "run.failed"
    assert sorted(world.done) == ["pay 1 c-9", "pay 2 c-9"]


@pytest.mark.covers("R-31", "RS-AGENT-4")
async def test_an_approval_is_used_again_when_the_worker_dies_before_the_tool_ran(place: Place) -> None:
    from holdfast.testing.crashpoints import Crash, armed

    world = World()
    flow = a_flow(Scripted(PAY, "Paid."), world.pays(approval=True))
    result = await flow.run({"prompt": "Pay"}, on=await place.hf())
    hf = await place.hf()
    await decide(hf, result.holds[0], "approve")
    with armed("after_intent"), pytest.raises(Crash):
        await flow.resume(result.run_id, on=hf)
    place.lapse()
    hf = await place.hf()
    result = await flow.resume(result.run_id, on=hf)
    # Nobody is asked for the approval again; that the payment's outcome is unknown is another question.
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert "pay(amount=250" in hold.prompt
    await decide(hf, hold, "not_happened")
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert world.done == ["pay 250 c-9"]


@pytest.mark.covers("RS-HITL-5", "R-29-tool")
async def test_a_tool_asks_a_person_and_the_agent_goes_on_with_the_answer(place: Place) -> None:
    model = Scripted(
        tool_call("ask_person", question="Which berth?", choices=["north", "south"]),
        tool_call("ask_person", question="Why?"),
        "North it is.",
    )
    flow = a_flow(model, ask_person(assignee="role:harbourmaster"))
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    (first,) = result.holds
    assert (first.prompt, first.assignee) == ("Which berth?", "role:harbourmaster")
    hf = await place.hf()
    await decide(hf, first, "north")
    result = await flow.resume(result.run_id, on=hf)
    (second,) = result.holds
    assert second.id != first.id
    await decide(hf, second, "It is free.")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert [message.text for message in results(model.requests[-1])] == ["north", "It is free."]


@pytest.mark.covers("RS-HITL-5")
async def test_the_model_is_reported_when_nobody_answers_its_question(place: Place) -> None:
    model = Scripted(tool_call("ask_person", question="Which berth?"), "I do not know.")
    flow = a_flow(model, ask_person(timeout="1h"))
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    place.clock.advance(hours=2)
    await (await hf.open()).fire_timers(limit=10)
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert results(model.requests[-1])[0].failed


@pytest.mark.covers("R-29-tool", "RS-HITL-5")
async def test_a_script_tool_keeps_its_steps_when_it_asks_between_them(place: Place) -> None:
    log: list[str] = []

    @tool(effect="human", script=True)
    async def publish(ctx: Context, page: str) -> str:
        """Publishes a page, after a person saw the draft."""
        draft = await ctx.step("draft", lambda: log.append("draft") or f"<{page}>", effect="read")
        reply = await ctx.ask(f"Publish {draft}?", options=["yes", "no"])
        await ctx.step("publish", lambda: log.append("publish"), effect="external")
        return f"{page}: {reply.decision}"

    model = Scripted([tool_call("publish", page="a"), tool_call("publish", page="b")], "Done.")
    flow = a_flow(model, publish)
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert sorted(hold.prompt for hold in result.holds) == ["Publish <a>?", "Publish <b>?"]
    hf = await place.hf()
    for hold in result.holds:
        await decide(hf, hold, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert log == ["draft", "draft", "publish", "publish"]
    assert [message.text for message in results(model.requests[-1])] == ["a: yes", "b: yes"]


@pytest.mark.covers("R-29-tool")
async def test_an_agent_in_a_map_in_a_sub_flow_asks_for_each_item(place: Place) -> None:
    world = World()
    inner = Flow("inner")
    model = Scripted(lambda request: tool_call("pay", amount=int(request.messages[-1].text)), "Paid.")
    inner.agent("bot", model=model, tools=[world.pays(approval=True)], output="answer", prompt="{{n}}")
    outer = Flow("outer")
    outer.subflow("one", inner, inputs={"n": "n"}, outputs={"said": "state.answer"})
    result = await outer.run({"n": 7}, on=await place.hf())
    (hold,) = result.holds
    hf = await place.hf()
    await decide(hf, hold, "approve")
    result = await outer.resume(result.run_id, on=hf)
    assert result.completed
    assert result.state["said"] == "Paid."
    assert world.done == ["pay 7 c-9"]


@pytest.mark.covers("TOOL-AGENT-12", "RS-HITL-6")
async def test_the_resumed_prompt_is_byte_for_byte_that_of_an_uninterrupted_run(
    place: Place, provider: Provider, kind: str
) -> None:
    world = World()
    look = ("c1", "look", '{ "place":"pier" }')  # the spaces are the model's own

    def says() -> None:
        provider.says(
            Answer("Let me look — ünïcode.", [look, ("c2", "pay", {"amount": 250})]),
            Answer("", [("c3", "pay", {"amount": 1, "to": "x"})]),
            Answer("Done."),
        )

    def flow(approval: Any) -> Flow:
        return a_flow(a_model(kind, provider), world.looks(), world.pays(effect="write", approval=approval))

    says()
    smooth = await flow(None).run({"prompt": "Go"}, on=await place.hf())
    assert smooth.completed
    uninterrupted = provider.prompts
    assert len(uninterrupted) == 3
    provider.seen.clear()
    says()
    # Paused twice and every time gone on with in another process, as it were.
    result = await flow(True).run({"prompt": "Go"}, on=await place.hf())
    for _ in range(2):
        hf = await place.hf()
        await decide(hf, result.holds[0], "approve")
        result = await flow(True).resume(result.run_id, on=await place.hf())
    assert result.completed
    assert provider.prompts == uninterrupted


@pytest.mark.covers("TOOL-AGENT-12")
async def test_signed_reasoning_is_the_same_bytes_after_a_pause(place: Place, provider: Provider) -> None:
    world = World()
    thought = {"type": "thinking", "signature": "s", "thinking": "Hm.", "b": {"z": 1, "a": 2}}
    call = {"type": "tool_use", "id": "c1", "name": "pay", "input": {"to": "x", "amount": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": thought},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]

    async def bodies(approval: bool) -> list[bytes]:
        provider.seen.clear()
        provider.says(Answer(raw=[json.dumps(event) for event in events]), Answer("Done."))
        flow = a_flow(a_model("anthropic", provider), world.pays(approval=approval))
        result = await flow.run({"prompt": "Go"}, on=await place.hf())
        if approval:
            hf = await place.hf()
            await decide(hf, result.holds[0], "approve")
            result = await flow.resume(result.run_id, on=await place.hf())
        assert result.completed
        return provider.prompts

    smooth = await bodies(approval=False)
    assert b'{"type":"thinking","signature":"s","thinking":"Hm.","b":{"z":1,"a":2}}' in smooth[1]
    assert await bodies(approval=True) == smooth


@pytest.mark.covers("TOOL-AGENT-12", "TOOL-AGENT-05")
async def test_the_prompt_after_a_crash_is_byte_for_byte_the_same(
    place: Place, provider: Provider, kind: str
) -> None:
    world = World()
    turns = [
        Answer("One.", [("c1", "look", {"place": "pier"}), ("c2", "look", {"place": "mole"})]),
        Answer("Two.", [("c3", "look", {"place": "quay"})]),
        Answer("Calm."),
    ]
    flow = a_flow(a_model(kind, provider), world.looks())
    provider.says(*turns)
    await flow.run({"prompt": "Go"}, on=await place.hf())
    uninterrupted = provider.prompts
    provider.seen.clear()
    # Right after the second turn's tool: turn one and the answer of turn two are there, the result is not.
    provider.says(*turns)
    run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=7)
    assert (await flow.resume(run, on=await place.hf())).completed
    assert provider.prompts == uninterrupted


@pytest.mark.covers("TOOL-AGENT-13")
async def test_no_record_event_or_log_has_the_key(
    place: Place, provider: Provider, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.agents.provider import Refusal

    caplog.set_level("DEBUG")
    provider.says(Refusal(401, body=f'{{"error": {{"message": "bad key {KEY}"}}}}'))
    hf = await place.hf()
    result = await a_flow(a_model(kind, provider)).run({"prompt": "Go"}, on=hf)
    assert result.error is not None
    assert result.error.code == "model_refused"
    assert provider.url in result.error.message
    assert KEY not in result.error.message + result.error.detail
    service = await hf.service()
    exported = await service.export_run(result.run_id)
    events = repr([(event.type, event.data) for event in await service.events(result.run_id)])
    assert KEY not in events + caplog.text
    assert KEY.encode() not in exported
    for record in await service.store.read(result.run_id):
        assert KEY.encode() not in record.payload


def _assistant(*calls: tuple[str, str]) -> Message:
    return Message("assistant", "", tuple(ToolCall(call, name) for call, name in calls))


@pytest.mark.covers("RS-HITL-7")
def test_unanswered_calls_are_those_of_the_latest_turn_in_order() -> None:
    first = [_assistant(("old", "look")), Message("user", "Never mind")]
    turn = _assistant(("a", "look"), ("b", "pay"), ("c", "look"))
    assert unanswered_calls([]) == []
    assert unanswered_calls(first) == []
    assert [call.id for call in unanswered_calls([*first, turn])] == ["a", "b", "c"]
    assert [call.id for call in unanswered_calls([*first, turn, Message("tool", "x", call="b")])] == [
        "a",
        "c",
    ]
    everything = [Message("tool", "x", call=call) for call in "abc"]
    assert unanswered_calls([turn, *everything]) == []
    assert unanswered_calls([turn, *everything, Message("assistant", "Done.")]) == []
    assert [call.id for call in unanswered_calls([_assistant(("a", "look"), ("f", FINAL))])] == ["a"]


@pytest.mark.covers("RS-HITL-7")
async def test_calls_that_a_history_left_unanswered_are_made_first(hf: Holdfast) -> None:
    world = World()
    model = Scripted("unused", "Calm, both.")
    flow = a_flow(model, world.looks(), history="talk")
    left = {
        "role": "assistant",
        "calls": [
            {"id": "k1", "name": "look", "arguments": '{"place":"pier"}'},
            {"id": "k2", "name": "look", "arguments": '{"place":"mole"}'},
        ],
    }
    talk = [{"role": "user", "text": "Look"}, left, {"role": "tool", "text": "pier was calm", "call": "k1"}]
    result = await flow.run({"prompt": "And now?", "talk": talk}, on=hf)
    assert result.completed
    assert world.done == ["look mole"]
    assert [(m.role, m.text) for m in model.requests[0].messages][3:] == [
        ("tool", "pier was calm"), ("tool", "mole is calm"), ("user", "And now?"),
    ]  # fmt: skip
    # The conversation so far is kept for the next one.
    assert [message["role"] for message in result.state["talk"]][-2:] == ["user", "assistant"]
    assert result.state["answer"] == "Calm, both."


@pytest.mark.parametrize(
    ("when", "needed"),
    [
        ("amount > 100", True),
        ("amount > 1000", False),
        ("limit > 100", True),
        ("exists(limit) && limit > 100", False),
        ("to > 100", True),
    ],
)
@pytest.mark.covers("SAFE-CHECK-10")
def test_a_person_is_asked_when_the_condition_of_an_approval_cannot_be_decided(
    when: str, needed: bool
) -> None:
    assert Approval(when=when).is_needed({"amount": 250, "to": "c-9"}) is needed


@pytest.mark.covers("SAFE-CHECK-05")
def test_a_tool_is_refused_when_its_approval_reads_no_argument_of_it() -> None:
    with pytest.raises(InputError, match=r"'amuont', which is not an argument. Its arguments are: amount."):

        @tool(approval="amuont > 100")
        def pay(amount: int) -> None: ...


@pytest.mark.covers("SAFE-CHECK-05")
def test_a_tool_is_refused_when_the_question_before_it_shows_no_argument_of_it() -> None:
    """The person would approve "Pay ?"."""
    with pytest.raises(InputError, match=r"prompt='Pay .* reads 'amuont', which is not an argument"):

        @tool(approval=Approval(prompt="Pay {{amuont}}?"))
        def pay(amount: int) -> None: ...

    with pytest.raises(InputError, match="is never closed"):

        @tool(approval=Approval(prompt="Pay {{amount?"))
        def pay_again(amount: int) -> None: ...

    with pytest.raises(InputError, match=r"'anwser', which is not an argument. Its arguments are: answer"):
        Agent("writer", model=Scripted("x"), approval=Approval(prompt="Send {{anwser}}?"))
    Agent("writer", model=Scripted("x"), approval=Approval(when="answer != ''", prompt="Send {{answer}}?"))
