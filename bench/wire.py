"""A small HTTP client for a load generator: connections that stay open, answers read whole, no more.

A client library would spend as much time on a request as the server does, on the machine that they share.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE = 30.0
IDLE = 2.0


class Answer(NamedTuple):
    status: int
    body: bytes


class Wire:
    """Connections to one server. One that somebody uses is nobody else's; there are as many as are needed."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = str(parts.hostname), int(parts.port or 80)
        self._free: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.opened = 0

    async def ask(self, method: str, path: str, token: str, body: bytes = b"") -> Answer:
        async with asyncio.timeout(PATIENCE):
            reader, writer = self._still_open() or await self._connect()
            try:
                writer.write(self._request(method, path, token, body))
                answer, keeps = await _read(reader)
            except BaseException:
                writer.close()
                raise
            if keeps:
                self._free.append((perf_counter(), reader, writer))
            else:
                writer.close()
            return answer

    async def join(self, path: str, token: str) -> Answer:
        """A stream: until its first event is there, then it is left."""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await self._connect()
            try:
                writer.write(self._request("GET", path, token, b"", accept="text/event-stream"))
                head = await reader.readuntil(b"\r\n\r\n")
                status = int(head[9:12])
                if status != 200:
                    return Answer(status, await reader.read(4096))
                return Answer(status, await reader.readuntil(b"\ndata:"))
            finally:
                writer.close()

    def _still_open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A server closes what nobody used for a while; whoever sends at that moment is not answered."""
        while self._free:
            since, reader, writer = self._free.pop()
            if perf_counter() - since < IDLE and not reader.at_eof():
                return reader, writer
            writer.close()
        return None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.opened += 1
        return await asyncio.open_connection(self._host, self._port, limit=1 << 22)

    def _request(self, method: str, path: str, token: str, body: bytes, accept: str = "*/*") -> bytes:
        kind = "Content-Type: application/json\r\n" if body else ""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept: {accept}\r\n"
            f"Authorization: Bearer {token}\r\n{kind}Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    def close(self) -> None:
        for _, _, writer in self._free:
            writer.close()
        self._free.clear()


async def _read(reader: asyncio.StreamReader) -> tuple[Answer, bool]:
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
    status = int(head[9:12])
    if b"content-length" in fields:
        body = await reader.readexactly(int(fields[b"content-length"]))
    elif fields.get(b"transfer-encoding") == b"chunked":
        body = await _chunks(reader)
    else:
        body = b""
    return Answer(status, body), fields.get(b"connection") != b"close"


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readline()
    return b"".join(parts)
