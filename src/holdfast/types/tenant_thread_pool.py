"""Threads for work that is only computed: requests of others are answered meanwhile, and no tenant fills the
queue for all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Any, TypeVar

from holdfast.errors import RateLimitedError

T = TypeVar("T")


class TenantThreads:
    """`most`: how much work of one tenant is done or waits. `what`: the work, for the message."""

    def __init__(self, name: str, *, threads: int, most: int, what: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"holdfast-{name}")
        self._most, self._what = most, what
        self._waiting = Counter[str]()
        self._lock = Lock()

    async def run(self, tenant: str, work: Callable[..., T], *args: Any) -> T:
        """What `work` gives. Raises RateLimitedError if too much of the tenant waits."""
        with self._lock:
            if self._waiting[tenant] >= self._most:
                raise RateLimitedError(
                    f"{self._most} {self._what}.",
                    hint="Wait for the time in Retry-After, then try again.",
                    retry_after=1,
                )
            self._waiting[tenant] += 1
        # With the caller's context: whose secrets are masked is in it.
        job = self._threads.submit(copy_context().run, work, *args)
        # When it has really ended: a caller who hangs up does not stop what is running.
        job.add_done_callback(lambda _: self._release(tenant))
        return await asyncio.wrap_future(job)

    def _release(self, tenant: str) -> None:
        with self._lock:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]
