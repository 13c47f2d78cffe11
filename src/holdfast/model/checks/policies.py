"""Rules for what nodes declare: retries, joins, checkpoints, keys."""

from __future__ import annotations

from typing import Final

from holdfast.model.breakpoints import SUFFIX
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.expressions import PARTITIONS
from holdfast.model.graph import JoinKind, Node
from holdfast.model.reducer_marks import CUSTOM
from holdfast.model.template import single_braces
from holdfast.types.reducers import FIELD_REDUCERS
from holdfast.types.status import REPEATABLE

_MEMORY: Final = ("live", "snapshot", "journaled")
_WHEN: Final = ("before", "after", "both", "none")
_ROUTE: Final = "route:"


def check_flow(view: ValidationView) -> None:
    spec = view.spec
    view.one_of("traversal", spec.traversal, ("dataflow", "walk"))
    view.one_of("memory", spec.memory, _MEMORY)
    view.one_of("checkpoints", spec.checkpoints, ("every_node", "explicit", "none"))
    view.one_of("checkpoint", spec.checkpoint_when, _WHEN)
    view.one_of("mode", spec.mode, ("barrier", "strict", "exit"))
    view.one_of("code-change", spec.code_change, ("allow", "ask", "refuse"))
    if not spec.name:
        view.error("flow-name", "the flow has no name")
    _reducers(view)
    for name in sorted(PARTITIONS.intersection(spec.fields or ())):
        view.warn(
            "field-name",
            f"the field {name!r} has the name of a partition: conditions reach it as scratch.{name}",
            fix="choose another name",
        )


def _reducers(view: ValidationView) -> None:
    for field, name in view.spec.reducers.items():
        if name not in FIELD_REDUCERS and not name.startswith(CUSTOM):
            view.error(
                "reducer",
                f"{field!r} has the unknown reducer {name!r}",
                fix=f"use one of {', '.join(sorted(FIELD_REDUCERS))}",
            )


def check_policies(view: ValidationView) -> None:
    for node in view.spec.nodes:
        _retry(view, node)
        _on_failure(view, node)
        _join(view, node)
        _key(view, node)
        if node.memory is not None:
            view.one_of("memory", node.memory, _MEMORY, node=node.id)
        if node.checkpoint is not None:
            view.one_of("checkpoint", node.checkpoint, _WHEN, node=node.id)
        if node.breakpoint and node.id + SUFFIX in view.nodes:
            view.error(
                "breakpoint",
                f"its breakpoint's name {node.id + SUFFIX!r} is the name of a node",
                node=node.id,
                fix="rename that node",
            )
        if node.script and node.effect not in REPEATABLE:
            view.error(
                "script-effect",
                f"a script's own code runs again after a crash, so its class cannot be {node.effect}",
                node=node.id,
                fix='declare effect="read", and put the effect into a ctx.step',
            )


def _retry(view: ValidationView, node: Node) -> None:
    if node.retry.attempts < 1:
        view.error(
            "retry-attempts",
            f"it has {node.retry.attempts} attempts (the first one counts too)",
            node=node.id,
            fix="use at least 1",
        )
    if not 0 <= node.retry.jitter <= 1:
        view.error("retry-jitter", f"jitter {node.retry.jitter} is not between 0 and 1", node=node.id)


def _on_failure(view: ValidationView, node: Node) -> None:
    if not node.on_failure.startswith(_ROUTE):
        if node.on_failure not in ("abort", "skip"):
            view.error(
                "on-failure",
                f"on_failure {node.on_failure!r} is not one of abort, skip, route:<node>",
                node=node.id,
                fix='use for instance on_failure="route:repair"',
            )
        return
    target = node.on_failure[len(_ROUTE) :]
    if target not in view.nodes:
        view.error(
            "failure-route",
            f"its failure route {target!r} does not exist",
            node=node.id,
            fix="name a node of this flow",
        )


def _join(view: ValidationView, node: Node) -> None:
    policy = node.join
    if policy.kind is JoinKind.all:
        return
    arms = len(view.into[node.id])
    if policy.kind is JoinKind.quorum and not 1 <= policy.count <= arms:
        view.error(
            "quorum",
            f"it waits for {policy.count} of {arms} incoming edges",
            node=node.id,
            fix=f"use a quorum between 1 and {arms}" if arms else "add edges to it",
        )
    elif arms < 2:
        leads = "only one edge leads" if arms else "no edge leads"
        view.warn("join-single", f"join {policy.kind} has no effect: {leads} to it", node=node.id)


def _key(view: ValidationView, node: Node) -> None:
    if node.idempotency_key is None:
        return
    slips = single_braces(node.idempotency_key)
    if slips:
        view.error(
            "single-braces",
            f"its idempotency key has {{{slips[0]}}}, which is not replaced: all runs would share it",
            node=node.id,
            fix=f"write {{{{{slips[0]}}}}}",
        )
        return
    if "{{" not in node.idempotency_key:
        view.warn(
            "idempotency-key",
            f"its key {node.idempotency_key!r} is the same in every run",
            node=node.id,
            fix="include a value that is unique, such as {{order_id}}",
        )
    view.template(node.idempotency_key, "its idempotency key", node=node.id)
