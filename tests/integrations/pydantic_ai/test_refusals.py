"""What an agent of Pydantic AI is refused in a run, before it calls anything."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart, ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import DynamicToolset

from holdfast import Flow, RunStatus
from holdfast.integrations.pydantic_ai import HoldfastDurability
from tests.flows.places import Place
from tests.integrations.notes import Notes
from tests.integrations.pydantic_ai.shop import Talk, a_flow, a_model, a_talk, an_agent

pytestmark = [pytest.mark.anyio, pytest.mark.covers("IN-56")]

SAME = "two agents with the name 'support'"


async def refused(place: Place, flow: Flow[Any], notes: Notes, *, called: list[str] | None = None) -> str:
    """What the error of its run says, and that nothing was called."""
    result = await flow.run({}, on=await place.hf())
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.type == "InputError"
    assert notes.lines == (called or [])
    return str(result.error)


async def test_two_agents_of_one_name_are_refused_before_the_first_one_is_called(
    place: Place, notes: Notes
) -> None:
    one, other = an_agent(notes), an_agent(notes)

    async def ask(s: Talk) -> str:
        await one.run(s.question)
        return (await other.run(s.question)).output

    assert SAME in await refused(place, a_flow(ask), notes)


def in_two_nodes(first: Any, second: Any) -> Flow[Talk]:
    flow = Flow("talk", state=Talk)

    @flow.script
    async def hello(s: Talk) -> dict[str, Any]:
        return {"answer": (await first().run(s.question)).output}

    @flow.script
    async def goodbye(s: Talk) -> dict[str, Any]:
        return {"answer": (await second().run(s.question)).output}

    flow.chain(hello, goodbye)
    return flow


async def test_two_agents_of_one_name_are_refused_in_two_nodes(place: Place, notes: Notes) -> None:
    one, other = an_agent(notes), an_agent(notes)
    assert SAME in await refused(place, in_two_nodes(lambda: one, lambda: other), notes)


async def test_an_agent_of_a_module_is_found(
    place: Place, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = ModuleType("agents_of_a_shop")
    module.one, module.other = an_agent(notes), an_agent(notes)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(globals(), "agents_of_a_shop", module)
    flow = in_two_nodes(lambda: agents_of_a_shop.one, lambda: agents_of_a_shop.other)  # type: ignore[name-defined]  # noqa: F821
    assert SAME in await refused(place, flow, notes)


async def test_agents_that_are_made_while_a_run_is_at_work_are_refused_in_two_nodes(
    place: Place, notes: Notes
) -> None:
    kept: list[Any] = []

    def made() -> Any:
        kept.append(an_agent(notes))
        return kept[-1]

    flow = in_two_nodes(made, made)
    assert SAME in await refused(place, flow, notes, called=["model"])


async def test_an_agent_may_be_made_by_its_node_and_used_in_several(place: Place, notes: Notes) -> None:
    flow = a_flow(lambda s: ask(s))

    async def ask(s: Talk) -> str:
        return (await an_agent(notes).run(s.question)).output

    hf = await place.hf()
    for _ in range(2):
        assert (await flow.run({}, on=hf)).completed
    shared = an_agent(notes)
    assert (await in_two_nodes(lambda: shared, lambda: shared).run({}, on=hf)).completed
    other = an_agent(notes, name="other")
    assert (await in_two_nodes(lambda: shared, lambda: other).run({}, on=hf)).completed


async def test_a_model_that_is_not_registered_is_refused_before_tools_are_discovered(
    place: Place, notes: Notes
) -> None:
    def choose(_ctx: RunContext[None]) -> FunctionToolset[None]:
        notes.add("discovery")
        return FunctionToolset()

    agent = Agent(
        a_model(notes),
        name="support",
        toolsets=[DynamicToolset(choose, id="chosen")],
        capabilities=[HoldfastDurability()],
    )
    stranger = TestModel()

    async def ask(s: Talk) -> str:
        return (await agent.run(s.question, model=stranger)).output

    assert "HoldfastDurability(models=" in await refused(place, a_flow(ask), notes)
    assert stranger.last_model_request_parameters is None


async def test_models_that_are_registered_or_named_are_not_refused(place: Place, notes: Notes) -> None:
    spare = a_model(notes)
    agent = an_agent(notes, models={"spare": spare})
    for model in (spare, "spare", "test", None):

        async def ask(s: Talk, model: Any = model) -> str:
            return (await agent.run(s.question, model=model)).output

        result = await a_flow(ask).run({}, on=await place.hf())
        # "test" calls all tools; the one that pays is not a `read`, and it is called.
        assert result.completed, result.error


class Socket:
    """It has no form in JSON."""


@dataclass
class Price:
    item: str
    euros: int


def an_agent_that_makes(notes: Notes, declared: Any, made: Any) -> Agent:
    tools: FunctionToolset[None] = FunctionToolset(id="makes")

    def make() -> Any:
        notes.add("make")
        return made

    make.__annotations__["return"] = declared
    tools.tool_plain(make)
    model = a_model(notes, [ToolCallPart("make", {}, "c-1")])
    return Agent(
        model,
        name="support",
        toolsets=[tools],
        capabilities=[HoldfastDurability()],
    )


@pytest.mark.filterwarnings("ignore:Could not generate return schema")
@pytest.mark.parametrize("declared", [Socket, list[Socket], dict[str, Socket | None], ToolReturn[Socket]])
async def test_a_tool_whose_declared_result_is_not_json_is_refused(
    place: Place, notes: Notes, declared: Any
) -> None:
    said = await refused(place, a_talk(an_agent_that_makes(notes, declared, None)), notes)
    assert "tool 'make' of agent 'support'" in said


@pytest.mark.parametrize(
    ("declared", "made"),
    [
        (Price, Price("telescope", 90)),
        (list[Price], [Price("telescope", 90)]),
        (Any, {"euros": 90}),
        (object, "90"),
        (None, None),
        (ToolReturn, ToolReturn("90")),
    ],
    ids=str,
)
async def test_a_tool_whose_declared_result_is_json_is_not_refused(
    place: Place, notes: Notes, declared: Any, made: Any
) -> None:
    result = await a_talk(an_agent_that_makes(notes, declared, made)).run({}, on=await place.hf())
    assert result.completed, result.error


async def test_an_undeclared_result_that_is_not_json_leaves_the_call_in_doubt(
    place: Place, notes: Notes
) -> None:
    result = await a_talk(an_agent_that_makes(notes, Any, object())).run({}, on=await place.hf())
    # It was called, and what it returned cannot be kept: a person decides, and it is not called again.
    assert result.status is RunStatus.pending_input
    assert notes.lines == ["model", "make"]


async def test_effects_of_a_tool_that_the_agent_does_not_have_are_refused(place: Place, notes: Notes) -> None:
    said = await refused(place, a_talk(an_agent(notes, effects={"look": "read", "lookk": "read"})), notes)
    assert "'lookk'" in said
    assert "look, pay" in said


async def test_effects_of_tools_that_are_known_later_are_taken(place: Place, notes: Notes) -> None:
    toolset = DynamicToolset[None](lambda _run: FunctionToolset([]), id="later")
    agent = Agent(
        a_model(notes),
        name="support",
        toolsets=[toolset],
        capabilities=[HoldfastDurability(effects={"later": "read"})],
    )
    assert (await a_talk(agent).run({}, on=await place.hf())).completed
