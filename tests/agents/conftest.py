from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Anthropic, Gemini, Model, OpenAI, OpenAIResponses, Prices, Retries

# Places, instances and the invariant that every journal replays: as for flows.
from tests.agents.provider import Provider, a_provider
from tests.flows.conftest import hf, place, positions

__all__ = ["hf", "place", "positions"]

PRICES = Prices(input="2", output="10", cached="0.5")
KEY = "sk-very-secret-4711"


class Naps:
    """Waits that take no time, and are remembered."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def provider(anyio_backend: str) -> AsyncIterator[Provider]:
    async with a_provider() as found:
        yield found


def a_model(
    kind: str, provider: Provider, naps: Naps | None = None, *, attempts: int = 4, timeout: float = 5
) -> Model:
    shared: dict[str, Any] = {
        "key": lambda: KEY, "prices": PRICES, "timeout": timeout, "sleep": naps or Naps(),
        "retries": Retries(attempts=attempts, jitter=0.0),
    }  # fmt: skip
    if kind == "openai":
        return OpenAI("m-1", base_url=f"{provider.url}/v1", **shared)
    if kind == "responses":
        return OpenAIResponses("m-1", base_url=f"{provider.url}/v1", **shared)
    made = Anthropic if kind == "anthropic" else Gemini
    return made("m-1", base_url=provider.url, **shared)


@pytest.fixture(params=["openai", "responses", "anthropic", "gemini"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param
