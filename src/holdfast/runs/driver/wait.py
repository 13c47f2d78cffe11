"""What a driver waits for when nothing can start: the end of a handler, the inbox, a timer, a park."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from holdfast.engine.messages import HandlerFinished, HandlersStopped, Message, TimerFired
from holdfast.model.position import Exec, Position
from holdfast.runs.context.budget_ledger import ContextLedger
from holdfast.runs.context.driver_protocols import Attempt
from holdfast.runs.driver.handler_tasks import HandlerTasks
from holdfast.runs.driver.park import DriverPark
from holdfast.runs.driver.record_writer import RecordWriter
from holdfast.runs.driver.run_inbox import DriverInbox
from holdfast.runs.driver.session import Place, RunSession
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.recorder.queue import retry_while_unavailable
from holdfast.telemetry import crashpoint
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.holds.policies.auto_decide import Arbiter


# Seconds between looks at the inbox while code of an entity's run goes on that was stopped.
_CODE_RUNS = 5.0


class MonotonicTimers:
    """A clock that is set back makes no back-off, sleep or time limit longer than declared.

    The stored wake time does not change: a worker that loads the run later uses it. A node that waits until a
    moment uses the wall clock alone, because that moment is what was asked for.
    """

    def __init__(self, session: RunSession) -> None:
        self.session = session
        # token -> its end, in seconds of the monotonic clock
        self._over: dict[str, float] = {}

    def left(self) -> float | None:
        """Seconds until the first known wait is over; None if nothing waits for a time."""
        wakes = dict(self._wakes())
        if not wakes:
            self._over.clear()
            return None
        self._over = {token: over for token, over in self._over.items() if token in wakes}
        return min(self._left(token, wake) for token, wake in wakes.items())

    def over(self) -> list[TimerFired]:
        """Waits that have lasted as long as declared, although they are not over by the store's clock."""
        wakes = dict(self._wakes())
        if not wakes:
            return []
        now = self.session.clock.now()
        late = [token for token, wake in wakes.items() if wake > now and self._left(token, wake) <= 0]
        return [TimerFired(token=token, inbox=0) for token in late]

    def _left(self, token: str, wake: int) -> float:
        clock = self.session.clock
        by_wall = max(0.0, (wake - clock.now()) / 1e6)
        if not self._has_length(token):
            return by_wall
        since = clock.monotonic()
        return max(0.0, min(by_wall, self._over.setdefault(token, since + by_wall) - since))

    def _wakes(self) -> Iterator[tuple[str, int]]:
        pos = self.session.pos
        for execution in pos.execs.values():
            if execution.wake_at is not None and execution.phase in ("delay", "children"):
                yield execution.token, execution.wake_at
            for sub in execution.subs.values():
                if not sub.done and sub.hold in pos.timers:
                    yield sub.hold, sub.value
        yield from pos.join_wakes.items()

    def _has_length(self, token: str) -> bool:
        key = self.session.pos.timers.get(token)
        execution = self.session.pos.execs.get(key) if key is not None else None
        return execution is None or not token.startswith("sleep:") or self._sleeps_so_long(execution)

    def _sleeps_so_long(self, execution: Exec) -> bool:
        spec = self.session.node(execution).timer
        return spec is not None and spec.duration is not None


def memory_wait(settings: RunSettings, pos: Position, next_wake: float | None, waited: float) -> float:
    """How long a run with nothing to do stays in memory, in seconds; 0: it parks."""
    if next_wake is not None and next_wake <= settings.hot_timer:
        # Never 0: that would mean to park. The timer is due in a moment.
        return max(next_wake, 0.0005)
    if pos.holds and settings.hot_hold:
        return max(0.0, settings.hot_hold - waited)
    return 0.0


class DriverWait:
    def __init__(
        self,
        session: RunSession,
        writer: RecordWriter,
        tasks: HandlerTasks,
        inbox: DriverInbox,
        park: DriverPark,
    ) -> None:
        self.session = session
        self.writer = writer
        self.tasks = tasks
        self.inbox = inbox
        self.park = park
        self._timers = MonotonicTimers(session)
        self._judged: set[str] = set()

    async def next(self) -> list[Message] | RunStatus:
        """The next event: a handler that ended, the inbox, a timer. If nothing happens for long, the run
        parks."""
        session, inbox = self.session, self.inbox
        idle_since = session.clock.monotonic()
        session.evicted = False
        while True:
            session.check()
            if session.finished:
                return session.take_finished()
            if inbox.urgent or self._should_check_inbox(idle_since):
                messages = await inbox.take()
                if messages:
                    inbox.announce_resume(messages)
                    return messages
            over = self._timers.over()
            if over:
                return [*over]
            # Cleared before the conditions are checked: what happens after that sets it again, so nothing is
            # missed between the check and the wait.
            session.wake.clear()
            if self.tasks.is_working():
                await self._wait(self._timers.left())
                continue
            if session.finished or await self._judge():
                continue
            if session.draining:
                return await self.park.leave()
            pause = self._memory_wait(idle_since)
            if pause > 0:
                await self._stay(pause)
                continue
            parked = await self.park.park()
            if parked is not None:
                return parked
            # Not parked: something happened meanwhile, most often a message.
            inbox.urgent = True

    async def _judge(self) -> bool:
        """A policy may decide what was just asked, before the run waits for a person."""
        session, arbiter = self.session, self.session.services.arbiter
        fresh = [hold for hold in session.pos.holds if hold not in self._judged]
        if arbiter is None or not fresh:
            return False
        self._judged.update(fresh)
        # A policy changes the row of the hold, which exists only after this commit.
        await session.recorder.committed(session.queue, session.pos.head)
        decided = [await self._judge_one(arbiter, hold) for hold in fresh]
        self.inbox.urgent = True
        return any(decided)

    async def _judge_one(self, arbiter: Arbiter, hold: str) -> bool:
        """What the judge uses is drawn from the budget of the run."""
        from holdfast.holds.policies.judge import JudgedHold, judged_hold

        session = self.session
        waiting = session.pos.holds.get(hold)
        execution = None if waiting is None else session.pos.execs.get((waiting.scope, waiting.node))
        if execution is None:
            return await arbiter.judge_here(hold)
        attempt = Attempt(self.tasks.call.calls, execution, session.node(execution))
        here = JudgedHold(hold, ContextLedger(attempt.calls.ledger, attempt, nullcontext))
        token = judged_hold.set(here)
        try:
            return await arbiter.judge_here(hold)
        finally:
            judged_hold.reset(token)

    def _should_check_inbox(self, idle_since: float) -> bool:
        """Nothing is running, and it will not park: a park checks the inbox itself (D-29)."""
        session = self.session
        if self.tasks.is_working() or session.wake.is_set():
            return False
        if self.inbox.unread or not (session.pos.holds or session.pos.timers):
            return True
        return self._memory_wait(idle_since) > 0

    def left(self) -> float | None:
        """Seconds until the first wait for a time is over; None: it waits for no time."""
        return self._timers.left()

    def _memory_wait(self, idle_since: float) -> float:
        session = self.session
        if session.left_running:
            return _CODE_RUNS
        if session.evicted:
            return 0.0
        waited = session.clock.monotonic() - idle_since
        return memory_wait(session.services.settings, session.pos, self._timers.left(), waited)

    async def _stay(self, pause: float) -> None:
        """Keep it in memory: a short wait is not worth a park."""
        session = self.session
        # A timer is in the store: until its record is committed it cannot fire.
        await session.recorder.committed(session.queue, session.pos.head)
        if self.writer.idle_status is None and self._waits_only_for_person():
            await self.writer.set_idle(RunStatus.pending_input)
        wake = self._timers.left()
        session.idle = True
        session.services.on_idle()
        try:
            await self._wait(pause if wake is None else min(pause, max(wake, 0.0005)))
        finally:
            session.idle = False
        await self._fire()
        self.inbox.urgent = True

    async def _fire(self) -> int:
        """Due timers of this run become rows of its inbox."""
        session = self.session
        fire = partial(session.store.fire_timers, limit=100, run=session.run)
        return await retry_while_unavailable(fire, session.queue)

    def _waits_only_for_person(self) -> bool:
        """The same condition as for a park: a question is open, and no timer is due soon (D-31). The expiry
        of a question arrives by the inbox.
        """
        wake, session = self._timers.left(), self.session
        return bool(session.pos.holds) and (wake is None or wake > session.services.settings.hot_timer)

    async def _wait(self, seconds: float | None) -> None:
        """Until something happens or the timeout (on the runtime's clock)."""
        session = self.session
        if seconds is None:
            await session.wake.wait()
            return
        waiting = session.loop.create_task(session.wake.wait())
        sleeping = session.loop.create_task(session.clock.sleep(seconds))
        done, pending = await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if sleeping in done:
            crashpoint("during_backoff")
            # The clock that was slept on and the store's clock may differ a little: then nothing fires yet,
            # and the loop waits again.
            if await self._fire():
                self.inbox.urgent = True

    async def finish_running(self) -> list[Message]:
        """Nothing new starts. On a cancel everything stops; on a failure running effects may finish."""
        session = self.session
        if session.pos.cancelling is not None:
            await self.tasks.stop(set())
        else:
            # Effects may finish: their outcome belongs in the journal even of a run that fails.
            repeatable = self.tasks.repeatable() if session.tasks else set[Place]()
            if repeatable:
                await self.tasks.stop(repeatable)
            while session.tasks and not session.finished:
                session.wake.clear()
                await session.wake.wait()
        await session.wait_for_code()
        messages = session.take_finished()
        if messages and session.pos.cancelling is None:
            return messages
        return [
            # What finished although it was to stop is recorded; errors are a consequence of the stop.
            *[m for m in messages if isinstance(m, HandlerFinished) and m.error is None],
            HandlersStopped(),
        ]
