"""Counts what a piece of work does instead of timing it: a busy machine changes times, never counts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any


class Counter:
    """Calls of Python and C functions made by this thread while it is entered. No garbage is collected
    meanwhile: when it would be depends on the tests before, and what then runs (finalizers, callbacks) is not
    of this work."""

    def __init__(self) -> None:
        self.calls = 0
        self._before: Any = None
        self._collects = False

    def __enter__(self) -> Counter:
        self._collects = gc.isenabled()
        gc.disable()
        self._before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()

    def _count(self, _frame: object, event: str, _arg: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1


def operations(work: Callable[[], object]) -> int:
    with Counter() as counter:
        work()
    return counter.calls


async def async_operations(work: Callable[[], Awaitable[object]]) -> int:
    """What other tasks of the loop do meanwhile is counted too: take a quiet moment."""
    with Counter() as counter:
        await work()
    return counter.calls
