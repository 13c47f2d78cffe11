"""Goes through a journal again: the engine decides each time, and the result is compared with what was
written.

Pure: records and bodies in, a verdict out. A record is either written by a worker without a decision (an
intent, a sub-step, live output): then it is applied; or the first of a decision: then the message that led to
it is given to `engine.step`, and the records that follow must be those that `step` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

import msgspec

from holdfast.engine.decision import Decision
from holdfast.engine.messages import EvidenceBySeq, Message, ResumeRequested, RunRecovered
from holdfast.engine.start import begin
from holdfast.engine.step import step
from holdfast.errors import (
    CheckpointCorruptError,
    HoldfastError,
    MissingNameError,
    NotComparableError,
    StateError,
)
from holdfast.model.apply import apply_record
from holdfast.model.graph import Graph
from holdfast.model.position import SETTLED, Exec, Position
from holdfast.model.record_bodies import AttemptBody, CreatedBody, EndBody, ErrorInfo, StepBody, SubstepBody
from holdfast.model.snapshot import Loader, load_position
from holdfast.runs.history.decision_text import decision_text, name_moves
from holdfast.runs.history.replay_messages import FACTS, ReplayStep, cause_of, finished, proven
from holdfast.types.record import Kind, Op, Record
from holdfast.types.status import REPEATABLE
from holdfast.types.value import freeze

_COLUMNS = ("kind", "node", "scope", "visit", "attempt", "outcome", "effect", "listed")
# What another version of a flow may record differently without deciding differently.
_LOOSE = frozenset({"effect", "listed", "version", "code", "scratch", "schema"})


# Why an expression stops a run; before that rule it was false instead.
_UNDECIDED = frozenset({MissingNameError.code, NotComparableError.code})


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The first record that the engine would not write today, or would write differently."""

    seq: int
    kind: str
    node: str
    fields: list[str]
    then: str
    now: str


class DiffersError(Exception):
    def __init__(self, difference: ReplayDifference) -> None:
        super().__init__(difference.now)
        self.difference = difference


class RecordComparison:
    """`graph` decides now; the journal was written with `journal_graph`."""

    def __init__(self, graph: Graph, journal_graph: Graph) -> None:
        self.graph, self.journal_graph = graph, journal_graph

    def fields(self, draft: Record, drafted: Any, record: Record, body: Any) -> list[str]:
        """The names of what differs."""
        loose = _LOOSE if self.graph is not self.journal_graph else frozenset[str]()
        found = [c for c in _COLUMNS if c not in loose and getattr(draft, c) != getattr(record, c)]
        if type(drafted) is not type(body) or "kind" in found:
            return found or ["kind"]
        names = [name for name in body.__struct_fields__ if name not in loose]
        return found + [n for n in names if not self._same(n, getattr(drafted, n), getattr(body, n))]

    def _same(self, name: str, now: Any, then: Any) -> bool:
        if name == "moves" and self.graph is not self.journal_graph:
            return name_moves(self.graph, now) == name_moves(self.journal_graph, then)
        if name == "moves":
            return [tuple[Any, ...](move) for move in now] == [tuple[Any, ...](move) for move in then]
        if name == "routes" and self.graph is not self.journal_graph:
            return True
        return bool(now == then) or _alike(now, then)

    def differs(self, record: Record, body: Any, fields: list[str], now: str) -> DiffersError:
        then = decision_text(self.journal_graph, record, body)
        if then == now:
            then, now = (f"{text} ({', '.join(fields)} differ)" for text in (then, now))
        return DiffersError(
            ReplayDifference(
                seq=record.seq,
                kind=Kind(record.kind).name,
                node=record.scope + record.node,
                fields=fields,
                then=then,
                now=now,
            )
        )


def _alike(now: Any, then: Any) -> bool:
    """NaN equals NaN, at any depth."""
    try:
        return repr(now) == repr(then)
    except ValueError:  # a number of more digits than Python writes
        return False


Pair = tuple[Record, Any]

_OPENS = frozenset({"sleep", "children", "limit", "before", "join_timer", "failing", "child_failed", "retry"})


class RetraceResult(msgspec.Struct, kw_only=True):
    """`whole`: the last record is the last of its decision, so that `pos` is the position of the journal."""

    pos: Position
    decisions: int = 0
    records: int = 0
    given: int = 0
    whole: bool = True
    difference: ReplayDifference | None = None


def retrace(
    graph: Graph,
    run: str,
    journal: Sequence[Pair],
    *,
    journal_graph: Graph | None = None,
    load: Loader | None = None,
) -> RetraceResult:
    """Decide everything again. `journal_graph`: the graph that the journal was written with, if `graph` is
    another one. `load` reads the lists that a snapshot left in the journal."""
    return _Retracer(graph, journal_graph or graph, run, journal, load).go()


class _Retracer:
    def __init__(
        self, graph: Graph, journal_graph: Graph, run: str, journal: Sequence[Pair], load: Loader | None
    ) -> None:
        self.graph, self.journal_graph, self.run, self.load = graph, journal_graph, run, load
        self.journal = _without_void(journal)
        self.at = 0
        self.term = 0
        self.out = RetraceResult(
            pos=Position(run), records=len(journal), given=len(journal) - len(self.journal)
        )
        self.reason = _cancel_reason(self.journal)
        self.verdict = RecordComparison(graph, journal_graph)

    @property
    def pos(self) -> Position:
        return self.out.pos

    def go(self) -> RetraceResult:
        try:
            self._start()
            while self.at < len(self.journal):
                record = self.journal[self.at][0]
                if record.term > self.term:
                    self._taken_on(record.term)
                else:
                    self._next()
        except DiffersError as found:
            self.out.difference = found.difference
        return self.out

    # ------------------------------------------------------------------ where it begins
    def _start(self) -> None:
        record, body = self.journal[0]
        self.term = record.term
        if isinstance(body, CreatedBody) and body.base is None:
            decision = begin(
                self.graph,
                self.run,
                version=body.version,
                code=body.code,
                given=body.input,
                scratch=self._defaults() | dict(body.scratch),
                mode=body.mode,
                now=record.at,
                options=body.options,
                fits=self,
            )
            self.out.pos = decision.pos
            self._held_to(decision)
            return
        self._stand_at(record, body.base if isinstance(body, CreatedBody) else body.position)
        self._given(lambda r, b: r.term == self.term if record.kind == Kind.created else _opens(r, b))

    def _defaults(self) -> dict[str, Any]:
        """Fields of a newer version that the run was started without."""
        same = self.graph is self.journal_graph
        return {} if same else {k: freeze(v) for k, v in self.graph.spec.defaults.items()}

    def _stand_at(self, record: Record, plain: Any) -> None:
        pos = self.out.pos = load_position(plain, load=self.load)
        pos.run, pos.head, pos.at = self.run, record.seq, max(pos.at, record.at)
        self.at += 1
        self.out.given += 1

    def _given(self, belongs: Callable[[Record, Any], bool]) -> None:
        """The rest of the records that a fork began with, or of the decision that a pruned run
        begins within."""
        while self.at < len(self.journal) and belongs(*self.journal[self.at]):
            self._take(*self.journal[self.at])
            self.out.given += 1

    # ------------------------------------------------------------------ one more
    def _taken_on(self, term: int) -> None:
        """Another worker has loaded the run: it records that, and judges what was running."""
        self.term = term
        while self.at < len(self.journal):
            record, body = self.journal[self.at]
            if record.kind == Kind.snapshot and _fell_back(self.journal[self.at - 1][1]):
                self._stand_at(record, body.position)
            elif record.kind == Kind.attempt and body.reason in FACTS:
                self._take(record, body)
            else:
                break
        if self.at < len(self.journal) and self.journal[self.at][0].term == term:
            self._recover()

    def _recover(self) -> None:
        record, body = self.journal[self.at]
        asks_about_code = any(wait.why == "code" for wait in self.pos.holds.values())
        about_code = record.kind == Kind.asked and body.key.startswith("code:")
        if asks_about_code or about_code:
            return
        # Breakpoints and changed code come before what was running.
        first = takewhile(lambda pair: _is_reported_first(pair[1]), self._rest())
        messages: list[Message] = [m for pair in first for m in cause_of(self._scene(*pair)) or ()]
        self._decide([*messages, RunRecovered(late=self._late())])

    def _late(self) -> EvidenceBySeq:
        """Evidence of a fenced worker: an effect is settled without a doubt recorded before."""
        found: EvidenceBySeq = {}
        for execution in self.pos.execs.values():
            if execution.phase == "work" and (execution.intent >= 0 or execution.step_intents):
                following = next((pair for pair in self._rest() if self._is_about(pair[0], execution)), None)
                if following is not None:
                    found |= self._late_evidence(execution, *following)
        return found

    def _rest(self) -> Iterator[Pair]:
        return islice(self.journal, self.at, None)

    def _is_about(self, record: Record, execution: Exec) -> bool:
        inner = self.pos.scope_graph(self.graph, self.pos.scopes[execution.scope])
        here = (record.scope, record.node) == (execution.scope, inner.nodes[execution.node].id)
        return here and record.visit == execution.visit

    def _late_evidence(self, execution: Exec, record: Record, body: Any) -> EvidenceBySeq:
        scene = self._scene(record, body)
        effect = scene.node(execution).effect not in REPEATABLE
        if isinstance(body, StepBody) and execution.intent >= 0 and effect and record.term == self.term:
            return {execution.intent: finished(scene, execution, body)} if record.outcome != "unknown" else {}
        if isinstance(body, SubstepBody) and body.ordinal in execution.step_intents and not body.hold:
            return {execution.step_intents[body.ordinal]: proven(record, body)}
        return {}

    def _next(self) -> None:
        record, body = self.journal[self.at]
        try:
            cause = cause_of(self._scene(record, body))
        except (CheckpointCorruptError, KeyError) as error:
            raise self.verdict.differs(record, body, [], f"nothing: {_reason(error)}") from None
        if cause is None:
            raise self.verdict.differs(record, body, [], "nothing in the journal leads to it")
        if not cause:
            self._take(record, body)
            return
        lines = [ResumeRequested(late=self._late()) if isinstance(m, ResumeRequested) else m for m in cause]
        before = self.at
        self._decide(lines)
        if self.at == before:
            raise self.verdict.differs(record, body, [], "nothing: it continues as if that had not happened")

    def _scene(self, record: Record, body: Any) -> ReplayStep:
        return ReplayStep(self.graph, self.journal_graph, self.pos, record, body, self.reason)

    def _take(self, record: Record, body: Any) -> None:
        """A record without a decision."""
        try:
            if record.kind == Kind.snapshot or _fell_back(body):
                self.pos.head, self.pos.at = record.seq, record.at
            else:
                apply_record(self.graph, self.pos, record, body)
        except (CheckpointCorruptError, KeyError) as error:
            raise self.verdict.differs(record, body, [], f"nothing: {_reason(error)}") from None
        self.at += 1

    def _decide(self, messages: list[Message]) -> None:
        record, body = self.journal[self.at]
        try:
            decision = step(self.graph, self.pos, messages, record.at, self)
        except (HoldfastError, LookupError, TypeError, ValueError, AssertionError) as error:
            raise self.verdict.differs(record, body, [], f"nothing: {_reason(error)}") from None
        self._held_to(decision)

    # What only code could judge (`engine.decision.ValueChecker`): the journal shows how it was judged.
    def ops(self, decision: Decision, _execution: Exec, ops: list[Op]) -> list[Op] | ErrorInfo:
        body = self._written_next(decision)
        if isinstance(body, SubstepBody) and body.ordinal == SETTLED:
            return [tuple(op) for op in body.value["ops"]]  # type: ignore[misc]
        if not isinstance(body, StepBody):
            return ops
        return body.error if _is_state_error(body) and body.error is not None else list(body.ops)

    def inputs(self, decision: Decision, _execution: Exec) -> ErrorInfo | None:
        body = self._written_next(decision)
        return body.error if isinstance(body, StepBody) and _is_state_error(body) else None

    def stops(self, decision: Decision) -> bool:
        error = getattr(self._written_next(decision), "error", None)
        return isinstance(error, ErrorInfo) and error.code in _UNDECIDED

    def _written_next(self, decision: Decision) -> Any:
        at = self.at + len(decision.records)
        return self.journal[at][1] if at < len(self.journal) else None

    def _failure(self, decision: Decision, shown: Record) -> str:
        """Why the run now fails there: a condition that cannot be decided, for example."""
        for draft, body in decision.records:
            if draft is not shown and isinstance(body, AttemptBody) and body.reason == "failing":
                return f"; {decision_text(self.graph, draft, body)}"
        return ""

    def _held_to(self, decision: Decision) -> None:
        """What was decided must equal what was written, record by record."""
        self.out.decisions += bool(decision.records)
        for draft, drafted in decision.records:
            if self.at >= len(self.journal):
                self.out.whole = False
                return
            record, body = self.journal[self.at]
            fields = self.verdict.fields(draft, drafted, record, body)
            if fields:
                now = decision_text(self.graph, draft, drafted) + self._failure(decision, draft)
                raise self.verdict.differs(record, body, fields, now)
            self.at += 1


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"


def _fell_back(body: Any) -> bool:
    return isinstance(body, AttemptBody) and body.reason == "fell_back"


def _is_state_error(body: StepBody) -> bool:
    return body.error is not None and body.error.code == StateError.code


def _is_reported_first(body: Any) -> bool:
    return isinstance(body, AttemptBody) and body.reason in ("breaks", "code_changed")


def _opens(record: Record, body: Any) -> bool:
    """Records that only ever follow within a decision."""
    if record.kind == Kind.attempt:
        return body.reason in _OPENS
    if record.kind == Kind.asked:
        # A doubt without an error is one of several that the recovery of a run asks about at once.
        unknown = body.key.startswith("doubt:") and body.context.get("error") is None
        return unknown or body.key.startswith(("node:", "break:"))
    return record.kind == Kind.end and isinstance(body, EndBody) and body.status == "completed"


def _without_void(journal: Sequence[Pair]) -> list[Pair]:
    """Without the ranges that the run fell back behind: they are kept, but do not count."""
    lines = [(record, body) for record, body in journal if _fell_back(body)]
    void = [(int(body.token), record.seq) for record, body in lines]
    return [pair for pair in journal if not any(low <= pair[0].seq < high for low, high in void)]


def _cancel_reason(journal: Sequence[Pair]) -> str:
    body = journal[-1][1]
    cancelled = isinstance(body, EndBody) and body.status == "cancelled" and body.error is not None
    return body.error.message if cancelled and body.error is not None else ""
