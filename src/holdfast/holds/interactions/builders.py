"""Builders of the built-in questions: approval, clarification and review before an action; escalation,
progress and feedback while or after it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.errors import InputError
from holdfast.holds.interactions import question
from holdfast.holds.interactions import question as q
from holdfast.holds.interactions.question import (
    InteractionQuestion,
    context_section,
    decision_section,
    input_section,
    require_known,
    shown_facts,
)

# Labels and texts of forms below are part of the graphs that use them: changing one changes the fingerprints
# of users' flows.
SEVERITIES: Final = ("low", "medium", "high", "critical")
CATEGORIES: Final = ("data_modification", "external_api", "financial", "communication", "system", "other")
DOUBTS: Final = ("ambiguity", "missing_info", "preference", "verification", "guidance")
CONTENTS: Final = ("text", "code", "json", "markdown", "html")
REASONS: Final = (
    "low_confidence",
    "repeated_failures",
    "ethical_concern",
    "out_of_scope",
    "resource_limit",
    "conflicting_instructions",
    "safety_concern",
    "user_requested",
    "policy_violation",
    "unknown_territory",
)
FEEDBACK_TYPES: Final = ("correction", "praise", "guidance", "preference", "complaint")
ASPECTS: Final = ("accuracy", "style", "speed", "judgment", "communication", "other")
DEFAULT_WAIT: Final = "5m"
FREEFORM: Final = "freeform"
KEEP: Final = "keep"


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
    timeout: Duration = DEFAULT_WAIT,
    auto_reject: bool = False,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> InteractionQuestion:
    """Ask for approval. At the timeout it fails, or with `auto_reject` it is rejected. `alternatives`: id ->
    label of other actions. The answer may contain `modifications` of what was approved."""
    facts = {
        "severity": require_known("severity", severity, SEVERITIES),
        "category": require_known("category", category, CATEGORIES),
        "agent": agent,
        "consequences": consequences,
        "reversible": reversible,
        "estimated_cost": estimated_cost,
        "alternatives": dict(alternatives or {}),
    }
    return InteractionQuestion(
        kind=q.APPROVAL,
        prompt=description,
        priority=severity if severity in ("high", "critical") else "normal",
        timeout=timeout,
        on_timeout="default_option" if auto_reject else "fail",
        default_option="reject" if auto_reject else None,
        assignee=assignee,
        context={**(context or {}), **shown_facts(facts)},
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
    timeout: Duration = DEFAULT_WAIT,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> InteractionQuestion:
    """Ask what is meant: one of the options, or a free answer if that is allowed. At the timeout it fails."""
    labels = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
    if not labels and not allow_freeform:
        raise InputError("a clarification without options needs allow_freeform.", hint="Give options.")
    if FREEFORM in labels:
        raise InputError(f"the option id {FREEFORM!r} is reserved for a free answer.", hint="Use another id.")
    listed = [(id_, label, "secondary") for id_, label in labels.items()]
    if allow_freeform:
        listed.append((FREEFORM, "Something else" if labels else "Answer", "secondary"))
    text = input_section("text", "Answer", required=True, visible_if=f"decision == '{FREEFORM}'")
    facts = {"doubt": require_known("doubt", doubt, DOUBTS), "agent": agent}
    return InteractionQuestion(
        kind=q.CLARIFICATION,
        prompt=question,
        timeout=timeout,
        on_timeout="fail",
        assignee=assignee,
        context={**(context or {}), **shown_facts(facts)},
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
    timeout: Duration = DEFAULT_WAIT,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> InteractionQuestion:
    """Ask for a review; the content can be edited. At the timeout it is kept unchanged."""
    if confidence is not None and not 0 <= confidence <= 1:
        raise InputError(f"the confidence {confidence!r} is not between 0 and 1.")
    facts = {
        "content": content,
        "content_type": require_known("content_type", content_type, CONTENTS),
        "focus": list(focus),
        "confidence": confidence,
        "agent": agent,
    }
    kind = {"code": "code", "json": "code", "markdown": "markdown"}.get(content_type, "textarea")
    return InteractionQuestion(
        kind=q.REVIEW,
        prompt=purpose,
        priority="high" if confidence is not None and confidence < 0.5 else "normal",
        timeout=timeout,
        on_timeout=None if timeout is None else "default_option",
        default_option=KEEP,
        assignee=assignee,
        context={**(context or {}), **shown_facts(facts)},
        sections=(
            *context_section("Look at", "\n".join(focus)),
            decision_section(
                (KEEP, "Leave as it is", "secondary"), ("edit", "Take the edited text", "primary")
            ),
            input_section(
                "content", "Text", kind, default=content, required=True, visible_if="decision == 'edit'"
            ),
            input_section("summary", "What was changed", visible_if="decision == 'edit'"),
            input_section("feedback", "Feedback"),
        ),
    )


def escalation(
    reason: str,
    explanation: str,
    *,
    urgency: str = "normal",
    agent: str | None = None,
    state: Mapping[str, Any] | None = None,
    attempts: Sequence[str] = (),
    assessment: str | None = None,
    recommendations: Sequence[str] = (),
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> InteractionQuestion:
    """An agent needs help: a person takes over, gives guidance, delegates it, or aborts. It has no
    timeout."""
    facts = {
        "reason": require_known("reason", reason, REASONS),
        "agent": agent,
        "state": dict(state or {}),
        "attempts": list(attempts),
        "assessment": assessment,
        "recommendations": list(recommendations),
    }
    return InteractionQuestion(
        kind=question.ESCALATION,
        prompt=explanation,
        priority={"medium": "normal"}.get(urgency, urgency),
        assignee=assignee,
        context={**(context or {}), **shown_facts(facts)},
        sections=(
            *context_section("Tried so far", "\n".join(attempts)),
            *context_section("Recommended", "\n".join(recommendations)),
            decision_section(
                ("agent_continue", "Continue", "primary"),
                ("human_takeover", "I take over", "secondary"),
                ("delegate", "Delegate", "secondary"),
                ("abort", "Abort", "danger"),
            ),
            input_section("guidance", "How to continue", visible_if="decision == 'agent_continue'"),
            input_section(
                "parameters", "Changed parameters", "json", visible_if="decision == 'agent_continue'"
            ),
            input_section("target", "To whom", "text", required=True, visible_if="decision == 'delegate'"),
            input_section("instructions", "Instructions", visible_if="decision == 'delegate'"),
            input_section("reason", "Why", visible_if="decision == 'abort'"),
        ),
    )


def progress(
    phase: str,
    *,
    share: float,
    completed: Sequence[str] = (),
    upcoming: Sequence[str] = (),
    issues: Sequence[str] = (),
    notes: str | None = None,
    workflow: str | None = None,
    agent: str | None = None,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> InteractionQuestion:
    """Report progress: a person continues, pauses, changes or aborts the work. It has no timeout."""
    if not 0 <= share <= 1:
        raise InputError(f"the progress {share!r} is not between 0 and 1.")
    facts = {
        "workflow": workflow,
        "phase": phase,
        "progress": share,
        "completed": list(completed),
        "upcoming": list(upcoming),
        "issues": list(issues),
        "notes": notes,
        "agent": agent,
    }
    return InteractionQuestion(
        kind=question.PROGRESS,
        prompt=f"{phase}: {share:.0%} done. Continue?",
        priority="high" if issues else "low",
        assignee=assignee,
        context={**(context or {}), **shown_facts(facts)},
        sections=(
            *context_section("Issues", "\n".join(issues)),
            *context_section("Done", "\n".join(completed)),
            *context_section("Next", "\n".join(upcoming)),
            decision_section(
                ("continue", "Continue", "primary"),
                ("pause", "Pause", "secondary"),
                ("modify", "Continue with changes", "secondary"),
                ("abort", "Abort", "danger"),
            ),
            input_section("goal", "New goal", visible_if="decision == 'modify'"),
            input_section("skip", "Steps to leave out", "json", visible_if="decision == 'modify'"),
            input_section("add", "Steps to add", "json", visible_if="decision == 'modify'"),
            input_section("parameters", "Changed parameters", "json", visible_if="decision == 'modify'"),
            input_section("reason", "Why", visible_if="decision == 'pause' || decision == 'abort'"),
        ),
    )


def feedback(
    about: str,
    *,
    agent: str | None = None,
    timeout: Duration = None,
    assignee: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> InteractionQuestion:
    """Ask for feedback. An answer is optional: after the timeout the flow continues without it."""
    importance = input_section("importance", "Importance", "integer", min=1, max=5, default=3)
    given = "decision == 'give'"
    return InteractionQuestion(
        kind=question.FEEDBACK,
        prompt=about,
        priority="low",
        timeout=timeout,
        on_timeout=None if timeout is None else "default_option",
        default_option="skip",
        assignee=assignee,
        context={**(context or {}), **shown_facts({"agent": agent})},
        sections=(
            decision_section(("give", "Send", "primary"), ("skip", "Nothing to say", "secondary")),
            input_section("text", "Feedback", required=True, visible_if=given),
            _choice("kind", "Kind", FEEDBACK_TYPES, "guidance", given),
            _choice("aspect", "About", ASPECTS, "other", given),
            {**importance, "visible_if": given},
        ),
    )


def _choice(field: str, label: str, known: Sequence[str], default: str, when: str) -> dict[str, Any]:
    return input_section(field, label, "select", options=list(known), default=default, visible_if=when)
