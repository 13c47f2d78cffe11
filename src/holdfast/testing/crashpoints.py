"""Crashes on purpose: of a child process, or of a worker in this process whose store is kept.

A child is armed by its environment, `env | crashpoints.environment("after_settle", 3)`, and dies with
exit code 137 at the third settle. For the memory store, which dies with its process, `until_crash` lets the
worker die alone and keeps the store object:

    crash = until_crash(lambda store: refund.run({...}, on=Holdfast(store)), store, "after_handler")
    assert isinstance(crash, Crash)
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn, TypeVar, cast

from holdfast import telemetry
from holdfast.errors import StoreUnavailableError
from holdfast.model.user_code.boundary import ControlFlow
from holdfast.store.protocols import Store
from holdfast.telemetry import CRASH_POINTS, ENGINE_CRASH_POINTS

__all__ = ["CRASH_POINTS", "EXIT_CODE", "Armed", "Crash", "armed", "environment", "until_crash"]

T = TypeVar("T")

EXIT_CODE: Final = 137

# A dead worker's tasks are kept referenced: collecting them would run their `finally` blocks, which a real
# crash does not.
_abandoned_tasks: list[asyncio.Task[Any]] = []


class Crash(ControlFlow):
    """A worker died here. No error handler catches it."""

    def __init__(self, point: str) -> None:
        super().__init__(point)
        self.point = point


class Armed:
    """An armed point, and how often it was reached."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.passed = 0
        self.reached = False


def environment(name: str, nth: int = 1) -> dict[str, str]:
    """Environment variables with which a child dies the nth time it reaches `name`."""
    _known(name)
    return {"HOLDFAST_CRASH": f"{name}:{nth}"}


@contextmanager
def armed(name: str, *, nth: int = 1, hit: Callable[[], None] | None = None) -> Generator[Armed]:
    """Inside the block the nth pass through `name` raises `Crash`, or calls `hit` if it is given.

    With nth=0 passes are only counted.
    """
    _known(name)
    found = Armed(name)

    def passed() -> None:
        found.passed += 1
        if found.passed == nth:
            found.reached = True
            if hit is None:
                raise Crash(name)
            hit()

    # Disarmed by name: blocks may be nested, one for each point.
    telemetry.arm_each(name, passed)
    try:
        yield found
    finally:
        telemetry.disarm(name)


def until_crash(
    work: Callable[[Store], Coroutine[Any, Any, T]], store: Store, name: str, *, nth: int = 1
) -> T | Crash:
    """Run `work` in a separate event loop until it ends or reaches the point.

    At the point everything of that worker stops for good, as in a process that died: its tasks never run
    again, and its store handle refuses calls. The store itself stays usable, and its leases expire.
    """
    mortal = _CrashableStore(store)
    loop = asyncio.new_event_loop()
    # Errors of tasks of a dead worker are expected, and not to be printed.
    loop.set_exception_handler(lambda _loop, _context: None)

    def die() -> NoReturn:
        # First of all: a `finally` that still runs while the crash unwinds must not write any more.
        mortal.dead = True
        loop.stop()
        raise Crash(name)

    task = loop.create_task(work(cast("Store", mortal)))
    with armed(name, nth=nth, hit=die) as point:
        try:
            result = loop.run_until_complete(task)
        except BaseException:
            # Output that the dying worker still wrote.
            if not point.reached:
                raise
            return Crash(name)
        finally:
            if point.reached:
                _abandon({task, *asyncio.all_tasks(loop)})
                loop.close()
            else:
                _finish(loop)
    return Crash(name) if point.reached else result


def _abandon(tasks: set[asyncio.Task[Any]]) -> None:
    if not _abandoned_tasks:
        atexit.register(_clear)
    for task in tasks:
        # asyncio would print a warning for each task that a dead worker leaves behind.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    _abandoned_tasks.extend(tasks)


def _clear() -> None:
    """At the end of the process Python would warn about each of them."""
    for task in _abandoned_tasks:
        with suppress(BaseException):
            cast("Coroutine[Any, Any, Any]", task.get_coro()).close()


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


class _CrashableStore:
    """A worker's handle on a store, which ends with the worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if inspect.iscoroutinefunction(found):
            return self._awaited(found)
        return self._called(found, name) if callable(found) else found

    def _awaited(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._check()
            return await method(*args, **kwargs)

        return call

    def _called(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.dead and name == "extend_now":
                return [True] * len(args[0])  # the heartbeat's thread gets no error; it soon ends
            self._check()
            return method(*args, **kwargs)

        return call

    def _check(self) -> None:
        if self.dead:
            raise StoreUnavailableError("this worker is dead")


def _known(name: str) -> None:
    if name not in (*CRASH_POINTS, *ENGINE_CRASH_POINTS):
        raise ValueError(f"{name!r} is not a crash point; they are: {', '.join(CRASH_POINTS)}")
