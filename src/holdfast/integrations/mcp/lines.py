"""Lines of stdin for an event loop: a signal ends the wait for the next one, as no thread does."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Final

LONGEST: Final = 16 << 20
"""Bytes of a line."""


async def lines_of_stdin() -> AsyncIterator[bytes]:
    """Without empty ones. From here on nobody else of this process reads from stdin."""
    reader = await _reader()
    while line := await reader.readline():
        if line.strip():
            yield line


async def _reader() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LONGEST)
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
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def _can_be_waited_for(file: int) -> bool:
    """Event loops wait for pipes, sockets and terminals only; a file, and nothing, is read at once."""
    mode = os.fstat(file).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file)
