"""Real servers on this machine that take what is sent to people: HTTP and SMTP."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from holdfast.holds.egress import Egress


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class HttpServer:
    """Says 200 unless told otherwise; `seen` is what was posted to it."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    turns: list[tuple[int, dict[str, str], str] | None] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def egress(self) -> Egress:
        return Egress(allow=(f"127.0.0.1:{self.port}",), timeout=5)

    def says(self, status: int, *, headers: dict[str, str] | None = None, body: str = "ok") -> None:
        self.turns.append((status, headers or {}, body))

    def hangs(self) -> None:
        self.turns.append(None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:]) if k
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.seen.append(Seen(head[0].split(" ")[1], headers, body))
            turn = self.turns.pop(0) if self.turns else (200, {}, "ok")
            if turn is None:
                await reader.read()  # until the other side gives up
                return
            status, extra, text = turn
            lines = [
                f"HTTP/1.1 {status} X",
                f"content-length: {len(text)}",
                *(f"{k}: {v}" for k, v in extra.items()),
            ]
            writer.write("\r\n".join([*lines, "", text]).encode())
            await writer.drain()
        except (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ValueError,
            IndexError,
        ):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def http_server() -> AsyncIterator[HttpServer]:
    made = HttpServer()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


@dataclass
class Mail:
    sender: str
    to: list[str]
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        found = email.message_from_bytes(self.raw, policy=email.policy.default)
        assert isinstance(found, EmailMessage)
        return found


@dataclass
class SmtpServer:
    """Takes every mail; `refuses` maps recipients to the reply that turns them away."""

    port: int = 0
    mails: list[Mail] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    down: bool = False
    sessions: int = 0
    logins: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sessions += 1

        def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())

        sender, to = "", []
        try:
            if self.down:
                say("421 not now")
                return
            say("220 sink ESMTP")
            while line := (await reader.readline()).decode("latin-1").strip():
                verb = line[:4].upper()
                if verb == "EHLO":
                    say("250-sink")
                    say("250 AUTH PLAIN")
                elif verb == "MAIL":
                    sender, to = line.partition("<")[2].partition(">")[0], []
                    say("250 ok")
                elif verb == "RCPT":
                    address = line.partition("<")[2].partition(">")[0]
                    refusal = self.refuses.get(address)
                    if refusal is None:
                        to.append(address)
                    say(refusal or "250 ok")
                elif verb == "DATA":
                    say("354 go on")
                    raw = b""
                    while (part := await reader.readline()) != b".\r\n":
                        raw += part[1:] if part.startswith(b".") else part
                    self.mails.append(Mail(sender, to, raw))
                    say("250 queued")
                elif verb == "AUTH":
                    self.logins.append(line)
                    say("235 welcome")
                elif verb == "QUIT":
                    say("221 bye")
                    return
                else:
                    say("250 ok")
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def smtp_server() -> AsyncIterator[SmtpServer]:
    made = SmtpServer()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
