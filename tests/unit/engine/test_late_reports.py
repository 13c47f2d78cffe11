"""What a handler reports after its execution is over, or in a later visit, settles nothing."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow
from holdfast.engine.messages import HandlerFinished
from holdfast.engine.start import begin
from holdfast.engine.step import step
from holdfast.model.position import Position
from holdfast.types.value import FrozenDict


async def work(_s: Any) -> dict[str, Any]:
    return {}


def started() -> tuple[Any, Position]:
    flow = Flow("late", effect="pure")
    flow.edge(flow.node(id="first")(work), flow.node(id="second")(work))
    graph = flow.program().graph
    decision = begin(
        graph, "r", version="v", code="c", given=FrozenDict({}), scratch={}, mode="barrier", now=1
    )
    return graph, decision.pos


@pytest.mark.covers("SAFE-PROOF-01")
@pytest.mark.parametrize("visit", [0, 2, 7])
def test_report_of_another_visit_settles_nothing(visit: int) -> None:
    graph, pos = started()
    (execution,) = pos.execs.values()
    assert execution.visit == 1
    decision = step(graph, pos, [HandlerFinished(scope="", node=execution.node, visit=visit)], now=2)
    assert decision.records == []
    assert list(pos.execs.values()) == [execution]
    settled = step(graph, pos, [HandlerFinished(scope="", node=execution.node, visit=1)], now=2)
    assert settled.records


def test_report_about_a_node_that_does_not_run_settles_nothing() -> None:
    graph, pos = started()
    decision = step(graph, pos, [HandlerFinished(scope="", node=1, visit=1)], now=2)
    assert decision.records == []


def test_report_of_a_failed_execution_settles_nothing() -> None:
    graph, pos = started()
    (execution,) = pos.execs.values()
    execution.phase = "failed"
    decision = step(graph, pos, [HandlerFinished(scope="", node=execution.node, visit=1)], now=2)
    assert decision.records == []
