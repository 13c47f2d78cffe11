"""Holds, timers, maps, sub-flows and guardrails."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from holdfast.model.checks.schemas import schema_faults
from holdfast.model.checks.view import View
from holdfast.model.forms.compiling import compile_form
from holdfast.model.graph import (
    EdgeKind,
    GraphSpec,
    GuardSpec,
    HoldSpec,
    MapSpec,
    Node,
    SubflowSpec,
    TimerSpec,
)
from holdfast.types.skill import RESOLVED_SKILLS

_PRIORITIES: Final = ("low", "normal", "high", "critical")
_TIMEOUTS: Final = "cancel, default_option, fail, escalate:<assignee>, branch:<node>"
_RESULT: Final = ("state", "artifacts", "output")


def check_kinds(view: View) -> None:
    for node in view.spec.nodes:
        if node.hold is not None:
            _hold(view, node, node.hold)
        if node.timer is not None:
            _timer(view, node, node.timer)
        if node.map is not None:
            _map(view, node, node.map)
        if node.subflow is not None:
            _subflow(view, node, node.subflow)
        if node.guard is not None:
            _guard(view, node, node.guard)


def check_conditions(view: View) -> None:
    for edge in view.spec.edges:
        if edge.when is not None:
            view.expression(edge.when, "its condition", edge=edge.id)
        elif edge.kind is EdgeKind.when:
            view.error(
                "no-condition", "it is conditional without a condition", edge=edge.id, fix="give it when=..."
            )


def _hold(view: View, node: Node, hold: HoldSpec) -> None:
    view.template(hold.prompt, "its prompt", node=node.id)
    view.template(hold.assignee or "", "its assignee", node=node.id)
    for name, text in hold.context.items():
        view.template(text, f"its context {name!r}", node=node.id)
    if RESOLVED_SKILLS in hold.context:
        said = f"its context has {RESOLVED_SKILLS!r}, which names the skills of the run and is replaced"
        view.warn("hold-context", said, node=node.id, fix="call it something else")
    view.one_of("hold-priority", hold.priority, _PRIORITIES, node=node.id)
    _field_name(view, node, hold.bind, "bind")
    _options(view, node, hold)
    _timeout(view, node, hold)
    _form(view, node, hold)
    for fault in [] if hold.schema is None else schema_faults(hold.schema):
        view.error("hold-schema", fault, node=node.id)


def _form(view: View, node: Node, hold: HoldSpec) -> None:
    if hold.into:
        _field_name(view, node, hold.into, "into")
    if not hold.form:
        return
    found = compile_form(hold.form.get("sections"), templates=not hold.form.get("literal"))
    for problem in found.problems:
        view.error("hold-form", problem, node=node.id)
    for warning in found.warnings:
        view.warn("hold-form", warning, node=node.id)
    if hold.schema is not None:
        view.error("hold-form", "it has a form and a schema", node=node.id, fix="leave one of them out")


def _field_name(view: View, node: Node, name: str, what: str) -> None:
    if not name.isidentifier():
        view.error("field-name", f"{what}={name!r} cannot be a field", node=node.id, fix="use a plain name")


def _options(view: View, node: Node, hold: HoldSpec) -> None:
    if hold.options is None:
        return
    if not hold.options:
        view.error(
            "hold-options", "its list of options is empty", node=node.id, fix="leave it out for a free answer"
        )
    for name, count in Counter(option.id for option in hold.options).items():
        if not name.strip():
            view.error("hold-options", "an option has an empty id", node=node.id)
        elif count > 1:
            view.error("hold-options", f"{count} options have the id {name!r}", node=node.id)


def _timeout(view: View, node: Node, hold: HoldSpec) -> None:
    action, _, target = (hold.on_timeout or "fail").partition(":")
    if action == "escalate":
        if not target.strip():
            view.error(
                "escalate-target", "it escalates to nobody", node=node.id, fix='write "escalate:role:manager"'
            )
        view.template(target, "its escalation", node=node.id)
    elif action == "branch":
        if target not in view.nodes:
            view.error(
                "timeout-branch", f"on_timeout leads to {target!r}, which does not exist", node=node.id
            )
    elif action not in ("cancel", "default", "default_option", "fail", "expired") or target:
        view.error(
            "on-timeout",
            f"on_timeout {hold.on_timeout!r} is none of {_TIMEOUTS}",
            node=node.id,
            fix=f"use {_TIMEOUTS}",
        )
    elif action.startswith("default") and not hold.options:
        view.error("on-timeout", "its timeout takes the default option, but it has no options", node=node.id)
    if hold.on_timeout is not None and hold.timeout is None:
        view.warn(
            "no-timeout",
            "it has on_timeout without a timeout: it never expires",
            node=node.id,
            fix="add timeout=",
        )


def _timer(view: View, node: Node, timer: TimerSpec) -> None:
    if (timer.duration is None) == (timer.until is None):
        view.error("timer", "it needs either a duration or until=", node=node.id)
    if timer.until is not None:
        view.expression(timer.until, "until", node=node.id)


def _map(view: View, node: Node, spec: MapSpec) -> None:
    view.expression(spec.over, "over", node=node.id)
    _field_name(view, node, spec.into, "into")
    view.one_of("on-item-failure", spec.on_item_failure, ("fail", "collect"), node=node.id)
    if spec.concurrency < 0:
        view.error(
            "concurrency",
            f"concurrency {spec.concurrency} is negative",
            node=node.id,
            fix="use 0 for no limit",
        )
    _body(view, node, spec.body)


def _body(view: View, node: Node, name: str) -> GraphSpec | None:
    child = next((graph for graph in view.spec.subgraphs if graph.name == name), None)
    if child is None:
        view.error("subflow-unknown", f"there is no sub-flow {name!r}", node=node.id)
    return child


def _subflow(view: View, node: Node, spec: SubflowSpec) -> None:
    child = _body(view, node, spec.body)
    for name, text in (spec.inputs or {}).items():
        view.expression(text, f"its input {name!r}", node=node.id)
    for name, path in (spec.outputs or {}).items():
        _field_name(view, node, name, "output")
        if path.partition(".")[0] not in _RESULT:
            view.error(
                "subflow-output",
                f"its output {name!r} reads {path!r}",
                node=node.id,
                fix="begin the path with state., artifacts. or output",
            )
    if child is not None and child.fields is not None and spec.inputs is not None:
        _inputs(view, node, spec.inputs, child.fields)


def _inputs(view: View, node: Node, inputs: dict[str, str], fields: dict[str, Any]) -> None:
    for name in sorted(inputs.keys() - fields.keys()):
        view.error("subflow-input", f"the sub-flow's state has no field {name!r}", node=node.id)
    missing = [name for name, about in fields.items() if about.get("required") and name not in inputs]
    for name in missing:
        view.error(
            "subflow-input",
            f"the sub-flow needs {name!r}",
            node=node.id,
            fix=f"add it to inputs={{{name!r}: ...}}",
        )


def _guard(view: View, node: Node, guard: GuardSpec) -> None:
    view.one_of("on-violation", guard.on_violation, ("block", "reroute", "warn", "sanitize"), node=node.id)
    if guard.on_violation == "reroute":
        if guard.reroute is None:
            view.error("reroute", "it reroutes to nowhere", node=node.id, fix="give reroute=node")
        elif guard.reroute not in view.nodes:
            view.error("reroute", f"it reroutes to {guard.reroute!r}, which does not exist", node=node.id)
    elif guard.reroute is not None:
        view.warn(
            "reroute", f"on_violation is {guard.on_violation!r}, so reroute is never used", node=node.id
        )
