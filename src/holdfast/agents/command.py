"""A command of a model: in a process group of its own, with a time limit and a limit of what is kept."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.agents import command_supervisor
from holdfast.agents.tool_environment import hide_secrets

GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MOST: Final = 64 * 2**20
"""Bytes of output that are kept: half of them from its beginning, half from its end."""
_BLOCK: Final = 2**16
_LAST_WORDS: Final = 1.0


class CommandResult(msgspec.Struct, frozen=True):
    """`code`: negative for a signal. `output`: of both streams, in the order of arrival."""

    code: int
    output: str
    timed_out: bool = False


async def run_command(
    command: str | Sequence[str],
    *,
    cwd: str | Path | None,
    env: Mapping[str, str],
    timeout: float | None = None,
    most: int = MOST,
    given: bytes = b"",
    errors_only: bool = False,
) -> CommandResult:
    """A text is run by the shell. Processes that it leaves running are ended. Keys and passwords of this
    process are hidden in what it prints. A supervisor ends it at its limit, and when this process is gone.

    `given`: its standard input. `errors_only`: keep what it writes to standard error alone. Raises OSError if
    it cannot be started."""
    words = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    # Pipes of our own: the end of the process must not wait for others that inherited its output.
    (output, output_end), (status, status_end), (control_end, control) = os.pipe(), os.pipe(), os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *_supervisor_words(control_end, status_end, timeout),
            *words,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL if errors_only else output_end,
            stderr=output_end,
            pass_fds=(control_end, status_end),
            # A Ctrl-C is for this process, which then ends the command.
            start_new_session=True,
        )
    except BaseException:
        for end in (output, status, control):
            os.close(end)
        raise
    finally:
        for end in (output_end, status_end, control_end):
            os.close(end)
    kept, said = KeptOutput(most), KeptOutput(_BLOCK)
    tasks = [asyncio.create_task(each) for each in (_read(output, kept), _read(status, said))]
    try:
        await process.communicate(given or None)
    finally:
        # The supervisor ends the command when this pipe is closed, by us or with this process.
        os.close(control)
        report = _Report(said)
        if report.group is not None and report.code is None:
            _end(report.group)
        await process.wait()
        # A process in a session of its own may hold the pipe for ever.
        await asyncio.wait(tasks, timeout=_LAST_WORDS)
        for task in tasks:
            task.cancel()
    report = _Report(said)
    if report.error is not None:
        raise OSError(report.error, os.strerror(report.error), words[0])
    if report.group is None:
        raise ChildProcessError(f"the supervisor of {words[0]} ended with {process.returncode}")
    code = -signal.SIGKILL if report.code is None else report.code
    return CommandResult(code, hide_secrets(kept.text()), report.timed_out)


def _supervisor_words(control: int, status: int, timeout: float | None) -> list[str]:
    # Without site packages and variables of Python: it needs neither, and starts faster.
    return [
        sys.executable, "-I", "-S", command_supervisor.__file__, str(control), str(status), str(timeout or 0),
        str(GRACE),
    ]  # fmt: skip


class _Report:
    """What the supervisor has said so far."""

    def __init__(self, said: KeptOutput) -> None:
        lines = [line.split(" ") for line in said.text().splitlines()]
        found = {words[0]: int(words[1]) for words in lines if len(words) > 1}
        self.group = found.get("pid")
        self.error = found.get("error")
        self.code = found.get("exit")
        self.timed_out = ["timeout"] in lines


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


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


_CONTINUES: Final = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that continue a character."""


class KeptOutput:
    """The beginning and the end of an output of any length, as text. `most`: bytes that are kept, half of
    them of the end."""

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
        return _without_cut_end(head) + note + _without_cut_begin(tail).decode(errors="replace")


def _without_cut_end(data: bytes) -> str:
    """A character that was cut is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def _without_cut_begin(data: bytes) -> bytes:
    begin = data[:3]
    return begin.lstrip(_CONTINUES) + data[3:]
