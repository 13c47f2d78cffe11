"""Pipelines whose stages are answered by a provider on this machine, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from holdfast import Retries
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.providers import ModelSettings, PriceSpec, Providers, ProviderSpec
from tests.agents.conftest import KEY, Naps
from tests.agents.provider import Provider, Seen, a_provider
from tests.deadlines import HANG

KEYS = {"A_KEY": KEY}
PRICES = {"m-1": PriceSpec(input="2", output="10")}


def providers(provider: Provider, naps: Naps | None = None, *, attempts: int = 3, **more: Any) -> Providers:
    """`near` speaks chat completions, `far` Anthropic's protocol, `new` OpenAI's responses, `star`
    Gemini's."""
    settings = ModelSettings(
        providers={
            "near": ProviderSpec(base_url=f"{provider.url}/v1", key="A_KEY"),
            "far": ProviderSpec(base_url=provider.url, protocol="anthropic", key="A_KEY"),
            "new": ProviderSpec(base_url=f"{provider.url}/v1", protocol="responses", key="A_KEY"),
            "star": ProviderSpec(base_url=provider.url, protocol="gemini", key="A_KEY"),
        },
        prices=PRICES,
        timeout=5,
        **{"model": "m-1", "provider": "near", **more},
    )
    retries = Retries(attempts=attempts, jitter=0.0)
    return Providers(settings, environment=KEYS, retries=retries, sleep=naps or Naps())


def backend(provider: Provider, naps: Naps | None = None, **more: Any) -> ModelBackend:
    kits = more.pop("kits", None)
    tools = more.pop("tools", ())
    return ModelBackend(providers(provider, naps, **more), kits=kits, tools=tools)


def said(seen: Seen) -> list[tuple[str, str]]:
    """Who said what in a request, in any protocol; without instructions."""
    found: list[tuple[str, str]] = []
    body = seen.json
    for message in body.get("messages") or body.get("input") or body["contents"]:
        content = message.get("content") or message.get("parts") or message.get("output") or ""
        message.setdefault("role", "tool")
        if isinstance(content, list):
            content = "".join(str(block.get("text") or block.get("content") or "") for block in content)
        if message["role"] != "system":
            found.append((message["role"], content))
    return found


def asked(seen: Seen) -> str:
    """What the model was asked last."""
    return said(seen)[-1][1]


@pytest.fixture
def nearby() -> Iterator[Provider]:
    """A provider in a thread of its own: the command line has a loop of its own."""
    found: list[Provider] = []
    ready, done = Event(), Event()

    async def serve() -> None:
        async with a_provider() as provider:
            found.append(provider)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(HANG)
        yield found[0]
    finally:
        done.set()
        thread.join(HANG)
