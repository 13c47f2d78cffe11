"""The three kinds of questions: one block, with breakpoints, timeouts and bound decisions in every form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.model.graph import Node, NodeKind
from tests.documents.rule_examples import flow
from tests.documents.run import answer, graph, problems, start

KINDS = {"checkpoint": "", "hitl_decision": "", "hitl_review": "queue: reviews, "}
kinds = pytest.mark.parametrize("kind", KINDS)
CHAIN = "a -> m -> z"
OPTIONS = "options: [ok, {id: no, default: true}]"

FORMS = {
    "nothing": "",
    "options": OPTIONS,
    "a number of seconds": "timeout: 90",
    "a text": "timeout: 2d, on_timeout: cancel",
    "a duration of ISO 8601": "timeout: PT15M, on_timeout: fail",
    "a template": "timeout: '{{n}}s', on_timeout: cancel",
    "the default option": f"timeout: 1h, on_timeout: default, {OPTIONS}",
    "the default option, as the documents name it": f"timeout: 1h, on_timeout: default_option, {OPTIONS}",
    "an escalation": "timeout: 1h, on_timeout: 'escalate:role:cfo'",
    "an escalation as a mapping": "timeout: 1h, on_timeout: {action: escalate, target: 'role:cfo'}",
    "a branch": "timeout: 1h, on_timeout: 'branch:z'",
    "a name": "decision_bind: verdict",
    "a breakpoint": "breakpoint: true",
    "an assignee and a priority": "assignee: 'group:{{n}}', priority: high",
    "another type": "type: choice",
}
forms = pytest.mark.parametrize("form", FORMS)


def text(kind: str, config: str, edges: str = CHAIN) -> str:
    return flow(f"{{id: m, type: {kind}, config: {{{KINDS[kind]}{config}}}}}", edges)


def block(kind: str, config: str, edges: str = CHAIN) -> Node:
    [node] = [each for each in graph(text(kind, config, edges)).nodes if each.id == "m"]
    return node


def plain(node: Node) -> Any:
    """The block without what only a review has: the queue that it is published to."""
    assert node.hold is not None
    return msgspec.structs.replace(node, hold=msgspec.structs.replace(node.hold, target=msgspec.UNSET))


@pytest.mark.covers("PLATFORM-HOLD-01", "FL-1")
@forms
def test_three_kinds_compile_to_one_block_that_differs_by_the_queue_alone(form: str) -> None:
    blocks = {kind: block(kind, FORMS[form]) for kind in KINDS}
    assert {node.kind for node in blocks.values()} == {NodeKind.hold}
    first, second, third = map(plain, blocks.values())
    assert first == second == third
    targets = {kind: node.hold.target for kind, node in blocks.items() if node.hold and node.hold.target}
    [review] = targets.items()
    assert review[0] == "hitl_review"
    assert (review[1].scope, review[1].queue) == ("support", "reviews")


@pytest.mark.covers("PLATFORM-HOLD-01")
@kinds
@pytest.mark.parametrize("bind", ["", "decision_bind: verdict, "])
async def test_decision_is_bound_by_its_name_with_the_whole_answer_beside_it(
    hf: Holdfast, kind: str, bind: str
) -> None:
    run = await start(hf, text(kind, f"{bind}{OPTIONS}"))
    ended = await answer(hf, run, "ok")
    name = "verdict" if bind else "decision"
    assert (ended.status, ended.state[name]) == ("completed", "ok")
    assert ended.state[f"{name}_result"]["decision"] == "ok"
    assert set(ended.state) == {name, f"{name}_result"}


@pytest.mark.covers("PLATFORM-HOLD-01")
@kinds
async def test_breakpoint_pauses_before_the_question_and_binds_nothing(hf: Holdfast, kind: str) -> None:
    run = await start(hf, text(kind, f"breakpoint: true, {OPTIONS}"))
    [hold] = await (await hf.service()).holds(run.run_id)
    assert (hold.node, hold.type) == ("m__breakpoint", "debug_breakpoint")
    asked = await answer(hf, run, "continue")
    [hold] = await (await hf.service()).holds(run.run_id)
    assert (hold.node, hold.type, dict(asked.state)) == ("m", "approval", {})
    assert (await answer(hf, asked, "no")).state["decision"] == "no"


@pytest.mark.covers("PLATFORM-HOLD-01")
@kinds
def test_port_of_the_timeout_is_a_branch(kind: str) -> None:
    node = block(kind, "timeout: 1h", "a -> m -> z\nm:timeout -> z")
    assert node.hold is not None
    assert (node.hold.timeout, node.hold.on_timeout) == (3_600_000_000, "branch:z")


@pytest.mark.covers("PLATFORM-HOLD-01")
@kinds
@pytest.mark.parametrize(
    ("config", "rule", "field"),
    [
        ("timeout: soon", "duration", "timeout"),
        ("timeout: -1", "duration", "timeout"),
        ("timeout: 1h, on_timeout: later", "on-timeout", "on_timeout"),
        ("timeout: 1h, on_timeout: 'escalate:'", "escalate-target", "on_timeout"),
        ("timeout: 1h, on_timeout: 'branch:nowhere'", "timeout-branch", "on_timeout"),
        ("decision_bind: input", "variable-name", "decision_bind"),
        ("decision_bind: 'two words'", "type", "decision_bind"),
        ("breakpoint: soon", "type", "breakpoint"),
    ],
)
def test_wrong_form_is_refused_at_its_field_with_a_fix(kind: str, config: str, rule: str, field: str) -> None:
    [found] = problems(text(kind, config))
    assert (found.rule, found.field, found.node) == (rule, field, "m")
    assert found.fix
