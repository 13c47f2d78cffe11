"""Processes that user code forks. A child that returns from the code, or leaves it with an error, would be a
second worker with the same leases and connections: it ends there instead."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

from holdfast.model.user_code.tasks import OwnedTask

# How many forks led to this process. A call that ends with another count than it began with ends in a child.
count: int = 0

_forking: asyncio.AbstractEventLoop | None = None


def leave_child_of(began: int, code: int = 0) -> None:
    """Ends this process if it was forked after `count` was `began`."""
    if count != began:
        _leave(code)


def _leave(code: int = 0) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    # No clean-up: connections, files and locks belong to the parent.
    os._exit(code)


def _before() -> None:
    global _forking
    try:
        _forking = asyncio.get_running_loop() if isinstance(asyncio.current_task(), OwnedTask) else None
    except RuntimeError:
        _forking = None


def _in_child() -> None:
    global count
    count += 1
    # The code may wait in the child: the copy of the loop must not run the other tasks a second time.
    ready: Any = getattr(_forking, "_ready", None)
    if _forking is not None and ready is not None:
        ready.clear()
        ready.append(asyncio.Handle(_leave, (), _forking))


os.register_at_fork(before=_before, after_in_child=_in_child)
