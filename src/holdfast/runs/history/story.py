"""A run as a story: each visit of a node is a chapter, with its attempts, sub-steps, questions and changes.

Told from records alone, with or without the flow's code; no user code runs (D-26). `telling.py` reads it.

What a settled step changed in the state, as its node saw it.

Chapters of which only the outline is known: a fork and a pruned run carry no more of what was before.

From records to a story: one pass over a run's journal. `visits.py` says why there is another fold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.checkpoint.diff import MISSING, Change, changes, limit_changes
from holdfast.checkpoint.fold import Execution, error_of, output_of
from holdfast.errors import CheckpointCorruptError
from holdfast.model.breakpoints import SUFFIX
from holdfast.model.events import graph_at
from holdfast.model.frames import FrameTree
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED, MIGRATION
from holdfast.model.position import SETTLED, Position, find_exec
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
from holdfast.model.values import MISSING as NOT_THERE
from holdfast.runs.history.decision_text import ended_text, moves_text
from holdfast.types.record import Kind, Move, Op, Record


class AttemptDetail(msgspec.Struct, kw_only=True):
    """One more attempt and why: `retry`, `restarted`, `in_doubt`, `resumed`, `woke`, ... `error`: what the
    attempt before it came to."""

    reason: str
    attempt: int
    at: int
    seq: int
    error: dict[str, str] | None = None
    wake_at: int | None = None


class CallDetail(msgspec.Struct, kw_only=True):
    """A sub-step: a tool call, a model call, a memory read."""

    name: str
    ordinal: str
    effect: str
    at: int
    seq: int
    value: Any = None
    error: dict[str, str] | None = None
    tokens: int = 0
    cost: float = 0.0


class QuestionDetail(msgspec.Struct, kw_only=True):
    """`why`: node, ask, doubt, doubt_step, break or code. `status` as the hold's row says it."""

    hold: str
    why: str
    prompt: str
    asked_at: int
    seq: int
    type: str = ""
    options: list[str] = []
    assignee: str | None = None
    expires_at: int | None = None
    status: str = "pending"
    decision: Any = None
    data: Any = None
    comment: str | None = None
    by: str = ""
    ended_at: int | None = None
    closed: str = ""


class VisitDetail(msgspec.Struct, kw_only=True):
    """One visit of one node. `state`: running, done, failed, unknown, abandoned, stopped. `halts`: nothing
    coped with its failure there. `run`: whose journal tells it; `seq`: the record that settled it."""

    node: str
    scope: str
    visit: int
    run: str
    started_at: int
    effect: str = ""
    state: str = "running"
    outcome: str = ""
    seq: int = -1
    ended_at: int | None = None
    attempts: int = 1
    duration: int = 0
    tokens: int = 0
    cost: float = 0.0
    output: Any = None
    error: dict[str, str] | None = None
    halts: bool = False
    handed_to: str = ""
    readable: bool = True
    # What it changed: (path, operation, before, after) in the words of the state's own operations.
    changes: list[Alteration] = []
    edges: list[str] = []
    followed: str = ""
    trials: list[AttemptDetail] = []
    calls: list[CallDetail] = []
    questions: list[QuestionDetail] = []
    emitted: int = 0
    notes: Any = None

    @property
    def label(self) -> str:
        return self.scope + self.node

    @property
    def identity(self) -> tuple[str, int]:
        """The very same execution, also where a fork brought it along."""
        return self.run, self.seq


class Alteration(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`."""

    path: str
    op: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET
    parts: tuple[Change, ...] = ()


class StoryRemark(msgspec.Struct, kw_only=True):
    """Something that befell the run as a whole. `kind`: taken_on, fell_back, damaged, uncheckpointed,
    code_changed, failing, cancelled, ended, breaks."""

    kind: str
    at: int
    seq: int
    text: str
    term: int = 0


class Story(msgspec.Struct, kw_only=True):
    run: str
    chapters: list[VisitDetail] = []
    remarks: list[StoryRemark] = []
    skipped: list[str] = []
    # Questions about no node: changed code.
    questions: list[QuestionDetail] = []
    records: int = 0
    # Chapters that a fork or a pruned run brought along without their records.
    brought: int = 0
    lineage: dict[str, Any] = {}


PARTS = 50
_NAMES = {"scratch": "state"}


def alterations(graph: Graph, pos: Position | None, record: Record, ops: list[Op]) -> list[Alteration]:
    """`pos` is where the run stood before the record; without it what was there before is not told."""
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


STATES: Final = {"skipped": "failed", "unknown": "unknown", "fail": "failed"}
"""What an outcome makes of a chapter; any other: done. What was skipped has failed and was let pass."""


def outline(execution: Execution, run: str) -> VisitDetail:
    return VisitDetail(
        node=execution.node,
        scope=execution.scope,
        visit=execution.visit,
        run=execution.run or run,
        started_at=execution.at - execution.duration,
        effect=execution.effect,
        state=STATES.get(execution.outcome, "done"),
        outcome=execution.outcome,
        seq=execution.seq,
        ended_at=execution.at,
        attempts=execution.attempt,
        duration=execution.duration,
        tokens=execution.tokens,
        cost=execution.cost,
        output=execution.output,
        error=execution.error,
        halts=not execution.settled,
        readable=execution.readable,
    )


# Attempts that only open or note something.
_QUIET = frozenset(
    {
        "before",
        "children",
        "join_timer",
        "join_timeout",
        "limit",
        "timed_out",
        "ignored",
        "sleep",
        "nap",
        "withdrawn",
    }
)
# Their effect is that of a call or a question inside the node.
_INSIDE = frozenset({Kind.asked, Kind.substep, Kind.intent})
_REMARKS = {
    "fell_back": "the journal was damaged; the run went on from the last good record",
    "damaged": "the journal was damaged, and the run stopped",
    "uncheckpointed": "the store was away; the run went on without checkpoints",
    "code_changed": "went on with changed code",
    "failing": "the graph could not go on",
    "breaks": "was told where to stop",
}


class StoryBuilder:
    """Give it every record in order; `pos` is where the run stood before it, None where that is not known."""

    def __init__(self, graph: Graph, run: str) -> None:
        self.graph = graph
        self.story = Story(run=run)
        self.pos: Position | None = None
        self._open: dict[str, VisitDetail] = {}
        self._asked: dict[str, QuestionDetail] = {}

    def add_execution(self, execution: Execution) -> None:
        """What a fork or a pruned run knows of before its first record."""
        self.story.chapters.append(outline(execution, self.story.run))
        self.story.brought += 1

    def tell(self, record: Record, body: Any) -> None:
        self.story.records += 1
        if body is None:
            self._unreadable(record)
            return
        tell = _ADD.get(Kind(record.kind))
        if tell is not None:
            tell(self, record, body)

    # ------------------------------------------------------------------ chapters
    def at(self, record: Record) -> VisitDetail:
        """The chapter that a record is about."""
        node = record.node.removesuffix(SUFFIX)
        label = record.scope + node
        chapter = self._open.get(label)
        if chapter is None or (record.visit and chapter.visit != record.visit):
            chapter = self._begin(record.scope, node, record.visit or 1, record.at)
        chapter.effect = chapter.effect or (record.effect if record.kind not in _INSIDE else "")
        return chapter

    def _begin(self, scope: str, node: str, visit: int, at: int) -> VisitDetail:
        chapter = VisitDetail(node=node, scope=scope, visit=visit, run=self.story.run, started_at=at)
        self._open[chapter.label] = chapter
        self.story.chapters.append(chapter)
        return chapter

    def _end(self, chapter: VisitDetail, at: int, state: str) -> None:
        chapter.ended_at, chapter.state = at, state

    def _unreadable(self, record: Record) -> None:
        if record.kind != Kind.step:
            return
        chapter = self.at(record)
        chapter.readable, chapter.seq, chapter.outcome = False, record.seq, str(record.outcome)
        self._end(chapter, record.at, STATES.get(record.outcome, "done"))

    # ------------------------------------------------------------------ moves
    def move(self, moves: list[Move], at: int) -> list[str]:
        """What starts, what is dropped. Answers the edges that were taken."""
        taken: list[str] = []
        for what, scope, a, b in moves:
            inner = graph_at(self.graph, scope)
            if what in ("G", "F"):
                taken.append(scope + inner.edges[a].id)
            if what in ("G", "S", "Z"):
                node = inner.nodes[inner.target[a] if what == "G" else a].id
                self._started(scope, node, b if what != "Z" else 0, at)
            elif what == "K":
                self.story.skipped.append(scope + inner.nodes[a].id)
            elif what in ("A", "U", "V", "W"):
                state = "unknown" if what == "U" else "abandoned"
                self._dropped(scope + inner.nodes[a].id, at, state, item=b if what in ("V", "W") else None)
        return taken

    def _started(self, scope: str, node: str, visit: int, at: int) -> None:
        before = self._open.get(scope + node)
        number = visit or (before.visit + 1 if before is not None else 1)
        self._begin(scope, node, number, at)
        if scope + node in self.story.skipped:
            self.story.skipped.remove(scope + node)

    def _dropped(self, label: str, at: int, state: str, *, item: int | None) -> None:
        """A node with all inside it; or only one of its children."""
        for chapter in self._open.values():
            inside = chapter.scope.startswith(f"{label}.")
            child = chapter.scope[len(label) :].partition("[")[2].startswith(f"{item}]/")
            here = inside and child if item is not None else inside or chapter.label == label
            if here and chapter.state == "running":
                self._end(chapter, at, state)

    # ------------------------------------------------------------------ what each record tells
    def created(self, record: Record, body: CreatedBody) -> None:
        self.story.lineage = dict(body.lineage)
        self.move(body.moves, record.at)

    def step(self, record: Record, body: StepBody) -> None:
        chapter = self.at(record)
        chapter.seq, chapter.outcome, chapter.attempts = record.seq, str(record.outcome), record.attempt
        chapter.duration, chapter.error, chapter.halts = body.duration, error_of(body.error), body.halts
        chapter.output, chapter.notes = output_of(record, body), body.notes
        chapter.effect = str(record.effect)
        _spend(chapter, body.usage)
        chapter.changes = alterations(self.graph, self.pos, record, body.ops)
        skips = record.outcome == "skipped" and body.error is None
        state = "done" if skips else STATES.get(record.outcome, "done")
        self._end(chapter, record.at, "failed" if body.halts else state)
        chapter.followed = moves_text(self.graph, body.moves)
        chapter.edges = self.move(body.moves, record.at)

    def attempt(self, record: Record, body: AttemptBody) -> None:
        text = _REMARKS.get(body.reason)
        if body.reason == "loaded":
            self._taken_on(record)
        elif text is not None:
            self._remark(record, body.reason, text, body)
        elif body.reason == "child_failed":
            self._handed_up(record, body)
        elif body.reason == "continued":
            self.at(record)
        elif body.reason not in _QUIET:
            self._tried_again(record, body)
        self.move(body.moves, record.at)

    def _taken_on(self, record: Record) -> None:
        running = [c.label for c in self._open.values() if c.state == "running" and not self._waits(c)]
        during = f" while {', '.join(running)} was under way" if running else ""
        text = f"another worker took the run on{during}"
        self.story.remarks.append(
            StoryRemark(kind="taken_on", at=record.at, seq=record.seq, text=text, term=record.term)
        )

    def _waits(self, chapter: VisitDetail) -> bool:
        """For a person, a time or its children: nothing of it was under way."""
        if self.pos is None or chapter.scope not in self.pos.scopes:
            return False
        inner = self.pos.scope_graph(self.graph, self.pos.scopes[chapter.scope])
        execution = self.pos.execs.get((chapter.scope, inner.index.get(chapter.node, -1)))
        asks = any(not sub.done for sub in execution.subs.values()) if execution is not None else False
        return execution is None or execution.phase != "work" or asks

    def _remark(self, record: Record, kind: str, text: str, body: AttemptBody) -> None:
        why = f": {body.error.type}: {body.error.message}" if body.error is not None else ""
        where = f" at {record.scope}{record.node}" if record.node else ""
        self.story.remarks.append(
            StoryRemark(kind=kind, at=record.at, seq=record.seq, text=f"{text}{where}{why}")
        )

    def _handed_up(self, record: Record, body: AttemptBody) -> None:
        owner = self.at(record)
        for chapter in self._open.values():
            if chapter.scope.startswith(f"{owner.label}.") and chapter.state == "failed" and chapter.halts:
                chapter.handed_to = owner.label

    def _tried_again(self, record: Record, body: AttemptBody) -> None:
        chapter = self.at(record)
        before = chapter.error if body.reason == "resumed" else error_of(body.error)
        chapter.trials.append(
            AttemptDetail(
                reason=body.reason,
                attempt=record.attempt,
                at=record.at,
                seq=record.seq,
                error=before,
                wake_at=body.wake_at,
            )
        )
        chapter.attempts = max(chapter.attempts, record.attempt)
        if chapter.ended_at is not None:
            chapter.ended_at, chapter.state, chapter.halts, chapter.error = None, "running", False, None

    def intent(self, record: Record, body: IntentBody) -> None:
        chapter = self.at(record)
        if body.ordinal < 0:
            chapter.effect = str(record.effect)

    def substep(self, record: Record, body: SubstepBody) -> None:
        chapter = self.at(record)
        if body.ordinal == SETTLED or body.hold:
            # An answer is told with its question.
            return
        call = CallDetail(
            name=body.name,
            ordinal=body.ordinal,
            effect=str(record.effect),
            at=record.at,
            seq=record.seq,
            value=body.value,
            error=error_of(body.error),
        )
        if body.usage is not None:
            call.tokens, call.cost = body.usage.tokens, body.usage.cost
        _spend(chapter, body.usage)
        chapter.calls.append(call)

    def asked(self, record: Record, body: AskedBody) -> None:
        question = QuestionDetail(
            hold=body.hold,
            why=body.key.partition(":")[0],
            prompt=body.prompt,
            asked_at=record.at,
            seq=record.seq,
            type=body.type,
            options=[str(option[0]) for option in body.options or ()],
            assignee=body.assignee,
            expires_at=body.expires_at,
        )
        self._asked[body.hold] = question
        into = self.story if question.why == "code" else self.at(record)
        into.questions.append(question)

    def snapshot(self, record: Record, body: SnapshotBody) -> None:
        """Only a migration tells something: what is not over goes on under the new names."""
        if record.outcome != MIGRATED:
            return
        note: dict[str, Any] = body.position.get(MIGRATION, {})
        text = f"went over from version {note.get('from')} to {note.get('to')}"
        self.story.remarks.append(StoryRemark(kind="migrated", at=record.at, seq=record.seq, text=text))
        names: dict[str, str] = note.get("renamed", {})
        for chapter in self._open.values():
            if chapter.state == "running":
                scope, slash, chapter.node = names.get(chapter.label, chapter.label).rpartition("/")
                chapter.scope = scope + slash
        self._open = {chapter.label: chapter for chapter in self._open.values()}
        self.story.skipped = [names.get(label, label) for label in self.story.skipped]

    def chunk(self, record: Record, body: ChunkBody) -> None:
        self.at(record).emitted += len(body.items)

    def end(self, record: Record, body: EndBody) -> None:
        why = f": {body.error.type}: {body.error.message}" if body.error is not None else ""
        self.story.remarks.append(
            StoryRemark(kind="ended", at=record.at, seq=record.seq, text=f"{ended_text(body.status)}{why}")
        )
        self.stop(record.at)

    def stop(self, at: int) -> None:
        """The run ended around what had not."""
        for chapter in self._open.values():
            if chapter.state == "running":
                self._end(chapter, at, "stopped")


def _spend(chapter: VisitDetail, usage: Usage | None) -> None:
    """A node has spent what its sub-steps have, and what it reports besides."""
    if usage is not None:
        chapter.tokens += usage.tokens
        chapter.cost += usage.cost


_ADD: dict[Kind, Callable[[StoryBuilder, Record, Any], None]] = {
    Kind.created: StoryBuilder.created,
    Kind.step: StoryBuilder.step,
    Kind.attempt: StoryBuilder.attempt,
    Kind.intent: StoryBuilder.intent,
    Kind.substep: StoryBuilder.substep,
    Kind.asked: StoryBuilder.asked,
    Kind.chunk: StoryBuilder.chunk,
    Kind.snapshot: StoryBuilder.snapshot,
    Kind.end: StoryBuilder.end,
}
