"""One outgoing POST, under the rules of `holds.egress`: no redirects, no proxies, no cookies.

Also the base class of HTTP channels, which maps each response to a delivery.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache

import msgspec

from holdfast.errors import EgressError
from holdfast.holds.egress import Egress, EgressTarget, Resolve, address_of, target_of
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.escape import error_line, one_line
from holdfast.types.clock import MICROS, Clock, SystemClock, to_micros
from holdfast.types.redaction import redactor
from holdfast.types.terms import Assignee

MAX_HEAD = 32 * 1024
LINGER = 2.0  # seconds for the body of a response: only its status counts


class HttpReply(msgspec.Struct, frozen=True):
    """The receiver's response. `headers`: names in lower case."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""

    def retry_after(self, now: int) -> float | None:
        """Seconds; from a number or a date."""
        text = self.headers.get("retry-after", "").strip()
        # The receiver chooses the text: a longer number would be a delay of more than thirty years.
        if text.isdecimal() and len(text) < 10:
            return float(text)
        try:
            return max(0.0, (to_micros(parsedate_to_datetime(text)) - now) / MICROS)
        except (ValueError, TypeError):
            return None


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    egress: Egress,
    resolve: Resolve | None = None,
) -> HttpReply:
    """Raises EgressError for an address that is not allowed, OSError or TimeoutError if it is unreachable,
    ValueError for a response that is not HTTP."""
    target = target_of(url, egress)
    # One limit for all of it: a receiver that sends a byte now and then would pass any limit per read.
    async with asyncio.timeout(egress.timeout):
        address = await address_of(target, egress, resolve)
        reader, writer = await connect(target, address)
        try:
            writer.write(request_bytes("POST", target, body, headers))
            await writer.drain()
            return await _reply(reader, egress.max_reply)
        finally:
            writer.close()


# Not a general HTTP library: that would resolve the name again itself, use the proxies of the environment
# and keep connections, and so connect to an address that was not checked.
async def connect(target: EgressTarget, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to the address that was checked, with the name of the URL."""
    tls, name = (_trusted(), target.host) if target.tls else (None, None)
    return await asyncio.open_connection(address, target.port, limit=MAX_HEAD, ssl=tls, server_hostname=name)


@cache
def _trusted() -> ssl.SSLContext:
    """The system's certificates, read once: that takes longer than a request."""
    return ssl.create_default_context()


def request_bytes(method: str, target: EgressTarget, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Raises ValueError for a header with a line break."""
    fields = {
        "Host": target.authority,
        "User-Agent": "holdfast",
        "Content-Length": str(len(body)),
        # One request per connection: the next notice is checked and resolved anew.
        "Connection": "close",
        **headers,
    }
    lines = [f"{method} {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    # Header injection: a value with a line break could add headers or a second request.
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header contains a line break")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def _reply(reader: asyncio.StreamReader, most: int) -> HttpReply:
    status, headers = await read_head(reader)
    body = b""
    # The status is known by now; a body that does not end must not turn it into a failure.
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(LINGER):
            body = await _body(reader, headers, most)
    return HttpReply(status, headers, body)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str], most: int) -> bytes:
    text = headers.get("content-length", "")
    # The receiver chooses the text: int() raises for numbers of more than 4,300 digits.
    wanted = min(int(text), most) if text.isdecimal() and len(text) < 16 else most
    found = b""
    while len(found) < wanted:
        part = await reader.read(wanted - len(found))
        if not part:
            break
        found += part
    return found


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers of the final response: 1xx are interim ones."""
    status, headers = await _head(reader)
    while 100 <= status < 200:
        status, headers = await _head(reader)
    return status, headers


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        raise ConnectionError("the connection was closed before a response") from None
    except asyncio.LimitOverrunError:
        raise ValueError("the header of the response is too long") from None
    version, _, rest = lines[0].partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise ValueError("the response is not HTTP")
    pairs = (line.partition(":") for line in lines[1:] if ":" in line)
    return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in pairs}


# Statuses that are worth a retry: the receiver is busy or failing.
LATER = frozenset({408, 409, 425, 429})


class HttpChannel:
    """A channel with one address, which may have many readers."""

    personal = False

    def __init__(
        self,
        name: str,
        url: str,
        *,
        egress: Egress | None = None,
        scope: ChannelScope | None = None,
        admin: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.scope = scope or ChannelScope()
        # Addresses of incoming webhooks contain their secret in the path.
        redactor.learn(url)
        self._url = url
        self._egress = egress or Egress()
        self._admin = admin
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"  # the address is a secret

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        return (self.name,)

    async def admins(self) -> Sequence[str]:
        return (self.name,) if self._admin else ()

    async def _post(self, body: bytes, headers: Mapping[str, str] | None = None) -> Delivery:
        fields = {"Content-Type": "application/json", **(headers or {})}
        try:
            reply = await post(self._url, body, fields, egress=self._egress)
        except EgressError as error:
            # Final: a forbidden address does not become allowed by
            # waiting; `replay` sends it after the setting is fixed.
            return Delivery(accepted=False, detail=error_line(error))
        except ssl.SSLCertVerificationError as error:
            return Delivery(accepted=False, retry=True, detail=f"its certificate: {error.verify_message}")
        except TimeoutError:
            return Delivery(accepted=False, retry=True, detail="no answer in time")
        except (OSError, ValueError) as error:
            return Delivery(accepted=False, retry=True, detail=error_line(error))
        return delivery_for(reply, self._clock.now())


def delivery_for(reply: HttpReply, now: int) -> Delivery:
    """2xx means accepted, whatever the body says; a redirect is not followed."""
    if 200 <= reply.status < 300:
        return Delivery(accepted=True, detail=f"HTTP {reply.status}")
    text = one_line(reply.body.decode("utf-8", "replace"), 200)
    detail = f"HTTP {reply.status}: {text}" if text else f"HTTP {reply.status}"
    retry = reply.status >= 500 or reply.status in LATER
    return Delivery(accepted=False, retry=retry, after=reply.retry_after(now), detail=detail)
