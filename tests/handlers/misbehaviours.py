"""What ordinary Python can do in a user's function besides returning a value and raising an Exception."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any


class OddError(BaseException):
    """No Exception, so that `except Exception` does not see it."""


class Unreadable(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


def plain_error() -> Any:
    raise ValueError("what a matrix without misbehaviour expects")


def stop_iteration() -> Any:
    raise StopIteration("done")


def stop_async_iteration() -> Any:
    raise StopAsyncIteration


def exit_zero() -> Any:
    sys.exit(0)


def keyboard_interrupt() -> Any:
    raise KeyboardInterrupt


def generator_exit() -> Any:
    raise GeneratorExit


def base_exception() -> Any:
    raise OddError("odd")


def raised_cancelled() -> Any:
    raise asyncio.CancelledError


def group_with_exit() -> Any:
    raise BaseExceptionGroup("several", [SystemExit(0), ValueError("x")])


def unreadable_error() -> Any:
    raise Unreadable


async def cancels_itself_and_waits() -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def cancels_itself_and_returns() -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


# In both forms: raised by a plain function and by a coroutine.
RAISED: tuple[Callable[[], Any], ...] = (
    plain_error,
    stop_iteration,
    stop_async_iteration,
    exit_zero,
    keyboard_interrupt,
    generator_exit,
    base_exception,
    raised_cancelled,
    group_with_exit,
    unreadable_error,
)
# Only a coroutine can do these.
OF_TASKS: tuple[Callable[[], Any], ...] = (cancels_itself_and_waits, cancels_itself_and_returns)


def as_coroutine(misbehave: Callable[[], Any]) -> Callable[[], Any]:
    async def bad() -> Any:
        found = misbehave()
        return await found if asyncio.iscoroutine(found) else found

    bad.__name__ = misbehave.__name__
    return bad
