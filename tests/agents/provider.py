"""A model provider on this machine: real HTTP, all protocols, streamed, with all their trouble."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.agents.helpers import time_flies
from tests.agents.protocols import Answer, events

__all__ = ["Answer"]


@dataclass
class Refusal:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"error": {"message": "too much"}}'


@dataclass
class Silence:
    """The connection closes before a byte of an answer."""


@dataclass
class Hangs:
    """Nothing comes at all, and so many seconds pass."""

    seconds: float = 6


Turn = Answer | Refusal | Silence | Hangs | Callable[[dict[str, Any]], Any]


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Provider:
    """Answers requests with `turns`, one after the other; `seen` is what was sent to it."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self.turns: list[Turn] = []
        self.seen: list[Seen] = []

    def says(self, *turns: Turn) -> Provider:
        self.turns += turns
        return self

    @property
    def bodies(self) -> list[bytes]:
        return [seen.body for seen in self.seen]

    @property
    def prompts(self) -> list[bytes]:
        """The same without the key of the run's cache: for comparisons of two runs."""
        return [re.sub(rb'"prompt_cache_key":"\w+",', b"", body) for body in self.bodies]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            seen = await _request(reader)
            if seen is not None:
                self.seen.append(seen)
                await self._answer(self._turn(seen), seen, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _turn(self, seen: Seen) -> Any:
        if not self.turns:
            return Refusal(418, body="nothing is scripted")
        turn = self.turns.pop(0)
        return turn(seen.json) if callable(turn) else turn

    async def _answer(self, turn: Any, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if isinstance(turn, Silence):
            return
        if isinstance(turn, Hangs):
            with time_flies(turn.seconds):
                await asyncio.Event().wait()
        if isinstance(turn, Refusal):
            body = turn.body.encode()
            head = {"content-type": "application/json", "content-length": str(len(body)), **turn.headers}
            writer.write(_head(turn.status, head) + body)
            await writer.drain()
            return
        if turn.before is not None:
            done = turn.before()
            if isinstance(done, Awaitable):
                await done
        writer.write(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        sent = list(events(seen.path, turn))
        for event in sent if turn.cut is None else sent[: turn.cut]:
            await _chunk(writer, event.encode())
        if turn.stall is not None:
            await asyncio.sleep(0.1)  # the other side has read what there is, and waits for more
            with time_flies(turn.stall):
                await asyncio.Event().wait()
        if turn.cut is None:
            await _chunk(writer, b"")


async def _request(reader: asyncio.StreamReader) -> Seen | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    path = head[0].split(" ")[1]
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(path, headers, body)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} X",
        "connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()


@asynccontextmanager
async def a_provider() -> AsyncIterator[Provider]:
    provider = Provider()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(provider.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
