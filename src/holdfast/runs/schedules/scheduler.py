"""Starts runs when they are due: in any number of workers, each for the flows that it serves.

An instant becomes a run in three steps. The schedule records which instant is about to be started, replacing
the revision that was read: so a worker that was stopped meanwhile starts nothing. The run is created under an
id derived from schedule and instant. The schedule is advanced. A worker that dies between two of them leaves
a schedule that is still due: the next worker repeats the steps, and finds the run if there is one (ADR 33).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from holdfast.errors import (
    CheckpointCorruptError,
    FlowNotFoundError,
    HoldfastError,
    KeyMissingError,
    SchemaTooNewError,
    StoreError,
)
from holdfast.model.program import Program
from holdfast.runs.schedules.cron import following, newest
from holdfast.runs.schedules.derive import run_id_for, with_firing, with_instant, with_next_at
from holdfast.runs.schedules.missed_instants import instants_to_start, is_missed, start_of
from holdfast.runs.schedules.overlap import LOOK_AGAIN, decide_overlap
from holdfast.runs.schedules.schedule import (
    FillRequest,
    Schedule,
    ScheduleFiring,
    TriggerRequest,
    read,
    write,
)
from holdfast.store.rows import RunFilter
from holdfast.telemetry import log
from holdfast.types.clock import MICROS, iso
from holdfast.types.ids import RunId
from holdfast.types.schedule import ScheduleRow, starter_of_schedule
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

BATCH: Final = 100


class Scheduler:
    """`sweep`: starts what is due now. `serve`: until cancelled, wakes when the next one is due."""

    def __init__(self, service: RunService, *, every: float = 1.0) -> None:
        self.service = service
        self.store = service.store
        self.every = every
        self._logged: set[tuple[str, str, int]] = set()

    async def sweep(self) -> int:
        """Returns the number of runs it started."""
        flows = self._flows()
        started = 0
        seen: set[tuple[str, str]] = set()
        while flows:
            due = await self.store.due_schedules(flows, limit=BATCH)
            fresh = [row for row in due if (row.tenant, row.name) not in seen]
            if not fresh:
                break
            for row in fresh:
                # Each once in a sweep: one that cannot be served here must not block the others.
                seen.add((row.tenant, row.name))
                started += await self._serve(row)
        return started

    async def serve(self) -> None:
        while True:
            pause = self.every
            try:
                await self.sweep()
                pause = self._pause(await self.store.next_schedule(self._flows()))
            except StoreError as error:
                log.warning("schedules could not be served: %s", error)
            await self.service.runtime.clock.sleep(pause)

    def _pause(self, due: int | None) -> float:
        """Not later than the next one is due. What is due and was not served is left to another worker."""
        ahead = None if due is None else (due - self.store.now()) / MICROS
        return self.every if ahead is None or ahead <= 0 else min(self.every, max(0.001, ahead))

    def _flows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p.graph.name for p in self.service.runtime.programs.values()))

    async def _program(self, row: ScheduleRow) -> Program:
        """Of several versions the one that was loaded last. A submitted document does not replace code, and
        one of another tenant is not used."""
        loaded = [p for p in self.service.runtime.programs.values() if p.graph.name == row.flow]
        coded = [p for p in loaded if not p.graph.dialect]
        if coded:
            return coded[-1]
        for program in reversed(loaded):
            if await self._has_run(program, row.tenant):
                return program
        raise FlowNotFoundError(f"no version of {row.flow!r} is {row.tenant!r}'s own.", flow=row.flow)

    async def _has_run(self, program: Program, tenant: str) -> bool:
        where = RunFilter(tenant=tenant, flow=program.graph.name, version=program.version)
        return bool(await self.store.list_runs(where, after=None, limit=1))

    async def _serve(self, row: ScheduleRow) -> int:
        try:
            turn = ScheduleTurn(self, read(row), await self._program(row))
            await turn.take()
        except (KeyMissingError, SchemaTooNewError, CheckpointCorruptError) as error:
            self._leave(row, error)
            return 0
        # The store does not answer: no schedule is at fault, and `serve` tries again.
        except StoreError:
            raise
        except Exception as error:
            # A zone that this machine does not know, or an error in a user's code.
            self._leave(row, error)
            return 0
        return turn.started

    def _leave(self, row: ScheduleRow, error: Exception) -> None:
        """Left to a worker that can serve it: the schedules after it must not wait."""
        mark = (row.tenant, row.name, row.revision)
        if mark not in self._logged:
            self._logged.add(mark)
            strange = None if isinstance(error, HoldfastError) else error
            log.warning("this worker skips schedule %s: %s", row.name, error, exc_info=strange)


class ScheduleTurn:
    """Everything that one due schedule has to do now."""

    def __init__(self, scheduler: Scheduler, schedule: Schedule, program: Program) -> None:
        self.service = scheduler.service
        self.store = scheduler.store
        self.schedule = schedule
        self.program = program
        self.started = 0

    async def take(self) -> None:
        while self.schedule.standing.asked:
            if not await self._answer(self.schedule.standing.asked[0]):
                return
        await self._fill()
        firing = self.schedule.standing.firing
        if firing is not None and not await self._begin(firing):
            return
        standing, now = self.schedule.standing, self.store.now()
        if standing.paused or standing.due is None or start_of(self.schedule, standing.due) > now:
            return
        for instant in self._wanted(standing.due, now):
            if not await self._fire(instant):
                return

    def _wanted(self, due: int, now: int) -> list[int]:
        found, too_many = instants_to_start(self.schedule, due, now)
        if found[0] > due:
            before = newest(self.schedule.plan, due, found[0] - 1)
            self._record(due, "missed", last=before[-1] if before and before[-1] > due else None)
        if too_many:
            trouble = (
                f"more than {len(found):,} instants were missed; those before {iso(found[0])} are skipped"
            )
            self._trouble(trouble, now)
            # So that it is reported once, even if the first of them has to wait.
            self.schedule = replace(self.schedule, standing=replace(self.schedule.standing, due=found[0]))
        return found

    async def _fire(self, instant: int) -> bool:
        """False: another worker has the schedule now, or it has to wait."""
        if is_missed(self.schedule, instant, self.store.now()):
            log.info("schedule %s: %s was missed and is skipped", self.schedule.name, iso(instant))
            self._record(instant, "missed", reason="no worker served it in time")
            return await self._move_on(instant)
        overlap = await decide_overlap(self.service, self.schedule)
        if overlap.action == "wait":
            await self._put(replace(self.schedule, next_at=overlap.look_at))
            return False
        if overlap.action == "skip":
            return await self._skip(instant, overlap.run)
        about = replace(self.schedule, standing=replace(self.schedule.standing, firing=instant))
        return await self._put(about) and await self._begin(instant)

    async def _begin(self, instant: int) -> bool:
        run, schedule = run_id_for(self.schedule, instant), self.schedule
        begun = await self._start(
            run,
            instant,
            schedule.plan.input,
            started_by=starter_of_schedule(schedule.name, schedule.standing.set_by),
            started_via=schedule.standing.set_via,
            idempotency_key=f"schedule:{schedule.name}:{iso(instant)}",
        )
        self._record(instant, "started" if begun else "failed", run=run if begun else None)
        return await self._move_on(instant, run=run if begun else None)

    async def _skip(self, instant: int, previous: RunId | None) -> bool:
        log.info(
            "schedule %s: %s is skipped, run %s has not ended", self.schedule.name, iso(instant), previous
        )
        standing = self.schedule.standing
        self.schedule = replace(self.schedule, standing=replace(standing, passed=standing.passed + 1))
        self._record(instant, "skipped", reason=f"run {previous} had not ended")
        return await self._move_on(instant)

    async def _start(self, run: RunId, instant: int, given: Any, **how: Any) -> bool:
        """An error is logged and stored on the schedule; the next instant is not affected."""
        plan = self.schedule.plan
        try:
            stamp = with_instant(plan, instant, given)
            _, fresh = await self.service.create(
                self.program, stamp, run_id=run, tenant=self.schedule.tenant, **how, **plan.options
            )
        except StoreError:
            raise
        except HoldfastError as error:
            self._trouble(f"no run was started for {iso(instant)}: {error}", self.store.now())
            return False
        self.started += fresh
        return True

    async def _answer(self, asked: TriggerRequest) -> bool:
        """A request has no key: it is not an instant, and the id of its run makes it unique."""
        run = run_id_for(self.schedule, asked)
        begun = await self._start(
            run, self.store.now(), asked.input, started_by=asked.by, started_via=self._behind(asked.via)
        )
        self._record(self.store.now(), "triggered" if begun else "failed", run=run if begun else None)
        standing = self.schedule.standing
        left = tuple(each for each in standing.asked if each.token != asked.token)
        done = replace(self.schedule, standing=replace(standing, asked=left))
        return await self._put(with_next_at(replace(done, last_run=run if begun else done.last_run)))

    async def _fill(self) -> None:
        """Instants of the past that an operator asked for, some of them in each turn."""
        for _ in range(BATCH):
            asked = next(iter(self.schedule.standing.filling), None)
            if asked is None or not await self._fill_one(asked):
                return

    async def _fill_one(self, asked: FillRequest) -> bool:
        """False: another worker has the schedule now, or the run before has not ended."""
        schedule, now = self.schedule, self.store.now()
        if asked.one_by_one and not await self._has_ended(asked):
            due = with_next_at(replace(schedule, standing=replace(schedule.standing, filling=()))).next_at
            look_at = now + LOOK_AGAIN
            await self._put(replace(schedule, next_at=look_at if due is None else min(due, look_at)))
            return False
        instant = following(schedule.plan, asked.next - 1)
        if instant is not None and instant <= asked.last:
            await self._fill_instant(asked, instant)
        after = None if instant is None else following(schedule.plan, instant)
        standing = self.schedule.standing
        left = tuple(each for each in standing.filling if each.token != asked.token)
        if after is not None and after <= asked.last:
            left = (replace(asked, next=after), *left)
        return await self._put(with_next_at(replace(self.schedule, standing=replace(standing, filling=left))))

    async def _fill_instant(self, asked: FillRequest, instant: int) -> None:
        """The run has the id and the key of that instant: one that is there is not started again."""
        run, before = run_id_for(self.schedule, instant), self.started
        begun = await self._start(
            run,
            instant,
            self.schedule.plan.input,
            started_by=starter_of_schedule(self.schedule.name, asked.by),
            started_via=self._behind(asked.via),
            idempotency_key=f"schedule:{self.schedule.name}:{iso(instant)}",
        )
        if not begun or self.started > before:
            self._record(instant, "filled" if begun else "failed", run=run if begun else None)

    def _behind(self, asking: tuple[str, ...]) -> tuple[str, ...]:
        """Who set the schedule chose what its runs do, and counts as a starter of those that others ask for.
        Empty if everything was said on the command line."""
        standing = self.schedule.standing
        named = (*asking, *standing.set_via)
        return (*named, standing.set_by) if named and standing.set_by else named

    async def _has_ended(self, asked: FillRequest) -> bool:
        """The run of the instant before the next one."""
        before = newest(self.schedule.plan, 0, asked.next - 1)
        row = await self.store.get_run(run_id_for(self.schedule, before[-1])) if before else None
        return row is None or row.status in ENDED

    def _record(
        self,
        instant: int,
        outcome: str,
        *,
        run: RunId | None = None,
        reason: str = "",
        last: int | None = None,
    ) -> None:
        """Stored with the schedule's next revision."""
        reason = reason or (self.schedule.standing.trouble if outcome == "failed" else "")
        firing = ScheduleFiring(
            instant=instant, at=self.store.now(), outcome=outcome, run=run, reason=reason, last=last
        )
        self.schedule = with_firing(self.schedule, firing)

    async def _move_on(self, instant: int, *, run: RunId | None = None) -> bool:
        schedule = self.schedule
        standing = replace(schedule.standing, due=following(schedule.plan, instant), firing=None)
        if run is not None and standing.trouble_at is not None and standing.trouble_at < instant:
            standing = replace(standing, trouble="", trouble_at=None)
        last = {"last_at": instant, "last_run": run} if run is not None else {}
        return await self._put(with_next_at(replace(schedule, standing=standing, **last)))

    async def _put(self, schedule: Schedule) -> bool:
        written = await self.store.put_schedule(write(schedule), expect=self.schedule.revision)
        if written is None:
            return False  # another worker advanced or changed it: that counts
        self.schedule = read(written)
        return True

    def _trouble(self, trouble: str, now: int) -> None:
        log.warning("schedule %s: %s", self.schedule.name, trouble)
        standing = replace(self.schedule.standing, trouble=trouble, trouble_at=now)
        self.schedule = replace(self.schedule, standing=standing)
