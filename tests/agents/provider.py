"""A model provider on this machine: real HTTP, both protocols, streamed, with all their trouble."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.agents.helpers import time_flies


@dataclass
class Answer:
    """What the model says. `cut`: the connection breaks after so many events. `stall`: it does not, but
    nothing more comes, and so many seconds pass."""

    text: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)  # (id, name, arguments or their text)
    tokens: tuple[int, int] = (10, 5)
    cached: int = 0
    finish: str | None = None
    cut: int | None = None
    stall: float | None = None
    raw: list[str] | None = None  # the data of events as they are
    before: Callable[[], Any] | None = None


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
            turn.before()
        writer.write(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        events = list(_anthropic(turn) if seen.path.endswith("/messages") else _openai(turn))
        for event in events if turn.cut is None else events[: turn.cut]:
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


def _pieces(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]


def _text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _openai(turn: Answer) -> Iterator[str]:
    if turn.raw is not None:
        yield from (f"data: {data}\n\n" for data in turn.raw)
        return

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'id': 'c', 'choices': [choice], **more})}\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in _pieces(turn.text):
        yield event({"content": piece})
    for index, (call, name, arguments) in enumerate(turn.calls):
        first = {"index": index, "id": call, "type": "function", "function": {"name": name, "arguments": ""}}
        yield event({"tool_calls": [first]})
        for piece in _pieces(_text_of(arguments)):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, turn.finish or ("tool_calls" if turn.calls else "stop"))
    usage = {"prompt_tokens": turn.tokens[0], "completion_tokens": turn.tokens[1]}
    usage["prompt_tokens_details"] = {"cached_tokens": turn.cached}  # type: ignore[assignment]
    yield f"data: {json.dumps({'id': 'c', 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def _anthropic(turn: Answer) -> Iterator[str]:
    if turn.raw is not None:
        yield from (f"event: x\ndata: {data}\n\n" for data in turn.raw)
        return

    def event(kind: str, **data: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"

    usage = {"input_tokens": turn.tokens[0], "output_tokens": 1, "cache_read_input_tokens": turn.cached}
    yield event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": usage})
    yield event("ping")
    index = 0
    if turn.text:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in _pieces(turn.text):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=0)
        index = 1
    for call, name, arguments in turn.calls:
        block = {"type": "tool_use", "id": call, "name": name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _pieces(_text_of(arguments)):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
        index += 1
    finish = turn.finish or ("tool_use" if turn.calls else "end_turn")
    yield event("message_delta", delta={"stop_reason": finish}, usage={"output_tokens": turn.tokens[1]})
    yield event("message_stop")


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
