"""The history of a run on the wire: checkpoints, visits, events, artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.api.schemas.events import EventWire
from holdfast.checkpoint.checkpoint import Checkpoint, CheckpointMeta, PendingInput
from holdfast.checkpoint.json_view import jsonable
from holdfast.checkpoint.visit import Visit, Wait
from holdfast.model.breakpoints import SUFFIX
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name
from holdfast.runs.driver.flow_traceback import without_source
from holdfast.runs.history.attempts import AttemptSpan, attempts_of
from holdfast.runs.history.timeline_page import FoldedVisits
from holdfast.runs.history.visits import Mark, NodeSum
from holdfast.runs.record_codec import kind_name
from holdfast.types.hold import HoldRow, options_json
from holdfast.types.record import Record
from holdfast.types.status import CheckpointStatus, Effect


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
    """`kind`: person, time, retry or failed (its run had failed, until it was retried). Open while `until` is
    null. `breakpoint`: a person continues the run there."""

    kind: str
    since: str
    until: str | None = None
    wake_at: str | None = None
    about: str = ""
    hold: str = ""
    by: str = ""
    decision: Any = None
    breakpoint: bool = False


def _one_of(*values: str) -> msgspec.Meta:
    """For the documents of the API, and for clients that have a word for each."""
    return msgspec.Meta(extra_json_schema={"enum": list(values)})


VisitState = Annotated[
    str,
    _one_of(
        "ready",
        "running",
        "waiting",
        "asking",
        "done",
        "failed",
        "skipped",
        "cancelled",
        "unknown",
        "abandoned",
        "stopped",
    ),
]
EffectName = Annotated[str, _one_of("", *Effect)]


class AttemptWire(msgspec.Struct, kw_only=True):
    """One more attempt and why. `error`: that of the attempt before it. `seq`: the record that began it."""

    reason: str
    attempt: int
    at: str
    error: dict[str, str] | None
    wake_at: str | None
    seq: int = -1


class VisitWire(msgspec.Struct, kw_only=True):
    """One visit of one node. `name`: as people read it. `first`: the record with which it began. `seq`: the
    record that settled it, or the latest about it. `run`: whose records these are, for a fork its source.
    `retries`: its attempts after the first. `inside`: visits of its items, if they are folded."""

    node: str
    scope: str
    visit: int
    state: VisitState
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
    first: int = -1
    seq: int = -1
    retries: list[AttemptWire] = []
    inside: FoldedVisits | None = None
    name: str = ""


class AttemptSpanWire(msgspec.Struct, kw_only=True):
    """One attempt. `worker`: empty if no record names it; `term` is the number of its claim of the run."""

    number: int
    reason: str
    started_at: str
    ended_at: str | None
    term: int
    worker: str
    error: dict[str, str] | None
    traceback: str


class EmittedWire(msgspec.Struct, kw_only=True):
    """A piece of live output: `ctx.emit` and `ctx.log`. `kind`: `text`, `log`, `progress`, ... `attempt`:
    whose it is; text of an earlier attempt than the last is void."""

    kind: str
    at: str
    data: Any
    attempt: int = 1


class CallWire(msgspec.Struct, kw_only=True):
    """A sub-step: a tool call, a model call, a memory read."""

    name: str
    effect: EffectName
    at: str
    seq: int
    value: Any
    error: dict[str, str] | None
    tokens: int
    cost: float
    traceback: str = ""


class StateChangeWire(msgspec.Struct, kw_only=True):
    """One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`."""

    path: str
    op: str
    before: Any = None
    after: Any = None


class StepWire(VisitWire, kw_only=True):
    """One visit with everything that is recorded about it. `input`: the state that it saw. `traceback`: of
    its error, the frames of the flow first."""

    effect: EffectName
    input: Any
    output: Any
    error_detail: dict[str, str] | None
    traceback: str
    spans: list[AttemptSpanWire]
    emitted: list[EmittedWire]
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


class MarkWire(msgspec.Struct, kw_only=True):
    """A record that readers look for. `kind`: failed, decided or resumed."""

    kind: str
    seq: int
    at: str
    node: str
    worker: str


class RecordWire(msgspec.Struct, kw_only=True):
    """A record of the journal by its columns. `kind`: created, intent, attempt, substep, asked, chunk, step,
    snapshot or end. `name`: of its node, as people read it; empty: it is about the whole run. `term`: the
    claim of the run under which it was written."""

    seq: int
    at: str
    kind: str
    name: str
    visit: int
    attempt: int
    outcome: str
    term: int


class RecordPage(msgspec.Struct, kw_only=True):
    """Records in order. `horizon`: the first that is not pruned; `head`: the last."""

    items: list[RecordWire]
    horizon: int
    head: int


def record_wire(record: Record, graph: Graph) -> RecordWire:
    node = record.node.removesuffix(SUFFIX)
    return RecordWire(
        seq=record.seq,
        at=moment(record.at) or "",
        kind=kind_name(record),
        name=shown_name(record.scope + node, graph) if node else "",
        visit=record.visit,
        attempt=record.attempt,
        outcome=record.outcome,
        term=record.term,
    )


class TimelineWire(msgspec.Struct, kw_only=True):
    """Visits in the order of their start. `next`: the cursor of the page with earlier ones; `left_out`: their
    number. `marks`: failures, decisions and resumes. `horizon`: the first record that is not pruned.
    `damage`: why the run's journal cannot be read, if so. `first_worker`: the worker that started the run, as
    long as it has the run or if it died; a run that it left otherwise does not name it."""

    run: str
    items: list[VisitWire]
    next: str | None
    marks: list[MarkWire]
    horizon: int
    head: int
    nodes: dict[str, NodeTotals]
    edges: dict[str, int]
    left_out: int
    damage: str = ""
    first_worker: str = ""


def mark_wire(mark: Mark) -> MarkWire:
    return MarkWire(
        kind=mark.kind, seq=mark.seq, at=moment(mark.at) or "", node=mark.node, worker=mark.worker
    )


def visit_wire(
    visit: Visit, run: str, inside: FoldedVisits | None = None, graph: Graph | None = None
) -> VisitWire:
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
        first=visit.first,
        seq=visit.seq,
        retries=[
            AttemptWire(
                reason=each.reason,
                attempt=each.attempt,
                at=moment(each.at) or "",
                error=each.error,
                wake_at=moment(each.wake_at),
                seq=each.seq,
            )
            for each in visit.trials
        ],
        inside=inside,
        name=shown_name(visit.label, graph),
    )


def step_wire(
    visit: Visit, run: str, state: Any, workers: Mapping[int, str], graph: Graph, *, with_source: bool
) -> StepWire:
    """`state`: as it was before the visit settled. `workers`: their names by term. `with_source`: whether
    tracebacks have lines of code."""
    wire = visit_wire(visit, run, graph=graph)
    wire.state = _open_state(visit)
    spans = [_span(each) for each in attempts_of(visit, workers)]
    shown = str if with_source else without_source
    for span in spans:
        span.traceback = shown(span.traceback)
    return StepWire(
        **{name: getattr(wire, name) for name in VisitWire.__struct_fields__},
        effect=visit.effect,
        input=jsonable(state),
        output=jsonable(visit.output),
        error_detail=visit.error,
        traceback=shown(visit.traceback),
        spans=spans,
        emitted=[
            EmittedWire(
                kind=each.kind, at=moment(each.at) or "", data=jsonable(each.data), attempt=each.attempt
            )
            for each in visit.chunks
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
                traceback=shown(each.traceback),
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


def _open_state(visit: Visit) -> str:
    """A story does not say that an open visit waits; its waits do."""
    if visit.ended_at is not None or visit.state != "running":
        return visit.state
    kinds = {wait.kind for wait in visit.waits if wait.until is None}
    return "asking" if "person" in kinds else "waiting" if kinds else visit.state


def _span(span: AttemptSpan) -> AttemptSpanWire:
    return AttemptSpanWire(
        number=span.number,
        reason=span.reason,
        started_at=moment(span.started_at) or "",
        ended_at=moment(span.ended_at),
        term=span.term,
        worker=span.worker,
        error=span.error,
        traceback=span.traceback,
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
        breakpoint=wait.breakpoint,
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


class PostmortemWire(msgspec.Struct, kw_only=True):
    """The text of a report. `format`: md or html."""

    run: str
    format: str
    text: str


class ArtifactWire(msgspec.Struct, kw_only=True):
    """`digest`: of its blob, for a large one. `size`: the bytes of the download."""

    name: str
    media_type: str
    size: int
    digest: str | None = None
