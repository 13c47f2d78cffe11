"""An agent of the OpenAI Agents SDK inside a run."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed; `make partners` runs these tests")

from agents import (
    Agent,
    ComputerTool,
    FunctionTool,
    ModelProvider,
    RunConfig,
    ToolOutputImage,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.mcp import MCPServer
from agents.realtime import RealtimeAgent
from agents.sandbox import SandboxAgent

from holdfast import Context, Flow, Holdfast, NotDone, RunStatus
from holdfast.errors import AnswerInvalidError
from holdfast.integrations.openai_agents import private_names, run, run_agent
from holdfast.integrations.openai_agents.private_names import Invoker
from holdfast.telemetry import on_substep
from tests.flows.places import Place
from tests.integrations.notes import Notes
from tests.integrations.openai_agents.shop import (
    LOOK,
    PAY,
    QUIET,
    Call,
    ShopModel,
    Talk,
    a_flow,
    a_talk,
    an_agent,
)

pytestmark = pytest.mark.anyio

MUCH = '{"order": "A17", "amount": 9000}'


@pytest.fixture
def performed() -> Iterator[list[tuple[str, str]]]:
    """Name and effect of each step that is performed."""
    found: list[tuple[str, str]] = []

    def watch(fn: Any, step: Any, _key: str | None) -> Any:
        found.append((step.name, str(step.effect)))
        return fn

    on_substep.append(watch)
    yield found
    on_substep.remove(watch)


async def decide(hf: Holdfast, hold: Any, decision: str | None, **more: Any) -> None:
    await (await hf.service()).answer(hold.id, decision, **more)


# ---- steps
@pytest.mark.covers("IN-60", "IN-61", "USERS-OPENAI")
async def test_each_call_is_one_step_with_its_name_and_effect(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    agent = an_agent(notes, [LOOK, PAY])
    before = (agent.model, list(agent.tools), [tool.on_invoke_tool for tool in agent.tools])
    result = await a_talk(agent).run({}, on=await place.hf())
    assert result.state.answer == "{'order': 'A17', 'paid': 250}; paid 250", result.error
    assert performed == [
        ("model.request", "read"),
        ("tool:look", "read"),
        ("tool:pay", "external"),
        ("model.request", "read"),
    ]
    assert (agent.model, list(agent.tools), [tool.on_invoke_tool for tool in agent.tools]) == before
    assert result.totals["tokens"] == 30


@pytest.mark.covers("IN-60", "IN-61")
async def test_a_model_that_is_named_comes_from_the_callers_provider(place: Place, notes: Notes) -> None:
    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> ShopModel:
            notes.add(f"provider {model_name}")
            return ShopModel(notes, [LOOK])

    agent = an_agent(notes)
    agent.model = "shop-1"
    config = RunConfig(tracing_disabled=True, model_provider=Provider())
    provider = config.model_provider
    result = await a_talk(agent, run_config=config).run({}, on=await place.hf())
    assert result.completed, result.error
    assert notes.lines == ["provider shop-1", "model", "look", "provider shop-1", "model"]
    assert config.model_provider is provider


@pytest.mark.covers("IN-61")
async def test_handoffs_are_followed_in_both_directions_and_recorded(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    billing = an_agent(notes, [Call("transfer_to_billing", "", "h-1")], [PAY], approval=True, name="billing")
    triage = Agent(
        name="triage",
        model=ShopModel(notes, [Call("transfer_to_billing", "", "h-1")]),
        handoffs=[handoff(billing, on_handoff=lambda _ctx: notes.add("handed off"))],
    )
    billing.handoffs = [triage]
    before = [copy.copy(each) for each in triage.handoffs]
    flow = a_talk(triage)
    result = await flow.run({}, on=await place.hf())
    assert [hold.prompt for hold in result.holds] == [
        "The agent wants to run pay: order A17, amount 250. Allow it?"
    ], result.error
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert notes.lines == ["model", "handed off", "model", "pay A17 250", "model"]
    assert ("handoff:transfer_to_billing", "read") in performed
    assert triage.handoffs == before
    assert billing.handoffs == [triage]


@pytest.mark.covers("IN-61")
async def test_an_agent_that_is_a_tool_is_recorded_with_that_tool(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    helper = an_agent(notes, [LOOK], name="helper")
    agent = Agent(
        name="support",
        model=ShopModel(notes, [Call("ask", '{"input": "What did they pay?"}', "c-1")]),
        tools=[helper.as_tool("ask", "Asks the helper")],
    )
    result = await a_talk(agent).run({}, on=await place.hf())
    assert result.state.answer == "{'order': 'A17', 'paid': 250}", result.error
    assert [name for name, _ in performed] == ["model.request", "tool:ask", "model.request"]


async def test_tools_of_an_mcp_server_are_recorded(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    from mcp.types import CallToolResult, TextContent
    from mcp.types import Tool as McpTool

    class Server(MCPServer):
        name = "shop"

        async def connect(self) -> None: ...

        async def cleanup(self) -> None: ...

        async def list_tools(self, *_args: Any, **_kwargs: Any) -> list[McpTool]:
            return [McpTool(name="stock", inputSchema={"type": "object", "properties": {}})]

        async def call_tool(self, tool_name: str, *_args: Any, **_kwargs: Any) -> CallToolResult:
            notes.add(tool_name)
            return CallToolResult(content=[TextContent(type="text", text="3 left")])

        async def list_prompts(self, *_args: Any) -> Any:
            raise NotImplementedError

        async def get_prompt(self, *_args: Any) -> Any:
            raise NotImplementedError

    agent = an_agent(notes, [Call("stock", "{}", "c-s")], [PAY], approval=True, mcp_servers=[Server()])
    flow = a_talk(agent, effects={"stock": "read"})
    result = await flow.run({}, on=await place.hf())
    assert result.holds, result.error
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert notes.lines.count("stock") == 1
    assert ("tool:stock", "read") in performed


async def test_results_that_are_not_text_come_back_as_they_were(place: Place, notes: Notes) -> None:
    @function_tool
    def picture() -> ToolOutputImage:
        notes.add("picture")
        return ToolOutputImage(image_url="data:image/png;base64,AAAA")

    agent = an_agent(notes, [Call("picture", "{}", "c-1")], [PAY], approval=True)
    agent.tools = [*agent.tools, picture]
    flow = a_talk(agent)
    result = await flow.run({}, on=await place.hf())
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert "'type': 'input_image'" in result.state.answer, result.error
    assert notes.lines.count("picture") == 1


# ---- approvals
@pytest.mark.covers("IN-62", "USERS-OPENAI")
async def test_calls_of_a_turn_wait_together_and_nothing_before_them_repeats(
    place: Place, notes: Notes
) -> None:
    other = Call("pay", '{"order": "B2", "amount": 3}', "c-other")
    agent = an_agent(notes, [LOOK, PAY, other], approval=True)
    flow = a_talk(agent, hold={"assignee": "group:finance"})
    result = await flow.run({}, on=await place.hf())
    assert [hold.prompt for hold in result.holds] == [
        "The agent wants to run pay: order A17, amount 250. Allow it?",
        "The agent wants to run pay: order B2, amount 3. Allow it?",
    ], result.error
    assert {hold.assignee for hold in result.holds} == {"group:finance"}
    assert json.loads(result.holds[0].context)["arguments"] == {"order": "A17", "amount": 250}
    first, second = result.holds
    await decide(await place.hf(), first, "approve")
    await decide(await place.hf(), second, "reject", comment="Not theirs")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert notes.lines == ["model", "look", "pay A17 250", "model"]
    assert "paid 250; " in result.state.answer
    assert "Not theirs" in result.state.answer


@pytest.mark.covers("IN-62")
@pytest.mark.parametrize("again", [PAY.arguments, MUCH], ids=["same", "other"])
async def test_approval_of_a_call_allows_no_later_call_with_its_id(
    place: Place, notes: Notes, again: str
) -> None:
    """The SDK does not run a call again that has an id of before, and fails the run for another one."""
    flow = a_talk(an_agent(notes, [PAY], [Call("pay", again, PAY.id)], approval=True))
    result = await flow.run({}, on=await place.hf())
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert [line for line in notes.lines if line.startswith("pay")] == ["pay A17 250"]
    assert result.status is not RunStatus.completed or again == PAY.arguments


@pytest.mark.covers("IN-62")
async def test_approval_belongs_to_one_agent_run(place: Place, notes: Notes) -> None:
    agent = an_agent(notes, [PAY], approval=True)

    async def ask(ctx: Context, s: Talk) -> str:
        await run_agent(ctx, agent, s.question, run_config=QUIET)
        return str((await run_agent(ctx, agent, s.question, run_config=QUIET)).final_output)

    flow = a_flow(ask)
    result = await flow.run({}, on=await place.hf())
    for count in (1, 2):
        (hold,) = result.holds
        assert len([line for line in notes.lines if line.startswith("pay")]) == count - 1
        await decide(await place.hf(), hold, "approve")
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert len([line for line in notes.lines if line.startswith("pay")]) == 2


@pytest.mark.covers("IN-62")
async def test_later_calls_of_a_tool_ask_again_unless_a_person_allowed_all(
    place: Place, notes: Notes
) -> None:
    turns = [[PAY], [Call("pay", MUCH, "c-2")]]
    flow = a_talk(an_agent(notes, *turns, approval=True))
    result = await flow.run({}, on=await place.hf())
    assert [option.id for option in result.holds[0].options] == ["approve", "reject"]
    await decide(await place.hf(), result.holds[0], "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert len(result.holds) == 1
    with pytest.raises(AnswerInvalidError, match="approve, reject"):
        await decide(await place.hf(), result.holds[0], "approve_always")
    assert "pay A17 9000" not in notes.lines

    flow = a_talk(an_agent(notes, *turns, approval=True), hold={"always": True})
    result = await flow.run({}, on=await place.hf())
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve_always")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert "pay A17 9000" in notes.lines


@pytest.mark.covers("IN-62")
async def test_other_arguments_are_refused_because_the_sdk_cannot_carry_them(
    place: Place, notes: Notes
) -> None:
    flow = a_talk(an_agent(notes, [PAY], approval=True))
    result = await flow.run({}, on=await place.hf())
    with pytest.raises(Exception, match="arguments"):
        await decide(
            await place.hf(), result.holds[0], "approve", data={"arguments": {"order": "A17", "amount": 1}}
        )
    assert "pay A17 250" not in notes.lines


@pytest.mark.covers("IN-62")
async def test_an_approval_that_expires_is_told_to_the_model(place: Place, notes: Notes) -> None:
    flow = a_talk(an_agent(notes, [PAY], approval=True), hold={"timeout": "1h"})
    result = await flow.run({}, on=await place.hf())
    place.clock.advance(hours=2)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert "not approved in time" in result.state.answer
    assert "pay A17 250" not in notes.lines


@pytest.mark.covers("IN-62")
async def test_code_that_asks_no_more_does_not_undo_an_open_question(place: Place, notes: Notes) -> None:
    result = await a_talk(an_agent(notes, [PAY], approval=True)).run({}, on=await place.hf())
    flow = a_talk(an_agent(notes, [PAY], approval=False))
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "reject")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert "pay A17 250" not in notes.lines
    assert notes.lines == ["model", "model"]


@pytest.mark.covers("IN-62")
async def test_a_function_decides_which_calls_need_approval(place: Place, notes: Notes) -> None:
    async def much(_ctx: Any, arguments: dict[str, Any], _call: str) -> bool:
        return arguments["amount"] > 1000

    flow = a_talk(an_agent(notes, [PAY], [Call("pay", MUCH, "c-2")], approval=much))
    result = await flow.run({}, on=await place.hf())
    assert [json.loads(hold.context)["arguments"]["amount"] for hold in result.holds] == [9000]
    assert notes.lines == ["model", "pay A17 250", "model"]


async def test_agents_side_by_side_keep_their_own_steps(place: Place, notes: Notes) -> None:
    first = an_agent(notes, [LOOK, PAY], approval=True, name="first")
    second = an_agent(notes, [PAY], approval=True, name="second")

    async def ask(ctx: Context, s: Talk) -> str:
        both = await ctx.gather(
            *(run_agent(ctx, each, s.question, run_config=QUIET) for each in (first, second, first))
        )
        return " | ".join(str(each.final_output) for each in both)

    flow = a_flow(ask)
    result = await flow.run({}, on=await place.hf())
    assert len(result.holds) == 3, result.error
    for hold in result.holds:
        await decide(await place.hf(), hold, "approve")
    result = await flow.resume(result.run_id, on=await place.hf())
    order = "{'order': 'A17', 'paid': 250}; paid 250"
    assert result.state.answer == f"{order} | paid 250 | {order}"
    assert notes.lines.count("pay A17 250") == 3
    assert notes.lines.count("model") == 6


# ---- the state in the journal
@pytest.mark.covers("IN-63")
async def test_a_state_of_another_schema_is_refused_and_its_answer_waits(
    place: Place, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = a_talk(an_agent(notes, [PAY], approval=True))
    result = await flow.run({}, on=await place.hf())
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve")
    monkeypatch.setattr(run, "SUPPORTED_SCHEMA_VERSIONS", frozenset({"1.20"}))
    monkeypatch.setattr(run, "CURRENT_SCHEMA_VERSION", "1.20")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.status is RunStatus.failed
    assert "version_mismatch" in str(result.error)
    assert private_names.CURRENT_SCHEMA_VERSION in str(result.error)
    assert "up to 1.20" in str(result.error)
    assert "pay A17 250" not in notes.lines
    monkeypatch.undo()
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed, result.error
    assert notes.lines == ["model", "pay A17 250", "model"]


# ---- errors
@pytest.mark.covers("IN-61")
async def test_effects_of_tools_that_there_are_not_are_refused_before_anything_is_called(
    place: Place, notes: Notes
) -> None:
    agent = an_agent(notes, [PAY])
    flow = a_talk(agent, effects={"look": "read", "lok": "read"})
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.failed
    assert "effects= names 'lok', which no agent of this run can call" in str(result.error)
    assert "There are: look, pay" in str(result.error)
    assert notes.lines == []
    front = Agent("front", model=agent.model, handoffs=[agent])
    flow = a_talk(front, effects={"pay": "read", "transfer_to_support": "read"})
    assert "effects=" not in str((await flow.run({}, on=await place.hf())).error)


@pytest.mark.covers("IN-61", "IN-4")
async def test_an_error_of_a_tool_with_effects_is_an_unknown_outcome(place: Place, notes: Notes) -> None:
    @function_tool
    def refund(order: str) -> str:
        notes.add("refund")
        raise OSError("the line is down")

    agent = Agent(
        name="s", model=ShopModel(notes, [Call("refund", '{"order": "A17"}', "c-1")]), tools=[refund]
    )
    flow = a_talk(agent)
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    assert notes.lines == ["model", "refund"]
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "happened", data={"value": "refunded"})
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "refunded"
    assert notes.lines == ["model", "refund", "model"]


@pytest.mark.covers("IN-61")
@pytest.mark.parametrize("effects", [{"refund": "read"}, {}], ids=["read", "nothing happened"])
async def test_an_error_after_which_nothing_happened_is_told_to_the_model(
    place: Place, notes: Notes, effects: dict[str, str]
) -> None:
    @function_tool
    def refund(order: str) -> str:
        notes.add("refund")
        raise NotDone("the till is closed")

    agent = Agent(
        name="s", model=ShopModel(notes, [Call("refund", '{"order": "A17"}', "c-1")]), tools=[refund]
    )
    result = await a_talk(agent, effects=effects).run({}, on=await place.hf())
    assert "An error occurred while running the tool" in result.state.answer, result.error


@pytest.mark.covers("IN-61")
async def test_arguments_that_do_not_fit_are_told_to_the_model(place: Place, notes: Notes) -> None:
    flow = a_talk(an_agent(notes, [Call("pay", '{"order": "A17"}', "c-1")]))
    result = await flow.run({}, on=await place.hf())
    assert "An error occurred" in result.state.answer, result.error
    assert notes.lines == ["model", "model"]


@pytest.mark.covers("IN-61")
async def test_an_idempotency_key_lets_a_tool_run_again(place: Place, notes: Notes) -> None:
    @function_tool(failure_error_function=None)
    def refund(order: str) -> str:
        if notes.lines.count("refund") < 1:
            notes.add("refund")
            raise OSError("the line is down")
        return "refunded"

    call = Call("refund", '{"order": "A17"}', "c-1")
    agent = Agent(name="s", model=ShopModel(notes, [call]), tools=[refund])
    key = {"refund": {"effect": "write", "idempotency_key": "refund-{{order}}"}}
    flow = a_talk(agent, effects=key)
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.failed
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "refunded", result.error


@pytest.mark.covers("IN-4")
async def test_an_error_of_the_model_reaches_the_script_in_its_own_class(place: Place, notes: Notes) -> None:
    def fail() -> None:
        raise ConnectionError("no model")

    agent = Agent(name="s", model=ShopModel(notes, fails=fail))
    caught: list[Exception] = []

    async def ask(ctx: Context, s: Talk) -> str:
        try:
            await run_agent(ctx, agent, s.question, run_config=QUIET)
        except ConnectionError as error:
            caught.append(error)
        return "no answer"

    result = await a_flow(ask).run({}, on=await place.hf())
    assert result.state.answer == "no answer", result.error
    assert str(caught[0]) == "no model"


# ---- refusals
@pytest.mark.covers("IN-63")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _notes: RealtimeAgent(name="r"), "is a realtime agent"),
        (lambda _notes: SandboxAgent(name="r"), "is a sandbox agent"),
        (lambda _notes: "support", "run_agent was given str"),
        (
            lambda notes: Agent(
                name="a",
                tools=[an_agent(notes, approval=True, name="inner").as_tool("inner", "Asks it")],
            ),
            "needs approval; the agent runs inside one recorded step",
        ),
        (
            lambda _notes: Agent(name="a", tools=[ComputerTool(computer=lambda **_: None)]),
            "has a ComputerTool",
        ),
    ],
    ids=["realtime", "sandbox", "text", "approval inside", "computer"],
)
async def test_what_cannot_be_recorded_is_refused_before_anything_is_called(
    place: Place, notes: Notes, make: Any, words: str
) -> None:
    result = await a_talk(make(notes)).run({}, on=await place.hf())
    assert result.status is RunStatus.failed
    assert words in str(result.error)
    assert notes.lines == []


@pytest.mark.covers("IN-63")
async def test_hosted_tools_run_inside_the_model_call(
    place: Place, notes: Notes, performed: list[tuple[str, str]]
) -> None:
    agent = an_agent(notes)
    agent.tools = [*agent.tools, WebSearchTool()]
    result = await a_talk(agent).run({}, on=await place.hf())
    assert result.completed, result.error
    assert performed == [("model.request", "read")]


async def test_an_effect_that_does_not_exist_is_refused(place: Place, notes: Notes) -> None:
    result = await a_talk(an_agent(notes), effects={"pay": "reed"}).run({}, on=await place.hf())
    assert result.error is not None
    assert "effects['pay']: the effect is one of" in result.error.message


async def test_a_sync_script_is_refused(place: Place, notes: Notes) -> None:
    flow = Flow("talk", state=Talk)

    @flow.script
    def talk(s: Talk, ctx: Context) -> dict[str, Any]:
        return {"answer": asyncio.run(run_agent(ctx, an_agent(notes), s.question))}

    flow.start(talk)
    result = await flow.run({}, on=await place.hf())
    assert "Call it in an async script" in str(result.error)


@pytest.mark.covers("IN-3")
def test_the_sdk_has_the_private_names_that_are_used() -> None:
    tool = an_agent(Notes.__new__(Notes)).tools[0]
    assert isinstance(tool, FunctionTool)
    assert isinstance(tool.on_invoke_tool, Invoker)
    for name in ("_invoke_tool_impl", "_on_handled_error", "__agents_bind_function_tool__"):
        assert hasattr(tool.on_invoke_tool, name), name
    for name in ("_use_default_failure_error_function", "_is_agent_tool", "_agent_instance"):
        assert hasattr(tool, name), name
    assert hasattr(handoff(Agent(name="a")), "_agent_ref")
    assert private_names.CURRENT_SCHEMA_VERSION in private_names.SUPPORTED_SCHEMA_VERSIONS


@pytest.mark.covers("IN-5")
async def test_the_example_pays_after_an_approval(place: Place) -> None:
    from examples.openai_agents_refund import support

    result = await support.run({}, on=await place.hf())
    assert result.holds, result.error
    await decide(await place.hf(), result.holds[0], "approve")
    result = await support.resume(result.run_id, on=await place.hf())
    assert result.state.answer == "Done: refunded 250 for A17", result.error
