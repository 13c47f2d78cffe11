"""Typed answers to built-in questions."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, Final, cast

import msgspec

from holdfast.errors import InputError
from holdfast.holds.interactions import question as q
from holdfast.holds.interactions.builders import FREEFORM
from holdfast.types.decision_words import approves

SIGNIFICANT: Final = 0.9
"""Minimum similarity of texts that differ only by a typing error."""
SYSTEM: Final = "system"


class ApprovalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`approved` may be False. `alternative`: what to do instead. `modifications`: of `arguments`,
    `output` and `instructions`."""

    approved: bool
    rejection_reason: str | None = None
    alternative: str | None = None
    instructions: str | None = None
    modifications: dict[str, Any] = {}
    feedback: str | None = None
    decided_by: str = SYSTEM


class ClarificationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Either the chosen option, or a free text."""

    option: str | None = None
    text: str | None = None
    decided_by: str = SYSTEM


class ReviewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`content` after the review; `by` is `system` if it was not reviewed in time."""

    content: str
    changed: bool = False
    significant: bool = False
    summary: str | None = None
    feedback: str | None = None
    decided_by: str = SYSTEM


class EscalationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`action`: agent_continue, human_takeover, delegate, abort."""

    action: str
    guidance: str | None = None
    parameters: Any = None
    target: str | None = None
    instructions: str | None = None
    reason: str | None = None
    decided_by: str = SYSTEM


class ProgressAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`action`: continue, pause, modify, abort."""

    action: str
    goal: str | None = None
    skip: Any = None
    add: Any = None
    parameters: Any = None
    reason: str | None = None
    decided_by: str = SYSTEM


class FeedbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Feedback. `text` is None if it was skipped."""

    text: str | None = None
    kind: str = "guidance"
    aspect: str = "other"
    importance: int = 3
    decided_by: str = SYSTEM


InteractionAnswer = (
    ApprovalAnswer | ClarificationAnswer | ReviewAnswer | EscalationAnswer | ProgressAnswer | FeedbackAnswer
)


def answer_of(
    kind: str, resolution: Mapping[str, Any], context: Mapping[str, Any] | None = None
) -> InteractionAnswer:
    """From a hold's resolution (`<bind>_result` in a flow) and its context."""
    read = _READERS.get(kind)
    if read is None:
        raise InputError(f"{kind!r} is not a built-in question.", hint=f"Known: {', '.join(q.KINDS)}.")
    decision = str(resolution.get("effective_decision") or resolution.get("decision"))
    data: Any = resolution.get("response_data")
    by = SYSTEM if resolution.get("auto_expired") else str(resolution.get("resolved_by") or SYSTEM)
    return read(decision, _filled_fields(data), context or {}, by)


def reply_to(question: q.InteractionQuestion, reply: Any) -> InteractionAnswer:
    """Of what `ctx.ask` returned."""
    by = str(reply.by or SYSTEM)
    resolution = {
        "decision": reply.decision,
        "response_data": reply.data,
        "resolved_by": SYSTEM if by.startswith("system:") else by,
    }
    return answer_of(question.kind, resolution, question.context)


def _filled_fields(data: Any) -> dict[str, Any]:
    """The fields that were filled in, without empty ones."""
    given: Mapping[str, Any] = cast("Any", data) if isinstance(data, Mapping) else {}
    return {name: value for name, value in given.items() if value not in (None, "")}


def _approved(decision: str, data: dict[str, Any], _context: Mapping[str, Any], by: str) -> ApprovalAnswer:
    changes = data.pop("modifications", None)
    kept = {name: data.get(name) for name in ("rejection_reason", "alternative", "instructions", "feedback")}
    return ApprovalAnswer(
        approved=approves(decision),
        modifications=dict(cast("Mapping[str, Any]", changes)) if isinstance(changes, Mapping) else {},
        decided_by=by,
        **kept,
    )


def _clarified(
    decision: str, data: dict[str, Any], _context: Mapping[str, Any], by: str
) -> ClarificationAnswer:
    if decision == FREEFORM:
        return ClarificationAnswer(text=data.get("text"), decided_by=by)
    return ClarificationAnswer(option=decision, decided_by=by)


def _reviewed(decision: str, data: dict[str, Any], context: Mapping[str, Any], by: str) -> ReviewAnswer:
    original = str(context.get("content", ""))
    content = str(data.get("content", original)) if decision == "edit" else original
    alike = SequenceMatcher(None, original, content, autojunk=False).quick_ratio()
    return ReviewAnswer(
        content=content,
        changed=content != original,
        significant=alike < SIGNIFICANT,
        summary=data.get("summary"),
        feedback=data.get("feedback"),
        decided_by=by,
    )


def _directed(decision: str, data: dict[str, Any], _context: Mapping[str, Any], by: str) -> EscalationAnswer:
    names = ("guidance", "parameters", "target", "instructions", "reason")
    return EscalationAnswer(action=decision, decided_by=by, **{name: data.get(name) for name in names})


def _steered(decision: str, data: dict[str, Any], _context: Mapping[str, Any], by: str) -> ProgressAnswer:
    names = ("goal", "skip", "add", "parameters", "reason")
    return ProgressAnswer(action=decision, decided_by=by, **{name: data.get(name) for name in names})


def _feedback(decision: str, data: dict[str, Any], _context: Mapping[str, Any], by: str) -> FeedbackAnswer:
    if decision != "give":
        return FeedbackAnswer(decided_by=by)
    return FeedbackAnswer(
        text=data.get("text"),
        kind=data.get("kind", "guidance"),
        aspect=data.get("aspect", "other"),
        importance=int(data.get("importance", 3)),
        decided_by=by,
    )


_READERS: Final = {
    q.APPROVAL: _approved,
    q.CLARIFICATION: _clarified,
    q.REVIEW: _reviewed,
    q.ESCALATION: _directed,
    q.PROGRESS: _steered,
    q.FEEDBACK: _feedback,
}
