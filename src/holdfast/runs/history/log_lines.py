"""The lines that the nodes of a run logged: with `ctx.log`, or emitted as `log`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.types.clock import iso

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow
    from holdfast.types.event import Event

PAGE = 1_000


class LoggedLine(msgspec.Struct, frozen=True, kw_only=True):
    """`node`: with its scope. `level`: lower case; empty if the node emitted the line without one."""

    at: str
    level: str
    node: str
    visit: int
    attempt: int
    text: str


async def log_lines(service: RunService, row: RunRow) -> list[LoggedLine]:
    """In order; secrets are masked, as in the events that the lines are read from."""
    found: list[LoggedLine] = []
    after = 0
    while events := await service.events(row.id, after=after, limit=PAGE):
        found += [_line(event) for event in events if event.type == "node.emitted" and _is_log(event)]
        after = events[-1].number
    return found


def _is_log(event: Event) -> bool:
    return event.data.get("kind") == "log"


def _line(event: Event) -> LoggedLine:
    given: Any = event.data.get("data")
    known = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"text": given}
    return LoggedLine(
        at=iso(event.at),
        level=str(known.get("level", "")),
        node=event.scope + event.node,
        visit=int(event.data.get("visit", 1)),
        attempt=int(event.data.get("attempt", 1)),
        text=str(known.get("text", given)),
    )
