from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import (
    Flow,
    Holdfast,
    ModelUnavailableError,
    Prices,
    RunStatus,
    Scripted,
    VersionMismatchError,
    tool,
    tool_call,
)
from holdfast.agents.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolCall
from holdfast.agents.model import StreamCallback
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.record import Kind
from tests.agents.helpers import World, a_flow, asked, results, spoken, time_flies, turns_listed
from tests.flows.places import Place, told

pytestmark = pytest.mark.anyio

LOOK = tool_call("look", place="harbour")
THREE = (LOOK, tool_call("look", place="pier"), tool_call("look", place="mole"))


@pytest.mark.covers("TOOL-AGENT-01", "RS-AGENT-3")
async def test_an_agent_answers_in_one_turn_when_it_needs_no_tool(hf: Holdfast) -> None:
    model = Scripted("Good morning.")
    result = await a_flow(model).run({"prompt": "Hello"}, on=hf)
    assert result.completed
    assert result.state["answer"] == "Good morning."
    assert spoken(model.requests[0]) == [("system", "Be brief."), ("user", "Hello")]
    assert await turns_listed(hf, result) == [1]


@pytest.mark.covers("TOOL-AGENT-01", "TOOL-AGENT-06")
async def test_an_agent_goes_on_with_what_its_tools_reported_until_it_has_an_answer(hf: Holdfast) -> None:
    world = World()
    model = Scripted(LOOK, tool_call("pay", amount=5), "Done.")
    result = await a_flow(model, world.looks(), world.pays()).run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "Done."
    assert world.done == ["look harbour", "pay 5 c-9"]
    last = model.requests[-1]
    assert [(m.call, m.text) for m in results(last)] == [
        ("call_1_1", "harbour is calm"),
        ("call_2_1", '{"paid":5,"to":"c-9"}'),
    ]
    steps = [event.data["step"] for event in await told(hf, result, "node.step_done")]
    assert steps == [
        "prompt", "model", 'look(place="harbour")', "turn 1", "model", "pay(amount=5)", "turn 2",
        "model", "turn 3",
    ]  # fmt: skip


@pytest.mark.covers("TOOL-AGENT-06")
async def test_each_tool_has_an_intent_or_none_by_its_own_class(hf: Holdfast) -> None:
    world = World()
    model = Scripted(LOOK, tool_call("pay", amount=5), "Done.")
    result = await a_flow(model, world.looks(), world.pays(effect="write")).run({"prompt": "Go"}, on=hf)
    service = await hf.service()
    records = await service.store.read(result.run_id, payloads=False)
    # One intent, before the payment; looking needs none.
    assert [record.kind for record in records].count(Kind.intent) == 1


@pytest.mark.covers("TOOL-AGENT-04")
async def test_tokens_are_emitted_and_usage_is_counted_when_the_run_pauses_and_goes_on(place: Place) -> None:
    world = World()
    model = Scripted(
        tool_call("pay", amount=5),
        "It is paid.",
        tokens=TokenUsage(100, 20),
        prices=Prices(input=1, output=5),
    )
    flow = a_flow(model, world.pays(approval=True))
    hf = await place.hf()
    service = await hf.service()
    result = await flow.run({"prompt": "Pay"}, on=hf)
    # What the first turn cost is known while a person thinks.
    assert result.totals["tokens"] == 120
    paused = await service.latest(result.run_id)
    assert paused.diagnostics["totalTokensUsed"] == 120
    assert paused.diagnostics["totalCost"] == pytest.approx(0.0002)
    await service.answer(result.holds[0].id, "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert result.totals["tokens"] == 240
    assert result.totals["cost"] == pytest.approx(0.0004)
    ended = await service.latest(result.run_id)
    assert ended.diagnostics["totalTokensUsed"] == 240
    assert ended.node_results["bot"].tokens == 240
    assert ended.node_results["bot"].cost == pytest.approx(0.0004)
    emitted = [e.data["data"] for e in await told(hf, result, "node.emitted") if e.data["kind"] == "text"]
    assert emitted == ["It ", "is ", "paid."]


@pytest.mark.covers("TOOL-AGENT-05", "RS-AGENT-1", "R-15", "R-18")
async def test_each_turn_is_a_checkpoint_with_its_number_messages_and_calls(hf: Holdfast) -> None:
    world = World()
    model = Scripted(LOOK, tool_call("look", place="pier"), "Calm.")
    result = await a_flow(model, world.looks()).run({"prompt": "Go"}, on=hf)
    assert await turns_listed(hf, result) == [1, 2, 3]
    events = await told(hf, result)
    nums = [e.data["loop_num"] for e in events if e.type == "checkpoint.created" and e.node == "bot"]
    assert nums == [1, 2, 3, 1]  # the last is the node's own
    kinds = [(e.type, e.data.get("step") or e.data.get("kind")) for e in events]
    start = kinds.index(("node.emitted", "tool"))
    assert [kind for kind, _ in kinds[start : start + 4]] == [
        "node.emitted", "node.step_done", "node.step_done", "checkpoint.created",
    ]  # fmt: skip
    service = await hf.service()
    second = next(m for m in await service.checkpoints(result.run_id, limit=0) if m.turn == 2)
    agent = (await service.checkpoint(second.id)).agents["bot"]
    assert agent["turn"] == 2
    assert agent["calls"] == {"look": 2}
    assert agent["pending"] == []
    assert [message["role"] for message in agent["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert agent["messages"][-1]["text"] == "pier is calm"


@pytest.mark.covers("RS-AGENT-1")
async def test_turns_are_not_listed_when_the_setting_or_the_run_says_so(hf: Holdfast) -> None:
    world = World()
    off = await a_flow(Scripted(LOOK, "Calm."), world.looks(), turns=False).run({"prompt": "Go"}, on=hf)
    assert await turns_listed(hf, off) == []
    by_run = a_flow(Scripted(LOOK, "Calm."), world.looks(), turns=lambda state: state.get("debug", False))
    assert await turns_listed(hf, await by_run.run({"prompt": "Go"}, on=hf)) == []
    assert await turns_listed(hf, await by_run.run({"prompt": "Go", "debug": True}, on=hf)) == [1, 2]


@pytest.mark.covers("RS-AGENT-1", "D-10")
async def test_turns_follow_the_checkpoint_policy_of_run_node_and_flow(hf: Holdfast) -> None:
    world = World()
    plain = a_flow(Scripted(LOOK, "Calm."), world.looks())
    assert await turns_listed(hf, await plain.run({"prompt": "Go"}, on=hf, checkpoints="none")) == []
    assert await turns_listed(hf, await plain.run({"prompt": "Go"}, on=hf)) == [1, 2]
    for checkpoint, listed in ((None, []), ("after", [1, 2])):
        flow = Flow("explicit", checkpoints="explicit")
        flow.agent("bot", model=Scripted(LOOK, "Calm."), tools=[world.looks()], checkpoint=checkpoint)
        assert await turns_listed(hf, await flow.run({"prompt": "Go"}, on=hf)) == listed


@pytest.mark.covers("TOOL-AGENT-05", "RS-AGENT-2")
async def test_no_settled_turn_is_repeated_when_the_worker_dies_again_and_again(place: Place) -> None:
    world = World()
    model = Scripted(*THREE, "All calm.")
    flow = a_flow(model, world.looks())
    # At the second turn's tool; then, in another worker, at the third turn's.
    run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=6)
    assert asked(model) == 2
    again = await place.hf()
    with armed("after_substep", nth=4), pytest.raises(Crash):
        await flow.resume(run, on=again)
    place.lapse()
    last = await place.hf()
    result = await flow.resume(run, on=last)
    assert result.completed
    assert result.state["answer"] == "All calm."
    # One call per turn: of finished turns none was asked for again.
    assert asked(model) == 4
    assert [m.text for m in results(model.requests[-1])] == [
        "harbour is calm",
        "pier is calm",
        "mole is calm",
    ]
    assert await turns_listed(last, result) == [1, 2, 3, 4]


@pytest.mark.covers("RS-AGENT-2")
async def test_an_agent_that_died_before_its_first_answer_starts_at_turn_one(place: Place) -> None:
    model = Scripted("Hello.")
    flow = a_flow(model)
    run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=1)
    hf = await place.hf()
    assert (await flow.resume(run, on=hf)).completed
    assert await turns_listed(hf, run) == [1]


@pytest.mark.covers("RS-AGENT-3")
async def test_two_turns_are_kept_when_the_model_fails_at_the_third(place: Place) -> None:
    world = World()
    trouble: list[Exception] = [ModelUnavailableError("http://x did not answer.")]

    def third(_request: ModelRequest) -> Any:
        return trouble.pop() if trouble else "At last."

    model = Scripted(LOOK, tool_call("pay", amount=5), third)
    flow = a_flow(model, world.looks(), world.pays())
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert (result.error.code, result.failed_node) == ("model_unavailable", "bot")
    assert await turns_listed(hf, result) == [1, 2]
    # What was spent is not forgotten with the failure.
    assert result.totals["tokens"] > 0
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert result.state["answer"] == "At last."
    assert world.done == ["look harbour", "pay 5 c-9"]
    assert asked(model) == 4


@pytest.mark.covers("RS-AGENT-3")
async def test_the_cap_on_turns_fails_the_run_or_returns_what_there_is(hf: Holdfast) -> None:
    world = World()
    result = await a_flow(Scripted(*THREE), world.looks(), max_turns=2).run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.code == "turn_limit"
    assert await turns_listed(hf, result) == [1, 2]
    model = Scripted(ModelReply(_with("Looking.", LOOK)), *THREE[1:])
    kept = await a_flow(model, world.looks(), max_turns=2, on_max_turns="return").run({"prompt": "Go"}, on=hf)
    assert kept.completed
    assert kept.state["answer"] == "Looking."


@pytest.mark.covers("RS-AGENT-3")
async def test_a_run_that_met_the_cap_goes_on_when_the_cap_is_raised(place: Place) -> None:
    world = World()
    model = Scripted(*THREE, "All calm.")
    hf = await place.hf()
    result = await a_flow(model, world.looks(), max_turns=2).run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    result = await a_flow(model, world.looks(), max_turns=9).resume(result.run_id, on=await place.hf())
    assert result.completed
    assert asked(model) == 4


def _with(text: str, *calls: Any) -> Any:
    return Message("assistant", text, tuple(ToolCall("k1", call.name, call.arguments) for call in calls))


class Sticks:
    """A model that never answers its n-th turn, until it is told to. While it does not, time flies."""

    name = "sticks"
    prices = None

    def __init__(self, inner: Scripted, turn: int) -> None:
        self.inner = inner
        self.turn: int | None = turn

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        if sum(message.role == "assistant" for message in request.messages) + 1 == self.turn:
            with time_flies(11):
                await asyncio.Event().wait()
        return await self.inner.reply(request, emit)


@pytest.mark.covers("RS-AGENT-3")
@pytest.mark.parametrize("turn", [1, 3])
async def test_a_timeout_at_once_or_after_two_turns_keeps_what_was_done(place: Place, turn: int) -> None:
    world = World()
    model = Sticks(Scripted(*THREE[:2], "Calm."), turn)
    flow = a_flow(model, world.looks(), timeout=10)
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.code == "node_timeout"
    assert await turns_listed(hf, result) == list(range(1, turn))
    model.turn = None
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert asked(model.inner) == 3
    assert world.done == ["look harbour", "look pier"]


@pytest.mark.covers("RS-AGENT-5")
async def test_nothing_of_one_run_is_in_another_when_many_share_an_agent(hf: Holdfast) -> None:
    @tool(effect="read")
    async def echo(word: str) -> str:
        """Says it back."""
        await asyncio.sleep(0)
        return word

    def first(request: ModelRequest) -> Any:
        return tool_call("echo", word=request.messages[-1].text)

    def second(request: ModelRequest) -> Any:
        assert len(request.messages) == 4
        return f"{request.messages[1].text}={request.messages[-1].text}"

    flow = a_flow(Scripted(first, second), echo)
    found = await asyncio.gather(*(flow.run({"prompt": f"w{n}"}, on=hf) for n in range(20)))
    assert [result.state["answer"] for result in found] == [f"w{n}=w{n}" for n in range(20)]
    assert len({result.totals["tokens"] for result in found}) == 1


@pytest.mark.covers("RS-AGENT-5")
async def test_each_visit_of_an_agent_in_a_loop_begins_anew(hf: Holdfast) -> None:
    flow = Flow("again")
    model = Scripted("One more.")
    flow.agent("bot", model=model, output="answer", prompt="Turn {{n}}")

    @flow.node(effect="pure")
    async def count(state: dict[str, Any]) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    flow.start("bot")
    flow.edge("bot", count)
    flow.loop(count, "bot", when="n < 3", max=5)
    result = await flow.run({"n": 0}, on=hf)
    assert result.completed
    assert [spoken(request) for request in model.requests] == [[("user", f"Turn {n}")] for n in range(3)]


async def test_a_fork_from_a_turn_goes_on_after_it_and_repeats_nothing(hf: Holdfast) -> None:
    world = World()
    model = Scripted(*THREE, "All calm.")
    flow = a_flow(model, world.looks())
    result = await flow.run({"prompt": "Go"}, on=hf)
    service = await hf.service()
    second = next(m for m in await service.checkpoints(result.run_id, limit=0) if m.turn == 2)
    fork = await flow.fork(second.id, on=hf)
    assert fork.completed
    assert fork.run_id != result.run_id
    assert fork.totals["tokens"] == result.totals["tokens"]
    # Turn three and four anew, one and two not.
    assert asked(model) == 4 + 2
    assert world.done == ["look harbour", "look pier", "look mole", "look mole"]


async def test_other_instructions_do_not_enter_a_conversation_that_has_begun(place: Place) -> None:
    world = World()

    def made(instructions: str) -> Flow:
        flow = Flow("talk")
        flow.agent(
            "bot",
            model=Scripted(tool_call("pay", amount=5), "Ok."),
            instructions=instructions,
            tools=[world.pays(approval=True)],
        )
        return flow

    result = await made("Be brief.").run({"prompt": "Go"}, on=await place.hf())
    hf = await place.hf()
    service = await hf.service()
    await service.answer(result.holds[0].id, "approve")
    with pytest.raises(VersionMismatchError, match="'bot' has changed"):
        await made("Be long.").resume(result.run_id, on=hf)
    assert (await made("Be brief.").resume(result.run_id, on=hf)).completed


async def test_a_caller_who_follows_a_run_gets_the_text_again_when_the_node_restarts(place: Place) -> None:
    world = World()
    talking = ModelReply(_with("Let me look.", LOOK))
    flow = a_flow(Scripted(talking, "Calm."), world.looks())
    run = await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=4)
    hf = await place.hf()
    assert (await flow.resume(run, on=hf)).completed
    told_texts = [e.data for e in await told(hf, run, "node.emitted") if e.data["kind"] == "text"]
    last = [data["data"] for data in told_texts if data["attempt"] == 2]
    assert "".join(last) == "Let me look.Calm."
