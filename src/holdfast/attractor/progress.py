"""The progress of a run, in the terms of the specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.attractor.context import copied
from holdfast.checkpoint.visit import Visit
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId
from holdfast.types.outcome import FAIL


class RunProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A run, with the fields of the specification's checkpoint."""

    run: str
    at: int
    input: Mapping[str, Any]
    context: Mapping[str, Any]
    completed: tuple[str, ...]
    outcomes: Mapping[str, str]
    retries: Mapping[str, int]
    tokens: int = 0
    cost: float = 0.0

    @property
    def current(self) -> str:
        return self.completed[-1] if self.completed else ""


def stages_ended(executions: Iterable[Visit]) -> list[Visit]:
    """The completed stages at the top level, in order. A stage whose failure ended the run is included
    (section 3.2, step 3), until a resume runs it again."""
    top = [e for e in executions if not e.scope and (e.settled or e.outcome == FAIL)]
    last = {(e.node, e.visit): i for i, e in enumerate(top)}
    return [e for i, e in enumerate(top) if e.settled or last[e.node, e.visit] == i]


async def read_progress(service: RunService, run: RunId) -> RunProgress:
    latest = await service.latest(run)
    top = stages_ended(latest.executions)
    return RunProgress(
        run=run,
        at=latest.at,
        input=copied(latest.input or {}),
        context=copied(latest.state),
        completed=tuple(e.node for e in top),
        outcomes={e.node: e.outcome for e in top},
        retries=dict(latest.retries),
        tokens=sum(each.tokens for each in latest.executions),
        cost=sum(each.cost for each in latest.executions),
    )
