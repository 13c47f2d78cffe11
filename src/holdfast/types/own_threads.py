"""Threads for our own work that waits for a file, a database or a command.

Apart from those of the event loop (`asyncio.to_thread`): the code of flows may fill these with calls that
take minutes or never return, and neither values nor pages may wait for that.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")

LIMIT: Final = 32
_pools: list[ThreadPoolExecutor] = []

# The threads stay with the parent.
os.register_at_fork(after_in_child=_pools.clear)


async def in_thread(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """What `work` gives, called in a thread with the caller's context."""
    if not _pools:
        # Not needed by `import holdfast`.
        from concurrent.futures import ThreadPoolExecutor

        _pools.append(ThreadPoolExecutor(LIMIT, thread_name_prefix="holdfast-own"))
    call = partial(copy_context().run, work, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(_pools[0], call)
