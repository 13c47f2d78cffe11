"""An expression that meets a missing name stops the run, wherever it stands: nothing behind it starts.

A new place where the engine evaluates an expression belongs into PLACES. That every run here replays alike is
checked by this folder's conftest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.runs import create
from holdfast.runs.value_checker import TypedValues
from tests.flows.places import answer

pytestmark = pytest.mark.anyio

GIVEN = {"amount": 250, "items": [1], "text": "250", "none": None}


def add(flow: Flow, *names: str) -> list[str]:
    """Nodes that say in the state that they ran."""
    for name in names:
        flow.node(id=name, effect="pure")(lambda _s, name=name: {name: True})
    return list(names)


def edge(condition: str) -> Flow:
    flow = Flow("edge", effect="pure")
    add(flow, "assess", "approve", "pay")
    flow.edge("assess", "approve", when=condition)
    flow.edge("assess", "pay", otherwise=True)
    return flow


def loop(condition: str) -> Flow:
    flow = Flow("loop", effect="pure")
    add(flow, "assess", "approve", "pay")
    flow.chain("assess", "approve", "pay")
    flow.loop("approve", "assess", when=condition, max=2)
    return flow


def walk(condition: str) -> Flow:
    flow = Flow("walk", effect="pure", traversal="walk")
    add(flow, "assess", "approve", "pay")
    flow.edge("assess", "approve", when=condition)
    flow.edge("assess", "pay")
    return flow


def failed_walk(condition: str) -> Flow:
    flow = Flow("failed-walk", effect="pure", traversal="walk")

    @flow.node
    def assess(_s: Any) -> None:
        raise ValueError("no")

    add(flow, "approve", "pay")
    flow.edge("assess", "approve", when=condition)
    flow.edge("assess", "pay", when="outcome == 'fail'")
    return flow


def inside(condition: str) -> Flow:
    flow = Flow("inside", effect="pure")
    flow.subflow("sub", edge(condition))
    add(flow, "pay")
    flow.edge("sub", "pay")
    return flow


def over(condition: str) -> Flow:
    flow = Flow("over", effect="pure")
    flow.map("each", over=f"{condition} ? items : items", body=lambda item: item, into="out")
    add(flow, "pay")
    flow.edge("each", "pay")
    return flow


def child() -> Flow:
    flow = Flow("child", effect="pure")
    add(flow, "work")
    return flow


def inputs(condition: str) -> Flow:
    flow = Flow("inputs", effect="pure")
    flow.subflow("sub", child(), inputs={"x": condition})
    add(flow, "pay")
    flow.edge("sub", "pay")
    return flow


def outputs(condition: str) -> Flow:
    flow = Flow("outputs", effect="pure")
    flow.subflow("sub", child(), outputs={"x": f"state.{condition}"})
    add(flow, "pay")
    flow.edge("sub", "pay")
    return flow


def until(condition: str) -> Flow:
    flow = Flow("until", effect="pure")
    flow.timer("sleep", until=f"{condition} ? 0 : 0")
    add(flow, "pay")
    flow.edge("sleep", "pay")
    return flow


PLACES: list[Callable[[str], Flow]] = [edge, loop, walk, failed_walk, inside, over, inputs, outputs, until]
CONDITIONS = [
    ("amuont > 100", "missing_name", "'amuont' has no value"),
    ("amount.total != null", "missing_name", "'amount.total' has no value"),
    ("amount < 100 || !aproved", "missing_name", "'aproved' has no value"),
    ("text > 100", "not_comparable", "a text and a number have no order"),
    ("none > 100", "not_comparable", "null and a number have no order"),
]


@pytest.mark.parametrize(("condition", "code", "problem"), CONDITIONS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.covers("SAFE-CHECK-10")
async def test_run_stops_when_an_expression_cannot_be_decided(
    hf: Holdfast, place: Callable[[str], Flow], condition: str, code: str, problem: str
) -> None:
    result = await place(condition).run(GIVEN, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == code
    assert problem in result.error.message.replace("'state.", "'")
    assert "pay" not in result.state


@pytest.mark.parametrize("place", [p for p in PLACES if p is not outputs])
@pytest.mark.covers("SAFE-CHECK-10")
async def test_run_completes_when_the_expression_says_what_may_be_missing(
    hf: Holdfast, place: Callable[[str], Flow]
) -> None:
    result = await place("exists(amuont) && amuont > 100 || limit | default(500) < 100").run(GIVEN, on=hf)
    assert result.expect().state["pay"] is True


async def test_error_names_edge_condition_and_what_to_write_when_a_name_is_misspelt(hf: Holdfast) -> None:
    result = await edge("amuont > 100").run(GIVEN, on=hf)
    assert result.error is not None
    assert result.error.type == "MissingNameError"
    assert result.error.message == (
        "edge 'assess->approve': its condition 'amuont > 100' cannot be decided: 'amuont' has no value. "
        "Correct the name, or write exists(amuont) or amuont | default(...) if it may be missing."
    )
    assert result.failed_node == "assess"


@pytest.fixture
def before_the_rule(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Runs are started and advanced as they were when a missing name was false."""
    own_options = create.own_options

    def without_mark(*given: Any) -> dict[str, Any]:
        return {name: value for name, value in own_options(*given).items() if name != "strict_names"}

    monkeypatch.setattr(create, "own_options", without_mark)
    monkeypatch.setattr(TypedValues, "stops", lambda *_: False)
    return monkeypatch


@pytest.mark.parametrize("place", PLACES)
async def test_decisions_stay_and_replay_alike_when_they_were_made_before_the_rule(
    hf: Holdfast, place: Callable[[str], Flow], before_the_rule: pytest.MonkeyPatch
) -> None:
    result = await place("amuont").run(GIVEN, on=hf)
    assert result.expect().state["pay"] is True
    before_the_rule.undo()
    found = await (await hf.service()).replay(result.run_id)
    assert found.same, found.difference


async def test_run_in_flight_stops_when_its_next_condition_cannot_be_decided(
    hf: Holdfast, before_the_rule: pytest.MonkeyPatch
) -> None:
    flow = Flow("in-flight", effect="pure")
    add(flow, "first", "second", "approve", "pay", "note")
    flow.edge("first", "note", when="amuont > 100")
    flow.edge("first", "second", otherwise=True)
    flow.hold("ask", prompt="?", options=["yes", "no"])
    flow.edge("second", "ask")
    flow.edge("ask", "approve", when="desicion == 'no'")
    flow.edge("ask", "pay", otherwise=True)
    waiting = await flow.run(GIVEN, on=hf)
    assert waiting.waiting
    before_the_rule.undo()
    await answer(hf, waiting, "no")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "missing_name"
    assert "pay" not in result.state
