"""Nodes that ask models and call tools, with scripted models."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.agents.scripted import Scripted, tool_call
from holdfast.agents.tools import Tool, tool
from holdfast.app.flow import advance
from holdfast.documents import functions
from holdfast.documents.connections import Connections, ConnectionSettings
from holdfast.documents.program import default_site, program_of
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.read import read_text
from tests.documents.run import answer, flow_text, rules, site_of, start

HEAD = "input: {properties: {text: {}}}"


def one(kind: str, config: str) -> str:
    node = f"{{id: it, type: {kind}, config: {config}}}"
    listed = f"{{id: start, type: start}}\n{node}\n{{id: done, type: end}}"
    return flow_text(listed, "start -> it -> done", HEAD)


@tool
def count_words(text: str) -> int:
    """Counts words."""
    return len(text.split())


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> dict[str, Tool]:
    known = {"count_words": count_words}
    monkeypatch.setattr(functions, "_tools", known)
    return known


def site(model: Scripted | None = None, allowed: tuple[str, ...] = ()) -> dict[str, Any]:
    made: DocumentSite = default_site(
        Connections(ConnectionSettings(tools=allowed), models={"gpt": model} if model else {})
    )
    wanted = ("connections", "secrets", "tools", "handlers")
    return {name: getattr(made, name) for name in wanted}


async def test_llm_node_binds_the_answer_of_its_model(hf: Holdfast) -> None:
    model = Scripted("Short.")
    text = one("llm", '{connection: gpt, prompt: "Sum up {{text}}", system: Be brief}')
    ended = await start(hf, text, {"text": "a long story"}, **site(model))

    assert ended.state["it"] == "Short."
    assert [each.text for each in model.requests[0].messages] == ["Be brief", "Sum up a long story"]


async def test_llm_node_with_a_schema_binds_data(hf: Holdfast) -> None:
    model = Scripted(tool_call("final_answer", score=3))
    schema = "{type: object, properties: {score: {type: integer}}, required: [score]}"
    ended = await start(hf, one("llm", f"{{connection: gpt, prompt: Rate, schema: {schema}}}"), **site(model))

    assert ended.state["it"] == {"score": 3}


async def test_agent_node_asks_a_person_before_a_tool_that_needs_it(
    hf: Holdfast, tools: dict[str, Tool]
) -> None:
    model = Scripted(tool_call("count_words", text="one two"), "Two words.")
    given = site(model, ("count_words",))
    config = '{connection: gpt, instructions: "Count {{text}}", tools: [count_words], approve: [count_words]}'
    waiting = await start(hf, one("agent", config), {"text": "one two"}, **given)
    assert waiting.status == "pending_input"

    ended = await answer(hf, waiting, "approve")

    assert ended.state["it"] == "Two words."
    assert model.requests[-1].messages[-1].text == "2"


async def test_tool_node_binds_the_result(hf: Holdfast, tools: dict[str, Tool]) -> None:
    text = one("tool", '{tool: count_words, args: {text: "{{text}}"}}')
    ended = await start(hf, text, {"text": "one two three"}, **site(None, ("count_words",)))

    assert ended.state["it"] == 3


async def test_tool_node_calls_nothing_when_its_arguments_do_not_fit(
    hf: Holdfast, tools: dict[str, Tool]
) -> None:
    text = one("tool", '{tool: count_words, args: {text: "{{text}}"}}')
    ended = await start(hf, text, {"text": 7}, **site(None, ("count_words",)))

    assert ended.status == "failed"
    assert "do not fit" in ended.error.message


def test_tool_that_the_operator_does_not_list_is_refused(tools: dict[str, Tool]) -> None:
    text = one("tool", "{tool: count_words, args: {text: a}}")

    assert rules(text, **site()) == ["tool-not-allowed"]
    assert rules(text, **site(None, ("count_words",))) == []


def test_tool_that_asks_a_person_itself_is_left_to_agents(tools: dict[str, Tool]) -> None:
    tools["asks"] = tool(name="asks", approval=True)(count_words.fn)  # pyright: ignore[reportArgumentType]

    assert rules(one("tool", "{tool: asks}"), **site(None, ("asks",))) == ["tool-not-allowed"]


async def test_tool_that_asks_a_person_is_not_called_where_only_the_worker_knows_it(
    hf: Holdfast, tools: dict[str, Tool]
) -> None:
    """The server that takes the document does not have the tool, or it asked nobody then."""
    called: list[int] = []

    @tool(approval=True)
    def wire(amount: int) -> None:
        """Wires money."""
        called.append(amount)

    tools["wire"] = wire
    given, text = site(None, ("wire",)), one("tool", "{tool: wire, args: {amount: 1}}")
    elsewhere = site_of(None, **{**given, "tools": {}, "listed_tools": frozenset({"wire"})})
    elsewhere = msgspec.structs.replace(elsewhere, functions=None)
    spec = compile_document(read_text(text, "yaml"), elsewhere).require_valid()
    program = program_of(spec, site_of(None, **given))
    hf.register(program)
    service = await hf.service()
    row, _ = await service.create(program, {})
    ended = await advance(service, program, row.id, created=True)
    assert (ended.status, ended.failed_node) == ("failed", "it")
    assert "asks people" in ended.error.message
    assert called == []


def test_agent_with_an_unknown_tool_or_connection_is_refused(tools: dict[str, Tool]) -> None:
    given = site(Scripted(), ("count_words",))
    for config, expected in (
        ("{connection: gpt, instructions: Go, tools: [count_word]}", ["tool-unknown"]),
        ("{connection: gpt, instructions: Go, approve: [count_words]}", ["tool-unknown"]),
        ("{connection: gpu, instructions: Go}", ["connection-unknown"]),
        ("{connection: gpt, instructions: Go, tools: [count_words], approve: [count_words]}", []),
    ):
        assert rules(one("agent", config), **given) == expected


def test_model_of_a_connection_reads_its_key_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.documents.connections import ModelConnection
    from holdfast.documents.model_nodes import model_of

    spec = ModelConnection(model="m-1", key="env:MODEL_KEY", base_url="http://127.0.0.1:1/v1")
    found = model_of(Connections(ConnectionSettings(connections={"gpt": spec})), "default", "gpt", "m-2")

    assert found.name == "m-2"
    assert msgspec.json.encode(spec).find(b"env:MODEL_KEY") > 0
