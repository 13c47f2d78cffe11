"""Prices of tokens: set by the caller, or of the catalogue. What a call cost is recorded with the prices that
were used, and never computed again."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from holdfast.agents.messages import TokenUsage
from holdfast.errors import InputError

MILLION = Decimal(1_000_000)
Amount = Decimal | int | float | str


class Prices:
    """Per million tokens, in any currency: `Prices(input="2.50", output="10", cached="1.25")`. `tiers`: those
    of calls with more than so many tokens of input."""

    __slots__ = ("cached", "input", "output", "tiers", "written")

    def __init__(
        self,
        *,
        input: Amount,  # noqa: A002
        output: Amount,
        cached: Amount | None = None,
        written: Amount | None = None,
        tiers: Mapping[int, Prices] | None = None,
    ) -> None:
        self.input = amount(input, "the price of input")
        self.output = amount(output, "the price of output")
        self.cached = self.input if cached is None else amount(cached, "the price of cached input")
        self.written = self.input if written is None else amount(written, "the price of cache writes")
        self.tiers = dict(sorted((tiers or {}).items()))

    def of(self, tokens: int) -> Prices:
        """Those of a call with so much input."""
        reached = [prices for start, prices in self.tiers.items() if tokens > start]
        return reached[-1] if reached else self

    def to_plain(self) -> dict[str, str]:
        """As they are recorded with a call."""
        return {name: str(getattr(self, name)) for name in ("input", "output", "cached", "written")}

    def cost(self, tokens: TokenUsage) -> Decimal:
        return self.of(tokens.input)._cost(tokens)

    def _cost(self, tokens: TokenUsage) -> Decimal:
        plain = max(0, tokens.input - tokens.cached - tokens.written)
        parts = (
            self.input * plain,
            self.cached * tokens.cached,
            self.written * tokens.written,
            self.output * tokens.output,
        )
        return sum(parts, Decimal(0)) / MILLION

    def __repr__(self) -> str:
        return (
            f"Prices(input={self.input}, output={self.output}, cached={self.cached}, written={self.written})"
        )


def amount(given: Amount, what: str) -> Decimal:
    """Exact: a float is taken as it is written, 0.1 as 0.1. Raises InputError."""
    try:
        found = given if isinstance(given, Decimal) else Decimal(str(given))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0:
        raise InputError(
            f"{what} is {given!r}, which is not an amount.",
            hint='Give a number of 0 or more, preferably as text: "2.50".',
        )
    return found
