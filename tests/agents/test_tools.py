from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel

from holdfast import (
    Agent,
    Approval,
    Context,
    Flow,
    FlowInvalidError,
    Holdfast,
    InputError,
    RunStatus,
    Scripted,
    ToolError,
    ask_person,
    tool,
    tool_call,
)
from holdfast.agents.messages import Message, ModelReply, TokenUsage, ToolCall
from holdfast.agents.schemas import reader_of, schema_of
from holdfast.agents.scripted import Scripted as Model
from tests.agents.helpers import World, a_flow, asked, results
from tests.flows.places import Place, told

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Item:
    sku: str
    count: int = 1


@tool(effect="read")
async def order(
    customer: Annotated[str, "The customer's number"],
    items: list[Item],
    speed: Literal["slow", "fast"] = "slow",
    ctx: Context | None = None,
) -> str:
    """Orders items.

    Only what is in stock.
    """
    assert ctx is not None
    return f"{customer} {[item.sku for item in items]} {speed} {ctx.node}"


@pytest.mark.covers("TOOL-AGENT-06")
def test_a_tool_is_described_by_its_types_and_its_docstring() -> None:
    assert order.spec.name == "order"
    assert order.spec.description == "Orders items.\n\nOnly what is in stock."
    assert order.spec.schema == {
        "type": "object",
        "properties": {
            "customer": {"type": "string", "description": "The customer's number"},
            "items": {
                "type": "array",
                "items": {
                    "title": "Item",
                    "type": "object",
                    "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "default": 1}},
                    "required": ["sku"],
                },
            },
            "speed": {"enum": ["fast", "slow"], "default": "slow"},
        },
        "required": ["customer", "items"],
        "additionalProperties": False,
    }


async def test_a_tool_gets_its_arguments_as_their_types_say(hf: Holdfast) -> None:
    model = Scripted(tool_call("order", customer="c-9", items=[{"sku": "a"}]), "Ok.")
    result = await a_flow(model, order).run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert results(model.requests[-1])[0].text == "c-9 ['a'] slow bot"


async def test_a_plain_function_is_a_tool_that_touches_the_outside(hf: Holdfast) -> None:
    def ring(bell: str) -> str:
        """Rings."""
        return f"{bell} rang"

    model = Scripted(tool_call("ring", bell="big"), "Ok.")
    result = await a_flow(model, ring).run({"prompt": "Go"}, on=hf)
    assert results(model.requests[-1])[0].text == "big rang"
    assert result.completed
    assert Agent("a", model=model, tools=[ring]).tools[0].effect == "external"


BAD = [
    (ToolCall("", "look", "{not json"), "do not fit 'look'"),
    (ToolCall("", "look", "[1]"), "not a JSON object"),
    (tool_call("look", place=3), "Expected `str`, got `int`"),
    (tool_call("look"), "missing required field `place`"),
    (tool_call("look", place="pier", deep=True), "unknown field `deep`"),
    (tool_call("dance"), "there is no tool 'dance'; known: look"),
]


@pytest.mark.covers("TOOL-AGENT-01")
@pytest.mark.parametrize(("call", "said"), BAD)
async def test_the_model_is_reported_what_is_wrong_with_a_call_and_may_repair_it(
    hf: Holdfast, call: ToolCall, said: str
) -> None:
    world = World()
    model = Scripted(call, tool_call("look", place="pier"), "Ok.")
    result = await a_flow(model, world.looks()).run({"prompt": "Go"}, on=hf)
    assert result.completed
    wrong, right = results(model.requests[-1])
    assert wrong.failed
    assert said in wrong.text
    assert right.text == "pier is calm"
    assert world.done == ["look pier"]


@pytest.mark.covers("TOOL-AGENT-01")
async def test_a_model_that_makes_only_nonsense_is_given_up(hf: Holdfast) -> None:
    model = Scripted(*[tool_call("dance")] * 9)
    result = await a_flow(model, World().looks()).run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.code == "model_reply"
    assert "there is no tool 'dance'" in result.error.message
    assert asked(model) == 3


@pytest.mark.covers("TOOL-AGENT-01", "CP2-A1")
async def test_bad_calls_with_good_ones_between_them_do_not_end_a_long_conversation(hf: Holdfast) -> None:
    world, bad = World(), (tool_call("dance"), tool_call("look"))
    calls = [each for at in range(6) for each in (*bad, tool_call("look", place=f"pier {at}"))]
    result = await a_flow(Scripted(*calls, "Ok."), world.looks(), max_turns=30).run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert world.done == [f"look pier {at}" for at in range(6)]


async def test_an_empty_answer_is_asked_about_and_given_up_in_the_end(hf: Holdfast) -> None:
    model = Scripted("", "  ", "Here.")
    result = await a_flow(model).run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "Here."
    silent = await a_flow(Scripted(*[""] * 9)).run({"prompt": "Go"}, on=hf)
    assert silent.status is RunStatus.failed


@pytest.mark.covers("TOOL-AGENT-06")
async def test_an_error_that_changed_nothing_is_asked_to_the_model_and_kept(place: Place) -> None:
    calls: list[str] = []

    @tool(effect="read")
    async def search(query: str) -> str:
        """Searches."""
        calls.append(query)
        raise LookupError(f"no index for {query}")

    @tool
    async def send(to: str) -> str:
        """Sends."""
        calls.append(to)
        raise ToolError("the postbox is full")

    def third(_request: Any) -> Any:
        return trouble.pop() if trouble else "Neither works."

    trouble: list[Exception] = [RuntimeError("model down")]
    model = Scripted([tool_call("search", query="x"), tool_call("send", to="y")], third)
    flow = a_flow(model, search, send)
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert result.status is RunStatus.failed
    # A failure later on does not make what the model was told untrue: it is told the same again.
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert calls == ["x", "y"]
    first, second = results(model.requests[-1])
    assert first.text == "Error: LookupError: no index for x"
    assert second.text == "Error: the postbox is full"
    assert first.failed
    assert second.failed


async def test_a_tool_that_takes_too_long_is_reported_as_an_error(hf: Holdfast) -> None:
    import asyncio

    @tool(effect="read", timeout=0.02)
    async def wait() -> None:
        """Waits."""
        await asyncio.Event().wait()

    model = Scripted(tool_call("wait"), "Ok.")
    assert (await a_flow(model, wait).run({"prompt": "Go"}, on=hf)).completed
    assert "TimeoutError" in results(model.requests[-1])[0].text


async def test_a_tool_is_called_no_more_often_than_it_may(hf: Holdfast) -> None:
    world = World()
    calls = [tool_call("look", place=f"p{n}") for n in range(3)]
    model = Scripted(calls, "Ok.")
    await a_flow(model, world.looks(max_calls=1)).run({"prompt": "Go"}, on=hf)
    assert world.done == ["look p0"]
    assert "may be called only once" in results(model.requests[-1])[1].text


class Verdict(msgspec.Struct, frozen=True):
    good: bool
    score: Annotated[int, msgspec.Meta(ge=0, le=10)]


class Judged(BaseModel):
    good: bool
    why: str


@dataclass
class State:
    prompt: str
    verdict: Verdict | None = None


@pytest.mark.covers("TOOL-AGENT-01")
async def test_a_typed_answer_is_repaired_by_the_model_until_it_fits(hf: Holdfast) -> None:
    model = Scripted(
        "It is good.",
        tool_call("final_answer", good=True, score=11),
        tool_call("final_answer", good=True, score=7),
    )
    flow = Flow("judge", state=State)
    flow.agent("judge", model=model, returns=Verdict, output="verdict")
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert result.state.verdict == Verdict(good=True, score=7)
    assert model.requests[0].must_call
    said = [message for message in model.requests[-1].messages if message.role in ("user", "tool")]
    assert "final_answer" in said[1].text
    assert "Expected `int` <= 10" in said[2].text


async def test_a_typed_answer_that_never_fits_fails_the_run(hf: Holdfast) -> None:
    model = Scripted(*[tool_call("final_answer", good="?")] * 9)
    result = await a_flow(model, returns=Verdict, max_repairs=1).run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.code == "model_reply"
    assert asked(model) == 2


@pytest.mark.parametrize(
    "returns",
    [
        Judged,
        {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]},
        dict[str, Any],
    ],
    ids=["pydantic", "schema", "plain"],
)
async def test_answers_of_other_types_become_plain_data_in_a_plain_state(hf: Holdfast, returns: Any) -> None:
    model = Model(tool_call("final_answer", good=True, why="because"))
    result = await a_flow(model, returns=returns).run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert result.state["answer"] == {"good": True, "why": "because"}


async def test_an_answer_without_a_field_is_the_output_of_its_node(hf: Holdfast) -> None:
    result = await a_flow(Scripted("Hello."), output=None).run({"prompt": "Go"}, on=hf)
    assert result.artifacts == {"bot": "Hello."}


def test_tools_that_make_no_sense_are_refused_where_they_are_written() -> None:
    def takes_ctx(ctx: Context) -> None: ...
    async def no_key(x: int) -> None: ...
    async def rest(*args: int) -> None: ...
    async def fine(x: int) -> None: ...

    for make in (
        lambda: tool(takes_ctx),
        lambda: tool(idempotent=True)(no_key),
        lambda: tool(script=True)(no_key),
        lambda: tool(rest),
        lambda: tool(effect="harmless")(fine),
        lambda: tool(approval="amount >")(fine),
        lambda: tool(approval=Approval(timeout="1h", on_timeout="default"))(fine),
        lambda: Agent("a", model=Scripted(), tools=[fine, fine]),
        lambda: Agent("a", model=Scripted(), tools=[tool(name="has space")(fine)]),
        lambda: Agent("a", model=Scripted(), tools=[tool(name="final_answer")(fine)]),
        lambda: Agent("a", model=Scripted(), tools=["look"]),  # type: ignore[list-item]
        lambda: Agent("a", model=Scripted(), max_turns=-1),
        lambda: Agent("a", model=Scripted(), on_max_turns="shrug"),
        lambda: Agent("a", model=Scripted(), returns={"type": "nonsense"}),
        lambda: Flow("f").agent("bot"),
        lambda: Flow("f").agent("bot", model="gpt-5"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError):
            make()


def test_an_agent_that_could_not_keep_its_answer_is_found_before_it_runs() -> None:
    flow = Flow("judge", state=State)
    flow.agent(
        "judge",
        model=Scripted("x"),
        output="verdikt",
        history="talk",
        prompt="Judge {{",
        instructions="{{x y}}",
    )
    with pytest.raises(FlowInvalidError) as caught:
        flow.compile()
    said = str(caught.value)
    assert "4 errors" in said
    assert "the state has no field 'verdikt'" in said
    assert "the state has no field 'talk'" in said
    assert "its prompt cannot be parsed" in said
    assert "its instructions cannot be parsed" in said


async def test_large_arguments_reach_the_tool_and_not_the_live_output(hf: Holdfast) -> None:
    sizes: list[int] = []

    @tool
    async def keep(text: str) -> str:
        """Keeps a text."""
        sizes.append(len(text))
        return "kept"

    result = await a_flow(Scripted(tool_call("keep", text="x" * 10_000), "Ok."), keep).run(
        {"prompt": "Go"}, on=hf
    )
    assert result.completed
    assert sizes == [10_000]
    (begun,) = [e for e in await told(hf, result, "node.emitted") if e.data["kind"] == "tool"]
    assert begun.data["data"] == {"tool": "keep", "call": "call_1_1", "turn": 1}


async def test_an_answer_that_was_cut_is_reported_as_such(hf: Holdfast) -> None:
    cut = ModelReply(Message("assistant", "Once upon a"), finish="length")
    result = await a_flow(Scripted(cut)).run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "Once upon a"
    events = [e.data["data"] for e in await told(hf, result, "node.emitted") if e.data["kind"] == "agent"]
    assert events == [{"agent": "bot", "stopped": "length"}]


async def test_a_model_that_refuses_fails_the_run_with_what_it_said(hf: Holdfast) -> None:
    no = ModelReply(Message("assistant", "I will not."), finish="refused")
    result = await a_flow(Scripted(no)).run({"prompt": "Go"}, on=hf)
    assert result.error is not None
    assert result.error.code == "model_refused"
    assert "I will not." in result.error.message


async def test_a_refusal_is_asked_about_again_when_the_run_is_resumed(hf: Holdfast) -> None:
    says: list[Any] = [ModelReply(Message("assistant", "I will not."), TokenUsage(5, 5), finish="refused")]
    flow = a_flow(Scripted(lambda _request: says.pop() if says else "Well, then."))
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.totals["tokens"] == 10
    assert (await flow.resume(result.run_id, on=hf)).completed


async def test_what_a_tool_or_a_sub_agent_returns_is_reported_as_json(hf: Holdfast) -> None:
    @tool(effect="read")
    async def judge() -> Judged:
        """Judges."""
        return Judged(good=True, why="so")

    inner = Agent("inner", model=Scripted(tool_call("final_answer", good=False, why="no")), returns=Judged)
    model = Scripted([tool_call("judge"), tool_call("inner", task="judge")], "Ok.")
    assert (await a_flow(model, judge, inner.as_tool()).run({"prompt": "Go"}, on=hf)).completed
    assert [message.text for message in results(model.requests[-1])] == [
        '{"good":true,"why":"so"}',
        '{"good":false,"why":"no"}',
    ]


async def test_an_error_of_a_model_of_ones_own_is_reported_with_its_type(hf: Holdfast) -> None:
    result = await a_flow(Scripted(ZeroDivisionError("oh"))).run({"prompt": "Go"}, on=hf)
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("model", "ZeroDivisionError: oh")


async def test_a_question_that_cannot_be_asked_is_asked_to_the_model(hf: Holdfast) -> None:
    model = Scripted(tool_call("ask_person", question="Which?", choices=["a", "a"]), "Never mind.")
    assert (await a_flow(model, ask_person()).run({"prompt": "Go"}, on=hf)).completed
    assert "need ids" in results(model.requests[-1])[0].text


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ({"prompt": ""}, {}, "has an empty prompt"),
        ({}, {"prompt": lambda _state: 3}, "the prompt of agent 'bot' is a int"),
        (
            {"prompt": "x", "talk": [{"role": "judge"}]},
            {"history": "talk"},
            "'talk' does not contain messages",
        ),
        ({"prompt": "x", "talk": 3}, {"history": "talk"}, "'talk' does not contain messages"),
        ({"prompt": "x", "given": {"a": 3}}, {"uploads": "given"}, "'given' does not contain files"),
        ({"prompt": "x", "given": ["a"]}, {"uploads": "given"}, "'given' does not contain files"),
    ],
)
async def test_a_state_that_no_conversation_can_begin_with_is_reported(
    hf: Holdfast, given: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    model = Scripted("Hi.")
    result = await a_flow(model, **options).run(given, on=hf)
    assert result.error is not None
    assert result.error.code == "invalid_input"
    assert said in result.error.message
    assert asked(model) == 0


async def test_a_prompt_with_a_hole_fails_the_node_instead_of_being_sent(hf: Holdfast) -> None:
    model = Scripted("Hi.")
    result = await a_flow(model, prompt="Refund {{order_id}}").run({"prompt": "x"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert "order_id" in result.error.message
    assert asked(model) == 0


def test_a_schema_that_refers_to_its_definitions_is_written_in_place() -> None:
    line = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    given = {
        "type": "object",
        "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
        "$defs": {"line": line},
    }
    found = schema_of(given, "the output")
    assert found == {"type": "object", "properties": {"lines": {"type": "array", "items": line}}}
    with pytest.raises(ValueError, match="sku"):
        reader_of(given)('{"lines": [{}]}')
    with pytest.raises(InputError, match="has no #/\\$defs/other"):
        schema_of({"$ref": "#/$defs/other", "$defs": {"line": line}}, "the output")
