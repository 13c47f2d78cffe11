"""Prices and context windows of well-known models, the default models, and what is recorded of a cost."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast import Holdfast, Prices
from holdfast.agents.catalogue import DEFAULTS, find_model, known_models
from holdfast.agents.effort import EFFORTS, effort_options, nearest
from holdfast.agents.messages import TokenUsage
from holdfast.attractor.providers import ModelSettings, PriceSpec, Providers, ProviderSpec
from holdfast.types.ids import RunId
from tests.agents.conftest import a_model
from tests.agents.helpers import a_flow
from tests.agents.provider import Answer, Provider

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 18, tzinfo=UTC)


@pytest.mark.covers("CP2-L9")
@pytest.mark.parametrize("provider", DEFAULTS)
def test_each_default_model_is_priced_and_not_deprecated(provider: str) -> None:
    found = find_model(provider, DEFAULTS[provider], NOW)
    assert found is not None
    assert found.is_default
    assert not found.deprecated
    assert found.prices is not None
    assert found.prices.output > found.prices.input > found.prices.cached > 0
    assert (found.context_window or 0) >= 200_000


@pytest.mark.covers("CP2-L8")
def test_prices_of_the_catalogue_depend_on_the_day_the_cache_and_the_length() -> None:
    def price(provider: str, at: datetime = NOW, **more: Any) -> Prices:
        found = find_model(provider, DEFAULTS[provider], at, **more)
        assert found is not None
        assert found.prices is not None
        return found.prices

    assert price("gemini").input == Decimal("0.75")
    assert price("gemini", datetime(2027, 1, 2, tzinfo=UTC)).input == Decimal("1.5")
    assert price("anthropic").written == 5
    assert price("anthropic", cache="1h").written == 8
    short, long = TokenUsage(272_000, 1000), TokenUsage(272_001, 1000)
    assert price("openai").cost(short) == Decimal("0.554")
    assert price("openai").cost(long) == Decimal("1.103004")
    assert find_model("anthropic", "no-such-model", NOW) is None
    assert find_model("local", "claude-opus-5-5", NOW) is None


@pytest.mark.covers("CP2-L8")
def test_the_file_beats_the_catalogue_and_a_declared_endpoint_has_no_prices_of_it() -> None:
    def providers(**more: Any) -> Providers:
        return Providers(ModelSettings(**more), environment={}, now=lambda: NOW)

    known = providers().prices_of("claude-opus-5-5", "anthropic")
    assert known is not None
    assert known.input == 4
    file = providers(prices={"claude-opus-5-5": PriceSpec(input="1", output="2")})
    found = file.prices_of("claude-opus-5-5", "anthropic")
    assert found is not None
    assert found.input == 1
    gateway = providers(providers={"anthropic": ProviderSpec(base_url="http://gateway")})
    assert gateway.prices_of("claude-opus-5-5", "anthropic") is None
    assert providers().prices_of("claude-opus-5-5", "openai_compatible") is None


@pytest.mark.covers("CP2-L8")
async def test_a_call_is_recorded_with_its_tokens_its_cost_and_its_prices(
    hf: Holdfast, provider: Provider, kind: str
) -> None:
    provider.says(Answer("Calm.", tokens=(100, 50), cached=40, written=20, reasoning=30, thought="Hm."))
    model: Any = a_model(kind, provider)
    model.prices = Prices(
        input=2, output=10, cached="0.5", written=3, tiers={1000: Prices(input=4, output=20)}
    )
    result = await a_flow(model, prompt="Go").run({}, on=hf)
    kept = await recorded(hf, str(result.run_id))
    # Chat completions do not tell what was written, nor Gemini; Anthropic counts both beside the input.
    written = 20 if kind in ("anthropic", "responses") else 0
    whole = 160 if kind == "anthropic" else 100
    assert kept["usage"] == {
        "input": whole, "output": 50, "cached": 40, "written": written, "reasoning": 30,
    }  # fmt: skip
    paid = 2 * (whole - 40 - written) + Decimal("0.5") * 40 + 3 * written + 10 * 50
    assert kept["cost"] == paid / 1_000_000
    assert kept["prices"] == {"input": "2", "output": "10", "cached": "0.5", "written": "3"}


async def recorded(hf: Holdfast, run: str) -> dict[str, Any]:
    visits = (await (await hf.service()).story(RunId(run))).visits
    return next(call.value for visit in visits for call in visit.calls if call.ordinal.endswith("/1/model"))


def test_the_catalogue_lists_models_of_all_three() -> None:
    found = list(known_models(NOW))
    assert {each.provider for each in found} == set(DEFAULTS)
    assert sum(each.is_default for each in found) == 3


@pytest.mark.covers("CP2-L10")
@pytest.mark.parametrize(
    ("protocol", "model", "effort", "sent"),
    [
        ("responses", "gpt-6.1-sol", "max", {"reasoning": {"effort": "max"}}),
        ("responses", "o3-mini", "max", {"reasoning": {"effort": "high"}}),
        ("responses", "gpt-5", "none", {"reasoning": {"effort": "minimal"}}),
        ("openai", "qwen", "max", {"reasoning_effort": "xhigh"}),
        ("anthropic", "claude-opus-5-5", "high", {"output_config": {"effort": "high"}}),
        ("anthropic", "claude-opus-5-5", "minimal", {"output_config": {"effort": "low"}}),
        ("anthropic", "claude-opus-4-6", "xhigh", {"output_config": {"effort": "high"}}),
        (
            "gemini",
            "gemini-3.8-flash",
            "max",
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH"}}},
        ),
        (
            "gemini",
            "gemini-3-pro-preview",
            "medium",
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}},
        ),
        (
            "gemini",
            "gemini-2.5-pro",
            "max",
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 24576}}},
        ),
    ],
)
def test_effort_is_in_the_field_of_the_protocol_and_lowered_to_what_is_known(
    protocol: Any, model: str, effort: str, sent: dict[str, Any]
) -> None:
    assert effort_options(protocol, model, effort, explicit=True, options={}) == sent


@pytest.mark.covers("CP2-L10")
def test_effort_is_never_raised_and_options_of_the_operator_win() -> None:
    for effort in EFFORTS:
        for known in (("low", "high"), ("medium",), ("minimal", "max")):
            found = nearest(effort, known)
            assert found in known
            assert EFFORTS.index(found) <= EFFORTS.index(effort) or found == known[0]
    options = {"reasoning": {"summary": "auto", "effort": "low"}, "temperature": 0}
    assert effort_options("responses", "gpt-6", "high", explicit=True, options=options) == options
    assert effort_options("responses", "gpt-6", "high", explicit=True, known=False, options={}) == {}
    two = effort_options("responses", "gpt-6", "medium", explicit=True, known=("low", "high"), options={})
    assert two == {"reasoning": {"effort": "low"}}
    assert effort_options("anthropic", "claude-x", "high", explicit=False, options={}) == {}
