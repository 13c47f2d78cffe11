"""An agent of Pydantic AI inside a run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.durable_exec import JSON_CODEC, BaseDurabilityCapability, CallToolResult
from pydantic_ai.exceptions import CallDeferred, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import DynamicToolset

from holdfast import Flow, Holdfast, RunStatus
from holdfast.integrations.pydantic_ai import HoldfastDurability, emit_events
from holdfast.integrations.pydantic_ai.private_names import arguments_of, tool_result
from tests.flows.places import Place, told
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.shop import LOOK, PAY, Talk, a_flow, a_model, a_talk, an_agent

pytestmark = pytest.mark.anyio

NAMES = [
    "support__model.request",
    "support__function_toolset__<agent>.call_tool:look",
    "support__function_toolset__<agent>.call_tool:pay",
    "support__model.request",
]


async def decide(hf: Holdfast, hold: Any, decision: str | None, **more: Any) -> None:
    await (await hf.service()).answer(hold.id, decision, **more)


@pytest.mark.covers("IN-54")
@pytest.mark.parametrize("again", [PAY.args, {"order": "A17", "amount": 9_000}], ids=["same", "other"])
async def test_approval_of_a_call_allows_no_later_call_with_its_id(
    place: Place, notes: Notes, again: Any
) -> None:
    later = ToolCallPart("pay", again, PAY.tool_call_id)
    flow = a_talk(an_agent(notes, [PAY], [later], approval=True))
    result = await flow.run({}, on=await place.hf())
    for count in (1, 2):
        (hold,) = result.holds
        await decide(await place.hf(), hold, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
        assert sum(line.startswith("pay") for line in notes.lines) == count
    assert result.completed


@pytest.mark.covers("IN-54", "USERS-PYDANTIC")
async def test_calls_of_a_turn_wait_together_for_approval_and_nothing_before_them_repeats(
    place: Place, notes: Notes
) -> None:
    other = ToolCallPart("pay", {"order": "B2", "amount": 3}, "c-other")
    agent = an_agent(notes, [LOOK, PAY, other], approval=True, hold={"assignee": "group:finance"})
    flow = a_talk(agent)
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    assert [hold.prompt for hold in result.holds] == [
        "The agent wants to run pay: order A17, amount 250. Allow it?",
        "The agent wants to run pay: order B2, amount 3. Allow it?",
    ]
    assert {hold.assignee for hold in result.holds} == {"group:finance"}
    assert json.loads(result.holds[0].context)["arguments"] == {"order": "A17", "amount": 250}
    first, second = result.holds
    hf = await place.hf()
    with pytest.raises(Exception, match="amount"):
        await decide(hf, first, "approve", data={"arguments": {"order": "A17", "amount": "much"}})
    await decide(hf, first, "approve", data={"arguments": {"order": "A17", "amount": 80}})
    await decide(hf, second, "reject", comment="Not theirs")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert notes.lines == ["model", "look", "pay A17 80", "model"]
    assert "paid 80" in result.state.answer
    assert "Not theirs" in result.state.answer


@pytest.mark.covers("IN-54")
async def test_the_answer_to_a_deferred_call_is_its_result(place: Place, notes: Notes) -> None:
    agent = Agent(
        a_model(notes, [ToolCallPart("price", {"item": "telescope"}, "c-1")]),
        name="support",
        capabilities=[HoldfastDurability()],
    )

    @agent.tool_plain
    def price(item: str) -> str:
        notes.add("price")
        raise CallDeferred

    flow = a_talk(agent)
    result = await flow.run({}, on=await place.hf())
    (hold,) = result.holds
    assert hold.prompt == "What is the result of price: item telescope?"
    await decide(await place.hf(), hold, "90 euros")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "90 euros"
    assert notes.lines == ["model", "price", "model"]


@pytest.mark.covers("IN-50", "IN-52", "IN-53", "USERS-PYDANTIC")
async def test_each_operation_is_one_step_with_its_name_and_effect(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    result = await a_talk(an_agent(notes, [LOOK, PAY])).run({}, on=await place.hf())
    assert result.state.answer == "{'order': 'A17', 'paid': 250}; paid 250"
    assert [name for name, _ in performed] == NAMES
    assert [effect for _, effect in performed] == ["read", "read", "external", "read"]


@pytest.mark.covers("IN-53")
async def test_a_tools_metadata_says_what_it_does(place: Place, notes: Notes) -> None:
    tools: FunctionToolset[None] = FunctionToolset(id="shop")
    metadata = {"holdfast": {"effect": "write", "idempotency_key": "refund-{{order}}"}}

    @tools.tool_plain(metadata=metadata)
    def refund(order: str) -> str:
        if notes.lines.count("refund") < 1:
            notes.add("refund")
            raise OSError("the line is down")
        return "refunded"

    @tools.tool_plain(metadata={"holdfast": {"efect": "read"}})
    def wrong(order: str) -> str:
        raise AssertionError

    model = a_model(notes, [ToolCallPart("refund", {"order": "A17"}, "c-1")])
    agent = Agent(model, name="support", toolsets=[tools], capabilities=[HoldfastDurability()])
    hf = await place.hf()
    flow = a_talk(agent)
    # The callee recognises a repetition by the key: a failure is not an unknown outcome, and the run fails.
    result = await flow.run({}, on=hf)
    assert result.status is RunStatus.failed
    result = await flow.resume(result.run_id, on=hf)
    assert result.state.answer == "refunded"
    with agent.override(model=a_model(notes, [ToolCallPart("wrong", {"order": "A17"}, "c-1")])):
        result = await a_talk(agent).run({}, on=await place.hf())
    assert result.status is RunStatus.failed


@pytest.mark.covers("IN-51")
async def test_outside_a_run_the_capability_does_nothing(notes: Notes) -> None:
    agent = an_agent(notes, [LOOK, PAY])
    assert (await agent.run("Hello")).output == "{'order': 'A17', 'paid': 250}; paid 250"
    durability = HoldfastDurability.from_agent(agent)
    assert durability is not None
    assert not durability.in_durable_context
    assert durability.get_default_run_id() is None


@pytest.mark.covers("IN-51")
async def test_an_agent_inside_a_tool_is_recorded_with_that_tool(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    helper = an_agent(notes, [LOOK], name="helper")
    agent = Agent(
        a_model(notes, [ToolCallPart("ask", {}, "c-1")]), name="support", capabilities=[HoldfastDurability()]
    )

    @agent.tool_plain
    async def ask() -> str:
        return (await helper.run("What did they pay?")).output

    result = await a_talk(agent).run({}, on=await place.hf())
    assert result.state.answer == "{'order': 'A17', 'paid': 250}"
    assert {name.partition("__")[0] for name, _ in performed} == {"support"}


@pytest.mark.covers("IN-51")
async def test_an_agent_in_a_sync_script_is_refused(place: Place, notes: Notes) -> None:
    agent = an_agent(notes)
    flow = Flow("talk", state=Talk)

    @flow.script
    def talk(s: Talk) -> dict[str, Any]:
        # The framework makes a loop for this thread and leaves it open.
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            return {"answer": agent.run_sync(s.question).output}

    flow.start(talk)
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.failed
    assert "Make the script async" in str(result.error)
    assert notes.lines == []


async def test_agents_side_by_side_keep_their_own_steps(place: Place, notes: Notes) -> None:
    first = an_agent(notes, [LOOK, PAY], approval=True, name="first")
    second = an_agent(notes, [PAY], approval=True, name="second")

    async def ask(s: Talk) -> str:
        both = await asyncio.gather(first.run(s.question), second.run(s.question), first.run("Again"))
        return " | ".join(each.output for each in both)

    flow = a_flow(ask)
    result = await flow.run({}, on=await place.hf())
    assert len(result.holds) == 3
    for hold in result.holds:
        await decide(await place.hf(), hold, "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    order = "{'order': 'A17', 'paid': 250}; paid 250"
    assert result.state.answer == f"{order} | paid 250 | {order}"
    assert notes.lines.count("pay A17 250") == 3
    assert notes.lines.count("model") == 6


@pytest.mark.covers("IN-50")
async def test_calls_of_a_turn_run_one_after_the_other(place: Place, notes: Notes) -> None:
    agent = Agent(
        a_model(notes, [ToolCallPart("slow", {"name": name}, f"c-{name}") for name in "abc"]),
        name="support",
        capabilities=[HoldfastDurability(effects={"slow": "read"})],
    )

    @agent.tool_plain
    async def slow(name: str) -> str:
        notes.add(f"{name} starts")
        await asyncio.sleep(0.01)
        notes.add(f"{name} ends")
        return name

    hf = await place.hf()
    assert (await a_talk(agent).run({}, on=hf)).state.answer == "a; b; c"
    expected = [f"{name} {does}" for name in "abc" for does in ("starts", "ends")]
    assert notes.lines == ["model", *expected, "model"]
    # Outside a run the framework calls them side by side, as without the capability.
    await agent.run("Hello")
    assert notes.lines[-7:-1] != expected


@pytest.mark.covers("IN-55", "USERS-PYDANTIC")
async def test_identity_survives_a_resume_and_text_is_emitted_while_it_comes(
    place: Place, notes: Notes
) -> None:
    agent = an_agent(notes, [PAY], approval=True, event_stream_handler=emit_events)
    seen: list[tuple[Any, ...]] = []

    @agent.instructions
    def note(ctx: RunContext[None]) -> str:
        seen.append((ctx.run_id, ctx.conversation_id))
        return ""

    flow = a_talk(agent)
    hf = await place.hf()
    result = await flow.run({}, on=hf)
    assert result.holds, result.error
    await decide(hf, result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert len(set(seen)) == 1
    assert seen[0][0] == f"{result.run_id}:talk:1:1"
    emitted = [str(event.data) for event in await told(hf, result, "node.emitted")]
    assert any("paid" in each for each in emitted)
    assert any("'tool': 'pay'" in each and "'done': True" in each for each in emitted)


async def test_the_framework_falls_back_to_another_model_also_when_the_error_was_recorded(
    place: Place, notes: Notes
) -> None:
    def down(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        notes.add("down")
        raise ModelHTTPError(503, "down")

    spare = a_model(notes, [PAY])
    first = FunctionModel(down)
    durability: HoldfastDurability[None] = HoldfastDurability(models={"first": first, "spare": spare})
    agent = Agent(FallbackModel(first, spare), name="support", capabilities=[durability])

    @agent.tool_plain(requires_approval=True)
    def pay(order: str, amount: int) -> str:
        return "paid"

    flow = a_talk(agent)
    result = await flow.run({}, on=await place.hf())
    await decide(await place.hf(), result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "paid"


@pytest.mark.covers("IN-3")
def test_the_base_of_the_framework_has_what_is_relied_on() -> None:
    from pydantic_ai.durable_exec import _base

    params = _base.ToolsetCallToolParams("pay", tool_args={"a": 1}, ctx=None, tool=None)  # type: ignore[arg-type]
    assert arguments_of(_base._FunctionCallToolCacheIdentity().project(params)) == {"a": 1}
    result = JSON_CODEC.load(CallToolResult, tool_result("paid"))
    assert result.result == "paid"
    for name in ("wrap_run", "wrap_model_request", "handle_deferred_tool_calls", "get_run_start_time"):
        assert callable(getattr(BaseDurabilityCapability, name))
    assert callable(BaseDurabilityCapability._find_model_id)


@pytest.mark.covers("IN-50", "IN-52")
async def test_a_dynamic_tool_set_is_discovered_once(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    tools: FunctionToolset[None] = FunctionToolset()

    @tools.tool_plain
    def pay(order: str, amount: int) -> str:
        notes.add("pay")
        return "paid"

    def choose(_ctx: RunContext[None]) -> FunctionToolset[None]:
        notes.add("discovery")
        return tools

    agent = Agent(
        a_model(notes, [PAY]),
        name="support",
        toolsets=[DynamicToolset(choose, id="chosen")],
        capabilities=[HoldfastDurability()],
    )
    result = await a_talk(agent).run({}, on=await place.hf())
    assert result.state.answer == "paid"
    assert ("support__dynamic_toolset__chosen.get_tools", "read") in performed
    assert ("support__dynamic_toolset__chosen.call_tool:pay", "external") in performed
    assert notes.lines.count("pay") == 1


@pytest.mark.covers("IN-5")
async def test_the_example_pays_after_an_approval(place: Place) -> None:
    from examples.pydantic_ai_refund import support

    result = await support.run({}, on=await place.hf())
    await decide(await place.hf(), result.holds[0], "approve")
    result = await support.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "Done: refunded 250 for A17"


@pytest.mark.covers("IN-54")
async def test_an_id_that_looks_like_the_second_use_of_another_gets_no_answer_of_it(
    place: Place, notes: Notes
) -> None:
    calls = [ToolCallPart("pay", {"order": "A17", "amount": 1}, name) for name in ("x#2", "x", "x")]
    flow = a_talk(an_agent(notes, *([call] for call in calls), approval=True))
    result = await flow.run({}, on=await place.hf())
    for count in (1, 2, 3):
        (hold,) = result.holds
        await decide(await place.hf(), hold, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
        assert sum(line.startswith("pay") for line in notes.lines) == count
    assert result.completed
