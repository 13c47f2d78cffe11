"""Six built-in questions to people, each with a form, priority, deadline and typed answer."""

from __future__ import annotations

from holdfast.holds.interactions.answers import answer_of, reply_to
from holdfast.holds.interactions.builders import (
    approval,
    clarification,
    escalation,
    feedback,
    progress,
    review,
)
from holdfast.holds.interactions.question import InteractionQuestion

__all__ = [
    "InteractionQuestion",
    "answer_of",
    "approval",
    "clarification",
    "escalation",
    "feedback",
    "progress",
    "reply_to",
    "review",
]
