from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Flow, Guard, Holdfast, Result, Violation
from tests.flows.places import told

pytestmark = pytest.mark.anyio


def guarded(on_violation: str, log: list[str], *, reroute: str | None = None) -> Flow:
    flow = Flow("guarded", effect="pure")

    @flow.node
    async def write() -> dict[str, Any]:
        return {"text": "my card is 4111"}

    @flow.guardrail("check", on_violation=on_violation, reroute=reroute)
    async def check(s: dict[str, Any]) -> Violation | None:
        if "4111" in s["text"]:
            return Violation("a card number", replace={"text": "my card is ****"})
        return None

    @flow.node
    async def publish(s: dict[str, Any]) -> dict[str, Any]:
        log.append(s["text"])
        return {"published": s["text"]}

    @flow.node
    async def review() -> dict[str, Any]:
        log.append("review")
        return {"reviewed": True}

    flow.edge(write, "check")
    flow.edge("check", publish)
    if reroute is None:
        flow.edge(publish, review, when="false")
    return flow


async def notes(hf: Holdfast, result: Result) -> dict[str, Any]:
    (done,) = [e for e in await told(hf, result, "node.completed", "node.failed") if e.node == "check"]
    return done.data["notes"]


@pytest.mark.covers("CORE-FLOW-19", "E16")
async def test_a_guardrail_blocks_when_it_is_violated(hf: Holdfast) -> None:
    log: list[str] = []
    result = await guarded("block", log).run(on=hf)
    assert result.failed
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("guardrail_violation", "a card number")
    assert log == []


@pytest.mark.covers("CORE-FLOW-20", "E16")
async def test_a_guardrail_reroutes_when_it_is_violated(hf: Holdfast) -> None:
    log: list[str] = []
    result = await guarded("reroute", log, reroute="review").run(on=hf)
    assert result.completed
    assert log == ["review"]


@pytest.mark.covers("CORE-FLOW-21", "E16")
async def test_a_guardrail_warns_and_goes_on_when_it_is_violated(hf: Holdfast) -> None:
    log: list[str] = []
    result = await guarded("warn", log).run(on=hf)
    assert result.completed
    assert log == ["my card is 4111"]
    assert await notes(hf, result) == {
        "guardrail": "check", "passed": False, "action": "warn", "reason": "a card number",
    }  # fmt: skip


@pytest.mark.covers("CORE-FLOW-22", "E16")
async def test_a_guardrail_replaces_what_it_found_when_it_sanitizes(hf: Holdfast) -> None:
    log: list[str] = []
    result = await guarded("sanitize", log).run(on=hf)
    assert result.completed
    assert log == ["my card is ****"]


@pytest.mark.covers("CORE-FLOW-21")
async def test_a_guardrail_lets_pass_what_it_does_not_object_to(hf: Holdfast) -> None:
    flow = Flow("fine", effect="pure")

    @flow.guardrail
    def check() -> bool:
        return True

    @flow.node
    async def after() -> dict[str, Any]:
        return {"after": 1}

    flow.edge("check", after)
    result = await flow.run(on=hf)
    assert result.state == {"after": 1}
    assert (await notes(hf, result))["passed"] is True


async def test_a_guardrail_blocks_when_it_sanitizes_with_nothing_to_put_instead(hf: Holdfast) -> None:
    flow, log = Flow("silent", effect="pure"), []

    @flow.guardrail("check", on_violation="sanitize")
    async def check() -> Violation:
        return Violation("a card number")

    @flow.node
    async def publish() -> None:
        log.append("published")

    flow.edge("check", publish)
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "guardrail_violation"
    assert log == []


@pytest.mark.parametrize("returned", ["a card number", False, 7, datetime(2026, 1, 1, tzinfo=UTC)])
async def test_a_guardrail_that_sanitizes_is_violated_when_its_check_returns_no_replacement(
    hf: Holdfast, returned: Any
) -> None:
    flow = Flow("texts", effect="pure")

    @flow.guardrail("check", on_violation="sanitize")
    def check() -> Any:
        return returned

    guarded = Flow("of a node", effect="pure")

    @guarded.node(guard=Guard(input=[lambda s: returned], on_violation="sanitize"))
    def publish() -> None:
        raise AssertionError("it must not run")

    for each in (flow, guarded):
        result = await each.run({}, on=hf)
        assert result.error is not None
        assert result.error.code == "guardrail_violation"
        assert isinstance(returned, str) == ("a card number" in result.error.message)


async def test_a_guardrail_reroutes_when_the_flow_is_a_walk(hf: Holdfast) -> None:
    flow, log = Flow("walked", effect="pure", traversal="walk"), []

    @flow.guardrail("check", on_violation="reroute", reroute="review")
    async def check() -> Violation:
        return Violation("a card number")

    @flow.node
    async def publish() -> None:
        log.append("publish")

    @flow.node
    async def review() -> None:
        log.append("review")

    flow.start("check")
    flow.edge("check", publish)
    (await flow.run({}, on=hf)).expect()
    assert log == ["review"]
