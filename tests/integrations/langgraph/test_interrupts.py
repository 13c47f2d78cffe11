"""Interrupts of a graph as holds: what people see, what the graph gets, and what happens when it changes."""

from __future__ import annotations

import inspect
import operator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Interrupt, interrupt

from holdfast import Holdfast
from holdfast.errors import ConflictError, FlowInvalidError, InputError, RunError, VersionMismatchError
from holdfast.integrations.langgraph import HoldfastSaver, graph_flow
from holdfast.integrations.langgraph.interrupts import questions_of
from holdfast.types.hold import HoldRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio
HAS_FORMS = "response_schema" in inspect.signature(interrupt).parameters
HAS_OWN_IDS = tuple(int(part) for part in version("langgraph").split(".")[:3]) >= (1, 2, 13)
"""Before, all interrupts of a task have one id."""


class Steps(TypedDict):
    steps: Annotated[list[Any], operator.add]


def builder_of(*asked: Any, name: str = "ask") -> Any:
    """A graph with a node, behind another, that interrupts so often, one after the other."""

    def ask(_state: Steps) -> Any:
        full = (each if isinstance(each, dict) and "value" in each else {"value": each} for each in asked)
        return {"steps": [interrupt(**each) for each in full]}

    builder: Any = StateGraph(Steps)
    builder.add_node("first", lambda _state: {"steps": ["first"]})
    builder.add_node(name, ask)
    builder.add_edge(START, "first")
    builder.add_edge("first", name)
    return builder


@pytest.fixture
async def hf(tmp_path: Path) -> AsyncIterator[Holdfast]:
    async with Holdfast(f"sqlite:{tmp_path / 'runs.db'}?sync=normal") as opened:
        yield opened


async def answer(hf: Holdfast, hold: HoldRow, decision: str, **more: Any) -> None:
    await (await hf.service()).answer(hold.id, decision, **more)


@pytest.mark.covers("IN-30", "IN-31", "IN-32")
async def test_each_interrupt_of_a_graph_is_a_hold_and_its_answer_reaches_the_graph_once(
    hf: Holdfast,
) -> None:
    form: Any = {"response_schema": Literal["card", "cash"]} if HAS_FORMS else {}
    asked = ("Refund?", {"value": {"question": "How?", "sum": 9}, **form})
    flow = graph_flow(
        "support", builder_of(*asked).compile(), hold=lambda _: {"assignee": "group:care", "timeout": "2d"}
    )
    result = await flow.run({"steps": []}, on=hf)
    (hold,) = result.holds
    assert (hold.prompt, hold.assignee) == ("Refund?", "group:care")
    # It is the program that names the group, not who starts the run.
    assert not hold.terms or not hold.terms.filled
    await answer(hf, hold, "yes")

    result = await flow.resume(result.run_id, on=hf)
    (hold,) = result.holds
    assert hold.prompt == "How?"
    assert b'"sum":9' in bytes(hold.context)
    await (answer(hf, hold, "submit", data={"answer": "cash"}) if HAS_FORMS else answer(hf, hold, "cash"))
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["steps"] == ["first", "yes", "cash"]
    # The thread is that of the run, in its store.
    async with HoldfastSaver.open(hf._given) as saver:  # type: ignore[arg-type]
        config: Any = {"configurable": {"thread_id": str(result.run_id)}}
        found = await saver.aget_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"]["steps"] == ["first", "yes", "cash"]


@pytest.mark.covers("IN-30")
async def test_interrupts_of_one_step_wait_side_by_side_and_resume_together(hf: Holdfast) -> None:
    builder: Any = StateGraph(Steps)
    for name in ("a", "b"):
        builder.add_node(name, lambda _state, name=name: {"steps": [f"{name} {interrupt(name)}"]})
        builder.add_edge(START, name)
    flow = graph_flow("pair", builder.compile())
    result = await flow.run({"steps": []}, on=hf)
    by_prompt = {hold.prompt: hold for hold in result.holds}
    await answer(hf, by_prompt["b"], "2")
    assert [each.prompt for each in (await flow.resume(result.run_id, on=hf)).holds] == ["a"]
    await answer(hf, by_prompt["a"], "1")
    assert (await flow.resume(result.run_id, on=hf)).expect().state["steps"] == ["a 1", "b 2"]


@pytest.mark.covers("IN-34")
async def test_code_before_an_interrupt_runs_again_as_the_how_to_says(hf: Holdfast) -> None:
    ran: list[str] = []

    def ask(_state: Steps) -> Any:
        ran.append("before")
        return {"steps": [interrupt("Refund?")]}

    builder: Any = StateGraph(Steps)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    flow = graph_flow("again", builder.compile())
    result = await flow.run({"steps": []}, on=hf)
    await answer(hf, result.holds[0], "yes")
    (await flow.resume(result.run_id, on=hf)).expect()
    assert ran == ["before", "before"]
    page = (Path(__file__).parents[3] / "docs/how-to/langgraph.md").read_text()
    assert "Code before an `interrupt` runs again" in page


HITL = {
    "action_requests": [
        {"name": "refund", "args": {"sum": 900}, "description": "Refund 900?"},
        {"name": "mail", "args": {"to": "kim"}},
    ],
    "review_configs": [
        {"action_name": "refund", "allowed_decisions": ["approve", "edit", "reject"]},
        {"action_name": "mail", "allowed_decisions": ["approve", "reject", "respond"]},
    ],
}


@pytest.mark.covers("IN-31")
async def test_each_action_of_langchains_approval_middleware_is_a_hold(hf: Holdfast) -> None:
    flow = graph_flow("actions", builder_of(HITL).compile())
    result = await flow.run({"steps": []}, on=hf)
    refund, mail = result.holds
    assert [option.id for option in refund.options or ()] == ["approve", "edit", "reject"]
    assert (refund.prompt, mail.prompt) == ("Refund 900?", "The agent wants to call mail.")
    await answer(hf, mail, "respond", data={"message": "Kim left."})
    await answer(hf, refund, "edit", data={"args": {"sum": 90}})
    state = (await flow.resume(result.run_id, on=hf)).expect().state
    assert state["steps"][1] == {
        "decisions": [
            {"type": "edit", "edited_action": {"name": "refund", "args": {"sum": 90}}},
            {"type": "respond", "message": "Kim left."},
        ]
    }


@pytest.mark.covers("IN-32")
async def test_an_interrupt_whose_node_was_renamed_is_an_error_and_its_answer_is_kept(hf: Holdfast) -> None:
    flow = graph_flow("renamed", builder_of("Refund?").compile())
    result = await flow.run({"steps": []}, on=hf)
    await answer(hf, result.holds[0], "yes")
    changed = graph_flow("renamed", builder_of("Refund?", name="approve").compile())
    failed = await changed.resume(result.run_id, on=hf)
    assert failed.error is not None
    assert failed.error.code == VersionMismatchError.code, failed.error
    # Nothing is lost: the graph that asked takes the answer.
    again = await flow.resume(result.run_id, on=hf)
    assert again.expect().state["steps"] == ["first", "yes"]


@pytest.mark.covers("IN-30")
async def test_a_graph_with_another_saver_is_no_flow() -> None:
    with pytest.raises(FlowInvalidError, match="InMemorySaver"):
        graph_flow("other", builder_of("x").compile(checkpointer=InMemorySaver()))
    with pytest.raises(FlowInvalidError, match="not a compiled graph"):
        graph_flow("other", builder_of("x"))


@pytest.mark.covers("USERS-BAD-SAVER")
async def test_a_run_of_another_tenant_does_not_use_the_graphs_saver(hf: Holdfast) -> None:
    flow = graph_flow("own", builder_of("x").compile(checkpointer=HoldfastSaver(hf, tenant="acme")))
    result = await flow.run({"steps": []}, on=hf)
    assert result.error is not None
    assert "'acme'" in result.error.message


async def test_an_error_of_a_node_is_the_error_of_the_run(hf: Holdfast) -> None:
    def broken(_state: Steps) -> Any:
        raise ValueError("no such order")

    builder: Any = StateGraph(Steps)
    builder.add_node("broken", broken)
    builder.add_edge(START, "broken")
    result = await graph_flow("broken", builder.compile()).run({"steps": []}, on=hf)
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("ValueError", "no such order")


def test_what_no_person_could_answer_is_refused() -> None:
    none = {**HITL, "review_configs": []}
    with pytest.raises(InputError, match="allows no decision"):
        questions_of(Interrupt(none, id="a"), None)
    with pytest.raises(InputError, match="returned a str"):
        questions_of(Interrupt("x", id="a"), lambda _: "group:care")  # type: ignore[arg-type,return-value]


# ---------------------------------------------------------------------- without a flow


@pytest.mark.covers("IN-33", "IN-32")
async def test_a_caller_of_ainvoke_opens_holds_once_and_gets_the_command_when_all_are_decided(
    hf: Holdfast,
) -> None:
    saver = HoldfastSaver(hf)
    try:
        graph = builder_of("Refund?", HITL).compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "order-7"}}
        await graph.ainvoke({"steps": []}, config)
        assert await saver.answers(config) is None  # not asked
        (hold,) = await saver.ask(graph, config, hold=lambda _: {"assignee": "user:dana"})
        assert (hold.prompt, hold.assignee) == ("Refund?", "user:dana")
        assert [each.id for each in await saver.ask(graph, config)] == [hold.id]
        assert await saver.answers(config) is None
        await answer(hf, hold, "yes")
        await graph.ainvoke(await saver.answers(config), config)

        refund, mail = await saver.ask(graph, config)
        await answer(hf, refund, "approve")
        assert await saver.answers(config) is None
        await answer(hf, mail, "reject", comment="no")
        result = await graph.ainvoke(await saver.answers(config), config)
        assert result["steps"][1:] == [
            "yes",
            {"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]},
        ]
        assert await saver.answers(config) is None
    finally:
        await saver.aclose()


@pytest.mark.covers("IN-33", "IN-32")
async def test_asking_for_a_node_that_is_gone_or_a_withdrawn_question_is_an_error(hf: Holdfast) -> None:
    saver = HoldfastSaver(hf)
    try:
        graph = builder_of("Refund?").compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "order-8"}}
        await graph.ainvoke({"steps": []}, config)
        with pytest.raises(VersionMismatchError, match="no node any more"):
            await saver.ask(builder_of("Refund?", name="approve").compile(checkpointer=saver), config)
        with pytest.raises(InputError, match="reminder"):
            await saver.ask(graph, config, hold=lambda _: {"reminder": "1h"})
        (hold,) = await saver.ask(graph, config, hold=lambda _: {"options": ["yes", "no"]})
        service = await hf.service()
        await service.cancel(hold.run)
        with pytest.raises(RunError):
            await saver.answers(config)
    finally:
        await saver.aclose()


# ---------------------------------------------------------------------- an answer is for one question


def failing_between() -> tuple[Any, list[Any]]:
    """A graph whose node fails once, after its first answer and before its second question."""
    got: list[Any] = []

    def pay(_state: Steps) -> Any:
        small = interrupt("Pay 10?")
        got.append(small)
        if len(got) == 1:
            raise ValueError("the bank is away")
        return {"steps": [small, interrupt("Pay 1,000,000?")]}

    builder: Any = StateGraph(Steps)
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    return builder, got


@pytest.mark.covers("IN-32")
@pytest.mark.parametrize("nested", [False, True])
async def test_an_answer_that_a_failed_node_has_taken_does_not_answer_its_next_question(
    hf: Holdfast, nested: bool
) -> None:
    builder, _ = failing_between()
    if nested:
        outer: Any = StateGraph(Steps)
        outer.add_node("inner", builder.compile())
        outer.add_edge(START, "inner")
        builder = outer
    flow = graph_flow("pay", builder.compile(), hold=lambda _: {"options": ["approve", "reject"]})
    waiting = await flow.run({"steps": []}, on=hf)
    await answer(hf, waiting.holds[0], "approve")
    assert (await flow.resume(waiting.run_id, on=hf)).failed
    again = await flow.resume(waiting.run_id, on=hf)
    assert [hold.prompt for hold in again.holds] == ["Pay 1,000,000?"]
    await answer(hf, again.holds[0], "reject")
    assert (await flow.resume(waiting.run_id, on=hf)).state["steps"] == ["approve", "reject"]


@pytest.mark.covers("IN-33")
async def test_a_caller_is_told_that_a_failed_node_has_its_answer(hf: Holdfast) -> None:
    saver = HoldfastSaver(hf)
    try:
        graph = failing_between()[0].compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "order-8"}}
        await graph.ainvoke({"steps": []}, config)
        await answer(hf, (await saver.ask(graph, config))[0], "approve")
        with pytest.raises(ValueError, match="bank"):
            await graph.ainvoke(await saver.answers(config), config)
        with pytest.raises(ConflictError, match="has its answer"):
            await saver.answers(config)
        with pytest.raises(ConflictError, match="has its answer"):
            await saver.ask(graph, config)
        await graph.ainvoke(None, config)
        if not HAS_OWN_IDS:
            # Whether it is the next question cannot be told: no answer is given rather than the earlier one.
            with pytest.raises(ConflictError, match="has its answer"):
                await saver.answers(config)
            return
        assert await saver.answers(config) is None
        assert [each.prompt for each in await saver.ask(graph, config)] == ["Pay 1,000,000?"]
    finally:
        await saver.aclose()


@pytest.mark.covers("IN-32")
async def test_data_that_was_not_asked_for_does_not_replace_a_decision(hf: Holdfast) -> None:
    flow = graph_flow("ask", builder_of("Pay?").compile(), hold=lambda _: {"options": ["approve", "reject"]})
    waiting = await flow.run({"steps": []}, on=hf)
    await answer(hf, waiting.holds[0], "reject", data={"note": "too much"})
    assert (await flow.resume(waiting.run_id, on=hf)).state["steps"][-1] == "reject"
