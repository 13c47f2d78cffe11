"""Codex: `codex exec --json`."""

from __future__ import annotations

import json
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


class CodexAdapter(AgentAdapter):
    name = "codex"
    program = "codex"
    provider = "openai"
    variables = ("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME")
    tested = ((0, 166), (0, 170))
    takes_session = False
    reports_cost = False
    adds_up = True
    lost = re.compile(r"no rollout found for thread id|session .{1,80} not found", re.IGNORECASE)
    permissions: Mapping[str, str] = {
        "plan": "read-only",
        "edit": "workspace-write",
        "full": "danger-full-access",
    }

    def words(self, start: AgentStart) -> list[str]:
        """Settings and not options: `resume` has neither `--sandbox` nor `--add-dir`."""
        if start.resume:
            words = [self.program, "exec", "resume", start.session, "--json"]
        else:
            words = [self.program, "exec", "--json", "-C", str(start.workspace)]
        settings = {"sandbox_mode": json.dumps(self.permissions[start.permissions])}
        if start.folders:
            settings["sandbox_workspace_write.writable_roots"] = json.dumps([str(f) for f in start.folders])
        if start.effort:
            settings["model_reasoning_effort"] = json.dumps(start.effort)
        words.append("--skip-git-repo-check")
        for key, value in settings.items():
            words += ["-c", f"{key}={value}"]
        words += ["-m", start.model] if start.model else []
        return [*words, "-"]

    def read(self, events: Iterable[AgentEvent]) -> AgentReport:
        """`error` events are warnings, unless the turn fails or never ends: then the last one says why."""
        session, text, failed, warning, count = "", "", "", "", 0
        ended, usage = False, None
        for event in events:
            kind = event["type"]
            count += is_event(event)
            if kind == "thread.started":
                session = text_at(event, "thread_id") or session
            elif kind == "turn.started":
                ended, failed = False, ""
            elif kind == "item.completed" and text_at(event, "item", "type") == "agent_message":
                text = text_at(event, "item", "text") or text
            elif kind == "turn.completed":
                # A turn that has failed cannot be completed.
                ended, usage = True, _usage(event) or usage
            elif kind == "turn.failed":
                ended, failed = True, text_at(event, "error", "message") or warning or "the turn failed"
                usage = _usage(event) or usage
            elif kind == "error":
                warning = text_at(event, "message") or warning
        return AgentReport(
            session=session,
            text=text,
            ended=ended,
            failed=failed if ended else warning,
            usage=usage,
            events=count,
        )

    def begins(self, event: AgentEvent) -> bool:
        return event["type"] == "thread.started" and bool(text_at(event, "thread_id"))

    def shown(self, event: AgentEvent) -> ShownEvent | None:
        item = text_at(event, "item", "type")
        if event["type"] == "item.completed" and item == "agent_message":
            return ShownEvent("text", text_at(event, "item", "text"))
        if event["type"] == "item.started" and item:
            return ShownEvent("tool", {"tool": text_at(event, "item", "command") or item})
        if event["type"] == "error":
            return ShownEvent("agent", {"text": text_at(event, "message")})
        return None


def _usage(event: AgentEvent) -> TokenUsage | None:
    found = fields_at(event, "usage")
    if found is None:
        return None
    return TokenUsage(
        count_at(found, "input_tokens"),
        count_at(found, "output_tokens"),
        count_at(found, "cached_input_tokens"),
        count_at(found, "cache_write_input_tokens"),
    )
