"""Rules about what nodes declare."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.diagnostics import Severity
from holdfast.model.graph import (
    Edge,
    GraphSpec,
    GuardSpec,
    HoldSpec,
    JoinKind,
    JoinPolicy,
    MapSpec,
    Node,
    NodeKind,
    RetryPolicy,
    SubflowSpec,
    TimerSpec,
)
from holdfast.model.validate import validate
from holdfast.types.hold import Option
from holdfast.types.status import Effect

FIELDS = {
    "order_id": {"type": "str", "required": True},
    "amount": {"type": "int", "required": False},
    "r": {},
}


def found(*nodes: Node, severity: Severity = Severity.error, **settings: Any) -> list[tuple[str, str | None]]:
    edges = tuple(Edge(id=f"e{i}", source="first", target=node.id) for i, node in enumerate(nodes))
    settings.setdefault("fields", FIELDS)
    spec = GraphSpec(name="g", nodes=(Node(id="first"), *nodes), edges=edges, start=("first",), **settings)
    return [(p.rule, p.node or p.edge) for p in validate(spec) if p.severity is severity]


def hold(**more: Any) -> Node:
    return Node(id="n", kind=NodeKind.hold, effect=Effect.human, hold=HoldSpec(**more))


def mapped(**more: Any) -> Node:
    return Node(
        id="n", kind=NodeKind.map, map=MapSpec(**{"over": "amount", "body": "child", "into": "r", **more})
    )


def nested(**more: Any) -> Node:
    return Node(id="n", kind=NodeKind.subflow, subflow=SubflowSpec(body="child", **more))


def guard(**more: Any) -> Node:
    return Node(id="n", kind=NodeKind.guardrail, guard=GuardSpec(**more))


def options(*ids: str) -> tuple[Option, ...]:
    return tuple(Option(name, name) for name in ids)


@pytest.mark.parametrize(
    ("node", "rule"),
    [
        (Node(id="n", retry=RetryPolicy(attempts=0)), "retry-attempts"),
        (Node(id="n", idempotency_key="refund-{order_id}"), "single-braces"),
        (Node(id="n", idempotency_key="{{order_id}}-{amount}"), "single-braces"),
        (Node(id="n", retry=RetryPolicy(jitter=2.0)), "retry-jitter"),
        (Node(id="n", on_failure="explode"), "on-failure"),
        (Node(id="n", on_failure="route:nowhere"), "failure-route"),
        (Node(id="n", join=JoinPolicy(kind=JoinKind.quorum, count=2)), "quorum"),
        (Node(id="n", join=JoinPolicy(kind=JoinKind.quorum, count=0)), "quorum"),
        (Node(id="n", memory="eager"), "memory"),
        (Node(id="n", checkpoint="sometimes"), "checkpoint"),
        (Node(id="n", script=True, effect=Effect.write), "script-effect"),
        (Node(id="n", idempotency_key="k-{{order}}"), "unknown-field"),
        (Node(id="n", idempotency_key="k-{{order_id"), "template"),
        (hold(options=options("yes", "yes")), "hold-options"),
        (hold(options=options("yes", " ")), "hold-options"),
        (hold(options=()), "hold-options"),
        (hold(priority="urgent"), "hold-priority"),
        (hold(prompt="{{amount"), "template"),
        (hold(bind="not a name"), "field-name"),
        (hold(bind="decison"), "unknown-field"),
        (hold(into="fields"), "unknown-field"),
        (hold(modifies={"output": "draft"}), "unknown-field"),
        (hold(prompt="{{amuont}}?"), "unknown-field"),
        (hold(context={"a": [{"b": "{{amuont}}"}]}), "unknown-field"),
        (hold(assignee="{{ownr}}"), "unknown-field"),
        (hold(options=(Option("yes", "Pay {{amuont}}"),)), "unknown-field"),
        (hold(timeout=1, on_timeout="escalate:{{boss}}"), "unknown-field"),
        (hold(wait="{{deadlin}}"), "unknown-field"),
        (hold(timeout=1, on_timeout="default_option", options=options("yes", "no")), "default-option"),
        (hold(timeout=1, on_timeout="escalate"), "escalate-target"),
        (hold(timeout=1, on_timeout="escalate: "), "escalate-target"),
        (hold(timeout=1, on_timeout="branch:nowhere"), "timeout-branch"),
        (hold(timeout=1, on_timeout="explode"), "on-timeout"),
        (hold(timeout=1, on_timeout="default:yes"), "on-timeout"),
        (Node(id="n", kind=NodeKind.timer, timer=TimerSpec()), "timer"),
        (Node(id="n", kind=NodeKind.timer, timer=TimerSpec(duration=1, until="amount")), "timer"),
        (Node(id="n", kind=NodeKind.timer, timer=TimerSpec(until="amount +")), "expression"),
        (guard(on_violation="shout"), "on-violation"),
        (guard(on_violation="reroute"), "reroute"),
        (guard(on_violation="reroute", reroute="z"), "reroute"),
        (mapped(over="a..b"), "expression"),
        (mapped(body="gone"), "subflow-unknown"),
        (mapped(over="amuont"), "unknown-field"),
        (mapped(into="rr"), "unknown-field"),
        (nested(inputs={"x": "amuont"}), "unknown-field"),
        (nested(outputs={"rr": "state.x"}), "unknown-field"),
        (Node(id="n", kind=NodeKind.timer, timer=TimerSpec(until="amuont")), "unknown-field"),
        (mapped(concurrency=-1), "concurrency"),
        (mapped(on_item_failure="x"), "on-item-failure"),
        (nested(inputs={}), "subflow-input"),
        (nested(inputs={"x": "1", "q": "2"}), "subflow-input"),
        (nested(outputs={"r": "receipt"}), "subflow-output"),
    ],
)
@pytest.mark.covers("SAFE-CHECK-05")
def test_validation_refuses_what_cannot_work(node, rule):
    child = GraphSpec(
        name="child",
        nodes=(Node(id="c"),),
        edges=(),
        start=("c",),
        fields={"x": {"type": "int", "required": True}},
    )
    assert found(node, subgraphs=(child,)) == [(rule, "n")]


@pytest.mark.parametrize(
    ("node", "rule"),
    [
        (Node(id="n", join=JoinPolicy(kind=JoinKind.any)), "join-single"),
        (Node(id="n", join=JoinPolicy(kind=JoinKind.quorum, count=1)), "join-single"),
        (Node(id="n", idempotency_key="constant"), "idempotency-key"),
        (hold(timeout=1, prompt="Pay {amount}?"), "single-braces"),
        (hold(on_timeout="cancel"), "no-timeout"),
        (guard(reroute="first"), "reroute"),
    ],
)
def test_validation_warns_of_what_is_probably_a_slip(node, rule):
    assert found(node) == []
    assert found(node, severity=Severity.warning) == [(rule, "n")]


@pytest.mark.parametrize(
    "node",
    [
        hold(timeout=1),
        hold(timeout=1, prompt="{{amount}} { amount: 1 } {} {other} {{ amount }}"),
        hold(timeout=1, on_timeout="escalate:role:cfo", prompt="{{amount}} {{decision}}"),
        hold(timeout=1, on_timeout="branch:first"),
        hold(timeout=1, on_timeout="default_option", options=(Option("no", "no", default=True),)),
        Node(id="n", idempotency_key="{{order_id}}"),
        Node(id="n", kind=NodeKind.timer, timer=TimerSpec(until="amount")),
    ],
)
def test_validation_lets_sound_nodes_pass(node):
    assert found(node) == []
    assert found(node, severity=Severity.warning) == []


def test_names_are_not_judged_when_the_state_takes_any_key():
    assert found(Node(id="n", idempotency_key="k-{{anything}}"), fields=None) == []


def test_field_with_the_name_of_a_partition_is_a_warning():
    assert found(fields={"input": {"type": "str"}}, severity=Severity.warning) == [("field-name", None)]
