"""Our own work in threads does not wait for calls of handlers in those of the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path

import pytest

from holdfast.store.blob.local import LocalBlobs, content_address
from holdfast.types import own_threads
from holdfast.types.own_threads import in_thread
from tests.deadlines import HANG

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-HANDLER-05")]
NAME = ContextVar("NAME", default="")


async def test_values_are_stored_and_read_while_handlers_have_all_threads_of_the_loop(tmp_path: Path) -> None:
    loop, end = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    blobs, digest = LocalBlobs(tmp_path), content_address(b"value")
    calls = [loop.run_in_executor(None, end.wait) for _ in range(3)]
    try:
        async with asyncio.timeout(HANG):
            await blobs.put(digest, b"value")
            assert await blobs.get(digest) == b"value"
    finally:
        end.set()
        await asyncio.gather(*calls)


async def test_work_has_the_context_of_its_caller_and_raises_what_it_raises() -> None:
    NAME.set("caller")
    assert await in_thread(NAME.get) == "caller"
    with pytest.raises(FileNotFoundError):
        await in_thread(os.stat, "absent")


async def test_a_forked_child_does_not_use_the_threads_of_its_parent() -> None:
    await in_thread(os.getpid)
    assert _pools_of_a_child() == 0


def _pools_of_a_child() -> int:
    child = os.fork()
    if child == 0:
        os._exit(len(own_threads._pools))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
