"""What stands between a client and its server, and breaks: a relay that cuts connections where it is told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Relay:
    """`cuts`: after how many bytes of answer each connection breaks; None, and all that follow: never.
    `hides`: a header that the server does not get to see."""

    def __init__(self, target: str, cuts: Iterator[int | None], hides: str = "") -> None:
        parts = urlsplit(target)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._cuts = cuts
        self._hides = hides.lower().encode()
        self.connections = 0
        self.address = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        limit = next(self._cuts, None)
        up_reader, up_writer = await asyncio.open_connection(*self._target)
        ways = [
            asyncio.create_task(_pass_on(reader, up_writer, None, self._hides)),
            asyncio.create_task(_pass_on(up_reader, writer, limit)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for each in (writer, up_writer):
            each.transport.abort()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None, hides: bytes = b""
) -> None:
    """Ends with the connection, or where the limit is reached: in the midst of whatever is there."""
    while data := await reader.read(1 << 14):
        if hides:
            data = re.sub(re.escape(hides), b"x" * len(hides), data, flags=re.IGNORECASE)
        writer.write(data if limit is None else data[:limit])
        await writer.drain()
        if limit is not None:
            limit -= len(data)
            if limit <= 0:
                return


@asynccontextmanager
async def relay(target: str, *cuts: int | None, hides: str = "") -> AsyncIterator[Relay]:
    made = Relay(target, iter(cuts), hides)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
