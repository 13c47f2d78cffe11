"""Our own work in threads does not wait for calls of handlers in those of the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path

import pytest

from holdfast.store.blob.local import LocalBlobs, content_address
from holdfast.types import own_threads
from holdfast.types.own_threads import in_thread

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-HANDLER-05")]
NAME = ContextVar("NAME", default="")


@pytest.fixture
def full(anyio_backend: str) -> Iterator[threading.Event]:
    """Set at the end: the calls that have taken all threads of the loop return."""
    end = threading.Event()
    yield end
    end.set()


async def filled(end: threading.Event) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    for _ in range(3):
        loop.run_in_executor(None, end.wait)


async def test_values_are_stored_and_read_while_handlers_have_all_threads_of_the_loop(
    full: threading.Event, tmp_path: Path
) -> None:
    await filled(full)
    blobs = LocalBlobs(tmp_path)
    digest = content_address(b"value")
    await blobs.put(digest, b"value")
    assert await blobs.get(digest) == b"value"


async def test_work_has_the_context_of_its_caller_and_raises_what_it_raises() -> None:
    NAME.set("caller")
    assert await in_thread(NAME.get) == "caller"
    with pytest.raises(FileNotFoundError):
        await in_thread(os.stat, "absent")


async def test_a_forked_child_does_not_use_the_threads_of_its_parent() -> None:
    await in_thread(os.getpid)
    child = os.fork()
    if child == 0:
        os._exit(len(own_threads._pools))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
