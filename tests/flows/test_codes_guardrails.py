"""Guardrails: block, reroute, warn and sanitize are four different things."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast, Result, Violation
from tests.flows.conftest import node
from tests.flows.places import kinds

pytestmark = pytest.mark.anyio


def guarded(on_violation: str, *, violated: bool = True, **options: Any) -> Flow:
    """`writes`, then the guardrail, then `after`; `repair` is where a reroute leads."""
    flow = Flow("guarded", effect="pure", reducers={"log": "append"})
    node(flow, "writes", {"text": "rude", "log": ["writes"]})

    @flow.guardrail("polite", on_violation=on_violation, **options)
    async def polite(s: dict[str, Any]) -> Violation | None:
        if s["text"] != "rude" or not violated:
            return None
        return Violation("it is rude", replace={"text": "kind"})

    async def after(s: dict[str, Any]) -> dict[str, Any]:
        return {"log": [f"after {s['text']}"]}

    flow.node(id="after")(after)
    flow.chain("writes", "polite", "after")
    if on_violation == "reroute":
        node(flow, "repair", {"log": ["repair"]})
    return flow


async def judged(house: Holdfast, result: Result) -> dict[str, Any]:
    latest = await (await house.service()).latest(result.run_id)
    return latest.diagnostics["guardrailResults"]["polite"]


@pytest.mark.covers("CORE-FLOW-19")
async def test_nothing_behind_a_guardrail_runs_when_it_blocks(house: Holdfast) -> None:
    result = await guarded("block").run({"log": []}, on=house)
    assert result.failed
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("guardrail_violation", "it is rude")
    assert result.failed_node == "polite"
    assert result.state["log"] == ["writes"]


@pytest.mark.covers("CORE-FLOW-20")
async def test_only_the_target_runs_when_a_guardrail_reroutes(house: Holdfast) -> None:
    flow = guarded("reroute", reroute="repair")
    result = await flow.run({"log": []}, on=house)
    assert result.expect().state["log"] == ["writes", "repair"]
    assert (await judged(house, result))["passed"] is False


@pytest.mark.covers("CORE-FLOW-20")
async def test_target_of_a_reroute_stays_dead_when_the_guardrail_passes(house: Holdfast) -> None:
    result = await guarded("reroute", reroute="repair", violated=False).run({"log": []}, on=house)
    assert result.expect().state["log"] == ["writes", "after rude"]


@pytest.mark.covers("CORE-FLOW-21", "E16")
async def test_run_does_not_halt_when_a_guardrail_only_warns(house: Holdfast) -> None:
    result = await guarded("warn").run({"log": []}, on=house)
    assert result.expect().state["log"] == ["writes", "after rude"]
    assert "run.failed" not in await kinds(house, result)
    record = await judged(house, result)
    assert (record["passed"], record["action"], record["guardrailId"]) == (False, "warn", "polite")


@pytest.mark.covers("CORE-FLOW-22", "E16")
async def test_run_does_not_halt_and_goes_on_with_the_clean_text_when_a_guardrail_sanitizes(
    house: Holdfast,
) -> None:
    result = await guarded("sanitize").run({"log": []}, on=house)
    assert result.expect().state == {"text": "kind", "log": ["writes", "after kind"]}
    assert (await judged(house, result))["action"] == "sanitize"


@pytest.mark.covers("CORE-FLOW-19", "CORE-FLOW-21", "CORE-FLOW-22")
@pytest.mark.parametrize("action", ["block", "warn", "sanitize"])
async def test_guardrail_changes_nothing_when_it_passes(house: Holdfast, action: str) -> None:
    result = await guarded(action, violated=False).run({"log": []}, on=house)
    assert result.expect().state["log"] == ["writes", "after rude"]
    assert (await judged(house, result))["passed"] is True
