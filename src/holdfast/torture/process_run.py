"""One process of a trial: continues the run from where the last one ended until nothing is left to do.

Time in a trial: it passes normally while code runs, and jumps over waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.app.flow import Flow, advance, make_result, result_of
from holdfast.app.holdfast import Holdfast
from holdfast.app.result import Result
from holdfast.checkpoint.json_view import jsonable
from holdfast.errors import AnswerInvalidError, HoldfastError, InputError
from holdfast.model.graph import Node
from holdfast.model.idempotency_keys import idempotency_key
from holdfast.model.shown_names import shown_name
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.service import RunService
from holdfast.torture import undeclared_effects
from holdfast.torture.answers import (
    IN_DOUBT,
    Answers,
    Policy,
    TrialAnswer,
    doubted_call,
    reply_to,
    resolve_doubt,
)
from holdfast.torture.boundaries import KillingWatcher, NullWatcher, Point, RecordingWatcher, Watcher
from holdfast.torture.call_log import Calls
from holdfast.torture.trial_log import BoundaryPassed, CallId, Doubt, Ending, TrialError, TrialLog
from holdfast.types.clock import MICROS, SystemClock
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus, RunStatus

_SLICE = 0.005  # seconds between two checks whether anything is running
_TURNS = 3


class TrialClock:
    """`jumped` outlives the process: the next process continues from the time at which this one was
    killed."""

    def __init__(self, start: int, began: float, file: Path) -> None:
        self._start = start
        self._began = began
        self._file = file
        self._real = SystemClock()
        self._jumped = int(file.read_text()) if file.exists() else 0
        self.busy: Callable[[], bool] = lambda: False

    def now(self) -> int:
        return self._start + int(self.monotonic() * MICROS)

    def monotonic(self) -> float:
        return self._real.monotonic() - self._began + self._jumped / MICROS

    def jump(self, micros: int) -> None:
        self._jumped += max(0, micros)
        # Written at each jump, because the process may be killed at any moment.
        self._file.write_text(str(self._jumped))

    async def sleep(self, seconds: float) -> None:
        until = self.now() + round(seconds * MICROS)
        idle = 0
        while self.now() < until:
            idle = 0 if self.busy() else idle + 1
            # Several turns: a task that was just woken may need some to show that it is busy.
            if idle > _TURNS:
                self.jump(until - self.now())
                return
            left = (until - self.now()) / MICROS
            await asyncio.sleep(0 if idle else min(_SLICE, max(left, 0.0)))


LEASE = 60.0  # seconds, of the trial's own clock
RUN = RunId("70a7c4e5-0000-4000-8000-00000000cafe")  # the same in all trials: what is derived from it agrees
_ROUNDS = 10_000


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The task of every process of every trial."""

    given: Any
    answers: Answers
    in_doubt: Policy = "truth"
    options: dict[str, Any] = {}


class TrialSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The folder and the clock of a trial."""

    folder: Path
    start: int  # its clock's first moment, microseconds
    began: float  # the same moment on the machine's monotonic clock

    @property
    def trial_log(self) -> TrialLog:
        return TrialLog(self.folder / "notes.jsonl")

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def effects(self) -> Path:
        return self.folder / "effects.jsonl"

    @property
    def work(self) -> Path:
        return self.folder / "work"


class TrialProcess:
    """`kill`: the boundary at which it ends. `record`: note the boundaries."""

    def __init__(
        self, flow: Flow, task: Task, stage: TrialSetup, number: int, *, kill: Point | None, record: bool
    ) -> None:
        self._program = flow.program()
        self._task = task
        self._stage = stage
        self._number = number
        self._kill = kill
        self._record = record
        self._notebook = stage.trial_log
        self._clock = TrialClock(stage.start, stage.began, stage.folder / "clock")

    async def live(self) -> None:
        """Records how it ended; a killed process records nothing."""
        try:
            await self._live()
        except AnswerInvalidError as error:
            self._notebook.write(TrialError(str(error), given=True))
        except HoldfastError as error:
            self._notebook.write(
                # An input that is refused by the first process is the user's
                # mistake; by a later one it is damage from the crash.
                TrialError(str(error), given=isinstance(error, InputError) and self._number == 1)
            )

    async def _live(self) -> None:
        if self._number > 1:
            # The killed process had the run; no other may claim it before that lease has expired.
            self._clock.jump(int((LEASE + 1) * 1e6))
        settings = RunSettings(lease_ttl=LEASE, poll=0.5)
        async with Holdfast(address_of(self._stage.store), clock=self._clock, settings=settings) as hf:
            service = await hf.service()
            service.runtime.register(self._program)
            self._clock.busy = lambda: _works(service)
            self._watch(service)
            result = await self._run_to_end(service, await self._begin(service))
            self._notebook.write(await self._ending(service, result))

    def _watch(self, service: RunService) -> None:
        watcher: Watcher = NullWatcher()
        if self._kill is not None:
            watcher = KillingWatcher(self._kill)
        elif self._record:
            watcher = RecordingWatcher(lambda point: self._notebook.write(BoundaryPassed(point)))
            # Only where boundaries are recorded: an audit hook cannot
            # be removed, and is called for every event of the process.
            undeclared_effects.watch(self._notebook)
        Calls(self._notebook, self._number, watcher, lambda c, n: _key(service, c, n)).watch(self._program)

    async def _begin(self, service: RunService) -> Result:
        row = await service.store.get_run(RUN)
        if row is None:
            started = await service.start(self._program, self._task.given, run_id=RUN, **self._task.options)
            assert isinstance(started, tuple)
            claim, pos = started
            return await make_result(service, self._program, RUN, *await service.runtime.drive(claim, pos))
        if row.status in (RunStatus.running, RunStatus.resumable, RunStatus.pending):
            return await advance(service, self._program, RUN)
        return await result_of(service, self._program, RUN)

    async def _run_to_end(self, service: RunService, result: Result) -> Result:
        for _ in range(_ROUNDS):
            if not result.waiting or not await self._move(service, result):
                return result
            result = await advance(service, self._program, RUN)
        raise InputError("the run asks and waits endlessly.", hint="Give answers with which it ends.")

    async def _move(self, service: RunService, result: Result) -> bool:
        """Advance the clock, or answer a hold. False if the run cannot continue without others."""
        row = await service.get(RUN)
        if row.ready_at is not None:
            return True  # it has a message that it has not received yet
        if result.status is RunStatus.waiting:
            return await self._pass_time(service)
        replied = [await self._reply(service, hold) for hold in await service.holds(RUN)]
        return any(replied)

    async def _pass_time(self, service: RunService) -> bool:
        store = service.store
        times = [due for due in (await store.next_timer(), await store.next_due_hold()) if due is not None]
        if not times:
            return False
        # Only to the earliest one: a later deadline must not be passed before it was due.
        self._clock.jump(max(0, min(times) - self._clock.now()))
        # By hand, since no worker runs beside the trial.
        await store.fire_timers(limit=1000)
        await service.runtime.sweep_holds()
        return True

    async def _reply(self, service: RunService, hold: HoldRow) -> bool:
        if hold.type == IN_DOUBT:
            reply: TrialAnswer | None = self._settle_doubt(hold)
        else:
            answer = reply_to(hold, self._task.answers, await _asked_before(service, hold))
            if answer == "unanswered":
                return False
            reply = answer
        if reply is None:
            return await self._pass_time(service)
        await service.answer(
            hold.id, reply.decision, data=reply.data, comment=reply.comment, by="user:torture"
        )
        return True

    def _settle_doubt(self, hold: HoldRow) -> TrialAnswer:
        notes = self._notebook.read()
        call = doubted_call(hold, notes)
        reply = resolve_doubt(call, notes, self._task.in_doubt)
        self._notebook.write(Doubt(call, reply.decision))
        return reply

    async def _ending(self, service: RunService, result: Result) -> Ending:
        holds = await service.holds(RUN, open_only=False)
        error = None if result.error is None else f"{result.error.type}: {result.error.message}"
        return Ending(
            str(result.status),
            jsonable(result.state),
            jsonable(result.artifacts),
            error,
            sorted(_question(hold) for hold in holds if hold.type != IN_DOUBT),
            [f"{hold.node}: {hold.prompt}" for hold in holds if hold.status is HoldStatus.pending],
        )


def address_of(store: Path) -> str:
    """A killed process loses nothing that it wrote to the system: no need to wait for the disk."""
    return f"sqlite:{store}?sync=normal"


def _works(service: RunService) -> bool:
    drivers: Sequence[Any] = list(service.runtime.drivers.values())
    return any(driver.session.inline or driver.handlers.is_working() for driver in drivers)


def _key(service: RunService, call: CallId, node: Node) -> str | None:
    session = service.runtime.drivers[RUN].session
    for execution in session.pos.execs.values():
        here = execution.scope == call.scope and execution.visit == call.visit
        if here and session.node(execution) is node:
            return idempotency_key(session.pos, execution, node)
    return None


def _question(hold: HoldRow) -> str:
    return f"{shown_name(hold.scope + hold.node)} (visit {hold.visit})"


async def _asked_before(service: RunService, hold: HoldRow) -> int:
    holds = await service.holds(RUN, open_only=False)
    return sum(1 for h in holds if h.node == hold.node and h.type != IN_DOUBT and h.seq < hold.seq)
