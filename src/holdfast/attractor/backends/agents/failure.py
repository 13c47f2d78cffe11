"""The class of an agent's failure: worth a retry, final, or a limit of its own."""

from __future__ import annotations

import re
from typing import Final

from holdfast.attractor.backends.agents.adapter import AgentAdapter
from holdfast.attractor.backends.agents.stream import AgentReport
from holdfast.attractor.failures import LIMIT, TERMINAL, TRANSIENT

_STATUS: Final = re.compile(
    r"\bstatus(?: code)?[ :=\"]+(\d{3})\b|\"code\": ?(\d{3})\b|API Error: (\d{3})\b|\bHTTP (\d{3})\b"
)
_LIMITED: Final = re.compile(
    r"usage limit|max(?:imum)?[ _](?:number of )?turns|turn limit|budget", re.IGNORECASE
)
_FINAL: Final = re.compile(
    r"invalid_request|authentication|unauthorized|invalid api key|api key not valid|/login|not logged in|"
    r"auth method|permission_error|model .{0,80}(?:not found|does not exist)|insufficient_quota",
    re.IGNORECASE,
)
_AGAIN: Final = frozenset({408, 409, 425, 429})
_NOT_STARTED: Final = (126, 127)


def failure_kind(adapter: AgentAdapter, report: AgentReport, code: int | None, text: str) -> str:
    """From what it reported, else from its exit code, else from its words."""
    if report.limit:
        return LIMIT
    status = report.status or _status_in(text)
    if status:
        return TRANSIENT if status in _AGAIN or status >= 500 else TERMINAL
    if code in _NOT_STARTED:
        return TERMINAL
    by_code = adapter.exit_kinds.get(code or 0)
    if by_code and not report.ended:
        return by_code
    if _LIMITED.search(text):
        return LIMIT
    return TERMINAL if _FINAL.search(text) else TRANSIENT


def _status_in(text: str) -> int:
    found = _STATUS.search(text)
    status = int(next(filter(None, found.groups()))) if found else 0
    return status if 400 <= status < 600 else 0
