"""The history of a run on the wire: checkpoints, visits, events, artifacts."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.api.schemas.events import EventWire
from holdfast.checkpoint.checkpoint import Checkpoint, CheckpointMeta, PendingInput
from holdfast.checkpoint.json_view import jsonable
from holdfast.checkpoint.visit import Visit, Wait
from holdfast.runs.history.visits import NodeSum
from holdfast.types.hold import HoldRow, options_json
from holdfast.types.status import CheckpointStatus


class PendingContext(msgspec.Struct, kw_only=True):
    """A question that was open then."""

    request_id: str
    node_id: str
    prompt: str
    timestamp: str
    type: str = ""
    options: Any = None
    assignee: str | None = None
    expires_at: str | None = None


class CheckpointSummary(msgspec.Struct, kw_only=True):
    """A checkpoint without its state."""

    id: str
    run_id: str
    flow_id: str
    version: str
    node_id: str
    seq: int
    status: CheckpointStatus
    created_at: str
    state_size: int
    has_memory_snapshot: bool = False
    turn: int | None = None
    pending_input_context: PendingContext | None = None


class NodeState(msgspec.Struct, kw_only=True):
    """The last execution of a node. `status`: success, partial_success, fail, skip, cancelled or unknown."""

    status: str
    output_data: Any = None
    effect: str = ""
    visit: int = 0
    attempt: int = 0
    seq: int | None = None
    ended_at: str | None = None
    duration_ms: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    error: dict[str, Any] | None = None


class CheckpointDetail(CheckpointSummary, kw_only=True):
    """A checkpoint with its state. Values that are declared secret are hidden."""

    parent_id: str | None
    original_input: Any
    node_states: dict[str, NodeState]
    completed_node_ids: list[str]
    skipped_node_ids: list[str]
    pending_edges: list[str]
    pending_inputs: list[PendingContext]
    state: Any
    artifacts: Any
    diagnostics: dict[str, Any]
    visits: dict[str, int]
    retries: dict[str, int]
    loops: dict[str, int]
    goal_gates: dict[str, bool]
    memory: Any = None
    agents: dict[str, Any] = {}
    lineage: dict[str, Any] = {}


def summary_of(meta: CheckpointMeta, hold: HoldRow | None) -> CheckpointSummary:
    """`hold`: the question that was asked there."""
    return CheckpointSummary(
        id=meta.id,
        run_id=meta.run,
        flow_id=meta.flow,
        version=meta.version,
        node_id=meta.node,
        seq=meta.seq,
        status=meta.status,
        created_at=moment(meta.at) or "",
        state_size=meta.state_size,
        has_memory_snapshot=meta.has_memory_snapshot,
        turn=meta.turn,
        pending_input_context=None if hold is None else _open_question(hold),
    )


def _open_question(hold: HoldRow) -> PendingContext:
    return PendingContext(
        request_id=hold.id,
        node_id=hold.node,
        prompt=hold.prompt,
        timestamp=moment(hold.created_at) or "",
        type=hold.type,
        options=options_json(hold.options),
        assignee=hold.assignee,
        expires_at=moment(hold.expires_at),
    )


def _past_question(each: PendingInput) -> PendingContext:
    return PendingContext(
        request_id=each.hold,
        node_id=each.node,
        prompt=each.prompt,
        timestamp=moment(each.asked_at) or "",
        type=each.type,
        options=options_json(jsonable(each.options)),
        assignee=each.assignee,
        expires_at=moment(each.expires_at),
    )


def detail_of(checkpoint: Checkpoint) -> CheckpointDetail:
    seen = checkpoint.shown()
    asked = [_past_question(each) for each in seen.pending_input]
    own = [each for each in asked if each.request_id == seen.id]
    return CheckpointDetail(
        id=seen.id,
        run_id=seen.run,
        flow_id=seen.flow,
        version=seen.version,
        node_id=seen.node,
        seq=seen.seq,
        status=seen.status,
        created_at=moment(seen.at) or "",
        state_size=seen.state_size,
        turn=seen.turn,
        pending_input_context=next(iter([*own, *asked]), None),
        parent_id=seen.parent,
        original_input=jsonable(seen.input),
        node_states=node_states(seen),
        completed_node_ids=list(seen.visited),
        skipped_node_ids=list(seen.skipped),
        pending_edges=list(seen.pending_edges),
        pending_inputs=asked,
        state=jsonable(seen.state),
        artifacts=jsonable(seen.artifacts),
        diagnostics=jsonable(seen.diagnostics),
        visits=dict(seen.visits),
        retries=dict(seen.retries),
        loops=dict(seen.loops),
        goal_gates=dict(seen.goal_gates),
        has_memory_snapshot=seen.memory is not None,
        memory=jsonable(seen.memory),
        agents=jsonable(seen.agents),
        lineage=jsonable(seen.lineage),
    )


def node_states(checkpoint: Checkpoint) -> dict[str, NodeState]:
    """The last execution of each node, and those that were skipped."""
    found = {label: NodeState(status="skip") for label in checkpoint.skipped}
    for each in checkpoint.executions:
        found[each.label] = NodeState(
            status=each.outcome,
            output_data=jsonable(each.output),
            effect=each.effect,
            visit=each.visit,
            attempt=each.attempts,
            seq=each.seq,
            ended_at=moment(each.ended_at),
            duration_ms=each.duration / 1000,
            tokens=each.tokens,
            cost=each.cost,
            error=jsonable(each.error),
        )
    return found


class WaitWire(msgspec.Struct, kw_only=True):
    """`kind`: person, time or retry. Open while `until` is null."""

    kind: str
    since: str
    until: str | None = None
    wake_at: str | None = None
    about: str = ""
    hold: str = ""
    by: str = ""
    decision: Any = None


class VisitWire(msgspec.Struct, kw_only=True):
    """One visit of one node, with all its attempts."""

    node: str
    scope: str
    visit: int
    state: str
    outcome: str
    started_at: str
    ended_at: str | None
    attempts: int
    work_ms: float
    error: str
    waits: list[WaitWire]
    steps: int
    tokens: int
    cost: float
    said: str
    progress: float | None
    run: str
    seq: int = -1


class AttemptWire(msgspec.Struct, kw_only=True):
    reason: str
    attempt: int
    at: str
    error: dict[str, str] | None
    wake_at: str | None


class CallWire(msgspec.Struct, kw_only=True):
    """A sub-step: a tool call, a model call, a memory read."""

    name: str
    effect: str
    at: str
    seq: int
    value: Any
    error: dict[str, str] | None
    tokens: int
    cost: float


class StateChangeWire(msgspec.Struct, kw_only=True):
    """One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`."""

    path: str
    op: str
    before: Any = None
    after: Any = None


class StepWire(VisitWire, kw_only=True):
    """One visit with everything that is recorded about it. `input`: the state that it saw."""

    effect: str
    input: Any
    output: Any
    error_detail: dict[str, str] | None
    trials: list[AttemptWire]
    calls: list[CallWire]
    changes: list[StateChangeWire]
    edges: list[str]


class NodeTotals(msgspec.Struct, kw_only=True):
    state: str
    visits: int
    open: int
    done: int
    failed: int
    retries: int
    work_ms: float
    tokens: int
    cost: float


class TimelineWire(msgspec.Struct, kw_only=True):
    """Visits in the order of their start. `left_out`: number of older ones that are not shown. `damage`: why
    the run's journal cannot be read, if so."""

    run: str
    items: list[VisitWire]
    nodes: dict[str, NodeTotals]
    edges: dict[str, int]
    left_out: int
    damage: str = ""


def visit_wire(visit: Visit, run: str) -> VisitWire:
    return VisitWire(
        node=visit.node,
        scope=visit.scope,
        visit=visit.visit,
        state=visit.state,
        outcome=visit.outcome,
        started_at=moment(visit.started_at) or "",
        ended_at=moment(visit.ended_at),
        attempts=visit.attempts,
        work_ms=visit.work_us / 1000,
        error=visit.error_text,
        waits=[_wait(each) for each in visit.waits],
        steps=visit.steps,
        tokens=visit.tokens,
        cost=visit.cost,
        said=visit.said,
        progress=visit.progress,
        run=visit.run or run,
        seq=visit.seq,
    )


def step_wire(visit: Visit, run: str, state: Any) -> StepWire:
    """`state`: as it was before the visit settled."""
    wire = visit_wire(visit, run)
    return StepWire(
        **{name: getattr(wire, name) for name in VisitWire.__struct_fields__},
        effect=visit.effect,
        input=jsonable(state),
        output=jsonable(visit.output),
        error_detail=visit.error,
        trials=[
            AttemptWire(
                reason=each.reason,
                attempt=each.attempt,
                at=moment(each.at) or "",
                error=each.error,
                wake_at=moment(each.wake_at),
            )
            for each in visit.trials
        ],
        calls=[
            CallWire(
                name=each.name,
                effect=each.effect,
                at=moment(each.at) or "",
                seq=each.seq,
                value=jsonable(each.value),
                error=each.error,
                tokens=each.tokens,
                cost=each.cost,
            )
            for each in visit.calls
        ],
        changes=[
            StateChangeWire(
                path=each.path,
                op=each.op,
                before=None if each.before is msgspec.UNSET else jsonable(each.before),
                after=None if each.after is msgspec.UNSET else jsonable(each.after),
            )
            for each in visit.changes
        ],
        edges=visit.edges,
    )


def _wait(wait: Wait) -> WaitWire:
    return WaitWire(
        kind=wait.kind,
        since=moment(wait.since) or "",
        until=moment(wait.until),
        wake_at=moment(wait.wake_at),
        about=wait.about,
        hold=wait.hold,
        by=wait.by,
        decision=jsonable(wait.decision),
    )


def totals_of(node: NodeSum) -> NodeTotals:
    return NodeTotals(
        state=node.state,
        visits=node.visits,
        open=node.open,
        done=node.done,
        failed=node.failed,
        retries=node.retries,
        work_ms=node.work_us / 1000,
        tokens=node.tokens,
        cost=node.cost,
    )


class EventPage(msgspec.Struct, kw_only=True):
    """`next`: send it as `after` for the next page; none: the run has ended with this event.
    `last`: the number of the last event. `ended`: no more events will follow."""

    items: list[EventWire]
    next: int | None
    last: int
    ended: bool


class ArtifactWire(msgspec.Struct, kw_only=True):
    """`digest`: of its blob, for a large one. `size`: the bytes of the download."""

    name: str
    media_type: str
    size: int
    digest: str | None = None
