"""What came of a ready-made question, with a type."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, Final, cast

import msgspec

from holdfast.errors import InputError
from holdfast.holds.interactions import question as q
from holdfast.holds.interactions.builders import FREEFORM
from holdfast.types.yes_no import approves

SIGNIFICANT: Final = 0.9
"""Texts that are less alike than this differ in more than a slip."""
SYSTEM: Final = "system"


class Approved(msgspec.Struct, frozen=True, kw_only=True):
    """`approved` may be False. `alternative`: what is to be done instead. `modifications`: of `arguments`,
    `output` and `instructions`."""

    approved: bool
    rejection_reason: str | None = None
    alternative: str | None = None
    instructions: str | None = None
    modifications: dict[str, Any] = {}
    feedback: str | None = None
    decided_by: str = SYSTEM


class Clarified(msgspec.Struct, frozen=True, kw_only=True):
    """Either the option that was chosen, or a free text."""

    option: str | None = None
    text: str | None = None
    decided_by: str = SYSTEM


class Reviewed(msgspec.Struct, frozen=True, kw_only=True):
    """`content` as it is now; by `system` where nobody looked at it in time."""

    content: str
    changed: bool = False
    significant: bool = False
    summary: str | None = None
    feedback: str | None = None
    decided_by: str = SYSTEM


class Directed(msgspec.Struct, frozen=True, kw_only=True):
    """`action`: agent_continue, human_takeover, delegate, abort."""

    action: str
    guidance: str | None = None
    parameters: Any = None
    target: str | None = None
    instructions: str | None = None
    reason: str | None = None
    decided_by: str = SYSTEM


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    """`action`: continue, pause, modify, abort."""

    action: str
    goal: str | None = None
    skip: Any = None
    add: Any = None
    parameters: Any = None
    reason: str | None = None
    decided_by: str = SYSTEM


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Feedback. `text` is None where there was nothing to say."""

    text: str | None = None
    kind: str = "guidance"
    aspect: str = "other"
    importance: int = 3
    decided_by: str = SYSTEM


Answer = Approved | Clarified | Reviewed | Directed | Steered | Told


def answer_of(kind: str, resolution: Mapping[str, Any], context: Mapping[str, Any] | None = None) -> Answer:
    """Of a hold's resolution (`<bind>_result` in a flow) and what was shown with it."""
    read = _READERS.get(kind)
    if read is None:
        raise InputError(
            f"{kind!r} is none of the ready-made questions.", hint=f"They are: {', '.join(q.KINDS)}."
        )
    decision = str(resolution.get("effective_decision") or resolution.get("decision"))
    data: Any = resolution.get("response_data")
    by = SYSTEM if resolution.get("auto_expired") else str(resolution.get("resolved_by") or SYSTEM)
    return read(decision, _said(data), context or {}, by)


def reply_to(question: q.Question, reply: Any) -> Answer:
    """Of what `ctx.ask` returned."""
    by = str(reply.by or SYSTEM)
    resolution = {
        "decision": reply.decision,
        "response_data": reply.data,
        "resolved_by": SYSTEM if by.startswith("system:") else by,
    }
    return answer_of(question.kind, resolution, question.context)


def _said(data: Any) -> dict[str, Any]:
    """What was filled in; a field that was left empty says nothing."""
    given: Mapping[str, Any] = cast("Any", data) if isinstance(data, Mapping) else {}
    return {name: value for name, value in given.items() if value not in (None, "")}


def _approved(decision: str, said: dict[str, Any], _context: Mapping[str, Any], by: str) -> Approved:
    changes = said.pop("modifications", None)
    kept = {name: said.get(name) for name in ("rejection_reason", "alternative", "instructions", "feedback")}
    return Approved(
        approved=approves(decision),
        modifications=dict(cast("Mapping[str, Any]", changes)) if isinstance(changes, Mapping) else {},
        decided_by=by,
        **kept,
    )


def _clarified(decision: str, said: dict[str, Any], _context: Mapping[str, Any], by: str) -> Clarified:
    if decision == FREEFORM:
        return Clarified(text=said.get("text"), decided_by=by)
    return Clarified(option=decision, decided_by=by)


def _reviewed(decision: str, said: dict[str, Any], context: Mapping[str, Any], by: str) -> Reviewed:
    original = str(context.get("content", ""))
    content = str(said.get("content", original)) if decision == "edit" else original
    alike = SequenceMatcher(None, original, content, autojunk=False).quick_ratio()
    return Reviewed(
        content=content,
        changed=content != original,
        significant=alike < SIGNIFICANT,
        summary=said.get("summary"),
        feedback=said.get("feedback"),
        decided_by=by,
    )


def _directed(decision: str, said: dict[str, Any], _context: Mapping[str, Any], by: str) -> Directed:
    names = ("guidance", "parameters", "target", "instructions", "reason")
    return Directed(action=decision, decided_by=by, **{name: said.get(name) for name in names})


def _steered(decision: str, said: dict[str, Any], _context: Mapping[str, Any], by: str) -> Steered:
    names = ("goal", "skip", "add", "parameters", "reason")
    return Steered(action=decision, decided_by=by, **{name: said.get(name) for name in names})


def _told(decision: str, said: dict[str, Any], _context: Mapping[str, Any], by: str) -> Told:
    if decision != "give":
        return Told(decided_by=by)
    return Told(
        text=said.get("text"),
        kind=said.get("kind", "guidance"),
        aspect=said.get("aspect", "other"),
        importance=int(said.get("importance", 3)),
        decided_by=by,
    )


_READERS: Final = {
    q.APPROVAL: _approved,
    q.CLARIFICATION: _clarified,
    q.REVIEW: _reviewed,
    q.ESCALATION: _directed,
    q.PROGRESS: _steered,
    q.FEEDBACK: _told,
}
