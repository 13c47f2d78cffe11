"""The states of runs, checkpoints, holds and nodes, and the one table of a run's transitions."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    pending = "pending"
    running = "running"
    waiting = "waiting"
    pending_input = "pending_input"
    resumable = "resumable"
    completed = "completed"
    failed = "failed"
    cancelled = "cancelled"


_R = RunStatus

RUN_LABELS: dict[RunStatus, str] = {
    _R.pending: "queued",
    _R.running: "running",
    _R.waiting: "sleeping",
    _R.pending_input: "waiting for input",
    _R.resumable: "interrupted",
    _R.completed: "completed",
    _R.failed: "failed",
    _R.cancelled: "cancelled",
}
"""What people read, on the command line, on pages and in the documentation."""


def run_label(status: RunStatus, until: str = "") -> str:
    """`until`: when a sleeping run wakes up, as text: `sleeping until 29 Nov 23:39`."""
    label = RUN_LABELS[status]
    return f"{label} until {until}" if until and status is RunStatus.waiting else label


def label_for(word: str) -> str:
    """The label of a run's status; any other word (an outcome, a state of a node) as it is."""
    return RUN_LABELS[RunStatus(word)] if word in RunStatus.__members__ else word


ENDED = frozenset({_R.completed, _R.failed, _R.cancelled})
CLAIMABLE = frozenset({_R.pending, _R.resumable})
PARKED = frozenset({_R.waiting, _R.pending_input})
# Claimed at least once, and not ended.
BEGUN = (_R.running, _R.waiting, _R.pending_input, _R.resumable)

# Which status may follow which. The service asks it, the database checks it, the docs print it.
TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    _R.pending: frozenset({_R.running, _R.failed, _R.cancelled}),
    _R.running: frozenset(
        {_R.waiting, _R.pending_input, _R.resumable, _R.completed, _R.failed, _R.cancelled}
    ),
    _R.waiting: frozenset({_R.running, _R.cancelled}),
    _R.pending_input: frozenset({_R.running, _R.cancelled}),
    _R.resumable: frozenset({_R.running, _R.failed, _R.cancelled}),
    _R.completed: frozenset(),
    # Resuming a failed run runs its failed nodes again (G-36).
    _R.failed: frozenset({_R.resumable}),
    _R.cancelled: frozenset(),
}


def may_follow(old: RunStatus, new: RunStatus) -> bool:
    return old == new or new in TRANSITIONS[old]


class CheckpointStatus(StrEnum):
    active = "active"
    pending_input = "pending_input"
    completed = "completed"
    failed = "failed"


class HoldStatus(StrEnum):
    pending = "pending"
    resolved = "resolved"
    expired = "expired"
    cancelled = "cancelled"


HOLD_LABELS: dict[HoldStatus, str] = {
    HoldStatus.pending: "open",
    HoldStatus.resolved: "decided",
    HoldStatus.expired: "expired",
    HoldStatus.cancelled: "withdrawn",
}


class Effect(StrEnum):
    pure = "pure"
    read = "read"
    write = "write"
    external = "external"
    human = "human"


# Work of these classes may be repeated when its outcome is not known (DESIGN 6).
REPEATABLE = frozenset({Effect.pure, Effect.read})


class NodeOutcome(StrEnum):
    success = "success"
    partial_success = "partial_success"
    retry = "retry"
    fail = "fail"
    skipped = "skipped"
    cancelled = "cancelled"
    unknown = "unknown"
