"""From records to a story: one pass over a run's journal. `visits.py` says why there is another fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.checkpoint.fold import Execution, error_of, output_of
from holdfast.model.breakpoints import SUFFIX
from holdfast.model.events import graph_at
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED, MIGRATION
from holdfast.model.position import SETTLED, Position
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
from holdfast.runs.history.decision_text import ended_text, tell_moves
from holdfast.runs.history.story import Call, Chapter, Question, Remark, Story, Trial
from holdfast.runs.history.story__altering import alterations
from holdfast.runs.history.story__outlining import STATES, outline
from holdfast.types.record import Kind, Move, Record

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


class Chronicler:
    """Give it every record in order; `pos` is where the run stood before it, None where that is not known."""

    def __init__(self, graph: Graph, run: str) -> None:
        self.graph = graph
        self.story = Story(run=run)
        self.pos: Position | None = None
        self._open: dict[str, Chapter] = {}
        self._asked: dict[str, Question] = {}

    def bring(self, execution: Execution) -> None:
        """What a fork or a pruned run knows of before its first record."""
        self.story.chapters.append(outline(execution, self.story.run))
        self.story.brought += 1

    def tell(self, record: Record, body: Any) -> None:
        self.story.records += 1
        if body is None:
            self._unreadable(record)
            return
        tell = _TELL.get(Kind(record.kind))
        if tell is not None:
            tell(self, record, body)

    # ------------------------------------------------------------------ chapters
    def at(self, record: Record) -> Chapter:
        """The chapter that a record is about."""
        node = record.node.removesuffix(SUFFIX)
        label = record.scope + node
        chapter = self._open.get(label)
        if chapter is None or (record.visit and chapter.visit != record.visit):
            chapter = self._begin(record.scope, node, record.visit or 1, record.at)
        chapter.effect = chapter.effect or (record.effect if record.kind not in _INSIDE else "")
        return chapter

    def _begin(self, scope: str, node: str, visit: int, at: int) -> Chapter:
        chapter = Chapter(node=node, scope=scope, visit=visit, run=self.story.run, started_at=at)
        self._open[chapter.label] = chapter
        self.story.chapters.append(chapter)
        return chapter

    def _end(self, chapter: Chapter, at: int, state: str) -> None:
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
        chapter.followed = tell_moves(self.graph, body.moves)
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
            Remark(kind="taken_on", at=record.at, seq=record.seq, text=text, term=record.term)
        )

    def _waits(self, chapter: Chapter) -> bool:
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
        self.story.remarks.append(Remark(kind=kind, at=record.at, seq=record.seq, text=f"{text}{where}{why}"))

    def _handed_up(self, record: Record, body: AttemptBody) -> None:
        owner = self.at(record)
        for chapter in self._open.values():
            if chapter.scope.startswith(f"{owner.label}.") and chapter.state == "failed" and chapter.halts:
                chapter.handed_to = owner.label

    def _tried_again(self, record: Record, body: AttemptBody) -> None:
        chapter = self.at(record)
        before = chapter.error if body.reason == "resumed" else error_of(body.error)
        chapter.trials.append(
            Trial(
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
        call = Call(
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
        question = Question(
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
        self.story.remarks.append(Remark(kind="migrated", at=record.at, seq=record.seq, text=text))
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
            Remark(kind="ended", at=record.at, seq=record.seq, text=f"{ended_text(body.status)}{why}")
        )
        self.stop(record.at)

    def stop(self, at: int) -> None:
        """The run ended around what had not."""
        for chapter in self._open.values():
            if chapter.state == "running":
                self._end(chapter, at, "stopped")


def _spend(chapter: Chapter, usage: Usage | None) -> None:
    """A node has spent what its sub-steps have, and what it reports besides."""
    if usage is not None:
        chapter.tokens += usage.tokens
        chapter.cost += usage.cost


_TELL: dict[Kind, Callable[[Chronicler, Record, Any], None]] = {
    Kind.created: Chronicler.created,
    Kind.step: Chronicler.step,
    Kind.attempt: Chronicler.attempt,
    Kind.intent: Chronicler.intent,
    Kind.substep: Chronicler.substep,
    Kind.asked: Chronicler.asked,
    Kind.chunk: Chronicler.chunk,
    Kind.snapshot: Chronicler.snapshot,
    Kind.end: Chronicler.end,
}
