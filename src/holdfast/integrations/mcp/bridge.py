"""Forwards the protocol from stdin and stdout to a server's `/mcp`: the tools are the server's."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import httpx2
import msgspec
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, PROTOCOL_VERSION_META_KEY

from holdfast.client.settings import Settings, without_password
from holdfast.integrations.mcp.pending_requests import FAREWELL, PATIENCE
from holdfast.integrations.mcp.stdin_lines import StdinLines, ended_by_sigterm

SILENCE: Final = 60.0
"""Seconds without any data after which the server counts as gone; it sends something every 15."""


async def run_bridge(server: Settings) -> None:
    """Until stdin ends or SIGTERM; pending requests then get a few more seconds."""
    headers = {**server.headers(), "Accept": "application/json, text/event-stream"}
    timeout = httpx2.Timeout(SILENCE, connect=10)
    async with httpx2.AsyncClient(headers=headers, timeout=timeout) as client:
        bridge, lines = StdioBridge(client, f"{server.url}/mcp", _print), StdinLines()
        with ended_by_sigterm(lines.stop):
            async for line in lines:
                bridge.take(line)
            await bridge.close(FAREWELL if lines.stopped else PATIENCE)


class StdioBridge:
    """Each message becomes a separate HTTP request. A failure is answered as an error of that message."""

    def __init__(self, client: httpx2.AsyncClient, place: str, write: Callable[[bytes], None]) -> None:
        self.client = client
        self.place = place
        self.shown = without_password(place)
        self.write = write
        self.version: str | None = None
        self._under_way: dict[Any, asyncio.Task[None]] = {}

    def take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            self._complain(None, PARSE_ERROR, f"This is not a valid message: {error}.")
            return
        number = message.get("id")
        if message.get("method") == "notifications/cancelled":
            # Not forwarded: without sessions the server could not
            # find the request; closing its stream cancels it.
            self._cancel(message)
            return
        key = number if isinstance(number, (str, int)) else object()  # a notification has none
        task = self._under_way[key] = asyncio.ensure_future(self._send(message, line))
        task.add_done_callback(lambda _task: self._under_way.pop(key, None))

    async def close(self, seconds: float = 0) -> None:
        """Wait for pending requests for at most this many seconds, then cancel them."""
        tasks = list(self._under_way.values())
        if tasks and seconds:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self, message: dict[str, Any]) -> None:
        number = _part(message, "params").get("requestId")
        task = self._under_way.get(number) if isinstance(number, (str, int)) else None
        if task is not None:
            task.cancel()  # closes its stream, which cancels the request on the server

    async def _send(self, message: dict[str, Any], line: bytes) -> None:
        number = message.get("id") if "method" in message else None  # to an answer there is none
        try:
            headers = {"Content-Type": "application/json", **self._headers(message)}
            async with self.client.stream("POST", self.place, content=line, headers=headers) as answer:
                if not await self._answered(message, answer):
                    why = f"{self.shown} answered {answer.status_code} without a reply to this message."
                    self._complain(number, INTERNAL_ERROR, why)
        except httpx2.HTTPError as error:
            text = str(error) or type(error).__name__
            self._complain(number, INTERNAL_ERROR, f"{self.shown} does not answer: {text}.")
        except msgspec.DecodeError as error:
            self._complain(number, INTERNAL_ERROR, f"{self.shown} sent an invalid message: {error}.")

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        """The headers that the protocol requires for a request over HTTP."""
        params = _part(message, "params")
        meta = _part(params, "_meta")
        method, modern = str(message.get("method", "")), meta.get(PROTOCOL_VERSION_META_KEY)
        version = modern or (None if method == "initialize" else self.version)
        found = {} if version is None else {MCP_PROTOCOL_VERSION_HEADER: str(version)}
        if modern is None:
            return found
        found[MCP_METHOD_HEADER] = method
        named = params.get(NAME_BEARING_METHODS.get(method, ""))
        return found if named is None else {**found, MCP_NAME_HEADER: encode_header_value(str(named))}

    async def _answered(self, message: dict[str, Any], answer: httpx2.Response) -> bool:
        """Whether the message has been answered."""
        kind = answer.headers.get("content-type", "").partition(";")[0]
        found = False
        if kind == "text/event-stream":
            async for line in answer.aiter_lines():
                if line.startswith("data:") and line[5:].strip():
                    found = self._pass_on(message, line[5:].strip().encode()) or found
            return found
        body = await answer.aread()
        if kind == "application/json" and body:
            return self._pass_on(message, body)
        if answer.status_code >= 400:
            self._complain(message.get("id"), INVALID_REQUEST, _problem(body, answer.status_code))
            return True
        return False

    def _pass_on(self, message: dict[str, Any], body: bytes) -> bool:
        """Whether that was the answer, and not a notification before it."""
        reply = msgspec.json.decode(body, type=dict[str, Any])
        # The older revisions agree on a version once and then require it as a header of each request.
        if message.get("method") == "initialize":
            self.version = _part(reply, "result").get("protocolVersion", self.version)
        if "method" not in reply and reply.get("id") is None:
            # A server that could not parse the request answers
            # without its id; the agent waits for an answer with one.
            reply["id"] = message.get("id")
        self.write(msgspec.json.encode(reply))
        return "method" not in reply

    def _complain(self, number: Any, code: int, why: str) -> None:
        # JSON-RPC forbids an answer to a notification, except for a message that could not be parsed.
        if number is not None or code == PARSE_ERROR:
            reply = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": why}}
            self.write(msgspec.json.encode(reply))


def _part(message: dict[str, Any], name: str) -> dict[str, Any]:
    """An inner object; anything else is left for the server to refuse."""
    found = message.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _problem(body: bytes, status: int) -> str:
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return f"The server answered {status}."
    words = [str(problem[name]) for name in ("detail", "hint") if problem.get(name)]
    return " ".join(words) or f"The server answered {status}."


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
