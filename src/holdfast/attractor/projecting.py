"""Where a run stands, in the words of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.attractor.context import copied
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the specification's checkpoint tells it."""

    run: str
    at: int
    input: Mapping[str, Any]
    context: Mapping[str, Any]
    completed: tuple[str, ...]
    outcomes: Mapping[str, str]
    retries: Mapping[str, int]

    @property
    def current(self) -> str:
        return self.completed[-1] if self.completed else ""


async def take_picture(service: RunService, run: RunId) -> Picture:
    latest = await service.latest(run)
    top = [e for e in latest.executions if e.settled and not e.scope]
    return Picture(
        run=run,
        at=latest.at,
        input=copied(latest.input or {}),
        context=copied(latest.state),
        completed=tuple(e.node for e in top),
        outcomes={e.node: e.outcome for e in top},
        retries=dict(latest.retries),
    )
