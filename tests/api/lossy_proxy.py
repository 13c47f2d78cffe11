"""Stands between a client and its server: each request meets what the script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from tests.deadlines import HANG


class Lossy:
    """`script`: for one request after the other `pass`, `cut` (it never arrives), `lose` (it is done, and the
    answer is lost) or a whole answer of its own; `pass` for the rest."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.script: list[str] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.address = ""

    def plan(self, *script: str) -> None:
        self.script, self.seen = list(script), []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.seen.append((method, path, headers))
        what = self.script.pop(0) if self.script else "pass"
        if what == "cut":
            return False
        if what not in ("pass", "lose"):
            writer.write(what.encode())
            await writer.drain()
            return False
        async with httpx2.AsyncClient(base_url=self.upstream, timeout=HANG) as http:
            kept = {name: value for name, value in headers.items() if name not in ("host", "content-length")}
            answer = await http.request(
                method, path, headers=kept | {"accept-encoding": "identity"}, content=body
            )
        if what == "lose":
            return False
        ours = ("content-length", "transfer-encoding")
        said = [f"{name}: {value}" for name, value in answer.headers.items() if name not in ours]
        lines = [f"HTTP/1.1 {answer.status_code} X", *said, f"content-length: {len(answer.content)}", "", ""]
        writer.write("\r\n".join(lines).encode() + answer.content)
        await writer.drain()
        return True


def refusal(status: int, *headers: str) -> str:
    said = ["Connection: close", "Content-Length: 0", *headers]
    return "\r\n".join([f"HTTP/1.1 {status} X", *said, "", ""])


@asynccontextmanager
async def lossy(upstream: str) -> AsyncIterator[Lossy]:
    found = Lossy(upstream)
    listens = await asyncio.start_server(found.handle, "127.0.0.1", 0)
    found.address = f"http://127.0.0.1:{listens.sockets[0].getsockname()[1]}"
    async with listens:
        yield found
