"""One HTTP request of a node, under the rules of `holds.egress`: one resolution, no redirects, no proxies.

Unlike a notice, whose status is all that counts, a node needs the whole body of the response.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.errors import HttpNotSentError, HttpResponseError
from holdfast.holds.egress import Egress, Resolve, address_of, target_of
from holdfast.holds.notify.http_post import connect, read_head, request_bytes
from holdfast.types.text import clean_text

_LINE: Final = 4096
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_NO_BODY: Final = frozenset({204, 304})


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    max_bytes: int = 1_000_000


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`headers`: names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def exchange(request: HttpRequest, egress: Egress, resolve: Resolve | None = None) -> HttpResponse:
    """Raises EgressError for an address that is not allowed, HttpNotSentError where nothing was sent,
    HttpResponseError for a response that cannot be read, TimeoutError."""
    target = target_of(request.url, egress)
    sent = request_bytes(request.method, target, request.body, request.headers)
    try:
        async with asyncio.timeout(egress.timeout):
            address = await address_of(target, egress, resolve)
            reader, writer = await connect(target, address)
    except (OSError, TimeoutError) as error:
        why = clean_text(error, 200) or "no connection in time"
        raise HttpNotSentError(
            f"{target.authority} cannot be reached: {why}.", hint="Nothing was sent; retry it later."
        ) from error
    try:
        async with asyncio.timeout(egress.timeout):
            writer.write(sent)
            await writer.drain()
            return await _response(reader, request)
    except (ValueError, EOFError, ConnectionError, asyncio.LimitOverrunError) as error:
        raise HttpResponseError(
            f"the response of {target.authority} cannot be read: {clean_text(error, 200)}."
        ) from error
    finally:
        writer.close()


async def _response(reader: asyncio.StreamReader, request: HttpRequest) -> HttpResponse:
    status, headers = await read_head(reader)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise ValueError("it is compressed, although the request does not allow that")
    if request.method == "HEAD" or status in _NO_BODY:
        return HttpResponse(status=status, headers=headers, body=b"")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _chunks(reader, request.max_bytes)
    else:
        body = await _plain(reader, headers.get("content-length"), request.max_bytes)
    return HttpResponse(status=status, headers=headers, body=body)


async def _plain(reader: asyncio.StreamReader, length: str | None, most: int) -> bytes:
    if length is None:
        # It ends with the connection.
        body = await _up_to(reader, most + 1)
        return _within(body, most)
    # The server chooses the text: int() raises for numbers of more than 4,300 digits.
    if not (length.isdecimal() and length.isascii() and len(length) < 16):
        raise ValueError("its content-length is no number")
    if int(length) > most:
        raise _too_long(most)
    return await reader.readexactly(int(length))


async def _up_to(reader: asyncio.StreamReader, most: int) -> bytes:
    found = bytearray()
    while len(found) < most and (part := await reader.read(most - len(found))):
        found += part
    return bytes(found)


async def _chunks(reader: asyncio.StreamReader, most: int) -> bytes:
    found = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        size_text = line.split(b";", 1)[0].strip()
        if len(line) > _LINE or not _SIZE.fullmatch(size_text):
            raise ValueError("a chunk has no size")
        size = int(size_text, 16)
        if len(found) + size > most:
            raise _too_long(most)
        if size == 0:
            # Trailers are not needed, and the connection is not used again.
            return bytes(found)
        found += await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise ValueError("a chunk has another length than it says")


def _within(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise _too_long(most)
    return body


def _too_long(most: int) -> HttpResponseError:
    return HttpResponseError(
        f"the response has more than {most:,} bytes.", hint="Raise max_bytes of the node, or ask for less."
    )
