"""Derives events from records: no event is stored twice, and a reader can always derive them again.

A record reserves as many event numbers as it has events (D-3); `count_events` must therefore never
change for a stored record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.model.budget_ledger import usage_noted
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED, MIGRATION
from holdfast.model.position import STEP_RETRY, STEP_WOKE
from holdfast.model.record_bodies import (
    AskedBody,
    AttemptBody,
    ChunkBody,
    CreatedBody,
    EndBody,
    IntentBody,
    SnapshotBody,
    StepBody,
    SubstepBody,
    Usage,
)
from holdfast.types.hold import options_json
from holdfast.types.ids import RunId, checkpoint_id
from holdfast.types.record import Kind, Move, Record, turn_of

DerivedEvent = tuple[str, str, str, dict[str, Any]]
"""(type, node, scope, data)"""

_MOVE_EVENTS = {"G": 2, "F": 1, "S": 1, "Z": 1, "K": 1, "L": 1, "A": 1, "U": 1, "R": 1, "V": 1}
# For an effect that was running when its branch was abandoned: its result is not awaited (D-32).
LOST = {
    "code": "outcome_unknown",
    "type": "OutcomeUnknownError",
    "message": "it was running when its branch was abandoned",
}
_ENDS = frozenset({"completed", "failed", "cancelled"})
_SILENT = frozenset({"before", "ignored", "children", "join_timer", "limit", "not_happened"})


_STEP_KIND = Kind.step  # read for each record: a member of an enum takes four times as long to find


def count_moves(moves: list[Move]) -> int:
    count = 0
    for move in moves:
        count += _MOVE_EVENTS.get(move[0], 0)
    return count


def count_events(kind: int, body: Any, *, listed: bool) -> int:
    extra = 1 if listed else 0
    if kind == _STEP_KIND:
        moves = body.moves
        if len(moves) == 1 and moves[0][0] == "G":
            # The common step, counted without a loop: its own event and the two of the move.
            return 3 + extra
        return 1 + count_moves(moves) + extra
    if kind == Kind.snapshot:
        return 1 if MIGRATION in body.position else 0
    if kind == Kind.intent:
        return 0 if usage_noted(body) is None else 1
    if kind == Kind.attempt:
        if body.reason == "loaded":
            return 1 + len(open_questions(body))
        return (0 if body.reason in _SILENT else 1) + count_moves(body.moves) + extra
    if kind == Kind.chunk:
        return len(body.items)
    if kind == Kind.created:
        return 1 + count_moves(body.moves) + extra
    return 1 + extra


_STEP = {
    "success": "node.completed",
    "skipped": "node.skipped_failure",
    "fail": "node.failed",
    "unknown": "node.unknown",
}
_ATTEMPT = {
    "retry": "node.retried",
    "restarted": "node.restarted",
    "resumed": "node.resumed",
    "in_doubt": "node.restarted",
    "woke": "node.woke",
    "sleep": "timer.started",
    "nap": "timer.started",
    STEP_RETRY: "node.step_retried",
    STEP_WOKE: "node.step_woke",
    "join_timeout": "join.timed_out",
    "withdrawn": "node.withdrawn",
    "failing": "run.failing",
    "child_failed": "node.child_failed",
    "code_changed": "run.code_changed",
    "fell_back": "run.fell_back",
    "damaged": "run.damaged",
    "uncheckpointed": "run.uncheckpointed",
    "continued": "node.continued",
    "breaks": "run.breaks_set",
}


def open_questions(body: AttemptBody) -> list[str]:
    """The holds that were open at a `loaded` record and are reported again."""
    return body.token.split(",") if body.token else []


def derive_events(
    graph: Graph, run: RunId, record: Record, body: Any, *, checkpoints: bool = True
) -> Iterator[DerivedEvent]:
    """The events of one record, in order; as many as `count_events` said. `checkpoints`: also the last one,
    which says that the record is a checkpoint."""
    derive = _DERIVE.get(Kind(record.kind))
    if derive is not None:
        yield from derive(graph, run, record, body)
    if not checkpoints:
        return
    if record.listed and (record.kind not in (Kind.intent, Kind.snapshot, Kind.chunk) or _was_end(record)):
        status = _checkpoint_status(record)
        data = {
            "checkpoint_id": _id(run, record, body),
            "status": status,
            "node_id": record.node,
            "seq": record.seq,
            "loop_num": turn_of(record) or record.visit,
            "total_nodes": len(graph.nodes),
        }
        yield ("checkpoint.created", record.node, record.scope, data)


def _id(run: RunId, record: Record, body: Any) -> str:
    return body.hold if record.kind == Kind.asked else checkpoint_id(run, record.seq)


def _checkpoint_status(record: Record) -> str:
    if record.kind == Kind.asked:
        return "pending_input"
    if record.kind == Kind.end or _was_end(record):
        return {"completed": "completed", "failed": "failed"}.get(record.outcome, "active")
    return "failed" if record.outcome == "fail" else "active"


def _moves(graph: Graph, moves: list[Move], record: Record) -> Iterator[DerivedEvent]:
    for what, scope, a, b in moves:
        inner = graph_at(graph, scope)
        if what in ("G", "F"):
            edge = inner.edges[a]
            yield (
                "edge.taken",
                edge.source,
                scope,
                {"edge": edge.id, "from": edge.source, "to": edge.target},
            )
        if what in ("G", "S", "Z"):
            node = inner.nodes[inner.target[a] if what == "G" else a].id
            visit = b if what != "Z" else 1
            yield ("node.started", node, scope, {"visit": visit, "attempt": 1})
        elif what == "K":
            yield ("node.skipped", inner.nodes[a].id, scope, {})
        elif what == "L":
            yield ("loop.turned", inner.nodes[a].id, scope, {"edge": inner.edges[b].id})
        elif what == "R":
            edge = inner.edges[a]
            yield ("walk.restarted", edge.source, scope, {"edge": edge.id, "to": edge.target})
        elif what == "V":
            yield ("branch.dropped", inner.nodes[a].id, scope, {"branch": b})
        elif what == "A":
            yield ("node.abandoned", inner.nodes[a].id, scope, {})
        elif what == "U":
            yield (
                "node.unknown",
                inner.nodes[a].id,
                scope,
                {"visit": b, "outcome": "unknown", "error": LOST},
            )


def graph_at(graph: Graph, scope: str) -> Graph:
    """The graph of a scope path: `send.1[0]/pay.1[2]/` names the nodes whose children we are in."""
    for part in scope.split("/")[:-1]:
        name = part.rpartition("[")[0].rpartition(".")[0]
        graph = graph.subgraphs[graph.nodes[graph.index[name]].body]
    return graph


def _created(graph: Graph, _run: RunId, record: Record, body: CreatedBody) -> Iterator[DerivedEvent]:
    data = {"flow": body.flow, "version": body.version, **({"lineage": body.lineage} if body.lineage else {})}
    yield ("run.created", "", "", data)
    yield from _moves(graph, body.moves, record)


def _step(graph: Graph, _run: RunId, record: Record, body: StepBody) -> Iterator[DerivedEvent]:
    data: dict[str, Any] = {"visit": record.visit, "attempt": record.attempt, "duration_us": body.duration}
    data["outcome"] = record.outcome
    if body.error is not None:
        data["error"] = {"code": body.error.code, "type": body.error.type, "message": body.error.message}
    data |= _spent(body.usage)
    if body.notes is not None:
        data["notes"] = body.notes
    # A stage of a walk may return the outcome "skipped", which is not a failure.
    skips = record.outcome == "skipped" and body.error is None
    kind = "node.completed" if skips else _STEP.get(record.outcome, "node.completed")
    yield (kind, record.node, record.scope, data)
    yield from _moves(graph, body.moves, record)


def _loaded(record: Record, body: AttemptBody) -> Iterator[DerivedEvent]:
    worker = {"worker": body.nodes[0]} if body.nodes else {}
    yield ("run.resumed", "", "", {"seq": record.seq, **worker})
    for hold in open_questions(body):
        yield ("hold.asked_again", "", "", {"hold_id": hold, "is_resumed": True})


def _attempt(graph: Graph, _run: RunId, record: Record, body: AttemptBody) -> Iterator[DerivedEvent]:
    if body.reason == "loaded":
        yield from _loaded(record, body)
        return
    if body.reason not in _SILENT:
        data: dict[str, Any] = {"visit": record.visit, "attempt": record.attempt, "reason": body.reason}
        if body.error is not None:
            data["error"] = {"code": body.error.code, "type": body.error.type, "message": body.error.message}
        if body.wake_at is not None:
            data["wake_at"] = body.wake_at
        if body.reason == "code_changed":
            data |= {"code": body.token, "nodes": list(body.nodes)}
        elif body.reason == "breaks":
            data |= msgspec.json.decode(body.token)
        elif body.reason in (STEP_RETRY, STEP_WOKE):
            data |= {"ordinal": body.nodes[0], "step": body.nodes[1], "failures": int(body.nodes[2])}
            data |= _spent(body.usage)
        yield (_ATTEMPT.get(body.reason, "node.attempted"), record.node, record.scope, data)
    yield from _moves(graph, body.moves, record)


def _substep(_graph: Graph, _run: RunId, record: Record, body: SubstepBody) -> Iterator[DerivedEvent]:
    failed = "node.step_failed" if body.error is not None else "node.step_done"
    kind = "hold.answered" if body.hold else failed
    data: dict[str, Any] = {"step": body.name, "ordinal": body.ordinal, "hold_id": body.hold}
    if body.digests:
        data["digests"] = body.digests
    yield (kind, record.node, record.scope, data | _spent(body.usage))


def _spent(usage: Usage | None) -> dict[str, Any]:
    if usage is None or not (usage.tokens or usage.cost):
        return {}
    return {"usage": {"tokens": usage.tokens, "cost": usage.cost}}


def _intent(_graph: Graph, _run: RunId, record: Record, body: IntentBody) -> Iterator[DerivedEvent]:
    """Only what a judge used has an event: it is a step of the node that asked."""
    usage = usage_noted(body)
    if usage is not None:
        data: dict[str, Any] = {"step": body.key, "ordinal": body.name, "hold_id": ""}
        data["usage"] = {"tokens": usage.tokens, "cost": usage.cost}
        yield ("node.step_done", record.node, record.scope, data)


def entity_of(context: Any, node: str) -> str:
    """What a question is about: the `entity_id` of its context (a tool call), else its node (R-17)."""
    named = context.get("entity_id") if isinstance(context, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return named if isinstance(named, str) and named else node


def _asked(_graph: Graph, _run: RunId, record: Record, body: AskedBody) -> Iterator[DerivedEvent]:
    data = {
        "hold_id": body.hold,
        "entity_id": entity_of(body.context, record.node),
        "type": body.type,
        "prompt": body.prompt,
        "options": options_json(body.options),
        "assignee": body.assignee,
        "is_resumed": False,
    }
    yield ("hold.opened", record.node, record.scope, data)


def _chunk(_graph: Graph, _run: RunId, record: Record, body: ChunkBody) -> Iterator[DerivedEvent]:
    for kind, data in body.items:
        shown = {"kind": kind, "data": data, "visit": record.visit, "attempt": record.attempt}
        yield ("node.emitted", record.node, record.scope, shown)


def _snapshot(_graph: Graph, _run: RunId, record: Record, body: SnapshotBody) -> Iterator[DerivedEvent]:
    """Only the snapshot of a migration has an event: the two versions. The new state is in the record. The
    horizon of a pruned run shows the end if that is all that was kept; other events of it are gone."""
    if record.outcome == MIGRATED:
        yield ("run.migrated", "", "", {**body.position.get(MIGRATION, {}), "seq": record.seq})
    elif _was_end(record):
        yield (f"run.{record.outcome}", record.node, "", {"status": record.outcome, "seq": record.seq})


def _was_end(record: Record) -> bool:
    """The record of an end, of which pruning made a snapshot."""
    return record.kind == Kind.snapshot and record.events > 0 and record.outcome in _ENDS


def _end(_graph: Graph, _run: RunId, record: Record, body: EndBody) -> Iterator[DerivedEvent]:
    data: dict[str, Any] = {"status": body.status, "seq": record.seq}
    if body.error is not None:
        data["error"] = {"code": body.error.code, "type": body.error.type, "message": body.error.message}
    yield (f"run.{body.status}", record.node, "", data)


_DERIVE = {
    Kind.created: _created,
    Kind.step: _step,
    Kind.attempt: _attempt,
    Kind.intent: _intent,
    Kind.substep: _substep,
    Kind.asked: _asked,
    Kind.chunk: _chunk,
    Kind.snapshot: _snapshot,
    Kind.end: _end,
}
