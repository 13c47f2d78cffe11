"""What happened before a checkpoint: one pass over the journal, beside `model.apply`.

The position has only what a worker needs to continue. This fold keeps what people ask for: what ran, how
often and how long, what was bypassed, which edges wait, what a hold asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.checkpoint.visit import STATES, Visit
from holdfast.model.budget_ledger import usage_noted
from holdfast.model.events import LOST, graph_at
from holdfast.model.graph import END, START, Graph, Node
from holdfast.model.migration import MIGRATED, MIGRATION
from holdfast.model.position import STEP_RETRY, STEP_WOKE
from holdfast.model.record_bodies import (
    AskedBody,
    AttemptBody,
    CreatedBody,
    ErrorInfo,
    IntentBody,
    SnapshotBody,
    StepBody,
    SubstepBody,
    Usage,
)
from holdfast.types.record import Kind, Move, Record

HISTORY = "history"
"""The key under which the snapshot of a fork or of a pruned run has what happened before it."""

MEMORY = "memory."
"""Prefix of sub-steps that read or write memory."""

PENDING = "pending"
"""Of a write to memory: the label of the node that it is pending in."""


class History(msgspec.Struct, kw_only=True):
    """Nodes inside maps and sub-flows are named with their scope: `send.1[0]/pay`."""

    # One for each settled step: a visit that failed and was resumed is there twice.
    executions: list[Visit] = []
    skipped: list[str] = []
    # Edge -> its target, which has not started as far as the journal shows.
    pending: dict[str, str] = {}
    asked: dict[str, dict[str, Any]] = {}
    # Running sub-steps whose callee knows them by a key of this run: a fork has other keys (D-18, D-35).
    keyed: dict[str, dict[str, int]] = {}
    retries: dict[str, int] = {}
    guardrails: dict[str, dict[str, Any]] = {}
    reads: list[dict[str, Any]] = []
    writes: list[dict[str, Any]] = []
    checkpoints: int = 0
    # What sub-steps of unsettled executions cost: label -> [tokens, cost].
    spent: dict[str, list[float]] = {}
    # What a fork's patch said about diagnostics.
    noted: dict[str, Any] = {}

    def dump(self) -> dict[str, Any]:
        """Plain data whose values are storable as they are."""
        plain = {name: getattr(self, name) for name in self.__struct_fields__}
        plain["executions"] = [_stored(visit) for visit in self.executions]
        return plain


def load_history(plain: Any) -> History:
    given = dict(plain)
    executions = [_restored(stored) for stored in given.pop("executions", ())]
    history = msgspec.convert(given, History)
    history.executions = executions
    return history


# Names and order in which snapshots store a visit -> its field.
_STORED = {
    "node": "node", "scope": "scope", "visit": "visit", "attempt": "attempts", "effect": "effect",
    "outcome": "outcome", "seq": "seq", "at": "ended_at", "duration": "duration", "output": "output",
    "tokens": "tokens", "cost": "cost", "error": "error", "settled": "settled", "readable": "readable",
    "run": "run",
}  # fmt: skip


def _stored(visit: Visit) -> dict[str, Any]:
    return {name: getattr(visit, field) for name, field in _STORED.items()}


def _restored(stored: Mapping[str, Any]) -> Visit:
    given = {field: stored[name] for name, field in _STORED.items() if name in stored}
    at, duration, error = given["ended_at"], given.get("duration", 0), given.get("error")
    given |= {"started_at": at - duration, "work_us": duration, "error": error and dict(error)}
    return Visit(state=STATES.get(given["outcome"], "done"), halts=not given.pop("settled", True), **given)


def fold(graph: Graph, history: History, record: Record, body: Any) -> None:
    """Advance by one record. `body` None: the record is damaged, only its columns count."""
    history.checkpoints += record.listed
    if body is None:
        _unreadable(history, record)
        return
    apply = _FOLD.get(Kind(record.kind))
    if apply is not None:
        apply(graph, history, record, body)


def begin(record: Record, body: Any) -> History:
    """The history at a first record: empty, or what a fork or a pruned run begins with."""
    plain: Any = None
    if isinstance(body, SnapshotBody):
        plain = body.position.get(HISTORY)
    elif isinstance(body, CreatedBody) and body.base is not None:
        plain = body.base.get(HISTORY)
    return History() if plain is None else load_history(plain)


def _unreadable(history: History, record: Record) -> None:
    if record.kind == Kind.step:
        history.executions.append(settled_visit(record, None))


def settled_visit(record: Record, body: StepBody | None) -> Visit:
    """The visit that a step record settles; without a body, as far as the columns show."""
    duration = 0 if body is None else body.duration
    visit = Visit(
        node=record.node,
        scope=record.scope,
        visit=record.visit,
        attempts=record.attempt,
        effect=str(record.effect),
        outcome=str(record.outcome),
        state=STATES.get(record.outcome, "done"),
        seq=record.seq,
        readable=body is not None,
        started_at=record.at - duration,
        ended_at=record.at,
        duration=duration,
        work_us=duration,
    )
    if body is not None:
        visit.output, visit.error = output_of(record, body), error_of(body.error)
        visit.halts = body.halts or record.outcome == "unknown"
    return visit


def _created(graph: Graph, history: History, record: Record, body: CreatedBody) -> None:
    if body.base is None:
        _moves(graph, history, body.moves, record)


def _step(graph: Graph, history: History, record: Record, body: StepBody) -> None:
    visit = settled_visit(record, body)
    label = visit.label
    _spend(history, label, body.usage)
    tokens, visit.cost = history.spent.pop(label, (0, 0.0))
    visit.tokens = int(tokens)
    history.executions.append(visit)
    if body.notes is not None and "guardrail" in body.notes:
        history.guardrails[label] = {**body.notes, "latency": body.duration}
    _left_behind(history, label)
    _settle_memory(history, label)
    if not body.halts:
        history.retries.pop(label, None)
    for hold in [h for h, asked in history.asked.items() if asked["scope"] + asked["node"] == label]:
        del history.asked[hold]
    _moves(graph, history, body.moves, record)


def output_of(record: Record, body: StepBody) -> Any:
    """What the node produced: its value, or its update of the state as it returned it."""
    if body.output is not None:
        return body.output
    ops = body.ops
    if len(ops) == 1 and ops[0][0] == "artifacts":
        return ops[0][3]
    return {key: operand for partition, key, _, operand in ops if partition == "scratch"} or None


def error_of(error: ErrorInfo | None) -> dict[str, str] | None:
    return None if error is None else {"code": error.code, "type": error.type, "message": error.message}


def _attempt(graph: Graph, history: History, record: Record, body: AttemptBody) -> None:
    label = record.scope + record.node
    if body.reason == "retry":
        history.retries[label] = history.retries.get(label, 0) + 1
    if body.reason == "continued":
        history.asked.pop(body.token, None)
    if body.reason in (STEP_RETRY, STEP_WOKE):
        history.keyed.get(label, {}).pop(body.nodes[0], None)
        _spend(history, label, body.usage)
    if body.reason in ("nap", STEP_RETRY, STEP_WOKE):
        _started(history, label)
    elif body.reason not in ("before", "join_timer", "limit", "children"):
        _left_behind(history, label)
    _moves(graph, history, body.moves, record)


def _intent(_graph: Graph, history: History, record: Record, body: IntentBody) -> None:
    label = record.scope + record.node
    _started(history, label)
    _spend(history, label, usage_noted(body))
    if body.ordinal >= 0 and body.key:
        history.keyed.setdefault(label, {})[body.name] = record.seq


def _substep(graph: Graph, history: History, record: Record, body: SubstepBody) -> None:
    label = record.scope + record.node
    _started(history, label)
    history.keyed.get(label, {}).pop(body.ordinal, None)
    if body.hold:
        history.asked.pop(body.hold, None)
    _spend(history, label, body.usage)
    if body.name.startswith(MEMORY):
        _memory(history, body, label if _is_journaled(graph, record) else "")


def _spend(history: History, label: str, usage: Usage | None) -> None:
    if usage is not None:
        tokens, cost = history.spent.get(label, (0, 0.0))
        history.spent[label] = [tokens + usage.tokens, cost + usage.cost]


def _memory(history: History, body: SubstepBody, pending_in: str) -> None:
    into = history.reads if body.name == "memory.read" else history.writes
    value: Any = body.value
    traces: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]  # type: ignore[arg-type]
    found: list[dict[str, Any]] = [dict(trace) for trace in traces if isinstance(trace, dict)]  # type: ignore[misc]
    if into is history.writes and pending_in:
        found = [{**trace, PENDING: pending_in} for trace in found]
    into += found


def _is_journaled(graph: Graph, record: Record) -> bool:
    """Whether what the node writes to memory is pending until it has settled."""
    inner = graph_at(graph, record.scope)
    index = inner.index.get(record.node)
    own = None if index is None else inner.nodes[index].memory
    return (own or inner.spec.memory) == "journaled"


def _settle_memory(history: History, label: str) -> None:
    """Written with the step, or dropped with it."""
    for trace in history.writes:
        if trace.get(PENDING) == label:
            del trace[PENDING]


def _asked(_graph: Graph, history: History, record: Record, body: AskedBody) -> None:
    _started(history, record.scope + record.node)
    kept = ("ordinal", "type", "prompt", "options", "assignee", "priority", "context", "schema", "expires_at")
    asked = {name: getattr(body, name) for name in (*kept, "key", "on_timeout", "code", "more")}
    where = {"node": record.node, "scope": record.scope, "visit": record.visit, "at": record.at}
    history.asked[body.hold] = {**asked, **where}


def _snapshot(_graph: Graph, history: History, record: Record, body: SnapshotBody) -> None:
    """After a migration, visits that have not ended continue under the new names; ended ones keep theirs."""
    if record.outcome != MIGRATED:
        return
    names: dict[str, str] = body.position.get(MIGRATION, {}).get("renamed", {})
    if not names:
        return
    history.skipped = [names.get(label, label) for label in history.skipped]
    history.pending = {edge: names.get(label, label) for edge, label in history.pending.items()}
    history.keyed = {names.get(label, label): keys for label, keys in history.keyed.items()}
    history.retries = {names.get(label, label): count for label, count in history.retries.items()}
    for trace in history.writes:
        if PENDING in trace:
            trace[PENDING] = names.get(trace[PENDING], trace[PENDING])
    for asked in history.asked.values():
        label: str = asked["scope"] + asked["node"]
        scope, slash, asked["node"] = names.get(label, label).rpartition("/")
        asked["scope"] = scope + slash


def _end(_graph: Graph, history: History, _record: Record, _body: Any) -> None:
    history.asked.clear()
    for trace in history.writes:
        trace.pop(PENDING, None)


def _started(history: History, label: str) -> None:
    """The journal shows that the node started: the edges that led to it wait no longer."""
    if history.pending:
        for edge in [e for e, target in history.pending.items() if target == label]:
            del history.pending[edge]


def _left_behind(history: History, label: str) -> None:
    _started(history, label)
    history.keyed.pop(label, None)


def _moves(graph: Graph, history: History, moves: list[Move], record: Record) -> None:
    for what, scope, a, b in moves:
        if what == "U":
            _lost(history, graph_at(graph, scope).nodes[a], scope, b, record)
        elif what in _MOVE:
            _MOVE[what](history, graph_at(graph, scope), scope, a, b)


def _lost(history: History, node: Node, scope: str, visit: int, record: Record) -> None:
    """An effect that was running when its branch was abandoned: its outcome is unknown."""
    _left_behind(history, scope + node.id)
    _settle_memory(history, scope + node.id)
    history.executions.append(
        Visit(
            node=node.id,
            scope=scope,
            visit=visit,
            attempts=1 + history.retries.pop(scope + node.id, 0),
            effect=str(node.effect),
            outcome="unknown",
            state="unknown",
            seq=record.seq,
            error=dict(LOST),
            halts=True,
            started_at=record.at,
            ended_at=record.at,
        )
    )


def _fired(history: History, graph: Graph, scope: str, edge: int, _b: int) -> None:
    target = graph.edges[edge].target
    if target != END:
        history.pending[scope + graph.edges[edge].id] = scope + target


def _went(history: History, graph: Graph, scope: str, edge: int, b: int) -> None:
    _fired(history, graph, scope, edge, b)
    _unskip(history, scope + graph.edges[edge].target)


def _began(history: History, graph: Graph, scope: str, node: int, _b: int) -> None:
    label = scope + graph.nodes[node].id
    _unskip(history, label)
    if label not in history.pending.values():
        history.pending[f"{scope}{START}->{graph.nodes[node].id}"] = label


def _dropped(history: History, graph: Graph, scope: str, edge: int, _b: int) -> None:
    history.pending.pop(scope + graph.edges[edge].id, None)


def _abandoned(history: History, graph: Graph, scope: str, node: int, _b: int) -> None:
    _left_behind(history, scope + graph.nodes[node].id)
    _settle_memory(history, scope + graph.nodes[node].id)


def _skipped(history: History, graph: Graph, scope: str, node: int, _b: int) -> None:
    label = scope + graph.nodes[node].id
    if label not in history.skipped:
        history.skipped.append(label)


def _turned(history: History, graph: Graph, scope: str, header: int, _edge: int) -> None:
    """Inside a loop that turns, nothing is bypassed for good."""
    inside = {scope + graph.nodes[n].id for n in graph.loops[header].body}
    history.skipped = [label for label in history.skipped if label not in inside]


def _unskip(history: History, label: str) -> None:
    if label in history.skipped:
        history.skipped.remove(label)


_MOVE = {
    "G": _went,
    "F": _fired,
    "S": _began,
    "Z": _began,
    "K": _skipped,
    "T": _dropped,
    "A": _abandoned,
    "L": _turned,
}
_FOLD = {
    Kind.created: _created,
    Kind.intent: _intent,
    Kind.attempt: _attempt,
    Kind.substep: _substep,
    Kind.asked: _asked,
    Kind.step: _step,
    Kind.snapshot: _snapshot,
    Kind.end: _end,
}
