"""A child pipeline: a separate run, advanced here while no other worker advances it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.app.flow import advance
from holdfast.attractor.directory_owner import take_over
from holdfast.attractor.handler import StageVisit, service_here
from holdfast.attractor.progress import read_progress
from holdfast.attractor.resume_position import begin_from
from holdfast.attractor.run_files import logs_root, restart_dir
from holdfast.attractor.saved_checkpoint import SavedCheckpoint
from holdfast.errors import HoldfastError, RunBusyError
from holdfast.model.program import Program
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId, derived_id
from holdfast.types.status import ENDED, RunStatus

GRACE = 1.0
"""Seconds that the manager waits for a cancelled child to end."""
_ENDS = ("node.completed", "node.failed", "node.skipped", "node.abandoned")
_PAGE = 5_000
_STATUS = {RunStatus.completed: "completed", RunStatus.failed: "failed", RunStatus.cancelled: "failed"}


STARTING = "start child"
"""The manager's sub-step under which the journal records the child's id."""


class ChildState(msgspec.Struct, frozen=True, kw_only=True):
    """The child's state at one observation. `here`: this process advances it."""

    run: str = ""
    status: str = ""
    outcome: str = ""
    reason: str = ""
    active: str = ""
    completed: tuple[str, ...] = ()
    retries: dict[str, int] = {}
    logs: str = ""
    at: float = 0.0
    here: bool = False

    def telemetry(self, cycle: int) -> dict[str, Any]:
        """As context values, under the names of the specification."""
        base = "context.stack.child."
        return {
            f"{base}run_id": self.run,
            f"{base}status": self.status,
            f"{base}outcome": self.outcome,
            f"{base}active_stage": self.active,
            f"{base}completed": list(self.completed),
            f"{base}retries": dict(self.retries),
            f"{base}failure_reason": self.reason,
            "stack.manager.cycle": cycle,
        }


class Child:
    def __init__(self, visit: StageVisit, run: str) -> None:
        self._visit = visit
        self._run = RunId(run)
        self._driving: asyncio.Task[Any] | None = None

    @staticmethod
    async def start(visit: StageVisit, program: Program, given: dict[str, Any]) -> str:
        """Idempotent by a key of this attempt: repeated calls return the same run. A child that had failed
        when its manager was resumed is resumed too."""
        service, key = service_here(), f"{visit.ctx.idempotency_key}/child/{visit.ctx.failures}"
        # The key contains the number of failures: a retried
        # stage gets a new child, a re-entered one the same.
        row, fresh = await service.create(program, given, idempotency_key=key, tenant=visit.ctx.tenant)
        if not fresh and row.status is RunStatus.failed:
            await service.request_resume(row.id)
        return row.id

    @staticmethod
    async def continued(
        visit: StageVisit, program: Program, given: dict[str, Any], left: SavedCheckpoint
    ) -> str:
        """A run that continues the child of another store. Idempotent: its id is made from this attempt."""
        service = service_here()
        run = derived_id(visit.ctx.idempotency_key, "child", visit.ctx.failures)
        if await service.store.get_run(RunId(run)) is None:
            await begin_from(service, program, left, given, run_id=run, tenant=visit.ctx.tenant)
            take_over(left.root, run, left.run)
        return run

    @staticmethod
    async def named(visit: StageVisit, run: str) -> str:
        """An existing run of the same tenant. Raises RunNotFoundError."""
        return (await service_here().get(run, tenant=visit.ctx.tenant)).id if run else ""

    async def look(self) -> dict[str, Any]:
        """Its current state; if no worker advances it, this process starts to."""
        now = self._visit.ctx.now() / 1e6
        if not self._run:
            return msgspec.to_builtins(ChildState(at=now))
        service = service_here()
        row = await service.get(self._run)
        picture = await read_progress(service, row.id)
        ended = row.status in ENDED
        if ended and self._driving is not None:
            # Its directory gets its last checkpoint only now; `leave` would cancel that.
            await asyncio.wait({self._driving}, timeout=GRACE)
        outcome = "success" if row.status is RunStatus.completed else "fail" if ended else ""
        reason = picture.context.get("failure_reason", "") if outcome == "fail" else ""
        active, restarts = await _active(service, row.id)
        logs = restart_dir(logs_root(picture.input, row.id, row.forked_from), restarts)
        seen = ChildState(
            run=row.id,
            status=_STATUS.get(row.status, "running"),
            outcome=outcome,
            reason=str(reason),
            active="" if ended else active,
            completed=picture.completed,
            retries=dict(picture.retries),
            logs=str(logs),
            at=now,
            here=not ended and await self._advances(service, row.status),
        )
        return msgspec.to_builtins(seen)

    async def _advances(self, service: RunService, status: RunStatus) -> bool:
        if self._driving is not None and not self._driving.done():
            return True
        # A run that waits needs no process; the manager then sleeps durably and can be released itself.
        if status is RunStatus.waiting or (
            status is RunStatus.pending_input and await service.holds(self._run)
        ):
            return False
        self._driving = asyncio.ensure_future(_drive(service, self._run))
        return True

    async def wait(self, seen: ChildState, seconds: float, cycle: int) -> None:
        """Wait until something may have changed: in memory if this process advances it, else durably."""
        if not seen.here:
            await self._visit.ctx.sleep(seconds, key=f"sleep.{cycle}")
        elif self._driving is not None and self._visit.ctx.recorded(f"observe.{cycle + 1}") is None:
            await asyncio.wait({self._driving}, timeout=seconds)

    async def leave(self, *, cancelled: bool = False) -> None:
        """Stop advancing it; a worker resumes it later. If the manager was cancelled, so is the child."""
        if cancelled and self._run:
            await cancel_child(service_here(), self._run)
        if self._driving is None or self._driving.done():
            return
        if cancelled:
            await asyncio.wait({self._driving}, timeout=GRACE)
        self._driving.cancel()
        await asyncio.gather(self._driving, return_exceptions=True)


async def _drive(service: RunService, run: RunId) -> None:
    row = await service.get(run)
    program = await service.runtime.find_program(row.version, row.flow)
    # A worker has the run: it advances without us.
    with suppress(RunBusyError):
        await advance(service, program, run)


async def _active(service: RunService, run: RunId) -> tuple[str, int]:
    """The stage that is running, at the top level; and how often the walk was restarted."""
    open_: dict[str, None] = {}
    restarts = seen = 0
    while events := await service.events(run, after=seen, limit=_PAGE):
        seen = events[-1].number
        for event in events:
            if event.scope or not event.node:
                continue
            if event.type == "node.started":
                open_[event.node] = None
            elif event.type in _ENDS:
                open_.pop(event.node, None)
            restarts += event.type == "walk.restarted"
    return next(reversed(open_), ""), restarts


async def cancel_child(service: RunService, run: str) -> None:
    """Cancel the child of a cancelled manager. An ended child does not change."""
    with suppress(HoldfastError):
        await service.cancel(run, reason="its manager was cancelled")
