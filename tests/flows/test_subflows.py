"""A flow as one node of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Retry
from holdfast.testing.conformance.flows import add
from tests.flows.conftest import node

pytestmark = pytest.mark.anyio


@pytest.mark.covers("CORE-FLOW-16")
async def test_fields_go_in_and_out_by_name_when_they_are_mapped(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    add(child, "work", lambda s: {"y": s["x"] + 1, "hidden": 1})
    add(child, "report", lambda _s: "done", output_as="note")
    child.edge("work", "report")
    flow = Flow("parent", effect="pure")
    flow.subflow(
        "sub",
        child,
        inputs={"x": "deep.a"},
        outputs={"y": "state.y", "note": "artifacts.note", "none": "state.no | default(null)"},
    )
    result = await flow.run({"deep": {"a": 1}, "kept": 5}, on=hf)
    assert result.expect().state == {"deep": {"a": 1}, "kept": 5, "y": 2, "note": "done", "none": None}


@pytest.mark.covers("CORE-FLOW-16")
async def test_child_changes_nothing_of_the_parent_when_nothing_is_mapped_out(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    add(child, "work", lambda s: {"x": s["x"] + 1})
    flow = Flow("parent", effect="pure")
    flow.subflow("sub", child)
    result = await flow.run({"x": 1}, on=hf)
    assert result.expect().state == {"x": 1}
    assert result.artifacts["sub"] == {"x": 2}


@dataclass
class Inner:
    x: int
    y: int = 40


@pytest.mark.covers("CORE-FLOW-16")
async def test_child_state_has_its_own_type_and_defaults_when_it_declares_them(hf: Holdfast) -> None:
    child = Flow("child", state=Inner, effect="pure")

    @child.node
    async def work(s: Inner) -> dict[str, Any]:
        assert isinstance(s, Inner)
        return {"y": s.x + s.y}

    flow = Flow("parent", effect="pure")
    flow.subflow("sub", child, inputs={"x": "a"}, outputs={"total": "state.y"})
    assert (await flow.run({"a": 2}, on=hf)).expect().state["total"] == 42


@pytest.mark.covers("CORE-FLOW-17", "E22", "G-45")
async def test_parent_waits_too_when_a_child_of_a_child_asks(hf: Holdfast) -> None:
    inner = Flow("inner", effect="pure")
    node(inner, "before", {"n": 1})
    inner.hold("ask", prompt="go on?", options=["yes", "no"])
    inner.edge("before", "ask")
    middle = Flow("middle", effect="pure")
    middle.subflow("in", inner, outputs={"said": "state.decision"})
    flow = Flow("outer", effect="pure")
    flow.subflow("mid", middle, outputs={"said": "state.said"})
    ran: list[str] = []
    add(flow, "after", lambda s: ran.append(s["said"]))
    flow.edge("mid", "after")
    result = await flow.run({}, on=hf)
    assert result.waiting
    assert ran == []
    await (await hf.service()).answer(result.holds[0].id, "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["said"] == "yes"
    assert ran == ["yes"]


@pytest.mark.covers("G-27")
async def test_failure_inside_halts_the_parent_and_resume_goes_on_inside(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    calls: list[str] = []
    add(child, "one", lambda _s: calls.append("one"))

    def fails_once(_s: Any) -> Any:
        calls.append("two")
        if calls.count("two") == 1:
            raise ValueError("inside")

    add(child, "two", fails_once)
    child.edge("one", "two")
    flow = Flow("parent", effect="pure")
    flow.subflow("sub", child)
    node(flow, "after", {"done": True})
    flow.edge("sub", "after")
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.message == "inside"
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state == {"done": True}
    assert calls == ["one", "two", "two"]


async def test_parent_takes_another_way_when_the_child_fails_and_it_says_so(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")

    def broken(_s: Any) -> Any:
        raise ValueError("inside")

    add(child, "one", broken)
    flow = Flow("parent", effect="pure")
    flow.subflow("sub", child, on_failure="route:mend")
    node(flow, "after", {"after": True})
    node(flow, "mend", {"mended": True})
    flow.edge("sub", "after")
    assert (await flow.run({}, on=hf)).expect().state == {"mended": True}


async def test_child_begins_anew_when_the_subflow_has_a_retry_policy(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    calls: list[str] = []
    add(child, "one", lambda _s: calls.append("one"))

    def fails_once(_s: Any) -> Any:
        calls.append("two")
        if calls.count("two") == 1:
            raise ValueError("inside")

    add(child, "two", fails_once)
    child.edge("one", "two")
    flow = Flow("parent", effect="pure")
    flow.subflow("sub", child, retry=Retry(2, delay=0), outputs={})
    assert (await flow.run({}, on=hf)).completed
    assert calls == ["one", "two", "one", "two"]


async def test_same_flow_is_used_twice_when_two_nodes_name_it(hf: Holdfast) -> None:
    child = Flow("child", effect="pure")
    add(child, "work", lambda s: {"x": s["x"] + 1})
    flow = Flow("parent", effect="pure")
    node(flow, "a")
    for name in ("l", "r"):
        flow.subflow(name, child, inputs={"x": name}, outputs={name: "state.x"})
        flow.edge("a", name)
    assert (await flow.run({"l": 1, "r": 5}, on=hf)).expect().state == {"l": 2, "r": 6}
