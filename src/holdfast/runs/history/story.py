"""A run as a story: each visit of a node with its attempts, sub-steps, questions and changes.

Two passes over each record, with or without the flow's code; no user code runs (D-26). Its events advance the
visits (`runs.history.visits`), and its body fills in what events do not have: values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.checkpoint.run_history import error_of, output_of
from holdfast.checkpoint.value_diff import MISSING, changes, limit_changes
from holdfast.checkpoint.visit import (
    STATES,
    Alteration,
    AttemptDetail,
    CallDetail,
    EmittedDetail,
    QuestionDetail,
    Visit,
)
from holdfast.errors import CheckpointCorruptError
from holdfast.model.breakpoints import SUFFIX
from holdfast.model.budget_ledger import usage_noted
from holdfast.model.events import derive_events, graph_at
from holdfast.model.frames import FrameTree
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED, MIGRATION
from holdfast.model.position import SETTLED, STEP_RETRY, STEP_WOKE, Position, find_exec
from holdfast.model.record_bodies import (
    AskedBody,
    AttemptBody,
    ChunkBody,
    CreatedBody,
    EndBody,
    ErrorInfo,
    IntentBody,
    SnapshotBody,
    StepBody,
    SubstepBody,
)
from holdfast.model.shown_names import shown_name
from holdfast.model.values import MISSING as NOT_THERE
from holdfast.runs.driver.flow_traceback import with_short_paths
from holdfast.runs.history.decision_text import ended_text, moves_text
from holdfast.runs.history.visits import Visits, apply_event, drop_branch
from holdfast.types.event import Event
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Move, Op, Record, is_private


class StoryRemark(msgspec.Struct, kw_only=True):
    """Something that happened to the run as a whole. `kind`: taken_on, fell_back, damaged, uncheckpointed,
    code_changed, failing, cancelled, ended, breaks."""

    kind: str
    at: int
    seq: int
    text: str
    term: int = 0


class Story(msgspec.Struct, kw_only=True):
    """Visits are in the order in which they began."""

    run: str
    visits: list[Visit] = []
    remarks: list[StoryRemark] = []
    skipped: list[str] = []
    # Questions about no node: changed code.
    questions: list[QuestionDetail] = []
    records: int = 0
    # Visits that a fork or a pruned run brought along without their records.
    brought: int = 0
    lineage: dict[str, Any] = {}
    # By their terms, as far as they are recorded: a run that never resumed does not name its worker.
    workers: dict[int, str] = {}


PARTS = 50
MAX_CHUNKS = 2_000
"""Pieces of live output of one visit that a story keeps."""
_NAMES = {"scratch": "state"}


def alterations(graph: Graph, pos: Position | None, record: Record, ops: list[Op]) -> list[Alteration]:
    """`pos` is the position before the record; without it, previous values are not shown."""
    tree, frame = _frame_before(graph, pos, record)
    return [_altered(*op, _before(tree, frame, op)) for op in ops]


def _frame_before(graph: Graph, pos: Position | None, record: Record) -> tuple[FrameTree | None, int]:
    if pos is None:
        return None, 0
    try:
        return pos.scopes[record.scope].tree, find_exec(graph, pos, record).frame
    except (CheckpointCorruptError, KeyError):
        return None, 0


def _before(tree: FrameTree | None, frame: int, op: Op) -> Any:
    old = NOT_THERE if tree is None else tree.read(frame, op[0], op[1])
    return MISSING if old is NOT_THERE else old


def _altered(partition: str, key: str, op: str, operand: Any, before: Any) -> Alteration:
    path = f"{_NAMES.get(partition, partition)}.{key}"
    if op == "delete":
        return Alteration(path=path, op=op, before=before)
    if op != "set" or before is MISSING:
        # A reducer's operand is what is stored, and what a reader wants: the two items that were added.
        return Alteration(path=path, op=op, after=operand)
    parts = limit_changes(changes(before, operand, path), PARTS).shown
    inner = tuple(parts) if any(part.path != path for part in parts) else ()
    return Alteration(path=path, op=op, before=before, after=operand, parts=inner)


# Attempts that only start or record something.
_QUIET = frozenset({
    "before", "children", "join_timer", "join_timeout", "limit", "timed_out", "ignored", "sleep", "nap",
    STEP_RETRY, STEP_WOKE, "withdrawn", "continued",
})  # fmt: skip
# Their effect is that of a call or a question inside the node.
_INSIDE = frozenset({Kind.asked, Kind.substep, Kind.intent})
# Attempts that are not about a visit, or that cannot begin one.
_NO_VISIT = frozenset({"loaded", *_QUIET} - {"continued"})
_REMARKS = {
    "fell_back": "the journal was damaged; the run continued from the last good record",
    "damaged": "the journal was damaged, and the run stopped",
    "uncheckpointed": "the store was unavailable; the run continued without checkpoints",
    "code_changed": "continued with changed code",
    "failing": "the graph could not continue",
    "breaks": "breakpoints were set",
}


class StoryBuilder:
    """Pass it every record in order; `pos` is the position before it, None if that is not known."""

    def __init__(self, graph: Graph, run: str) -> None:
        self.graph = graph
        self.story = Story(run=run)
        self.pos: Position | None = None
        self._term = 0
        self.visits = Visits(on_begin=self._began)

    def _began(self, visit: Visit) -> None:
        visit.run, visit.term = visit.run or self.story.run, self._term
        self.story.visits.append(visit)

    def add_earlier(self, visit: Visit) -> None:
        """What a fork or a pruned run knows about before its first record."""
        self._began(visit)
        self.story.brought += 1

    def add(self, record: Record, body: Any) -> None:
        self.story.records += 1
        self._term = record.term
        if body is None:
            self._unreadable(record)
            return
        # Found before the events are applied: with them another visit of the same node may begin.
        visit = self._visit_of(record, body)
        ended = visit is not None and visit.ended_at is not None
        self._follow(record, body)
        fill = _FILL.get(Kind(record.kind))
        if fill is not None:
            fill(self, record, body)
        if visit is not None:
            self._fill_visit(visit, record, body, ended=ended)

    def stop(self, at: int) -> None:
        """The run ended while visits were open."""
        self.visits.stop(at)

    def finish(self) -> Story:
        """A story does not say what an open visit waits for; its questions do."""
        for visit in self.visits.open.values():
            visit.state = "running"
        return self.story

    # ------------------------------------------------------------------ visits
    def _visit_of(self, record: Record, body: Any) -> Visit | None:
        """The visit that a record is about, which may have ended; None if it is about none."""
        if not record.node or isinstance(body, (CreatedBody, SnapshotBody, EndBody)):
            return None
        if isinstance(body, AttemptBody) and (body.reason in _REMARKS or body.reason in _NO_VISIT):
            return None
        if isinstance(body, AskedBody) and _why(body) == "code":
            return None
        return self._visit_at(record)

    def _visit_at(self, record: Record) -> Visit:
        node = record.node.removesuffix(SUFFIX)
        visit = self.visits.last(record.scope + node)
        if visit is None or (record.visit and visit.visit != record.visit):
            visit = self.visits.at_work(node, record.scope, record.visit, record.at)
        return visit

    def _unreadable(self, record: Record) -> None:
        if record.kind != Kind.step:
            return
        visit = self._visit_at(record)
        visit.readable, visit.seq, visit.outcome = False, record.seq, str(record.outcome)
        self.visits.end(visit, record.at, STATES.get(record.outcome, "done"))

    # ------------------------------------------------------------------ events
    def _follow(self, record: Record, body: Any) -> None:
        moves: list[Move] = getattr(body, "moves", [])
        jumps = self._jumps(moves)
        run = RunId(self.story.run)
        for kind, node, scope, data in derive_events(self.graph, run, record, body):
            apply_event(
                self.visits,
                Event(run=run, number=0, at=record.at, type=kind, node=node, scope=scope, data=data),
            )
            self._note_skipped(kind, scope + node)
        for label, number in jumps.items():
            if label in self.visits.open:
                self.visits.open[label].visit = number
        for what, scope, node, item in moves:
            if what == "W":
                # A branch whose failure is handled outside it; there is no event for that.
                drop_branch(self.visits, scope + graph_at(self.graph, scope).nodes[node].id, item, record.at)

    def _jumps(self, moves: list[Move]) -> dict[str, int]:
        """Nodes that a walk jumps to -> the number of the visit, which their event does not have."""
        found: dict[str, int] = {}
        for what, scope, node, _ in moves:
            if what == "Z":
                label = scope + graph_at(self.graph, scope).nodes[node].id
                before = self.visits.last(label)
                found[label] = 1 if before is None else before.visit + 1
        return found

    def _note_skipped(self, kind: str, label: str) -> None:
        if kind == "node.skipped":
            self.story.skipped.append(label)
        elif kind == "node.started" and label in self.story.skipped:
            self.story.skipped.remove(label)

    # ------------------------------------------------------------------ what only the body has
    def _fill_visit(self, visit: Visit, record: Record, body: Any, *, ended: bool) -> None:
        if record.kind not in _INSIDE:
            visit.effect = visit.effect or str(record.effect)
        if isinstance(body, StepBody):
            self._fill_step(visit, record, body)
        elif isinstance(body, AttemptBody):
            self._fill_attempt(visit, record, body, ended=ended)
        elif isinstance(body, IntentBody) and body.ordinal == -1:
            visit.effect = str(record.effect)
        elif isinstance(body, IntentBody):
            _fill_noted(visit, record, body)
        elif isinstance(body, SubstepBody):
            _fill_call(visit, record, body)
        elif isinstance(body, ChunkBody):
            _fill_emitted(visit, record, body)
        elif isinstance(body, AskedBody):
            visit.questions.append(_question(record, body))

    def _fill_step(self, visit: Visit, record: Record, body: StepBody) -> None:
        visit.seq, visit.effect, visit.halts = record.seq, str(record.effect), body.halts
        visit.attempts, visit.state = record.attempt, "failed" if body.halts else visit.state
        visit.output, visit.notes = output_of(record, body), body.notes
        visit.traceback = _traceback(body.error)
        visit.changes = alterations(self.graph, self.pos, record, body.ops)
        visit.followed = moves_text(self.graph, body.moves)
        taken = [move for move in body.moves if move[0] in ("G", "F")]
        visit.edges = [scope + graph_at(self.graph, scope).edges[edge].id for _, scope, edge, _ in taken]

    def _fill_attempt(self, visit: Visit, record: Record, body: AttemptBody, *, ended: bool) -> None:
        if body.reason == "child_failed":
            self._hand_up(visit)
        if body.reason in _QUIET or body.reason == "child_failed":
            return
        trial = next((t for t in visit.trials if t.at == record.at and t.seq < 0), None)
        if trial is None:
            # There is no event for it: the effect had not happened.
            trial = AttemptDetail(reason=body.reason, attempt=record.attempt, at=record.at)
            visit.trials.append(trial)
            visit.attempts = max(visit.attempts, record.attempt)
        trial.seq, trial.error, trial.wake_at = record.seq, error_of(body.error), body.wake_at
        trial.traceback, trial.term = _traceback(body.error), record.term
        if body.reason == "resumed":
            trial.error, trial.traceback = visit.error, visit.traceback
        if ended:
            visit.halts, visit.error, visit.traceback = False, None, ""
            if visit.ended_at is not None:
                self.visits.reopen(visit, record.at)

    def _hand_up(self, owner: Visit) -> None:
        for visit in self.story.visits:
            if visit.scope.startswith(f"{owner.label}.") and visit.state == "failed" and visit.halts:
                visit.handed_to = owner.label

    # ------------------------------------------------------------------ what concerns the run
    def created(self, _record: Record, body: CreatedBody) -> None:
        self.story.lineage = dict(body.lineage)

    def attempt(self, record: Record, body: AttemptBody) -> None:
        text = _REMARKS.get(body.reason)
        if body.reason == "loaded":
            if body.nodes:
                self.story.workers[record.term] = body.nodes[0]
            self._claimed(record)
        elif text is not None:
            where = f" at {shown_name(record.scope + record.node, self.graph)}" if record.node else ""
            self._remark(record, body.reason, f"{text}{where}{_because(body)}")

    def _claimed(self, record: Record) -> None:
        at_work = [visit for visit in self.visits.open.values() if not self._waits(visit)]
        running = [shown_name(visit.label, self.graph) for visit in at_work]
        during = f" while {', '.join(running)} was running" if running else ""
        self._remark(record, "taken_on", f"another worker claimed the run{during}", term=record.term)

    def _waits(self, visit: Visit) -> bool:
        """It waited for a person, a time or its children: nothing of it was running."""
        if self.pos is None or visit.scope not in self.pos.scopes:
            return False
        inner = self.pos.scope_graph(self.graph, self.pos.scopes[visit.scope])
        execution = self.pos.execs.get((visit.scope, inner.index.get(visit.node, -1)))
        asks = any(not sub.done for sub in execution.subs.values()) if execution is not None else False
        return execution is None or execution.phase != "work" or asks

    def _remark(self, record: Record, kind: str, text: str, term: int = 0) -> None:
        remark = StoryRemark(kind=kind, at=record.at, seq=record.seq, text=text, term=term)
        self.story.remarks.append(remark)

    def asked(self, record: Record, body: AskedBody) -> None:
        if _why(body) == "code":
            self.story.questions.append(_question(record, body))

    def snapshot(self, record: Record, body: SnapshotBody) -> None:
        """Only a migration adds something."""
        if record.outcome == MIGRATED:
            note: dict[str, Any] = body.position.get(MIGRATION, {})
            self._remark(record, "migrated", f"migrated from version {note.get('from')} to {note.get('to')}")
            names: dict[str, str] = note.get("renamed", {})
            self.story.skipped = [names.get(label, label) for label in self.story.skipped]

    def end(self, record: Record, body: EndBody) -> None:
        self._remark(record, "ended", f"{ended_text(body.status)}{_because(body)}")


def _because(body: AttemptBody | EndBody) -> str:
    return f": {body.error.type}: {body.error.message}" if body.error is not None else ""


def _traceback(error: ErrorInfo | None) -> str:
    """Also of a record from before paths were shortened."""
    return "" if error is None else with_short_paths(error.detail)


def _why(body: AskedBody) -> str:
    return body.key.partition(":")[0]


def _fill_call(visit: Visit, record: Record, body: SubstepBody) -> None:
    if body.ordinal == SETTLED or body.hold:
        return  # an answer is shown with its question
    call = CallDetail(
        name=body.name,
        ordinal=body.ordinal,
        effect=str(record.effect),
        at=record.at,
        seq=record.seq,
        value=None if is_private(body.ordinal) else body.value,
        error=error_of(body.error),
        traceback=_traceback(body.error),
    )
    if body.usage is not None:
        call.tokens, call.cost = body.usage.tokens, body.usage.cost
    visit.calls.append(call)


def _fill_emitted(visit: Visit, record: Record, body: ChunkBody) -> None:
    """The newest are kept: the end of a long output is where it stopped."""
    visit.chunks += [
        EmittedDetail(kind=kind, at=record.at, data=data, attempt=record.attempt) for kind, data in body.items
    ]
    del visit.chunks[:-MAX_CHUNKS]


def _fill_noted(visit: Visit, record: Record, body: IntentBody) -> None:
    usage = usage_noted(body)
    if usage is not None:
        call = CallDetail(
            name=body.key, ordinal=body.name, effect=str(record.effect), at=record.at, seq=record.seq
        )
        call.tokens, call.cost = usage.tokens, usage.cost
        visit.calls.append(call)


def _question(record: Record, body: AskedBody) -> QuestionDetail:
    return QuestionDetail(
        hold=body.hold,
        why=_why(body),
        prompt=body.prompt,
        asked_at=record.at,
        seq=record.seq,
        type=body.type,
        options=[str(option[0]) for option in body.options or ()],
        assignee=body.assignee,
        expires_at=body.expires_at,
        key=body.key,
    )


_FILL: dict[Kind, Callable[[StoryBuilder, Record, Any], None]] = {
    Kind.created: StoryBuilder.created,
    Kind.attempt: StoryBuilder.attempt,
    Kind.asked: StoryBuilder.asked,
    Kind.snapshot: StoryBuilder.snapshot,
    Kind.end: StoryBuilder.end,
}
