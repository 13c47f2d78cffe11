"""A built-in question, and its arguments for `flow.hold` or `ctx.ask`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.errors import InputError

APPROVAL: Final = "approval"
CLARIFICATION: Final = "clarification"
REVIEW: Final = "review"
ESCALATION: Final = "escalation"
PROGRESS: Final = "progress"
FEEDBACK: Final = "feedback"
KINDS: Final = (APPROVAL, CLARIFICATION, REVIEW, ESCALATION, PROGRESS, FEEDBACK)


class InteractionQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """`flow.hold("ok", **question.for_hold())`, or `await ctx.ask(**question.for_ask())` inside a node.

    `context` is for policies, judges and notifications; `sections` is the form.
    """

    kind: str
    prompt: str
    sections: tuple[dict[str, Any], ...]
    priority: str = "normal"
    timeout: str | float | None = None
    on_timeout: str | None = None
    default_option: str | None = None
    assignee: str | None = None
    context: dict[str, Any] = {}
    tags: tuple[str, ...] = ()

    def for_ask(self) -> dict[str, Any]:
        """Arguments for `ctx.ask`; its texts are literal."""
        return {**self._common(), "form": list(self.sections), "context": self.context}

    def for_hold(self) -> dict[str, Any]:
        """Arguments for `flow.hold`; its texts may have placeholders for the flow's state, `{{amount}}`."""
        return {**self._common(), "sections": list(self.sections), "context": self.context}

    def _common(self) -> dict[str, Any]:
        given = {
            "prompt": self.prompt,
            "type": self.kind,
            "priority": self.priority,
            "timeout": self.timeout,
            "on_timeout": self.on_timeout,
            "default_option": self.default_option,
            "assignee": self.assignee,
            "tags": list(self.tags),
            "interaction": self.kind,
        }
        return {name: value for name, value in given.items() if value is not None}


def require_known(what: str, value: str, known: Sequence[str]) -> str:
    """Raises InputError."""
    if value not in known:
        raise InputError(f"{what} {value!r} is not one of {', '.join(known)}.")
    return value


def shown_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that have a value."""
    return {name: value for name, value in facts.items() if value not in (None, "", (), [], {})}


def context_section(title: str, content: Any) -> list[dict[str, Any]]:
    return [{"type": "context", "title": title, "content": content}] if content else []


def input_section(field: str, label: str, kind: str = "textarea", **more: Any) -> dict[str, Any]:
    return {"type": "input", "field": field, "label": label, "kind": kind, **more}


def decision_section(*options: tuple[str, str, str]) -> dict[str, Any]:
    listed = [{"id": id_, "label": label, "variant": variant} for id_, label, variant in options]
    return {"type": "decision", "options": listed}
