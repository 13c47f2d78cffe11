"""Rules for timers, maps, sub-flows and guardrails; those for holds are in `holds`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.holds import check_hold
from holdfast.model.expressions import ExprSyntaxError
from holdfast.model.graph import (
    Edge,
    EdgeKind,
    GraphSpec,
    GuardSpec,
    MapSpec,
    Node,
    ParallelSpec,
    SubflowSpec,
    TimerSpec,
)
from holdfast.model.pipeline_conditions import problems_of

_RESULT: Final = ("state", "artifacts", "output")


def check_kinds(view: ValidationView) -> None:
    for node in view.spec.nodes:
        if node.hold is not None:
            check_hold(view, node, node.hold)
        if node.timer is not None:
            _timer(view, node, node.timer)
        if node.map is not None:
            _map(view, node, node.map)
        if node.parallel:
            _parallel(view, node, node.parallel)
        if node.subflow is not None:
            _subflow(view, node, node.subflow)
        if node.guard is not None:
            _guard(view, node, node.guard)


def check_conditions(view: ValidationView) -> None:
    for edge in view.spec.edges:
        if edge.when is not None and edge.language == "clauses":
            _clauses(view, edge)
        elif edge.when is not None:
            view.expression(edge.when, "its condition", edge=edge.id)
        elif edge.kind is EdgeKind.when:
            view.error(
                "no-condition", "it is conditional but has no condition", edge=edge.id, fix="give it when=..."
            )


def _clauses(view: ValidationView, edge: Edge) -> None:
    for problem in problems_of(edge.when or "", extended=True):
        view.error("expression", f"its condition: {problem.message}", edge=edge.id)


def _timer(view: ValidationView, node: Node, timer: TimerSpec) -> None:
    if (timer.duration is None) == (timer.until is None):
        view.error("timer", "it needs either a duration or until=", node=node.id)
    if timer.until is not None:
        view.expression(timer.until, "until", node=node.id)


def _map(view: ValidationView, node: Node, spec: MapSpec) -> None:
    view.expression(spec.over, "over", node=node.id)
    view.field_name(spec.into, "into", node=node.id)
    view.one_of("on-item-failure", spec.on_item_failure, ("fail", "collect"), node=node.id)
    if spec.concurrency < 0:
        view.error(
            "concurrency",
            f"concurrency {spec.concurrency} is negative",
            node=node.id,
            fix="use 0 for no limit",
        )
    if spec.key is not msgspec.UNSET:
        # Its names are those of the item, which has no declared fields.
        found = view.compiled(spec.key)
        if isinstance(found, ExprSyntaxError):
            view.error("expression", f"item_key: {found}", node=node.id, fix=found.hint or None)
    if spec.tolerance is not msgspec.UNSET and spec.on_item_failure == "collect":
        view.error(
            "tolerance",
            "on_item_failure collects every failure, and a tolerance limits them",
            node=node.id,
            fix="leave one of them out",
        )
    _body(view, node, spec.body)


def _parallel(view: ValidationView, node: Node, spec: ParallelSpec) -> None:
    child = _body(view, node, spec.body)
    known = {inner.id for inner in child.nodes} if child is not None else set[str]()
    for start in spec.starts:
        if child is not None and start not in known:
            view.error("branch-start", f"there is no node {start!r} in its branches", node=node.id)
    if view.spec.traversal != "walk" or (child is not None and child.traversal != "walk"):
        view.error("parallel-walk", "parallel branches need the walk traversal in both graphs", node=node.id)


def _body(view: ValidationView, node: Node, name: str) -> GraphSpec | None:
    child = next((graph for graph in view.spec.subgraphs if graph.name == name), None)
    if child is None:
        view.error("subflow-unknown", f"there is no sub-flow {name!r}", node=node.id)
    return child


def _subflow(view: ValidationView, node: Node, spec: SubflowSpec) -> None:
    child = _body(view, node, spec.body)
    for name, text in (spec.inputs or {}).items():
        view.expression(text, f"its input {name!r}", node=node.id)
    for name, path in (spec.outputs or {}).items():
        view.field_name(name, "output", node=node.id)
        if path.partition(".")[0] not in _RESULT:
            view.error(
                "subflow-output",
                f"its output {name!r} reads {path!r}",
                node=node.id,
                fix="begin the path with state., artifacts. or output",
            )
    if child is not None and child.fields is not None and spec.inputs is not None:
        _inputs(view, node, spec.inputs, child.fields)


def _inputs(view: ValidationView, node: Node, inputs: dict[str, str], fields: dict[str, Any]) -> None:
    for name in sorted(inputs.keys() - fields.keys()):
        view.error(
            "subflow-input",
            f"the sub-flow's state has no field {name!r}",
            node=node.id,
            fix=f"use one of {', '.join(fields)}, or remove it from inputs=",
        )
    missing = [name for name, about in fields.items() if about.get("required") and name not in inputs]
    for name in missing:
        view.error(
            "subflow-input",
            f"the sub-flow needs {name!r}",
            node=node.id,
            fix=f"add it to inputs={{{name!r}: ...}}",
        )


def _guard(view: ValidationView, node: Node, guard: GuardSpec) -> None:
    view.one_of("on-violation", guard.on_violation, ("block", "reroute", "warn", "sanitize"), node=node.id)
    if guard.on_violation == "reroute":
        if guard.reroute is None:
            view.error(
                "reroute",
                "on_violation is reroute, but there is no target",
                node=node.id,
                fix="give reroute=node",
            )
        elif guard.reroute not in view.nodes:
            view.error(
                "reroute",
                f"it reroutes to {guard.reroute!r}, which does not exist",
                node=node.id,
                fix="name a node of this flow",
            )
    elif guard.reroute is not None:
        view.warn(
            "reroute", f"on_violation is {guard.on_violation!r}, so reroute is never used", node=node.id
        )
