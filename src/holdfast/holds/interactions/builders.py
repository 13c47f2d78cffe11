"""Before something is done: may it be, what is meant, is it right?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InputError
from holdfast.holds.interactions import builders__words
from holdfast.holds.interactions import question as q
from holdfast.holds.interactions.question import (
    Question,
    chosen,
    context_section,
    decision_section,
    input_section,
    shown,
)

Duration = str | float | None


def approval(
    description: str,
    *,
    severity: str = "medium",
    category: str = "other",
    agent: str | None = None,
    consequences: str | None = None,
    reversible: bool | None = None,
    estimated_cost: str | float | None = None,
    alternatives: Mapping[str, str] | None = None,
    timeout: Duration = builders__words.DEFAULT_WAIT,
    auto_reject: bool = False,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> Question:
    """May this be done? Unanswered it fails, or with `auto_reject` it is refused. `alternatives`: id -> label
    of what may be done instead. The answer may carry `modifications` of what was approved."""
    facts = {
        "severity": chosen("severity", severity, builders__words.SEVERITIES),
        "category": chosen("category", category, builders__words.CATEGORIES),
        "agent": agent,
        "consequences": consequences,
        "reversible": reversible,
        "estimated_cost": estimated_cost,
        "alternatives": dict(alternatives or {}),
    }
    return Question(
        kind=q.APPROVAL,
        prompt=description,
        priority=severity if severity in ("high", "critical") else "normal",
        timeout=timeout,
        on_timeout="default_option" if auto_reject else "fail",
        default_option="reject" if auto_reject else None,
        assignee=assignee,
        context={**(context or {}), **shown(facts)},
        sections=(
            *context_section("Consequences", consequences),
            decision_section(("approve", "Approve", "primary"), ("reject", "Reject", "danger")),
            *_alternatives(alternatives),
            input_section("rejection_reason", "Why not?", visible_if="decision == 'reject'"),
            input_section("instructions", "Instructions", visible_if="decision == 'approve'"),
            input_section("modifications", "Changes", "json", visible_if="decision == 'approve'"),
            input_section("feedback", "Feedback"),
        ),
    )


def _alternatives(given: Mapping[str, str] | None) -> list[dict[str, Any]]:
    if not given:
        return []
    options = [{"id": id_, "label": label} for id_, label in given.items()]
    return [
        input_section("alternative", "Instead", "select", options=options, visible_if="decision == 'approve'")
    ]


def clarification(
    question: str,
    *,
    doubt: str = "ambiguity",
    options: Mapping[str, str] | Sequence[str] = (),
    allow_freeform: bool = True,
    agent: str | None = None,
    timeout: Duration = builders__words.DEFAULT_WAIT,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> Question:
    """What is meant? One of the options, or a free answer where that is allowed. Unanswered it fails."""
    labels = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
    if not labels and not allow_freeform:
        raise InputError("a clarification without options needs allow_freeform.", hint="Give options.")
    if builders__words.FREEFORM in labels:
        raise InputError(
            f"the option {builders__words.FREEFORM!r} stands for a free answer.", hint="Name it otherwise."
        )
    listed = [(id_, label, "secondary") for id_, label in labels.items()]
    if allow_freeform:
        listed.append((builders__words.FREEFORM, "Something else" if labels else "Answer", "secondary"))
    text = input_section("text", "Answer", required=True, visible_if=f"decision == '{builders__words.FREEFORM}'")
    facts = {"doubt": chosen("doubt", doubt, builders__words.DOUBTS), "agent": agent}
    return Question(
        kind=q.CLARIFICATION,
        prompt=question,
        timeout=timeout,
        on_timeout="fail",
        assignee=assignee,
        context={**(context or {}), **shown(facts)},
        sections=(decision_section(*listed), *([text] if allow_freeform else [])),
    )


def review(
    content: str,
    *,
    purpose: str = "Please review this.",
    content_type: str = "text",
    focus: Sequence[str] = (),
    confidence: float | None = None,
    agent: str | None = None,
    timeout: Duration = builders__words.DEFAULT_WAIT,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> Question:
    """Is this right? It can be edited. Unanswered it stays as it was, and nobody edited it."""
    if confidence is not None and not 0 <= confidence <= 1:
        raise InputError(f"a confidence of {confidence!r} is not from 0 to 1.")
    facts = {
        "content": content,
        "content_type": chosen("content_type", content_type, builders__words.CONTENTS),
        "focus": list(focus),
        "confidence": confidence,
        "agent": agent,
    }
    kind = {"code": "code", "json": "code", "markdown": "markdown"}.get(content_type, "textarea")
    return Question(
        kind=q.REVIEW,
        prompt=purpose,
        priority="high" if confidence is not None and confidence < 0.5 else "normal",
        timeout=timeout,
        on_timeout=None if timeout is None else "default_option",
        default_option=builders__words.KEEP,
        assignee=assignee,
        context={**(context or {}), **shown(facts)},
        sections=(
            *context_section("Look at", "\n".join(focus)),
            decision_section(
                (builders__words.KEEP, "Leave as it is", "secondary"), ("edit", "Take the edited text", "primary")
            ),
            input_section(
                "content", "Text", kind, default=content, required=True, visible_if="decision == 'edit'"
            ),
            input_section("summary", "What was changed", visible_if="decision == 'edit'"),
            input_section("feedback", "Feedback"),
        ),
    )
