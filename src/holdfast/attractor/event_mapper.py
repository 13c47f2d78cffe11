"""Maps stored events to those of the specification, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import msgspec

from holdfast.attractor.events import (
    CheckpointSaved,
    EventsPruned,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineEvent,
    PipelineFailed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageRetrying,
    StageStarted,
)
from holdfast.model.events import graph_at
from holdfast.model.graph import Graph, ParallelSpec
from holdfast.types.event import Event

ARTIFACT = "artifact"
"""The kind of live output that announces a stored artifact."""
_GOES_ON = frozenset({"edge.taken", "node.started", "walk.restarted"})


class _Branch(msgspec.Struct):
    stage: str
    first: str
    index: int
    since: int
    well: bool = True


class _Question(msgspec.Struct):
    text: str
    stage: str
    since: int


class EventMapper:
    """Needs every event of a run, from the first one; a reader that resumes skips those it has seen."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._since = 0
        self._stages = 0
        self._indexes: dict[str, int] = {}
        self._waiting: set[str] = set()
        self._branches: dict[str, _Branch] = {}
        self._resting = ""
        self._parallel: dict[str, tuple[int, list[bool]]] = {}
        self._asked: dict[str, _Question] = {}
        self._artifacts: set[str] = set()
        self._last = ""

    def map_all(self, events: Iterable[Event], after: str = "") -> Iterator[PipelineEvent]:
        """`after`: the place of the last event that the reader has."""
        seen = place_of(after)
        for event in events:
            yield from (found for found in self.events_for(event) if (found.number, found.part) > seen)

    def events_for(self, event: Event) -> list[PipelineEvent]:
        made = [*self._branch_ended(event), *self._mapped(event)]
        return [msgspec.structs.replace(one, part=part) for part, one in enumerate(made)]

    def _mapped(self, event: Event) -> Iterable[PipelineEvent]:
        events_for = _MAPPERS.get(event.type)
        return events_for(self, event) if events_for is not None else ()

    # ------------------------------------------------------------------ the pipeline
    def created(self, event: Event) -> Iterator[PipelineEvent]:
        self._since = event.at
        yield PipelineStarted(**_at(event), name=str(event.data.get("flow", "")), id=event.run)
        yield CheckpointSaved(**_at(event), node_id="")

    def completed(self, event: Event) -> Iterator[PipelineEvent]:
        yield CheckpointSaved(**_at(event), node_id=self._last)
        took = self._took(event)
        yield PipelineCompleted(**_at(event), duration=took, artifact_count=len(self._artifacts))

    def failed(self, event: Event) -> Iterator[PipelineEvent]:
        yield CheckpointSaved(**_at(event), node_id=self._last)
        error = _message(event) or event.type.removeprefix("run.")
        yield PipelineFailed(**_at(event), error=error, duration=self._took(event))

    def _took(self, event: Event) -> float:
        """A pruned run has no event of its start; its end says how long it took."""
        return _seconds(event.data.get("duration_us", 0) if not self._since else event.at - self._since)

    def pruned(self, event: Event) -> Iterator[PipelineEvent]:
        first, last = int(event.data["first"]), int(event.data["last"])
        yield EventsPruned(**_at(event), first=first, last=last)

    # ------------------------------------------------------------------ stages
    def started(self, event: Event) -> Iterator[PipelineEvent]:
        label = event.scope + event.node
        if event.scope and event.scope not in self._branches:
            yield from self._branch_started(event)
        self._indexes[label] = self._stages
        self._stages += 1
        yield StageStarted(**self._stage(event), attempt=1)
        count = self._ways(event)
        if count:
            self._parallel[label] = event.at, []
            yield ParallelStarted(**_at(event), branch_count=count, stage=event.node)

    def _ways(self, event: Event) -> int:
        """The number of branches of a parallel stage; 0 for other stages."""
        inner = graph_at(self._graph, event.scope)
        index = inner.index.get(event.node)
        spec = None if index is None else inner.nodes[index].parallel
        return len(spec.starts) if isinstance(spec, ParallelSpec) else 0

    def again(self, event: Event) -> Iterator[PipelineEvent]:
        """After a crash, or after the wait before a retry."""
        label = event.scope + event.node
        if event.type == "node.woke" and label not in self._waiting:
            return
        self._waiting.discard(label)
        yield StageStarted(**self._stage(event), attempt=int(event.data.get("attempt", 1)))

    def retried(self, event: Event) -> Iterator[PipelineEvent]:
        data, stage = event.data, self._stage(event)
        yield StageFailed(**stage, error=_message(event), will_retry=True)
        wake = data.get("wake_at")
        delay = _seconds(wake - event.at) if isinstance(wake, int) else 0.0
        attempt = int(data.get("attempt", 1))
        yield StageRetrying(**stage, attempt=attempt, delay=max(delay, 0.0))
        if isinstance(wake, int):
            self._waiting.add(event.scope + event.node)
        else:
            yield StageStarted(**stage, attempt=attempt)

    def ended(self, event: Event) -> Iterator[PipelineEvent]:
        label, data = event.scope + event.node, event.data
        yield from self._parallel_ended(event, label)
        outcome = str(data.get("outcome", ""))
        if event.type in ("node.completed", "node.skipped_failure"):
            took = _seconds(data.get("duration_us", 0))
            yield StageCompleted(**self._stage(event), duration=took, outcome=outcome)
        else:
            error = _message(event) or "another branch was enough"
            yield StageFailed(**self._stage(event), error=error, will_retry=False)
        if event.scope:
            self._resting = event.scope
            if event.scope in self._branches:
                self._branches[event.scope].well = event.type != "node.failed"
        else:
            self._last = event.node
            yield CheckpointSaved(**_at(event), node_id=event.node)

    def emitted(self, event: Event) -> Iterator[PipelineEvent]:
        if event.data.get("kind") == ARTIFACT:
            self._artifacts.add(str(event.data.get("data")))
        return iter(())

    # ------------------------------------------------------------------ branches
    def _branch_started(self, event: Event) -> Iterator[PipelineEvent]:
        owner, index = _owner(event.scope)
        branch = _Branch(owner.rpartition("/")[2], event.node, index, event.at)
        self._branches[event.scope] = branch
        yield ParallelBranchStarted(**_at(event), branch=branch.first, index=index, stage=branch.stage)

    def _branch_ended(self, event: Event) -> Iterator[PipelineEvent]:
        """A branch has ended when one of its stages ended and none follows."""
        scope, self._resting = self._resting, ""
        if scope and not (event.scope == scope and event.type in _GOES_ON):
            yield from self._close(scope, event)

    def dropped(self, event: Event) -> Iterator[PipelineEvent]:
        label = event.scope + event.node
        for scope in [s for s in self._branches if _owner(s) == (label, event.data.get("branch"))]:
            self._branches[scope].well = False
            yield from self._close(scope, event)

    def _close(self, scope: str, event: Event) -> Iterator[PipelineEvent]:
        branch = self._branches.pop(scope, None)
        if branch is None:
            return
        owner, _ = _owner(scope)
        if owner in self._parallel:
            self._parallel[owner][1].append(branch.well)
        yield ParallelBranchCompleted(
            **_at(event),
            branch=branch.first,
            index=branch.index,
            duration=_seconds(event.at - branch.since),
            success=branch.well,
            stage=branch.stage,
        )

    def _parallel_ended(self, event: Event, label: str) -> Iterator[PipelineEvent]:
        found = self._parallel.pop(label, None)
        if found is not None:
            since, ends = found
            yield ParallelCompleted(
                **_at(event),
                duration=_seconds(event.at - since),
                success_count=sum(ends),
                failure_count=len(ends) - sum(ends),
                stage=event.node,
            )

    # ------------------------------------------------------------------ people
    def asked(self, event: Event) -> Iterator[PipelineEvent]:
        hold = str(event.data.get("hold_id", ""))
        question = self._asked[hold] = _Question(str(event.data.get("prompt", "")), event.node, event.at)
        yield InterviewStarted(**_at(event), question=question.text, stage=question.stage, hold=hold)

    def answered(self, event: Event) -> Iterator[PipelineEvent]:
        hold = str(event.data.get("hold_id", ""))
        question = self._asked.pop(hold, None)
        if question is not None:
            yield InterviewCompleted(
                **_at(event),
                question=question.text,
                answer=str(event.data.get("decision", "")),
                duration=_seconds(event.at - question.since),
                stage=question.stage,
                hold=hold,
            )

    def expired(self, event: Event) -> Iterator[PipelineEvent]:
        hold = str(event.data.get("hold_id", ""))
        question = self._asked.pop(hold, None)
        if question is not None:
            took = _seconds(event.at - question.since)
            yield InterviewTimeout(
                **_at(event), question=question.text, stage=question.stage, duration=took, hold=hold
            )

    def _stage(self, event: Event) -> dict[str, Any]:
        index = self._indexes.get(event.scope + event.node, 0)
        return {**_at(event), "name": event.node, "index": index, "branch": event.scope}


def _at(event: Event) -> dict[str, Any]:
    return {"run": event.run, "at": event.at, "number": event.number}


def _seconds(microseconds: Any) -> float:
    return max(0, int(microseconds or 0)) / 1e6


def _message(event: Event) -> str:
    error: Any = event.data.get("error")
    if isinstance(error, dict):
        return str(cast("dict[str, Any]", error).get("message", ""))
    return str(error or "")


def _owner(scope: str) -> tuple[str, int]:
    """The parallel stage and branch number of a scope, by its label: `p.1[0]/` is (p, 0)."""
    outer, _, last = scope.rstrip("/").rpartition("/")
    name, _, index = last.rstrip("]").rpartition("[")
    label = f"{outer}/{name.rpartition('.')[0]}" if outer else name.rpartition(".")[0]
    return label, int(index) if index.isdigit() else 0


def place_of(text: str) -> tuple[int, int]:
    """Raises ValueError if it is not a place."""
    if not text:
        return -1, -1
    number, _, part = text.partition(".")
    return int(number), int(part) if part else 1 << 30


_MAPPERS: dict[str, Callable[[EventMapper, Event], Iterator[PipelineEvent]]] = {
    "run.created": EventMapper.created,
    "run.completed": EventMapper.completed,
    "run.failed": EventMapper.failed,
    "run.cancelled": EventMapper.failed,
    "node.started": EventMapper.started,
    "node.restarted": EventMapper.again,
    "node.woke": EventMapper.again,
    "node.retried": EventMapper.retried,
    "node.completed": EventMapper.ended,
    "node.skipped_failure": EventMapper.ended,
    "node.failed": EventMapper.ended,
    "node.unknown": EventMapper.ended,
    "node.abandoned": EventMapper.ended,
    "node.emitted": EventMapper.emitted,
    "branch.dropped": EventMapper.dropped,
    "hold.opened": EventMapper.asked,
    "hold.resolved": EventMapper.answered,
    "hold.expired": EventMapper.expired,
    "events.pruned": EventMapper.pruned,
}
