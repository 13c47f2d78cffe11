"""Events: ordered, stored, past-tense facts about a run, numbered by the store."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.types.ids import RunId


class EventRow(msgspec.Struct, frozen=True):
    """An event that no journal record implies: an outside action on the run (an answer, a cancel)."""

    number: int
    at: int
    type: str
    payload: bytes


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event as streams deliver it. `seq`: the record behind it, where it is known; not delivered."""

    run: RunId
    number: int
    at: int
    type: str
    node: str = ""
    scope: str = ""
    data: dict[str, Any] = {}
    seq: int = -1


class EventKind(msgspec.Struct, frozen=True):
    """A type of event: when it is emitted, and the fields of its data."""

    when: str
    fields: tuple[str, ...] = ()


_VISIT = ("visit", "attempt")
_SETTLED = (*_VISIT, "duration_us", "outcome", "error", "usage", "notes")
_STEPPED = ("step", "ordinal", "hold", "usage", "digests")
_TRIED = (*_VISIT, "reason", "error", "wake_at")

EVENTS = {
    "run.created": EventKind("a run was created", ("flow", "version", "lineage")),
    "run.resumed": EventKind("a worker resumed the run from its journal", ("seq",)),
    "run.recovered": EventKind(
        "the run's worker stopped heartbeating, and another worker may resume the run",
        ("worker", "term", "head", "recoveries", "lease_until", "alone", "ready_at"),
    ),
    "run.given_up": EventKind(
        "the run's workers died too often; the run is a dead letter until an operator retries it",
        ("worker", "term", "head", "recoveries", "lease_until", "alone"),
    ),
    "run.unserved": EventKind(
        "no live worker has what the run needs: it waits for one that has `missing`", ("missing",)
    ),
    "run.served": EventKind("a worker has what the run waited for"),
    "run.history_lost": EventKind(
        "the store lost records that it had acknowledged, and the run stopped",
        ("acknowledged", "head", "worker", "acknowledged_at", "hold"),
    ),
    "run.moved": EventKind(
        "the run was moved to an engine, or from it to the built-in workers", ("from", "to", "by")
    ),
    "run.retry_requested": EventKind("an operator asked to retry a dead letter", ("by",)),
    "run.cancel_requested": EventKind("a cancel of the run was requested", ("reason", "by")),
    "run.code_changed": EventKind(
        "code of nodes ahead differs from the code that the run started with", (*_TRIED, "code", "nodes")
    ),
    "run.migrated": EventKind(
        "the run was migrated to another version of its flow",
        ("from", "to", "from_label", "to_label", "renamed", "before", "forced", "seq"),
    ),
    "run.breaks_set": EventKind("the run's breakpoints were changed", (*_TRIED, "breaks", "off")),
    "run.failing": EventKind("a failure is final; nodes that still run are being stopped", _TRIED),
    "run.fell_back": EventKind(
        "the run continues from before damaged records, because they caused no outside effect", _TRIED
    ),
    "run.damaged": EventKind("records of the run cannot be read", _TRIED),
    "run.uncheckpointed": EventKind("the run continues without checkpoints, as its flow allows", _TRIED),
    "run.completed": EventKind("the run has completed", ("status", "seq")),
    "run.failed": EventKind("the run has failed; it may be resumed", ("status", "seq", "error")),
    "run.cancelled": EventKind("the run was cancelled, or superseded by another", ("status", "seq", "error")),
    "node.started": EventKind("a node starts", _VISIT),
    "node.completed": EventKind("a node has completed", _SETTLED),
    "node.failed": EventKind("a node failed, and no retry follows", _SETTLED),
    "node.skipped": EventKind("no edge leads to the node any more"),
    "node.skipped_failure": EventKind("a node failed and its flow continues without it", _SETTLED),
    "node.unknown": EventKind("it is unknown whether a node's effect happened", _SETTLED),
    "node.retried": EventKind("an attempt failed, and a retry follows", _TRIED),
    "node.restarted": EventKind("a node that had started before a crash starts again", _TRIED),
    "node.resumed": EventKind("a node resumes after its recorded sub-steps", _TRIED),
    "node.woke": EventKind("a node's timer fired", _TRIED),
    "node.continued": EventKind("a node continues from its breakpoint", _TRIED),
    "node.withdrawn": EventKind("a node was announced and did not start", _TRIED),
    "node.child_failed": EventKind("a child of a map or sub-flow failed", _TRIED),
    "node.abandoned": EventKind("a node's result no longer counts: another branch won"),
    "node.attempted": EventKind("an attempt of a node changed in another way, which `reason` names", _TRIED),
    "node.step_done": EventKind("`ctx.step` inside a node has completed", _STEPPED),
    "node.step_failed": EventKind("`ctx.step` inside a node failed", _STEPPED),
    "node.step_retried": EventKind(
        "an attempt of `ctx.step` failed, and another follows at `wake_at`",
        (*_TRIED, "step", "ordinal", "failures", "usage"),
    ),
    "node.step_woke": EventKind(
        "the next attempt of `ctx.step` starts", (*_TRIED, "step", "ordinal", "failures")
    ),
    "node.emitted": EventKind(
        "a node emitted data with `ctx.emit`, or a line with `ctx.log` (`kind`: `log`)",
        ("kind", "data", *_VISIT),
    ),
    "edge.taken": EventKind("the run follows an edge", ("edge", "from", "to")),
    "loop.turned": EventKind("a loop starts another turn", ("edge",)),
    "walk.restarted": EventKind("a walk starts again, with the state that it started with", ("edge", "to")),
    "branch.dropped": EventKind("a branch of a parallel node is stopped: others were enough", ("branch",)),
    "join.timed_out": EventKind("a join continues without the branches that are late", _TRIED),
    "timer.started": EventKind("the run sleeps until a timer fires", _TRIED),
    "hold.opened": EventKind(
        "a hold was opened: a person is asked",
        ("hold_id", "entity_id", "type", "prompt", "options", "assignee", "is_resumed"),
    ),
    "hold.asked_again": EventKind("the hold is still open after a resume", ("hold_id", "is_resumed")),
    "hold.resolved": EventKind("the hold was decided", ("hold_id", "decision", "by")),
    "hold.cancelled": EventKind("the hold was cancelled", ("hold_id", "reason", "by")),
    "hold.reassigned": EventKind(
        "the hold was assigned to another person or group", ("hold_id", "from", "to", "by", "epoch")
    ),
    "hold.claimed": EventKind("a person claimed the hold", ("hold_id", "by", "until")),
    "hold.released": EventKind("the claim on the hold ended", ("hold_id", "by")),
    "hold.extended": EventKind("the hold's deadline was extended", ("hold_id", "by", "expires_at")),
    "hold.commented": EventKind("a comment was added to the hold", ("hold_id", "by")),
    "hold.voted": EventKind("one of several approvers has voted", ("hold_id", "by")),
    "hold.placed": EventKind("a decision was made and can still be undone", ("hold_id", "by", "until")),
    "hold.taken_back": EventKind("a decision was undone in time", ("hold_id", "by")),
    "hold.asked_back": EventKind(
        "a question was asked back; the deadline is paused", ("hold_id", "by", "to")
    ),
    "hold.replied": EventKind("a question asked back was answered", ("hold_id", "by")),
    "hold.question_dropped": EventKind("a question asked back was withdrawn", ("hold_id", "by")),
    "hold.escalated": EventKind(
        "the hold was not decided in time and was escalated",
        ("hold_id", "from", "to", "epoch", "rung", "expires_at", "by", "reason"),
    ),
    "hold.raised": EventKind("the flow raised the hold's priority", ("hold_id", "from", "to", "by")),
    "hold.expired": EventKind("the hold was not decided in time and expired", ("hold_id", "reason", "by")),
    "hold.reminded": EventKind("a reminder was sent", ("hold_id", "reminder", "by")),
    "hold.rescheduled": EventKind(
        "the deadline moved because its calendar changed", ("hold_id", "by", "calendar", "expires_at")
    ),
    "hold.vetoed": EventKind(
        "a guardrail rejected an approval",
        ("hold_id", "guardrail", "reason", "decision", "effective_decision", "by"),
    ),
    "hold.answered": EventKind("the run received the answer to `ctx.ask`", ("step", "ordinal", "hold_id")),
    "checkpoint.created": EventKind(
        "a checkpoint was created", ("checkpoint_id", "status", "node_id", "seq", "loop_num", "total_nodes")
    ),
    "events.pruned": EventKind(
        "in the place of the events `first` to `last`, which were deleted with old records; the journal"
        " begins at record `horizon`",
        ("first", "last", "horizon"),
    ),
    "record.unreadable": EventKind(
        "a record is damaged; what its columns still show", ("seq", "kind", "digest", "outcome")
    ),
}
