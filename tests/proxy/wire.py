"""One connection by way of the proxy, what is counted of it, and where it goes."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

Way = Literal["up", "down"]
"""up: from the client to the server; down: the answers"""

PIECE: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)


class Counts(msgspec.Struct, kw_only=True):
    """What passed and what struck, since the proxy began."""

    connections: int = 0
    open: int = 0
    cuts: int = 0
    refused: int = 0
    delayed: int = 0
    """pieces that arrived later than they could have"""
    swallowed: int = 0
    """pieces, and new connections, that had to wait for `clear`"""
    up: int = 0
    down: int = 0


class PendingCut(msgspec.Struct, kw_only=True):
    """The next connection that carries so many more bytes is cut right behind them."""

    count: int
    way: Way
    struck: asyncio.Event
    passed: dict[int, int] = {}

    def exceeds(self, wire: int, way: Way, size: int) -> bool:
        """Whether a piece of this size would carry more than may still pass."""
        if way != self.way:
            return False
        if size > self.left(wire):
            return True
        self.passed[wire] = self.passed.get(wire, 0) + size
        return False

    def left(self, wire: int) -> int:
        return self.count - self.passed.get(wire, 0)


class Wire:
    """One connection of a client, and ours to the server for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.gone = False
        self._ends: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def client(self, taken: socket.socket) -> None:
        self._ends.append(await asyncio.open_connection(sock=taken))

    async def server(self, target: tuple[str, int]) -> None:
        self._ends.append(await asyncio.open_connection(*target))
        if self.gone:  # cut meanwhile
            self.reset()

    async def read(self, way: Way) -> bytes:
        return await self._ends[way == "down"][0].read(PIECE)

    async def write(self, way: Way, piece: bytes) -> None:
        writer = self._ends[way == "up"][1]
        writer.write(piece)
        await writer.drain()

    def finish(self, way: Way) -> None:
        """One side has nothing more to say; the other may still answer."""
        writer = self._ends[way == "up"][1]
        if not writer.is_closing():
            writer.write_eof()

    def close(self) -> None:
        for _reader, writer in self._ends:
            writer.close()

    def reset(self) -> None:
        """Both sides learn of it by a reset, not by a polite end."""
        self.gone = True
        for _reader, writer in self._ends:
            if not writer.is_closing():
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()


def place(target: str) -> tuple[str, int]:
    host, _colon, port = target.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{target!r} is no place to connect to; write host:port")
    return host, int(port)


def by_way_of(url: str, address: str) -> str:
    parts = urlsplit(url)
    user, at, _host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, f"{user}{at}{address}", parts.path, parts.query, parts.fragment))


def bound(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((host, port))
    return made
