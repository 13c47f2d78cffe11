"""The events of the specification (section 9.6), with its names and fields. `event_mapper` makes them from
stored events."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class PipelineEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    """Durations and delays are seconds. Its place in the run: the `number` of the stored event that it was
    made from, and its index among those, `part`."""

    run: str
    at: int
    """Microseconds since the epoch."""
    number: int
    part: int = 0
    _text: ClassVar[str] = ""

    @property
    def place(self) -> str:
        """Orders the events of a run; a reader that resumes passes the last one it has."""
        return f"{self.number}.{self.part}"

    @property
    def fields(self) -> dict[str, Any]:
        """As a JSON object; `event` is its name."""
        return msgspec.to_builtins(self)

    @property
    def description(self) -> str:
        """One line for a log."""
        return self._text.format(**self.fields)


class PipelineStarted(PipelineEvent, kw_only=True, frozen=True):
    _text = "pipeline {name} started as {id}"
    name: str
    id: str
    """The run's."""


class PipelineCompleted(PipelineEvent, kw_only=True, frozen=True):
    _text = "pipeline completed after {duration:.3f} s with {artifact_count} artifacts"
    duration: float
    artifact_count: int = 0


class PipelineFailed(PipelineEvent, kw_only=True, frozen=True):
    _text = "pipeline failed after {duration:.3f} s: {error}"
    error: str
    duration: float


class _OfStage(PipelineEvent, kw_only=True, frozen=True):
    """`index` counts the executions of the run from 0; `branch` is the scope inside a parallel stage."""

    name: str
    index: int
    branch: str = ""


class StageStarted(_OfStage, kw_only=True, frozen=True):
    _text = "stage {name} started"
    attempt: int = 1


class StageCompleted(_OfStage, kw_only=True, frozen=True):
    _text = "stage {name} ended with {outcome} after {duration:.3f} s"
    duration: float
    outcome: str = ""


class StageFailed(_OfStage, kw_only=True, frozen=True):
    _text = "stage {name} failed: {error}"
    error: str
    will_retry: bool


class StageRetrying(_OfStage, kw_only=True, frozen=True):
    _text = "stage {name} is retried in {delay:.3f} s, attempt {attempt}"
    attempt: int
    delay: float


class ParallelStarted(PipelineEvent, kw_only=True, frozen=True):
    _text = "stage {stage} started {branch_count} branches"
    branch_count: int
    stage: str = ""


class ParallelBranchStarted(PipelineEvent, kw_only=True, frozen=True):
    _text = "branch {branch} of {stage} started"
    branch: str
    """Its first stage."""
    index: int
    stage: str = ""


class ParallelBranchCompleted(PipelineEvent, kw_only=True, frozen=True):
    _text = "branch {branch} of {stage} ended after {duration:.3f} s"
    branch: str
    index: int
    duration: float
    success: bool
    stage: str = ""


class ParallelCompleted(PipelineEvent, kw_only=True, frozen=True):
    _text = "the branches of {stage} ended: {success_count} succeeded, {failure_count} failed"
    duration: float
    success_count: int
    failure_count: int
    stage: str = ""


class InterviewStarted(PipelineEvent, kw_only=True, frozen=True):
    _text = "stage {stage} asks: {question}"
    question: str
    stage: str
    hold: str = ""


class InterviewCompleted(PipelineEvent, kw_only=True, frozen=True):
    _text = "{question} {answer}"
    question: str
    answer: str
    duration: float
    stage: str = ""
    hold: str = ""


class InterviewTimeout(PipelineEvent, kw_only=True, frozen=True):
    _text = "no answer within {duration:.3f} s: {question}"
    question: str
    stage: str
    duration: float
    hold: str = ""


class CheckpointSaved(PipelineEvent, kw_only=True, frozen=True):
    """`node_id` is "" for the one that is written before the first stage."""

    _text = "checkpoint saved after {node_id}"
    node_id: str


class EventsPruned(PipelineEvent, kw_only=True, frozen=True):
    """Not of the specification: the stored events `first` to `last` were deleted with old records, and with
    them the events that they were the source of."""

    _text = "events {first} to {last} were pruned"
    first: int
    last: int
