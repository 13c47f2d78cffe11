"""A command of a model: in a process group of its own, with a time limit and a limit of what is kept."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.agents.tool_environment import hide_secrets

GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MOST: Final = 64 * 2**20
"""Bytes of output that are kept: half of them from its beginning, half from its end."""
_BLOCK: Final = 2**16
_LAST_WORDS: Final = 1.0
_POLL: Final = 0.05


class CommandResult(msgspec.Struct, frozen=True):
    """`code`: negative for a signal. `output`: of both streams, in the order of arrival."""

    code: int
    output: str
    timed_out: bool = False


async def run_command(
    command: str | Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    timeout: float | None = None,
    most: int = MOST,
) -> CommandResult:
    """A text is run by the shell. Processes that it leaves running are ended. Keys and passwords of this
    process are hidden in what it prints."""
    words = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    # A pipe of our own: the end of the process must not wait for others that inherited its output.
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            # A group of its own, so that background processes of the command can be ended with it.
            start_new_session=True,
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    kept = KeptOutput(most)
    reading = asyncio.create_task(_read(read_end, kept))
    try:
        timed_out = await _ended(process, timeout)
    finally:
        _signal(process.pid, signal.SIGKILL)
        await process.wait()
        # A process in a session of its own may hold the pipe for ever.
        with suppress(TimeoutError):
            await asyncio.wait_for(reading, _LAST_WORDS)
    return CommandResult(process.returncode or 0, hide_secrets(kept.text()), timed_out)


async def _ended(process: asyncio.subprocess.Process, timeout: float | None) -> bool:
    """Whether it was ended because of its time limit: SIGTERM first, so that it can clean up."""
    try:
        async with asyncio.timeout(timeout):
            await process.wait()
    except TimeoutError:
        _signal(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await process.wait()
                # The shell may be gone before its children have cleaned up.
                while _signal(process.pid, 0):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL)
        return True
    return False


async def _read(read_end: int, kept: KeptOutput) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    file = os.fdopen(read_end, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        while block := await reader.read(_BLOCK):
            kept.add(block)
    finally:
        transport.close()


class KeptOutput:
    """The beginning and the end of an output of any length."""

    def __init__(self, most: int) -> None:
        self._head, self._tail = bytearray(), deque[bytes]()
        self._half = most // 2
        self._size = 0
        self._left_out = 0

    def add(self, block: bytes) -> None:
        room = self._half - len(self._head)
        self._head += block[:room]
        if len(block) > room:
            self._tail.append(block[room:])
            self._size += len(block) - room
        while self._size > self._half:
            first = self._tail.popleft()
            over = min(len(first), self._size - self._half)
            if over < len(first):
                self._tail.appendleft(first[over:])
            self._size -= over
            self._left_out += over

    def text(self) -> str:
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self._left_out:
            return (head + tail).decode(errors="replace")
        note = f"\n[{self._left_out:,} bytes were not kept]\n"
        return head.decode(errors="replace") + note + tail.decode(errors="replace")


def _signal(group: int, number: int) -> bool:
    """Whether there is such a group."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
