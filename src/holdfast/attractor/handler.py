"""The handler protocols, and what a handler gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.stage_outputs import StageOutputs
from holdfast.attractor.verdict_id import verdict_id
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.runs.service import RunService
from holdfast.telemetry import current_node

if TYPE_CHECKING:
    from holdfast.attractor.branch_worktree import Worktree
    from holdfast.attractor.context import PipelineContext
    from holdfast.runs.context.context import Context


_FORMER, _ATTEMPTS = 20, 4
"""Visits, and attempts of each, whose verdicts a conversation may still have."""


class StageVisit(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a stage, for the built-in handlers; custom ones may ask for it as `visit`."""

    stage: Stage
    pipeline: Pipeline
    context: PipelineContext
    logs: Path
    """The run's directory."""
    folder: Path
    """The stage's directory, `logs / stage.id`; a stage that several branches share has one in each."""
    ctx: Context
    """The durable side: sub-steps, questions, live output, spending."""
    came_by: Link | None = None
    """The edge that led here; None at the start or after a jump."""
    branch: str = ""
    """The scope inside a parallel stage; "" at the top."""
    workspace: Worktree | None = None
    """The worktree in which it works; None: the folder of the run."""
    write_directory: Callable[[str], Awaitable[None]] | None = None
    """Brings the directory of a run up to date with its journal."""
    outputs: StageOutputs = msgspec.field(default_factory=StageOutputs)
    """What it leaves: its handler fills it, and the end of the stage keeps it."""

    @property
    def given(self) -> Mapping[str, Any]:
        """The input of the run."""
        return self.ctx.run_input or {}

    @property
    def verdict_id(self) -> str:
        """Of this attempt: the same if it is entered again, also by a run that continues it elsewhere. An
        agent that outlived its worker was asked with it."""
        return self._id_of(self.ctx.visit, self.ctx.failures + 1)

    @property
    def former_verdict_ids(self) -> frozenset[str]:
        """Of its earlier visits and attempts."""
        visits = range(max(self.ctx.visit - _FORMER, 1), self.ctx.visit + 1)
        attempts = range(1, self.ctx.failures + _ATTEMPTS)
        return frozenset(self._id_of(visit, attempt) for visit in visits for attempt in attempts) - {
            self.verdict_id
        }

    def _id_of(self, visit: int, attempt: int) -> str:
        return verdict_id(f"{self.branch}{self.stage.id}", self.ctx.restarts, visit, attempt)

    async def show_settled(self) -> None:
        """Before an effect: the directory has every stage before this one. A run that continues it on another
        store would otherwise take a stage that has ended for one that is under way."""
        if self.write_directory is not None:
            await self.write_directory(self.ctx.run_id)


def service_here() -> RunService:
    """The run service of the runtime that executes this stage."""
    at: Any = current_node.get()
    assert at is not None, "outside of a stage"
    return RunService(at[0].services)


class StageHandler(Protocol):
    """The specification's interface: stateless, sync or async; an exception is a failure of the stage."""

    def execute(
        self, node: Stage, context: PipelineContext, graph: Pipeline, logs_root: Path
    ) -> StageOutcome | Awaitable[StageOutcome]: ...


class BuiltInHandler(Protocol):
    """The interface of the built-in handlers: durable sub-steps, by `visit.ctx`."""

    async def perform(self, visit: StageVisit) -> StageOutcome: ...


AT_ONCE = frozenset({"start", "exit", "conditional"})
"""Types of built-in handlers that do nothing: `at_once(stage)` gives their outcome, and their files are
written from the journal."""
