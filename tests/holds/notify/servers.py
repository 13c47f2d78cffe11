"""Real servers on this machine that take what is sent to people: HTTP and SMTP."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from ipaddress import ip_address
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

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
    """Says 200 unless told otherwise; `seen` is what was posted to it. `SENT` in a body that it says is the
    body of the request."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    turns: list[tuple[int, dict[str, str], str] | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # that TLS was asked for

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
            text = text.replace("SENT", body.decode())
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


@dataclass
class Certificate:
    """One that nobody vouches for but itself."""

    file: bytes

    @classmethod
    def of(cls, host: str) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        known_as = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(
            datetime(2100, 1, 1, tzinfo=UTC)
        )
        builder = builder.add_extension(x509.SubjectAlternativeName([known_as]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        pem = Encoding.PEM
        secret = key.private_bytes(pem, PrivateFormat.PKCS8, NoEncryption())
        return cls(secret + builder.sign(key, SHA256()).public_bytes(pem))

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.file[self.file.index(b"-----BEGIN CERT") :].decode())

    def serving(self, names: list[str]) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.file)
            file.flush()
            context.load_cert_chain(file.name)
        context.sni_callback = lambda _socket, name, _context: names.append(name or "")
        return context


@asynccontextmanager
async def http_server(certificate: Certificate | None = None) -> AsyncIterator[HttpServer]:
    made = HttpServer()
    tls = certificate.serving(made.names) if certificate else None
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
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
    logins: list[tuple[bool, str]] = field(default_factory=list)  # whether by TLS, and what was sent
    upgrade: ssl.SSLContext | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
                    if self.upgrade is not None:
                        say("250-STARTTLS")
                    say("250 AUTH PLAIN")
                elif verb == "STAR":
                    say("220 go on")
                    await writer.drain()
                    await writer.start_tls(self.upgrade)
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
                    self.logins.append((writer.get_extra_info("cipher") is not None, line))
                    say("235 welcome")
                elif verb == "QUIT":
                    say("221 bye")
                    return
                else:
                    say("250 ok")
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def smtp_server(
    certificate: Certificate | None = None, *, later: bool = False
) -> AsyncIterator[SmtpServer]:
    """`later`: TLS is asked for by STARTTLS, instead of from the first byte."""
    tls = certificate.serving([]) if certificate else None
    made = SmtpServer(upgrade=tls if later else None)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=None if later else tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
