"""Events: ordered, stored, past-tense facts about a run, numbered by the store (D-3)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.types.ids import RunId


class EventRow(msgspec.Struct, frozen=True):
    """An event that no journal record tells: what others did to the run (an answer, a cancel)."""

    number: int
    at: int
    type: str
    payload: bytes


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What streams show."""

    run: RunId
    number: int
    at: int
    type: str
    node: str = ""
    scope: str = ""
    data: dict[str, Any] = {}


class EventKind(msgspec.Struct, frozen=True):
    """A type of event: when it is told, and what its data may hold."""

    when: str
    fields: tuple[str, ...] = ()


_VISIT = ("visit", "attempt")
_SETTLED = (*_VISIT, "duration_us", "outcome", "error", "usage", "notes")
_STEPPED = ("step", "ordinal", "hold", "usage")
_TRIED = (*_VISIT, "reason", "error", "wake_at")

EVENTS = {
    "run.created": EventKind("a run exists", ("flow", "version", "lineage")),
    "run.resumed": EventKind("a worker took the run up again from its journal", ("seq",)),
    "run.recovered": EventKind(
        "the run's worker fell silent, and another may go on",
        ("worker", "term", "head", "recoveries", "lease_until", "ready_at"),
    ),
    "run.given_up": EventKind(
        "the run's workers fell silent too often, and nobody goes on until somebody asks",
        ("worker", "term", "head", "recoveries", "lease_until"),
    ),
    "run.history_lost": EventKind(
        "the store went back behind what it had acknowledged, and the run stopped",
        ("acknowledged", "head", "worker", "acknowledged_at", "hold"),
    ),
    "run.retry_requested": EventKind("somebody let a run that was given up go on", ("by",)),
    "run.cancel_requested": EventKind("somebody asked the run to stop", ("reason", "by")),
    "run.code_changed": EventKind(
        "code that is ahead of the run is not what the run began with", (*_TRIED, "code", "nodes")
    ),
    "run.migrated": EventKind(
        "the run went over to another version of its flow",
        ("from", "to", "from_label", "to_label", "renamed", "before", "forced", "seq"),
    ),
    "run.breaks_set": EventKind("where the run stops was changed", (*_TRIED, "breaks", "off")),
    "run.failing": EventKind("a failure is final; what still runs is being stopped", _TRIED),
    "run.fell_back": EventKind(
        "the run goes on behind damaged records that nothing outside depends on", _TRIED
    ),
    "run.damaged": EventKind("records of the run cannot be read", _TRIED),
    "run.uncheckpointed": EventKind("the run goes on without checkpoints, as its flow allows", _TRIED),
    "run.completed": EventKind("the run has ended well", ("status", "seq")),
    "run.failed": EventKind("the run has failed; it may be resumed", ("status", "seq", "error")),
    "run.cancelled": EventKind("the run was stopped, or superseded by another", ("status", "seq", "error")),
    "node.started": EventKind("a node begins its work", _VISIT),
    "node.completed": EventKind("a node's work is settled", _SETTLED),
    "node.failed": EventKind("a node failed for good", _SETTLED),
    "node.skipped": EventKind("no edge leads to the node any more"),
    "node.skipped_failure": EventKind("a node failed and its flow goes on without it", _SETTLED),
    "node.unknown": EventKind("nobody knows whether an effect happened", _SETTLED),
    "node.retried": EventKind("an attempt failed and another follows", _TRIED),
    "node.restarted": EventKind("a node that had begun before a crash begins again", _TRIED),
    "node.resumed": EventKind("a node goes on behind its recorded steps", _TRIED),
    "node.woke": EventKind("a node's wait for a time is over", _TRIED),
    "node.continued": EventKind("a node goes on from its breakpoint", _TRIED),
    "node.withdrawn": EventKind("a node was announced and did not begin", _TRIED),
    "node.child_failed": EventKind("a child of a map or sub-flow failed", _TRIED),
    "node.abandoned": EventKind("a node's work no longer counts: another branch won"),
    "node.attempted": EventKind("something else happened to an attempt", _TRIED),
    "node.step_done": EventKind("`ctx.step` inside a node is settled", _STEPPED),
    "node.step_failed": EventKind("`ctx.step` inside a node failed", _STEPPED),
    "node.emitted": EventKind("a node told something with `ctx.emit`", ("kind", "data", *_VISIT)),
    "edge.taken": EventKind("the run follows an edge", ("edge", "from", "to")),
    "loop.turned": EventKind("a loop begins another turn", ("edge",)),
    "walk.restarted": EventKind("a walk begins anew, with its state as at its start", ("edge", "to")),
    "branch.dropped": EventKind("a branch of a parallel node is stopped: others were enough", ("branch",)),
    "join.timed_out": EventKind("a join goes on without those that are late", _TRIED),
    "timer.started": EventKind("the run waits for a time", _TRIED),
    "hold.opened": EventKind(
        "a person is asked",
        ("hold_id", "entity_id", "type", "prompt", "options", "assignee", "is_resumed"),
    ),
    "hold.asked_again": EventKind("a question is still open after a resume", ("hold_id", "is_resumed")),
    "hold.resolved": EventKind("a question is decided", ("hold_id", "decision", "by")),
    "hold.cancelled": EventKind("a question is withdrawn", ("hold_id", "reason", "by")),
    "hold.reassigned": EventKind("a question is reassigned", ("hold_id", "from", "to", "by", "epoch")),
    "hold.claimed": EventKind("somebody works on a question", ("hold_id", "by", "until")),
    "hold.released": EventKind("nobody works on a question any more", ("hold_id", "by")),
    "hold.extended": EventKind("a question has a later deadline", ("hold_id", "by", "expires_at")),
    "hold.commented": EventKind("somebody said something about a question", ("hold_id", "by")),
    "hold.voted": EventKind("one of several people has decided", ("hold_id", "by")),
    "hold.placed": EventKind("a decision is made and can still be taken back", ("hold_id", "by", "until")),
    "hold.taken_back": EventKind("a decision was taken back in time", ("hold_id", "by")),
    "hold.asked_back": EventKind("the deadline stands still for a question back", ("hold_id", "by", "to")),
    "hold.replied": EventKind("a question back is answered", ("hold_id", "by")),
    "hold.question_dropped": EventKind("a question back needs no answer any more", ("hold_id", "by")),
    "hold.escalated": EventKind(
        "nobody decided in time, and the question goes to the next",
        ("hold_id", "from", "to", "epoch", "rung", "expires_at", "by", "reason"),
    ),
    "hold.expired": EventKind("nobody decided in time", ("hold_id", "reason", "by")),
    "hold.reminded": EventKind("somebody was reminded of a question", ("hold_id", "reminder", "by")),
    "hold.rescheduled": EventKind(
        "a calendar changed, and with it a deadline", ("hold_id", "by", "calendar", "expires_at")
    ),
    "hold.vetoed": EventKind(
        "a guardrail turned an approval into a refusal",
        ("hold_id", "guardrail", "reason", "decision", "effective_decision", "by"),
    ),
    "hold.answered": EventKind("the run has taken the answer to `ctx.ask`", ("step", "ordinal", "hold_id")),
    "checkpoint.created": EventKind(
        "a checkpoint is listed", ("checkpoint_id", "status", "node_id", "seq", "loop_num", "total_nodes")
    ),
    "record.unreadable": EventKind("a damaged record, by its columns", ("seq", "kind", "digest", "outcome")),
}
