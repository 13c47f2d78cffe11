"""Guards of nodes and edges: the same four things that a guardrail node does, around any node (G-29)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Flow, FlowInvalidError, Guard, Holdfast, Result, RunStatus, Violation
from holdfast.model.graph import NodeKind
from tests.deadlines import HANG
from tests.flows.conftest import node
from tests.flows.places import Place, answer, told

pytestmark = pytest.mark.anyio

State = dict[str, Any]
ROOT = Path(__file__).parents[2]


def no_card(s: State) -> Violation | None:
    if "4111" in s.get("text", ""):
        return Violation("a card number", replace={"text": s["text"].replace("4111", "****")})
    return None


async def no_mail(s: State) -> Violation | None:
    if "@" in s.get("text", ""):
        return Violation("an address", replace={"text": s["text"].replace("@", " at ")})
    return None


def writer(log: list[str], **options: Any) -> Flow:
    """write -> publish, with `review` for what was refused."""
    flow = Flow("guarded", effect="pure")

    @flow.node(**options.get("write", {}))
    async def write(s: State) -> State:
        log.append("write")
        return {"text": s["draft"]}

    @flow.node(**options.get("publish", {}))
    async def publish(s: State) -> State:
        log.append(s["text"])
        return {"published": s["text"]}

    flow.edge(write, publish, **options.get("edge", {}))
    if options.get("review"):
        node(flow, "review", {"reviewed": True})
    return flow


def placed(where: str, **policy: Any) -> dict[str, Any]:
    """The same check before `publish`, behind `write` or on the edge between them."""
    return {
        "input": {"publish": {"guard": Guard(input=[no_card], **policy)}},
        "output": {"write": {"guard": Guard(output=[no_card], **policy)}},
        "edge": {"edge": {"guard": Guard(no_card, **policy)}},
    }[where]


RAILS = {"input": "publish__guard_input", "output": "write__guard_output", "edge": "write->publish__guard"}
everywhere = pytest.mark.parametrize("where", RAILS)
BAD, GOOD = {"draft": "card 4111"}, {"draft": "hello"}


async def notes(hf: Holdfast, result: Result, name: str) -> dict[str, Any]:
    (done,) = [e for e in await told(hf, result, "node.completed", "node.failed") if e.node == name]
    return done.data["notes"]


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-19")
async def test_a_guard_blocks_with_a_code_and_an_event_when_a_check_objects(hf: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where)).run(BAD, on=hf)
    assert result.failed
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("guardrail_violation", "a card number")
    assert log == ["write"]
    (failed,) = await told(hf, result, "node.failed")
    assert failed.node == RAILS[where]
    assert failed.data["notes"] == {
        "guardrail": RAILS[where], "passed": False, "action": "block", "reason": "a card number",
    }  # fmt: skip
    (ended,) = await told(hf, result, "run.failed")
    assert ended.data["error"]["code"] == "guardrail_violation"


@everywhere
@pytest.mark.covers("G-29")
async def test_a_guard_lets_pass_what_no_check_objects_to(hf: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where)).run(GOOD, on=hf)
    assert result.completed
    assert log == ["write", "hello"]
    assert await notes(hf, result, RAILS[where]) == {"guardrail": RAILS[where], "passed": True}


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-20")
async def test_a_guard_reroutes_when_a_check_objects(hf: Holdfast, where: str) -> None:
    log: list[str] = []
    policy = placed(where, on_violation="reroute", reroute="review")
    result = await writer(log, review=True, **policy).run(BAD, on=hf)
    assert result.completed
    assert log == ["write"]
    assert result.state["reviewed"] is True
    passed = await writer(log, review=True, **policy).run(GOOD, on=hf)
    assert "reviewed" not in passed.state
    assert passed.state["published"] == "hello"


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-21")
async def test_a_guard_warns_and_goes_on_when_a_check_objects(hf: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where, on_violation="warn")).run(BAD, on=hf)
    assert result.completed
    assert log == ["write", "card 4111"]
    assert (await notes(hf, result, RAILS[where]))["reason"] == "a card number"
    found = (await (await hf.service()).latest(result.run_id)).diagnostics["guardrailResults"]
    assert (found[RAILS[where]]["passed"], found[RAILS[where]]["action"]) == (False, "warn")


@everywhere
@pytest.mark.covers("G-29", "CORE-FLOW-22")
async def test_a_guard_replaces_what_it_objects_to_when_it_sanitizes(hf: Holdfast, where: str) -> None:
    log: list[str] = []
    result = await writer(log, **placed(where, on_violation="sanitize")).run(BAD, on=hf)
    assert result.completed
    assert log == ["write", "card ****"]


async def test_checks_of_a_sanitizing_guard_see_what_those_before_them_replaced(hf: Holdfast) -> None:
    log: list[str] = []
    guard = Guard(input=[no_card, no_mail], on_violation="sanitize")
    flow = writer(log, publish={"guard": guard})
    result = await flow.run({"draft": "4111 me@home"}, on=hf)
    assert result.state["published"] == "**** me at home"


async def test_a_sanitizing_guard_fails_the_run_when_it_has_nothing_to_put_in_place(hf: Holdfast) -> None:
    log: list[str] = []
    guard = Guard(input=[lambda s: Violation("bad")], on_violation="sanitize")
    result = await writer(log, publish={"guard": guard}).run(GOOD, on=hf)
    assert result.error is not None
    assert result.error.code == "guardrail_violation"
    assert log == ["write"]


@pytest.mark.parametrize(
    ("policy", "reason"), [("block", "a card number"), ("warn", "a card number; an address")]
)
async def test_a_guard_tells_the_first_objection_or_as_a_warning_all(
    hf: Holdfast, policy: str, reason: str
) -> None:
    guard = Guard(output=[no_card, no_mail], on_violation=policy)
    result = await writer([], write={"guard": guard}).run({"draft": "4111 me@home"}, on=hf)
    assert (await notes(hf, result, "write__guard_output"))["reason"] == reason


async def test_a_blocked_run_goes_on_from_the_check_when_it_is_resumed(hf: Holdfast) -> None:
    log: list[str] = []
    allowed: list[bool] = []
    flow = writer(log, publish={"guard": Guard(input=[lambda: bool(allowed) or Violation("not yet")])})
    blocked = await flow.run(GOOD, on=hf)
    assert blocked.failed
    again = await flow.resume(blocked.run_id, on=hf)
    assert again.error is not None
    assert again.error.code == "guardrail_violation"
    allowed.append(True)
    result = await flow.resume(blocked.run_id, on=hf)
    assert result.completed
    assert log == ["write", "hello"]


async def test_a_blocked_run_goes_on_in_a_fork_when_its_state_is_repaired(hf: Holdfast) -> None:
    log: list[str] = []
    flow = writer(log, **placed("input"))
    blocked = await flow.run(BAD, on=hf)
    result = await flow.resume(blocked.run_id, patch={"scratch": {"text": "mended"}}, on=hf)
    assert result.completed
    assert log == ["write", "mended"]


async def test_a_check_may_take_the_context_or_nothing(hf: Holdfast) -> None:
    seen: list[str] = []

    async def by_context(ctx: Context) -> bool:
        seen.append(ctx.run_id)
        return True

    def by_nothing() -> None:
        seen.append("nothing")

    log: list[str] = []
    result = await writer(log, publish={"guard": Guard(input=[by_context, by_nothing])}).run(GOOD, on=hf)
    assert result.completed
    assert seen == [result.run_id, "nothing"]


async def test_a_check_that_passed_is_not_asked_again_when_the_worker_dies_behind_it(place: Place) -> None:
    asked: list[str] = []
    log: list[str] = []
    guard = Guard(input=[lambda s: asked.append(s["text"])])
    flow = writer(log, publish={"guard": guard, "effect": "external"})
    run = await place.crash(flow, GOOD, "after_intent")
    hf = await place.hf()
    assert (await flow.resume(run, on=hf)).status is RunStatus.pending_input
    await answer(hf, run, "not_happened")
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert asked == ["hello"]
    assert log == ["write", "hello"]


# What a guard is lowered to, and what is wrong with it.


def rules(flow: Flow) -> list[str]:
    return [problem.rule for problem in flow.problems() if problem.severity == "error"]


async def test_a_guarded_flow_has_the_same_fingerprint_and_code_in_every_compile() -> None:
    options = {**placed("input"), **placed("output"), **placed("edge")}
    one, other = writer([], **options).program(), writer([], **options).program()
    assert (one.version, one.code_digest) == (other.version, other.code_digest)
    kinds = [(n.id, n.kind) for n in one.graph.nodes]
    assert kinds == [
        ("write", NodeKind.task),
        ("write__guard_output", NodeKind.guardrail),
        ("write->publish__guard", NodeKind.guardrail),
        ("publish__guard_input", NodeKind.guardrail),
        ("publish", NodeKind.task),
    ]


async def test_the_code_of_a_flow_changes_with_a_check_and_its_graph_does_not() -> None:
    one = writer([], publish={"guard": Guard(input=[no_card])}).program()
    other = writer([], publish={"guard": Guard(input=[no_mail])}).program()
    assert one.version == other.version
    assert one.code_digest != other.code_digest


def test_a_guarded_flow_has_the_same_fingerprint_in_every_process() -> None:
    source = (
        "from tests.flows.test_guard_policies import *\n"
        "guards = {**placed('input'), **placed('output', on_violation='warn'), **placed('edge')}\n"
        "program = writer([], **guards).program()\n"
        "print(program.version, program.code_digest)"
    )
    listed = {
        subprocess.run(
            [sys.executable, "-c", source], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True, timeout=HANG,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(listed) == 1


async def test_a_flow_without_guards_is_lowered_as_if_there_were_none() -> None:
    assert [n.id for n in writer([]).program().graph.nodes] == ["write", "publish"]


async def test_the_function_of_a_guardrail_node_can_be_a_check(hf: Holdfast) -> None:
    other = Flow("other")
    check = other.guardrail(no_card)
    log: list[str] = []
    result = await writer(log, publish={"guard": Guard(input=[check])}).run(BAD, on=hf)
    assert result.failed
    assert rules(writer(log, publish={"guard": Guard(input=[other.timer("rest", 1)])})) == ["guard"]


async def test_a_flow_is_refused_when_a_guard_needs_an_id_that_is_taken() -> None:
    flow = writer([], publish={"guard": Guard(input=[no_card])})
    node(flow, "publish__guard_input")
    assert rules(flow) == ["guard-id"]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"publish": {"guard": Guard()}}, "guard"),
        ({"publish": {"guard": Guard(no_card)}}, "guard"),
        ({"publish": {"guard": no_card}}, "guard"),
        ({"edge": {"guard": Guard(input=[no_card])}}, "guard"),
        ({"edge": {"guard": Guard()}}, "guard"),
        ({"edge": {"guard": no_card}}, "guard"),
        ({"edge": {"guard": Guard("no_card")}}, "guard"),  # type: ignore[arg-type]
        ({"edge": {"guard": Guard(no_card, effect="write")}}, "guard"),
        ({"edge": {"guard": Guard(no_card, on_violation="shout")}}, "on-violation"),
        ({"edge": {"guard": Guard(no_card, on_violation="reroute")}}, "reroute"),
        ({"edge": {"guard": Guard(lambda a, b, c: None)}}, "signature"),
        ({"publish": {"guard": Guard(input=[no_mail, lambda s, ctx: None])}}, "guard"),
        (
            {"write": {"guard": Guard(output=[no_card])}, "edge": {"when": "output == 1"}},
            "guard-condition",
        ),
    ],
)
async def test_a_flow_is_refused_when_a_guard_is_wrong(options: dict[str, Any], rule: str) -> None:
    assert rules(writer([], **options)) == [rule]


async def test_a_flow_is_refused_when_a_guard_reroutes_to_what_is_not_there() -> None:
    guard = Guard(no_card, on_violation="reroute", reroute="nowhere")
    with pytest.raises(FlowInvalidError, match="nowhere"):
        writer([], edge={"guard": guard}).program()


async def test_only_the_missing_node_is_reported_when_a_guarded_edge_leaves_from_nowhere() -> None:
    flow = writer([])
    flow.edge("nowhere", "publish", guard=Guard(no_card))
    assert rules(flow) == ["edge-source"]


async def test_a_walk_is_refused_when_it_has_guards() -> None:
    flow = Flow("walk", effect="pure", traversal="walk")
    node(flow, "one", guard=Guard(input=[no_card]))
    assert rules(flow) == ["guard-walk"]
