"""What follows a server in these tests: a browser's EventSource, and flows that are worth following."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec

from holdfast import Flow
from tests.deadlines import HANG


class Sent(msgspec.Struct, frozen=True):
    """An event as a browser dispatches it."""

    id: str
    type: str
    data: dict[str, Any]

    @property
    def number(self) -> int:
        return int(self.id)


class Source:
    """Reads a text/event-stream by the rules of the HTML standard. `last`: what Last-Event-ID would be."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.last = ""
        self.retry: int | None = None
        self.comments = 0
        self._lines = answer.aiter_lines()

    async def __aiter__(self) -> AsyncIterator[Sent]:
        kind, data = "", list[str]()
        async for line in self._lines:
            if not line:
                if data:
                    yield Sent(self.last, kind or "message", json.loads("\n".join(data)))
                kind, data = "", []
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match field:
                case "":
                    self.comments += 1
                case "id":
                    self.last = value
                case "event":
                    kind = value
                case "data":
                    data.append(value)
                case "retry":
                    self.retry = int(value)
                case _:
                    raise AssertionError(f"no field of an event: {line!r}")

    async def place(self) -> str:
        """Where the stream begins, which its first event says."""
        async for each in self:
            assert each.type == "stream.opened", each
            return each.id
        raise AssertionError("the stream ended at once")

    async def until(self, kind: str) -> list[Sent]:
        """All up to the first of that type."""
        found: list[Sent] = []
        async with asyncio.timeout(HANG):
            async for each in self:
                found.append(each)
                if each.type == kind:
                    return found
        raise AssertionError(f"the stream ended without {kind}: {[each.type for each in found]}")

    async def rest(self) -> list[Sent]:
        """All until it ends."""
        async with asyncio.timeout(HANG):
            return [each async for each in self]


@asynccontextmanager
async def follow(
    client: httpx2.AsyncClient, path: str, last: str | int | None = None, **more: Any
) -> AsyncIterator[Source]:
    headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": str(last)})
    async with client.stream("GET", path, headers=headers, **more) as answer:
        if answer.status_code != 200:
            await answer.aread()
        assert answer.status_code == 200, (answer.status_code, answer.text)
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Source(answer)


def numbers(sent: list[Sent]) -> list[int]:
    return [each.number for each in sent]


def asking() -> Flow:
    """A node, a question, and a node that takes its answer."""
    flow = Flow("asking", effect="pure")

    async def look(s: Any) -> dict[str, Any]:
        return {"amount": 500}

    async def pay(s: Any) -> dict[str, Any]:
        return {"paid": s["decision"]}

    flow.node(id="look")(look)
    flow.hold("approve", prompt="Pay 500?", options=["approve", "reject"])
    flow.node(id="pay")(pay)
    flow.edge("look", "approve")
    flow.edge("approve", "pay")
    return flow


def talking(gate: asyncio.Event, words: int = 5) -> Flow:
    """A node that tells words and then waits for the gate."""
    flow = Flow("talking", effect="pure")

    async def talk(s: Any, ctx: Any) -> dict[str, Any]:
        for number in range(words):
            ctx.emit({"text": f"word {number} "}, kind="token")
        await gate.wait()
        return {"said": words}

    flow.node(id="talk")(talk)
    return flow
