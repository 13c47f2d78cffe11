"""Agents, tools and views on runs that the tests here share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast import Flow, Holdfast, Model, Result, Scripted, Tool, tool
from holdfast.agents.messages import Message, ModelRequest


@contextmanager
def time_flies(seconds: float) -> Iterator[None]:
    """On this loop, so much later at once: timeouts pass without anybody waiting for them."""
    loop = asyncio.get_running_loop()
    since = loop.time
    loop.time = lambda: since() + seconds  # type: ignore[method-assign]
    try:
        yield
    finally:
        loop.time = since  # type: ignore[method-assign]


class World:
    """What tools really did, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def looks(self, **options: Any) -> Tool:
        @tool(effect="read", **options)
        async def look(place: str) -> str:
            """Looks at a place."""
            self.done.append(f"look {place}")
            return f"{place} is calm"

        return look

    def pays(self, **options: Any) -> Tool:
        @tool(**options)
        async def pay(amount: int, to: str = "c-9") -> dict[str, Any]:
            """Pays somebody."""
            self.done.append(f"pay {amount} {to}")
            return {"paid": amount, "to": to}

        return pay


def a_flow(model: Model, *tools: Any, mode: str = "barrier", **options: Any) -> Flow:
    flow = Flow("talk", mode=mode)
    options.setdefault("output", "answer")
    flow.agent("bot", model=model, instructions="Be brief.", tools=list(tools), **options)
    return flow


def spoken(request: ModelRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


def results(request: ModelRequest) -> list[Message]:
    return [message for message in request.messages if message.role == "tool"]


async def turns_listed(hf: Holdfast, result: Result | str) -> list[int]:
    service = await hf.service()
    run = result if isinstance(result, str) else result.run_id
    found = await service.checkpoints(run, limit=0)
    return [each.turn for each in reversed(found) if each.turn is not None]


def asked(model: Scripted) -> int:
    return len(model.requests)
