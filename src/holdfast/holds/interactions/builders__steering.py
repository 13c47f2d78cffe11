"""While something is done: help for an agent that is stuck, a look at the way, a word afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InputError
from holdfast.holds.interactions import builders__words, question
from holdfast.holds.interactions.question import (
    Question,
    chosen,
    context_section,
    decision_section,
    input_section,
    shown,
)

Duration = str | float | None


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
) -> Question:
    """An agent is stuck: somebody takes over, says how to go on, hands it to another, or ends it. It waits
    for as long as it takes."""
    facts = {
        "reason": chosen("reason", reason, builders__words.REASONS),
        "agent": agent,
        "state": dict(state or {}),
        "attempts": list(attempts),
        "assessment": assessment,
        "recommendations": list(recommendations),
    }
    return Question(
        kind=question.ESCALATION,
        prompt=explanation,
        priority={"medium": "normal"}.get(urgency, urgency),
        assignee=assignee,
        context={**(context or {}), **shown(facts)},
        sections=(
            *context_section("Tried so far", "\n".join(attempts)),
            *context_section("Recommended", "\n".join(recommendations)),
            decision_section(
                ("agent_continue", "Go on", "primary"),
                ("human_takeover", "I take over", "secondary"),
                ("delegate", "Hand it to another", "secondary"),
                ("abort", "End it", "danger"),
            ),
            input_section("guidance", "How to go on", visible_if="decision == 'agent_continue'"),
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
) -> Question:
    """Is work on the right way? It goes on, pauses, goes on otherwise, or ends. It waits."""
    if not 0 <= share <= 1:
        raise InputError(f"a progress of {share!r} is not between 0 and 1.")
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
    return Question(
        kind=question.PROGRESS,
        prompt=f"{phase}: {share:.0%} done. Go on?",
        priority="high" if issues else "low",
        assignee=assignee,
        context={**(context or {}), **shown(facts)},
        sections=(
            *context_section("Issues", "\n".join(issues)),
            *context_section("Done", "\n".join(completed)),
            *context_section("Next", "\n".join(upcoming)),
            decision_section(
                ("continue", "Go on", "primary"),
                ("pause", "Pause", "secondary"),
                ("modify", "Go on otherwise", "secondary"),
                ("abort", "End it", "danger"),
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
) -> Question:
    """How was it? Nobody has to answer: past its timeout the flow goes on without."""
    importance = input_section("importance", "Importance", "integer", min=1, max=5, default=3)
    given = "decision == 'give'"
    return Question(
        kind=question.FEEDBACK,
        prompt=about,
        priority="low",
        timeout=timeout,
        on_timeout=None if timeout is None else "default_option",
        default_option="skip",
        assignee=assignee,
        context={**(context or {}), **shown({"agent": agent})},
        sections=(
            decision_section(("give", "Send", "primary"), ("skip", "Nothing to say", "secondary")),
            input_section("text", "Feedback", required=True, visible_if=given),
            _choice("kind", "Kind", builders__words.FEEDBACK_TYPES, "guidance", given),
            _choice("aspect", "About", builders__words.ASPECTS, "other", given),
            {**importance, "visible_if": given},
        ),
    )


def _choice(field: str, label: str, known: Sequence[str], default: str, when: str) -> dict[str, Any]:
    return input_section(field, label, "select", options=list(known), default=default, visible_if=when)
