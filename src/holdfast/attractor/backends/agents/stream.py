"""The event stream of an agent: lines of JSON, read without trust. Unknown types, text and a cut last line
are kept and fail nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.agents.messages import TokenUsage
from holdfast.types.text import decode_json

TEXT: Final = "holdfast.text"
"""The type of a line that is no event."""
CUT: Final = "holdfast.cut"
"""The type of a last line without its end."""
_MOST: Final = 1e12

AgentEvent = Mapping[str, Any]


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole stream says. `ended`: its last event was read. `failed`: the error that it reports, with
    its HTTP status, if it names one. `limit`: a limit of turns or cost was reached."""

    session: str = ""
    model: str = ""
    text: str = ""
    ended: bool = False
    failed: str = ""
    status: int = 0
    limit: bool = False
    usage: TokenUsage | None = None
    cost: float | None = None
    structured: dict[str, Any] | None = None
    events: int = 0


class ShownEvent(msgspec.Struct, frozen=True):
    """What is shown live of an event: `kind` is text, tool or agent."""

    kind: str
    data: Any


def events_in(text: str) -> list[AgentEvent]:
    """One for each line."""
    lines = text.split("\n")
    # After the last line break there is nothing, unless the process was stopped while it wrote.
    last = lines.pop()
    found = [event_of(line) for line in lines if line.strip()]
    if last.strip():
        whole = event_of(last)
        found.append({"type": CUT, "text": last} if whole["type"] == TEXT else whole)
    return found


def event_of(line: str) -> AgentEvent:
    try:
        found = decode_json(line)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {"type": TEXT, "text": line}
    fields = cast("dict[str, Any]", found)
    return fields if isinstance(fields.get("type"), str) else {**fields, "type": ""}


def is_event(event: AgentEvent) -> bool:
    return event["type"] not in (TEXT, CUT)


def text_at(event: Any, *path: str) -> str:
    """The text there, or an empty one, whatever is there."""
    found = _at(event, path)
    return found if isinstance(found, str) else ""


def number_at(event: Any, *path: str) -> float | None:
    found = _at(event, path)
    return float(found) if type(found) in (int, float) and 0 <= found < _MOST else None


def count_at(event: Any, *path: str) -> int:
    return int(number_at(event, *path) or 0)


def fields_at(event: Any, *path: str) -> dict[str, Any] | None:
    found = _at(event, path)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def items_at(event: Any, *path: str) -> Iterable[Any]:
    found = _at(event, path)
    return cast("list[Any]", found) if isinstance(found, list) else ()


def _at(event: Any, path: Iterable[str]) -> Any:
    for name in path:
        if not isinstance(event, Mapping):
            return None
        event = cast("Mapping[str, Any]", event).get(name)
    return event
