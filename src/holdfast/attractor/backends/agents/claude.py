"""Claude Code: `claude -p --output-format stream-json`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.agents.messages import TokenUsage
from holdfast.attractor.backends.agents.adapter import AgentAdapter, AgentStart
from holdfast.attractor.backends.agents.stream import (
    AgentEvent,
    AgentReport,
    ShownEvent,
    count_at,
    fields_at,
    is_event,
    items_at,
    number_at,
    text_at,
)

_LIMITS: Final = frozenset({"error_max_turns", "error_max_budget_usd"})


class ClaudeAdapter(AgentAdapter):
    name = "claude"
    program = "claude"
    provider = "anthropic"
    variables = (
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
    )  # fmt: skip
    tested = ((2, 1, 197), (2, 2))
    takes_session = True
    reports_cost = True
    adds_up = False
    lost = re.compile(r"No conversation found with session ID")
    permissions: Mapping[str, str] = {"plan": "plan", "edit": "acceptEdits", "full": "bypassPermissions"}

    def words(self, start: AgentStart) -> list[str]:
        session = ["--resume" if start.resume else "--session-id", start.session]
        words = [self.program, "-p", "--output-format", "stream-json", "--verbose", *session]
        words += ["--permission-mode", self.permissions[start.permissions]]
        words += ["--model", start.model] if start.model else []
        words += ["--effort", start.effort] if start.effort else []
        for folder in start.folders:
            words += ["--add-dir", str(folder)]
        return words

    def read(self, events: Iterable[AgentEvent]) -> AgentReport:
        """`is_error` decides: a refused request has the subtype `success`. The result may lack its text: then
        the last message of the assistant is the answer. A turn may follow a result, with one of its own."""
        session, model, said, count = "", "", "", 0
        last: AgentEvent | None = None
        for event in events:
            count += is_event(event)
            session = text_at(event, "session_id") or session
            if event["type"] == "system":
                model = text_at(event, "model") or model
            elif event["type"] == "assistant" and not event.get("parent_tool_use_id"):
                said, last = _texts(event) or said, None
            elif event["type"] == "result":
                last = event
        known = AgentReport(session=session, model=model, text=said, events=count)
        return known if last is None else _ended(known, last)

    def begins(self, event: AgentEvent) -> bool:
        return event["type"] == "system" and bool(text_at(event, "session_id"))

    def shown(self, event: AgentEvent) -> ShownEvent | None:
        if event["type"] != "assistant":
            return None
        text = _texts(event)
        if text:
            return ShownEvent("text", text)
        names = [text_at(part, "name") for part in items_at(event, "message", "content")]
        return ShownEvent("tool", {"tool": ", ".join(names)}) if any(names) else None


def _texts(event: AgentEvent) -> str:
    return "".join(
        text_at(part, "text")
        for part in items_at(event, "message", "content")
        if text_at(part, "type") == "text"
    )


def _ended(known: AgentReport, event: AgentEvent) -> AgentReport:
    subtype, wrong = text_at(event, "subtype"), event.get("is_error")
    text = text_at(event, "result") or known.text
    # A limit of turns is an error of older versions without `is_error`.
    failed = (
        wrong not in (None, False) or subtype.startswith("error") or (wrong is None and subtype != "success")
    )
    errors = [each for each in items_at(event, "errors") if isinstance(each, str)]
    reason = text_at(event, "result") or "; ".join(errors) or subtype or "it reports an error"
    return AgentReport(
        session=known.session,
        model=known.model,
        text=text,
        ended=True,
        failed=reason if failed else "",
        status=count_at(event, "api_error_status"),
        limit=subtype in _LIMITS,
        usage=_usage(fields_at(event, "usage")),
        cost=number_at(event, "total_cost_usd"),
        structured=fields_at(event, "structured_output"),
        events=known.events,
    )


def _usage(found: dict[str, Any] | None) -> TokenUsage | None:
    """Its input is what neither came from the cache nor went there."""
    if found is None:
        return None
    cached, written = (
        count_at(found, "cache_read_input_tokens"),
        count_at(found, "cache_creation_input_tokens"),
    )
    plain = count_at(found, "input_tokens")
    return TokenUsage(plain + cached + written, count_at(found, "output_tokens"), cached, written)
