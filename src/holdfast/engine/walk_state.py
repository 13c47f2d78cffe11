"""The state of a walk: outcomes, gates, counters, and the part of it that is written to its scratch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from holdfast.engine.messages import HandlerFinished
from holdfast.model.expressions import Path, Resolve
from holdfast.model.expressions import walk as walk_path
from holdfast.model.graph import Edge, Graph, WalkSpec
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Scope
from holdfast.types.outcome import FAIL, SKIPPED
from holdfast.types.record import Op
from holdfast.types.value import FrozenList

PLAIN = WalkSpec()
SATISFIED = ("success", "partial_success")
OUTCOME, LABEL, CURRENT, RETRIES = "outcome", "preferred_label", "current_node", "internal.retry_count."
SKIPS_BY = "skips_by"


def outcome_of(graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished) -> str:
    """The outcome that conditions read. A routing node passes on the outcome that led to it."""
    return scope.walk["outcome"] if _passes_on(graph, scope, execution) else message.outcome


def label_of(graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished) -> str:
    """The preferred label that conditions and edges read: its own, or what a routing node passes on."""
    return scope.walk.get("label", "") if _passes_on(graph, scope, execution) else message.label


def _passes_on(graph: Graph, scope: Scope, execution: Exec) -> bool:
    return (graph.nodes[execution.node].walk or PLAIN).routing and "outcome" in scope.walk


def note_outcome(graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished) -> None:
    """Store what later nodes and gates read. A skipped node has no outcome."""
    node = graph.nodes[execution.node]
    spec, walk = node.walk or PLAIN, scope.walk
    skipped = message.outcome == SKIPPED and bool(graph.spec.mirrors)
    if not _passes_on(graph, scope, execution) and not skipped:
        walk["outcome"] = message.outcome
        walk["label"] = message.label
        if graph.spec.mirrors:
            _note_more(walk, message)
    if skipped:
        # It has no label for later nodes either, but its own edges use it, and a replay reads it here.
        walk[SKIPS_BY] = message.label
    else:
        walk.pop(SKIPS_BY, None)
    walk.setdefault("outcome", "success")
    # The nodes that the code suggested must be recorded: a replay reads them here (D-26).
    if message.suggested:
        walk["suggested"] = FrozenList(message.suggested)
    else:
        walk.pop("suggested", None)
    if graph.spec.mirrors and not skipped:
        _count_retries(walk, node.id, execution, message)
    if (spec.goal_gate and not skipped) or message.gates:
        gates = {**walk.get("gates", {}), **message.gates}
        if spec.goal_gate and not skipped:
            gates[node.id] = _satisfies(walk["outcome"], graph)
        walk["gates"] = gates


def _satisfies(outcome: str, graph: Graph) -> bool:
    """Custom outcome words count as successes."""
    return outcome in SATISFIED or (bool(graph.spec.mirrors) and outcome not in (FAIL, "retry", SKIPPED))


def _note_more(walk: dict[str, Any], message: HandlerFinished) -> None:
    notes: Any = message.notes or {}
    walk["notes"] = notes.get("notes", "")
    if message.outcome == FAIL and message.error is not None:
        walk["reason"] = message.error.message
    else:
        walk.pop("reason", None)


def _count_retries(walk: dict[str, Any], name: str, execution: Exec, message: HandlerFinished) -> None:
    """How often each stage was retried; only a success resets it."""
    retries = dict(walk.get("retries", {}))
    if message.outcome != FAIL:
        retries.pop(name, None)
    elif execution.failures:
        retries[name] = execution.failures
    if retries or "retries" in walk:
        walk["retries"] = retries


def with_walk_fields(graph: Graph, scope: Scope, execution: Exec, message: HandlerFinished) -> list[Op]:
    """The changes of a step, with the fields that the walk adds. Applying it twice gives the same."""
    name = graph.nodes[execution.node].id
    fields: dict[str, Any] = {CURRENT: name}
    if message.outcome != SKIPPED:
        fields[OUTCOME] = outcome_of(graph, scope, execution, message)
        if message.label and not _passes_on(graph, scope, execution):
            fields[LABEL] = message.label
    if execution.failures or name in scope.walk.get("retries", {}):
        fields[RETRIES + name] = execution.failures if message.outcome == FAIL else 0
    others = [op for op in message.ops if not (op[0] == "scratch" and op[1] in fields)]
    return [*others, *(("scratch", key, "set", value) for key, value in fields.items())]


class ConditionResolver:
    """How conditions read the state after a step, whether its changes are applied already or not."""

    def __init__(
        self,
        scope: Scope,
        execution: Exec,
        message: HandlerFinished,
        extra: dict[str, Any],
        *,
        records: bool = True,
    ) -> None:
        self._scope, self._execution, self._extra, self._records = scope, execution, extra, records
        self._changes = {op[1]: op[3] for op in message.ops if op[0] == "scratch" and op[2] == "set"}

    def by(self, edge: Edge) -> Resolve:
        """Clauses look up single keys; in expressions the whole scratch is also available as `context`."""
        return self._one_by_one if edge.language == "clauses" else self._whole

    @cached_property
    def _one_by_one(self) -> Resolve:
        tree, frame = self._scope.tree, self._execution.frame
        return self._changed(resolver(tree, frame, self._extra, records=self._records))

    @cached_property
    def _whole(self) -> Resolve:
        tree, frame = self._scope.tree, self._execution.frame
        context = {**tree.see(frame, "scratch"), **self._changes}
        extra = {**self._extra, "context": context}
        return self._changed(resolver(tree, frame, extra, records=self._records))

    def _changed(self, resolve: Resolve) -> Resolve:
        changes, extra = self._changes, self._extra
        if not changes:
            return resolve

        def changed(path: Path) -> object:
            first, *rest = path
            if first in ("scratch", "state") and rest:
                first, *rest = rest
            named_in_full = len(rest) + 1 < len(path)
            if first in changes and (named_in_full or first not in extra):
                return walk_path(changes[str(first)], tuple(rest), records=self._records)
            return resolve(path)

        return changed
