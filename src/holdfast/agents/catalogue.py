"""Well-known models: their prices and context windows, from the data of `genai-prices` (in the extra `llm`),
which is never updated over the network; and the default model of each provider."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.agents.prices import Prices

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

DEFAULTS: Final = {
    "anthropic": "claude-opus-5-5",
    "openai": "gpt-6.1-sol",
    "gemini": "gemini-3.8-flash",
}
"""The model of a provider where nothing names one; the first provider with a key counts."""
_IDS: Final = {"anthropic": "anthropic", "openai": "openai", "gemini": "google"}


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """`prices`: none if they are not known, or not by tokens of text alone."""

    provider: str
    name: str
    title: str = ""
    context_window: int | None = None
    prices: Prices | None = None
    deprecated: bool = False

    @property
    def is_default(self) -> bool:
        return DEFAULTS.get(self.provider) == self.name


def find_model(provider: str, name: str, at: datetime, *, cache: str | bool = "5m") -> KnownModel | None:
    """None for a name that the catalogue does not have, or without the package. `cache`: how long what is
    written to the provider's cache is kept, because its price depends on it."""
    if provider not in _IDS:
        return None
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    try:
        _, found = get_snapshot().find_provider_model(name, None, _IDS[provider], None)
    except LookupError:
        return None
    return _known(provider, name, found, at, cache)


def known_models(at: datetime) -> Iterator[KnownModel]:
    """Those that have a price; none without the package."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return
    for provider, id_ in _IDS.items():
        entry = next((each for each in get_snapshot().providers if each.id == id_), None)
        for model in [] if entry is None else entry.models:
            # Google sells models of others too, by another API than this one.
            if provider == "gemini" and not model.id.startswith("gemini"):
                continue
            found = _known(provider, model.id, model, at, "5m")
            if found.prices is not None:
                yield found


def _known(provider: str, name: str, found: ModelInfo, at: datetime, cache: str | bool) -> KnownModel:
    return KnownModel(
        provider=provider,
        name=name,
        title=found.name or "",
        context_window=found.context_window,
        prices=_prices(found.get_prices(at), cache),
        deprecated=bool(found.deprecated),
    )


def _prices(price: ModelPrice, cache: str | bool) -> Prices | None:
    if price.input_mtok is None or price.output_mtok is None:
        return None
    written = price.cache_write_mtok
    if cache == "1h":
        written = getattr(price, "cache_write_1h_mtok", None) or written
    parts = {
        "input": price.input_mtok,
        "output": price.output_mtok,
        "cached": price.cache_read_mtok,
        "written": written,
    }
    starts = sorted({tier.start for part in parts.values() for tier in getattr(part, "tiers", ())})
    tiers = {start: _at(parts, start + 1) for start in starts}
    return _at(parts, 0, tiers)


def _at(
    parts: dict[str, Decimal | TieredPrices | None], tokens: int, tiers: dict[int, Prices] | None = None
) -> Prices:
    """What holds for an input of so many tokens."""
    found = {name: _amount(part, tokens) for name, part in parts.items()}
    input_, output = found["input"], found["output"]
    assert input_ is not None
    assert output is not None
    return Prices(input=input_, output=output, cached=found["cached"], written=found["written"], tiers=tiers)


def _amount(part: Decimal | TieredPrices | None, tokens: int) -> Decimal | None:
    if part is None or isinstance(part, Decimal):
        return part
    reached = [tier.price for tier in part.tiers if tokens > tier.start]
    return reached[-1] if reached else part.base
