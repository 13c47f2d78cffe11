"""The output of a program that may be one of the known agents: a template names the program, and not its
stream."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.backends.agents.adapter import AgentAdapter
from holdfast.attractor.backends.agents.stream import AgentEvent, AgentReport, event_of, events_in, is_event
from holdfast.types.text import decode_json

_FIRST_LINES: Final = 20
"""Among which the first event is looked for: warnings may come before it."""


def report_in(output: str, adapters: Sequence[AgentAdapter]) -> AgentReport | None:
    """What the stream of an agent says, as lines or as one list of events; None: it is none."""
    listed = _listed(output)
    lines = islice(filter(str.strip, output[:_HEAD].splitlines()), _FIRST_LINES)
    first = next(filter(is_event, listed or map(event_of, lines)), None)
    if first is None:
        return None
    adapter = next((each for each in adapters if each.begins(first)), None)
    return None if adapter is None else adapter.read(listed or events_in(output))


_HEAD: Final = 2**20


def _listed(output: str) -> list[AgentEvent]:
    if not output.lstrip().startswith("["):
        return []
    try:
        found = decode_json(output)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return []
    given = cast("list[Any]", found) if isinstance(found, list) else []
    events = [cast("dict[str, Any]", each) for each in given if isinstance(each, dict)]
    return [each for each in events if isinstance(each.get("type"), str)]
