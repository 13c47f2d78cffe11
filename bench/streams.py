"""Row R: a run's stream as events of AG-UI, by its plain stream: the processor time of one event."""

from __future__ import annotations

import asyncio
from time import process_time
from typing import Any

import msgspec

from bench.lines import Line
from bench.measure import Plan, folder, interleaved, line, ratios
from holdfast import Context, Flow, Holdfast, Worker

EVENTS = 10_000
ASKED = {"threadId": "bench", "runId": "bench", "messages": [], "tools": [], "context": []}


def speaker() -> Flow:
    """One node that says so many words, and calls a tool after each hundred of them: a call is three events
    of AG-UI, and ends the message before it."""
    flow = Flow("speaker", effect="pure")

    @flow.node
    async def speak(ctx: Context) -> dict[str, Any]:
        for number in range(EVENTS):
            if number % 100:
                ctx.emit(f"word {number} ", "text")
            else:
                ctx.emit({"tool": "look", "call": f"c-{number}", "arguments": {"place": "harbour"}}, "tool")
        return {"done": True}

    return flow


async def sent(app: Any, method: str, path: str, body: bytes = b"") -> bytes:
    """What the application answers."""
    asked = [{"type": "http.request", "body": body, "more_body": False}]
    found: list[bytes] = []
    ended = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        found.append(message.get("body", b""))

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": headers, "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80), "root_path": "", "state": {}, "asgi": {"version": "3.0"},
    }  # fmt: skip
    await app(scope, receive, send)
    ended.set()
    return b"".join(found)


async def _row_r(plan: Plan) -> list[Line]:
    with folder() as place:
        async with Holdfast(f"sqlite:{place}/h.db") as hf, Worker(speaker(), on=hf):
            app = hf.asgi(allow_anonymous=True)
            body = msgspec.json.encode(ASKED)
            first = await sent(app, "POST", "/v1/flows/speaker/ag-ui", body)
            run = first.partition(b'"run":"')[2].partition(b'"')[0].decode()

            async def cost(method: str, path: str, given: bytes = b"") -> float:
                began = process_time()
                answer = await sent(app, method, path, given)
                took = process_time() - began
                if answer.count(b"\n\ndata: ") + answer.count(b"\nid: ") < EVENTS:
                    raise ValueError(f"{path} has sent {answer[-200:]!r}")
                return took / EVENTS

            found = await interleaved(
                plan.some,
                plain=lambda: cost("GET", f"/v1/runs/{run}/stream"),
                ag_ui=lambda: cost("POST", "/v1/flows/speaker/ag-ui", body),
            )
    by_plain = ratios(found["ag_ui"], found["plain"])
    return [
        line("R", "processor time of an event of AG-UI", by_plain, "x plain", target="R-ag-ui"),
        line("R", "processor time of an event of AG-UI", found["ag_ui"], "us", scale=1e6),
        line("R", "processor time of an event, plain", found["plain"], "us", scale=1e6),
    ]


def row_r(plan: Plan) -> list[Line]:
    return asyncio.run(_row_r(plan))
