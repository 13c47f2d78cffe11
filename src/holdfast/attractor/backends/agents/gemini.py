"""Gemini CLI: `gemini -o stream-json`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from holdfast.agents.messages import TokenUsage
from holdfast.attractor.backends.agents.adapter import AgentAdapter, AgentStart
from holdfast.attractor.backends.agents.stream import (
    AgentEvent,
    AgentReport,
    ShownEvent,
    count_at,
    fields_at,
    is_event,
    text_at,
)
from holdfast.attractor.failures import LIMIT, TERMINAL


class GeminiAdapter(AgentAdapter):
    name = "gemini"
    program = "gemini"
    provider = "gemini"
    variables = (
        "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_DEFAULT_AUTH_TYPE",
    )  # fmt: skip
    tested = ((0, 61), (0, 62))
    takes_session = True
    reports_cost = False
    adds_up = False
    lost = re.compile(r"Error resuming session|No previous sessions found", re.IGNORECASE)
    permissions: Mapping[str, str] = {"plan": "plan", "edit": "auto_edit", "full": "yolo"}
    exit_kinds: Mapping[int, str] = {41: TERMINAL, 42: TERMINAL, 44: TERMINAL, 52: TERMINAL, 53: LIMIT}

    def words(self, start: AgentStart) -> list[str]:
        session = ["--resume" if start.resume else "--session-id", start.session]
        words = [self.program, "-o", "stream-json", "--skip-trust", *session]
        words += ["--approval-mode", self.permissions[start.permissions]]
        words += ["-m", start.model] if start.model else []
        for folder in start.folders:
            words += ["--include-directories", str(folder)]
        return words

    def read(self, events: Iterable[AgentEvent]) -> AgentReport:
        """The answer is all that the assistant said. The event counts before the exit code, which may be an
        HTTP status modulo 256."""
        session, model, count = "", "", 0
        last: AgentEvent | None = None
        parts: list[str] = []
        joined = False
        for event in events:
            kind = event["type"]
            count += is_event(event)
            if kind == "init":
                session = text_at(event, "session_id") or session
                model = text_at(event, "model") or model
            elif kind == "message" and text_at(event, "role") == "assistant":
                # What it says after a tool is a new paragraph: a block begins on a line of its own.
                said = text_at(event, "content")
                parts += ["\n\n", said] if said and parts and not joined else [said] if said else []
                joined, last = True, None
            elif kind == "result":
                last = event
            if kind in ("tool_use", "tool_result"):
                joined = False
        known = AgentReport(session=session, model=model, text="".join(parts), events=count)
        return known if last is None else _ended(known, last)

    def begins(self, event: AgentEvent) -> bool:
        return event["type"] == "init" and bool(text_at(event, "session_id"))

    def shown(self, event: AgentEvent) -> ShownEvent | None:
        if event["type"] == "message" and text_at(event, "role") == "assistant":
            return ShownEvent("text", text_at(event, "content"))
        if event["type"] == "tool_use":
            return ShownEvent("tool", {"tool": text_at(event, "tool_name")})
        if event["type"] == "error":
            return ShownEvent("agent", {"text": text_at(event, "message")})
        return None


def _ended(known: AgentReport, event: AgentEvent) -> AgentReport:
    succeeded = text_at(event, "status") == "success"
    message = text_at(event, "error", "message") or "it reports an error"
    return AgentReport(
        session=known.session,
        model=known.model,
        text=known.text,
        ended=True,
        failed="" if succeeded else message,
        limit=not succeeded and "turn" in text_at(event, "error", "type").lower(),
        usage=_usage(event),
        events=known.events,
    )


def _usage(event: AgentEvent) -> TokenUsage | None:
    """Its output does not have the thoughts, which its total has."""
    found = fields_at(event, "stats")
    if found is None:
        return None
    into = count_at(found, "input_tokens")
    out = max(count_at(found, "output_tokens"), count_at(found, "total_tokens") - into)
    return TokenUsage(into, out, count_at(found, "cached"))
