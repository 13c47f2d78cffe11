"""What a driver waits for when nothing can start: a handler that ends, mail, a timer, rest.

Waits of a declared length, measured on a clock that nobody sets while this process has the run.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from holdfast.engine.messages import HandlerFinished, HandlersStopped, Message, TimerFired
from holdfast.model.position import NAP
from holdfast.telemetry import crashpoint
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.position import Exec
    from holdfast.runs.driver.driver import Driver


class MonotonicTimers:
    """A clock that is set back makes no back-off, sleep or time limit longer than it was declared.

    The wake time that is stored stays what it is: whoever loads the run later goes by that. A node that waits
    until a moment goes by the wall clock alone, because that moment is what was asked for.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        # token -> when it is over, in seconds of the monotonic clock
        self._over: dict[str, float] = {}

    def left(self) -> float | None:
        """Seconds until the first of all known waits is over; None where nothing waits for a time."""
        wakes = dict(self._wakes())
        self._over = {token: over for token, over in self._over.items() if token in wakes}
        return min((self._left(token, wake) for token, wake in wakes.items()), default=None)

    def over(self) -> list[TimerFired]:
        """Waits that have lasted as long as declared and that the store, by its clock, lets wait on."""
        now = self.driver.runtime.clock.now()
        wakes = dict(self._wakes())
        late = [token for token, wake in wakes.items() if wake > now and self._left(token, wake) <= 0]
        return [TimerFired(token=token, inbox=0) for token in late]

    def _left(self, token: str, wake: int) -> float:
        clock = self.driver.runtime.clock
        by_wall = max(0.0, (wake - clock.now()) / 1e6)
        if not self._has_length(token):
            return by_wall
        since = clock.monotonic()
        return max(0.0, min(by_wall, self._over.setdefault(token, since + by_wall) - since))

    def _wakes(self) -> Iterator[tuple[str, int]]:
        pos = self.driver.pos
        for execution in pos.execs.values():
            if execution.wake_at is not None and execution.phase in ("delay", "children"):
                yield execution.token, execution.wake_at
            for sub in execution.subs.values():
                if not sub.done and sub.name == NAP and sub.hold in pos.timers:
                    yield sub.hold, sub.value
        yield from pos.join_wakes.items()

    def _has_length(self, token: str) -> bool:
        key = self.driver.pos.timers.get(token)
        execution = self.driver.pos.execs.get(key) if key is not None else None
        return execution is None or not token.startswith("sleep:") or self._sleeps_so_long(execution)

    def _sleeps_so_long(self, execution: Exec) -> bool:
        spec = self.driver.node(execution).timer
        return spec is not None and spec.duration is not None


class DriverWait:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._elapsing = MonotonicTimers(driver)
        self._judged: set[str] = set()

    async def next(self) -> list[Message] | RunStatus:
        """What comes next: a handler that ended, mail, a timer. Or nothing for long: then the run parks."""
        driver, underway, box = self.driver, self.driver.handler_tasks, self.driver.box
        hot_since = driver.runtime.clock.monotonic()
        driver.cooled = False
        while True:
            driver.check_lease()
            if underway.done:
                return underway.take_done()
            if box.urgent or self._should_check_inbox(hot_since):
                messages = await box.take()
                if messages:
                    box.announce_resume(messages)
                    return messages
            over = self._elapsing.over()
            if over:
                return [*over]
            driver.awake.clear()
            if underway.is_working():
                await self._wait(self._elapsing.left())
                continue
            if underway.done or await self._judge():
                continue
            if driver.draining:
                return await driver.driver_park.leave()
            pause = self._memory_wait(hot_since)
            if pause > 0:
                await self._stay(pause)
                continue
            parked = await driver.driver_park.park()
            if parked is not None:
                return parked
            box.urgent = True

    async def _judge(self) -> bool:
        """A policy may decide what was asked just now, before anybody is waited for."""
        driver, arbiter = self.driver, self.driver.runtime.arbiter
        fresh = [hold for hold in driver.pos.holds if hold not in self._judged]
        if arbiter is None or not fresh:
            return False
        self._judged.update(fresh)
        await driver.recorder.committed(driver.queue, driver.pos.head)
        decided = [await arbiter.judge_here(hold) for hold in fresh]
        driver.box.urgent = True
        return any(decided)

    def _should_check_inbox(self, hot_since: float) -> bool:
        """Nothing is under way, and it will not park: parking is refused where mail came (D-29)."""
        driver = self.driver
        if driver.handler_tasks.is_working() or driver.awake.is_set():
            return False
        if driver.box.unread or not (driver.pos.holds or driver.pos.timers):
            return True
        return self._memory_wait(hot_since) > 0

    def _memory_wait(self, since: float) -> float:
        """How long to stay in memory with nothing to do, in seconds; 0: park."""
        driver = self.driver
        since = float("-inf") if driver.cooled else since
        return driver.runtime.memory_wait(driver.pos, self._elapsing.left(), since)

    async def _stay(self, pause: float) -> None:
        """Kept in memory: what comes soon is not worth a park."""
        driver = self.driver
        # A timer is the store's: until its record is committed nothing could fire.
        await driver.recorder.committed(driver.queue, driver.pos.head)
        if driver.writer.resting is None and self._waits_only_for_person():
            await driver.writer.rest(RunStatus.pending_input)
        wake = self._elapsing.left()
        await self._wait(pause if wake is None else min(pause, max(wake, 0.0005)))
        await self._fire()
        driver.box.urgent = True

    async def _fire(self) -> int:
        """Timers of this run that are due become mail to it."""
        driver = self.driver
        return await driver.retry_while_unavailable(
            partial(driver.runtime.store.fire_timers, limit=100, run=driver.run)
        )

    def _waits_only_for_person(self) -> bool:
        """As when it parks: a question is open, and no time that is near goes on by itself (D-31).

        That a question expires is told to the run by mail.
        """
        wake = self._elapsing.left()
        return bool(self.driver.pos.holds) and (wake is None or wake > self.driver.runtime.settings.hot_timer)

    async def _wait(self, seconds: float | None) -> None:
        """Until something happens, or the time is over (on the runtime's clock)."""
        driver = self.driver
        if seconds is None:
            await driver.awake.wait()
            return
        waiting = driver.loop.create_task(driver.awake.wait())
        sleeping = driver.loop.create_task(driver.runtime.clock.sleep(seconds))
        done, pending = await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if sleeping in done:
            crashpoint("during_backoff")
            if await self._fire():
                driver.box.urgent = True

    async def finish_running(self) -> list[Message]:
        """Nothing new starts. On a cancel everything stops; on a failure effects under way may finish."""
        driver, underway = self.driver, self.driver.handler_tasks
        if driver.pos.cancelling is not None:
            await underway.stop(set())
        else:
            repeatable = underway.repeatable() if underway.tasks else set[tuple[str, int]]()
            if repeatable:
                await underway.stop(repeatable)
            while underway.tasks and not underway.done:
                driver.awake.clear()
                await driver.awake.wait()
        messages = underway.take_done()
        if messages and driver.pos.cancelling is None:
            return messages
        return [
            *[m for m in messages if isinstance(m, HandlerFinished) and m.error is None],
            HandlersStopped(),
        ]
