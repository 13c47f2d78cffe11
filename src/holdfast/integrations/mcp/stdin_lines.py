"""Lines of stdin for an event loop: unlike a read in a thread, a signal can end the wait."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Final

LONGEST: Final = 16 << 20
"""Maximum bytes of a line."""
TOO_LONG: Final = b"a line of more than 16 MiB"
"""Returned in place of such a line: it is not JSON, so it is answered as a parse error."""


class StdinLines:
    """Lines without empty ones, until stdin ends or `stop`. After the first one nothing else in this process
    may read from stdin."""

    def __init__(self) -> None:
        self._pipe: asyncio.ReadTransport | None = None
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        if self._pipe is not None:
            self._pipe.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reader = await self._reader()
        while line := await _whole_line(reader):
            if self.stopped:
                return  # half a line, perhaps
            if line.strip():
                yield line

    async def _reader(self) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=LONGEST)
        # A copy, and stdin itself is replaced by nothing: a handler
        # that reads stdin would otherwise take a part of the protocol.
        pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, sys.stdin.fileno())
        os.close(nothing)
        if not _can_be_waited_for(pipe.fileno()):
            with pipe:
                reader.feed_data(pipe.read())
            reader.feed_eof()
            return reader
        loop = asyncio.get_running_loop()
        self._pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        return reader


async def _whole_line(reader: asyncio.StreamReader) -> bytes:
    over = False
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            over = True  # what was read of it is dropped; the rest is still to come
            continue
        return TOO_LONG if over else line


@contextmanager
def ended_by_sigterm(stop: Callable[[], None]) -> Generator[None]:
    """`stop` is called on SIGTERM instead of ending the process."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGTERM, stop)
    except (NotImplementedError, RuntimeError, ValueError):
        yield  # not in the main thread: the embedding program handles signals
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _can_be_waited_for(file: int) -> bool:
    """Event loops wait only for pipes, sockets and terminals; a file or a closed stdin is read at once."""
    mode = os.fstat(file).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file)
