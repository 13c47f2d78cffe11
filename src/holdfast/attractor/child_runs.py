"""A child pipeline: a separate run, advanced here while no other worker advances it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from holdfast.app.flow import advance
from holdfast.attractor import run_files
from holdfast.attractor.directory_owner import take_over
from holdfast.attractor.handler import StageVisit, service_here
from holdfast.attractor.progress import read_progress
from holdfast.attractor.resume_position import begin_from
from holdfast.attractor.run_files import logs_root, restart_dir
from holdfast.attractor.saved_checkpoint import SavedCheckpoint
from holdfast.errors import HoldfastError, RunBusyError, WaitTimeoutError
from holdfast.holds.permissions.starters import RunStarters
from holdfast.model.program import Program
from holdfast.runs.child_questions import CHILD_CHANGED, change_key, is_unchanged, tell_watchers
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import MACHINE_WAITS
from holdfast.types.ids import RunId, derived_id
from holdfast.types.status import ENDED, RunStatus

CYCLE: Final = "cycle"
"""The file of a manager with the number of its last look."""
_GLANCE: Final = 0.25
"""Seconds between looks at a question that is asked in this process."""
GRACE = 1.0
"""Seconds that the manager waits for a cancelled child to end."""
_ENDS = ("node.completed", "node.failed", "node.skipped", "node.abandoned")
_PAGE = 5_000
_STATUS = {RunStatus.completed: "completed", RunStatus.failed: "failed", RunStatus.cancelled: "failed"}


_NOT_COMPARED: Final = frozenset({"at", "cycle", "here", "change"})
DETACH: Final = "stack.child_detach"
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
    parked: str = ""
    """What it waits for without a process: "question" or "time"."""
    cycle: int = 0
    """The cycle of this observation; 0 in records of older versions."""
    change: str = ""
    """Names its next change, for a wait."""

    @property
    def known(self) -> tuple[Any, ...]:
        """What is compared to see a change."""
        found = msgspec.structs.asdict(self)
        return tuple(found[name] for name in found if name not in _NOT_COMPARED)

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


class Polls(msgspec.Struct):
    """When a manager looks at its child. `cycle`: the last one; `last`: the last one that is allowed;
    `woken`: the child has changed while the manager waited."""

    interval: float
    cycle: int
    last: int
    is_due: Callable[[ChildState], bool]
    woken: bool = False


def write_cycle(visit: StageVisit, cycle: int) -> None:
    """For a manager that is entered again: a look that has seen nothing new is not recorded."""
    ctx = visit.ctx
    run_files.write(visit.folder / CYCLE, f"{ctx.run_id} {ctx.visit} {ctx.failures} {cycle}\n")


def read_cycle(visit: StageVisit) -> int:
    with suppress(OSError, ValueError):
        *of, cycle = (visit.folder / CYCLE).read_text().split()
        if of == [visit.ctx.run_id, str(visit.ctx.visit), str(visit.ctx.failures)]:
            return int(cycle)
    return 0


async def _names(visit: StageVisit) -> dict[str, Any]:
    """Whose run the child is: who started the manager's run is excluded in the child too."""
    service = service_here()
    row = await service.get(RunId(visit.ctx.run_id))
    starters = await RunStarters(service.store).of_source(row)
    return {"tenant": row.tenant, "started_by": row.started_by, "started_via": starters}


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
        row, fresh = await service.create(program, given, idempotency_key=key, **await _names(visit))
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
            await begin_from(service, program, left, given, run_id=run, **await _names(visit))
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
        here = not ended and await self._advances(service, row)
        parked = "" if ended or here else "question" if await self._asks(service) else "time"
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
            here=here,
            parked=parked,
            change=change_key(row),
        )
        return msgspec.to_builtins(seen)

    async def _advances(self, service: RunService, row: RunRow) -> bool:
        if self._driving is not None and not self._driving.done():
            return True
        # A run that waits needs no process; the manager then waits durably and can be released itself.
        if row.status is RunStatus.waiting or (
            row.status is RunStatus.pending_input and await service.holds(self._run)
        ):
            return False
        self._driving = asyncio.ensure_future(_drive(service, self._run))
        return True

    async def _asks(self, service: RunService) -> bool:
        """Whether a person has to answer before it can continue."""
        return any(hold.type not in MACHINE_WAITS for hold in await service.questions(self._run))

    # ------------------------------------------------------------------ waits
    async def observe(self, before: ChildState | None, polls: Polls) -> dict[str, Any]:
        """The next observation that differs from the one before, or is due for another reason. Looks at
        intervals until then; only what this returns is recorded."""
        cycle = polls.cycle
        while True:
            if before is not None and not polls.woken:
                asks = await self._pause(polls.interval)
                if asks:
                    continue
            seen = msgspec.convert(await self.look(), ChildState)
            if not polls.woken or before is None:
                cycle += 1
            elif before.parked == "time" and polls.interval:
                cycle += max(1, int((seen.at - before.at) / polls.interval))
            polls.woken = False
            write_cycle(self._visit, cycle)
            is_same = before is not None and seen.known == before.known
            if not is_same or seen.parked or cycle >= polls.last or polls.is_due(seen):
                return msgspec.to_builtins(msgspec.structs.replace(seen, cycle=cycle))

    async def _pause(self, seconds: float) -> bool:
        """Until the child is at rest, or for so long. True: a person is asked meanwhile, and the time does
        not count."""
        service, ctx = service_here(), self._visit.ctx
        driving = self._driving
        if driving is None or driving.done():
            if driving is None or driving.cancelled() or driving.exception() or not driving.result():
                # Another worker advances it, or it cannot be advanced now.
                await asyncio.sleep(seconds)
            return False
        if not await self._asks(service):
            await asyncio.wait({driving}, timeout=seconds)
            return False
        with ctx.paused():
            while not driving.done() and await self._asks(service):
                await asyncio.wait({driving}, timeout=_GLANCE)
        return True

    async def wait(self, seen: ChildState, number: int, seconds: float | None) -> None:
        """Wait durably for the next change of a child that waits without a process, at most for so long."""
        with suppress(WaitTimeoutError):
            await self._visit.ctx.wait_for(
                CHILD_CHANGED,
                key=seen.change,
                timeout=seconds,
                place=f"change.{number}",
                begun=partial(self._tell_change, seen.change),
            )

    async def _tell_change(self, change: str) -> None:
        """If it has changed before the wait began, or its answer is there and no worker has taken it up."""
        service = service_here()
        row = await service.get(self._run)
        if not await is_unchanged(service.store, row, change):
            await tell_watchers(service.runtime, change, row.tenant)

    async def count(self) -> None:
        """What it has spent counts as the manager's."""
        if self._run:
            spent = await read_progress(service_here(), self._run)
            self._visit.ctx.spent(tokens=spent.tokens, cost=spent.cost)

    async def context(self) -> Mapping[str, Any]:
        return (await read_progress(service_here(), self._run)).context if self._run else {}

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


async def _drive(service: RunService, run: RunId) -> bool:
    """False: a worker has the run, which advances without us."""
    row = await service.get(run)
    program = await service.runtime.find_program(row.version, row.flow)
    try:
        await advance(service, program, run)
    except RunBusyError:
        return False
    return True


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
