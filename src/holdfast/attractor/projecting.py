"""What a run's directory shows of its journal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.attractor.context import copied
from holdfast.attractor.rundir import write_checkpoint
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


def project(picture: Picture, logs: Path) -> None:
    write_checkpoint(
        logs,
        at=picture.at,
        current_node=picture.current,
        completed_nodes=picture.completed,
        context=picture.context,
        retries=picture.retries,
        run_id=picture.run,
        node_outcomes=picture.outcomes,
    )
