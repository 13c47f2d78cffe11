"""What a failure stops, what it does not, and how a run says that it cannot go on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunError
from holdfast.testing.conformance.flows import add, trace
from tests.flows.conftest import node, visits_of

pytestmark = pytest.mark.anyio
LOG: dict[str, Any] = {"reducers": {"log": "append"}}


def broken(_s: Any) -> Any:
    raise ValueError("broken")


@pytest.mark.covers("G-27", "G-28", "CORE-FLOW-28")
async def test_nothing_after_a_failed_node_runs_when_it_aborts(hf: Holdfast) -> None:
    flow = Flow("abort", effect="pure", **LOG)
    trace(flow, "a", "c", "j")
    add(flow, "bad", broken)
    flow.chain("a", "bad", "c", "j")
    result = await flow.run({"log": []}, on=hf)
    assert (result.completed, result.failed, result.waiting) == (False, True, False)
    assert (result.failed_node, result.state["log"]) == ("bad", ["a"])
    with pytest.raises(RunError, match="broken"):
        result.expect()
    assert (await (await hf.service()).get(result.run_id)).status == "failed"


@pytest.mark.covers("G-27", "G-31")
async def test_sibling_keeps_what_it_finished_when_the_other_branch_fails(hf: Holdfast) -> None:
    flow = Flow("sibling", effect="pure", **LOG)
    calls: list[str] = []
    trace(flow, "a", "j")

    @flow.node(effect="external")
    async def pays() -> dict[str, Any]:
        calls.append("pays")
        await asyncio.sleep(0.01)
        return {"log": ["pays"]}

    @flow.node
    async def bad() -> dict[str, Any]:
        calls.append("bad")
        if calls.count("bad") == 1:
            raise ValueError("once")
        return {"log": ["bad"]}

    flow.chain("a", pays, "j")
    flow.chain("a", bad, "j")
    result = await flow.run({"log": []}, on=hf)
    assert result.failed
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["log"] == ["a", "pays", "bad", "j"]
    assert sorted(calls) == ["bad", "bad", "pays"]


@pytest.mark.covers("G-27", "P4", "CORE-FLOW-29")
async def test_run_goes_on_past_a_failed_node_when_it_may_be_skipped(hf: Holdfast) -> None:
    flow = Flow("skip", effect="pure", **LOG)
    trace(flow, "a", "end")
    add(flow, "bad", broken, on_failure="skip")
    flow.chain("a", "bad", "end")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "end"]
    assert result.error is None


@pytest.mark.covers("G-16")
async def test_code_chooses_the_way_on_when_the_node_before_it_was_skipped(hf: Holdfast) -> None:
    flow = Flow("skip-route", effect="pure", **LOG)
    trace(flow, "yes", "no")
    add(flow, "bad", broken, on_failure="skip")
    flow.router("bad", lambda s: "yes" if s["log"] == [] else "no", ["yes", "no"])
    assert (await flow.run({"log": []}, on=hf)).expect().state["log"] == ["yes"]


@pytest.mark.covers("G-27", "P4", "CORE-FLOW-30")
async def test_failure_takes_its_own_way_and_rejoins_when_it_is_routed(hf: Holdfast) -> None:
    flow = Flow("route", effect="pure", **LOG)
    trace(flow, "a", "good", "mend", "end")
    add(flow, "bad", broken, on_failure="route:mend")
    flow.chain("a", "bad", "good", "end")
    flow.edge("mend", "end")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "mend", "end"]
    assert await visits_of(hf, result.run_id, "good") == 0


@pytest.mark.covers("CORE-FLOW-30")
async def test_failure_way_stays_dead_when_the_node_succeeds(hf: Holdfast) -> None:
    flow = Flow("fine", effect="pure", **LOG)
    trace(flow, "mend", "end")
    trace(flow, "fine", on_failure="route:mend")
    flow.edge("fine", "end")
    flow.edge("mend", "end")
    assert (await flow.run({"log": []}, on=hf)).expect().state["log"] == ["fine", "end"]


@pytest.mark.covers("G-22", "CORE-ENGINE-10")
async def test_work_that_can_never_start_is_a_stall_when_validation_was_passed_by(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.frontends.python.builder.require_valid", lambda *_: None)
    flow = Flow("stall", effect="pure")
    for name in ("a", "z", "j"):
        node(flow, name)
    flow.start("a")
    flow.edge("a", "j")
    flow.edge("z", "j")
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "stall"
    assert "'j'" in result.error.message or "j still waits" in result.error.message


@pytest.mark.covers("G-22", "CORE-ENGINE-10", "E8")
async def test_flow_in_which_nothing_can_start_is_a_stall_when_validation_was_passed_by(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.frontends.python.builder.require_valid", lambda *_: None)
    flow = Flow("circle", effect="pure")
    node(flow, "a")
    node(flow, "b")
    flow.edge("a", "b")
    flow.edge("b", "a")
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "stall"


@pytest.mark.covers("G-28")
async def test_run_fails_again_with_its_error_when_resume_cannot_repair_it(hf: Holdfast) -> None:
    flow = Flow("limit", effect="pure")
    node(flow, "a")
    flow.loop("a", "a", when="true", max=1)
    flow.hold("ask", prompt="?", options=["yes"])
    flow.start("a", "ask")
    result = await flow.run({}, on=hf)
    again = await flow.resume(result.run_id, on=hf)
    assert result.failed
    assert again.failed
    assert result.error is not None
    assert again.error is not None
    assert (again.error.code, again.error.message) == (result.error.code, result.error.message)
