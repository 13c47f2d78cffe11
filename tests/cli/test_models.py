"""`holdfast models`, and the model that a key alone is enough for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.provider import Answer, Provider
from tests.attractor.models import nearby
from tests.cli.conftest import Cli

__all__ = ["nearby"]
KEY = "sk-very-secret-4711"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "HOLDFAST_MODELS")
FILE = "digraph G { start [shape=Mdiamond]; a [prompt=hi]; exit [shape=Msquare]; start -> a -> exit }"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.covers("CP2-L9")
def test_models_of_providers_with_a_key_are_listed_with_their_prices(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No provider has a key" in cli("models").err
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    said = cli("models")
    assert said.out.splitlines()[1].split()[:4] == ["gemini", "gemini-3.8-flash", "1,000,000", "0.75"]
    assert "claude" not in said.out
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    rows = cli("models", "anthropic", "--json").json["items"]
    assert {row["provider"] for row in rows} == {"anthropic"}
    assert [row["model"] for row in rows if row["default"]] == ["claude-opus-5-5"]
    assert rows[0]["prices"] == {"input": "4", "output": "20", "cached": "0.2", "written": "5"}
    everything = cli("models", "--all", "--json").json["items"]
    assert {row["provider"] for row in everything} == {"anthropic", "gemini", "openai"}
    assert KEY not in said.out


@pytest.mark.covers("CP2-L9")
def test_models_of_the_file_are_listed_and_an_unknown_provider_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("models.toml").write_text(
        'model = "qwen3"\nprovider = "local"\n[providers.local]\nbase_url = "http://localhost:1/v1"\n'
        '[prices.qwen3]\ninput = "0.2"\noutput = "0.6"\n'
    )
    monkeypatch.setenv("HOLDFAST_MODELS", "models.toml")
    (row,) = cli("models", "--json").json["items"]
    assert (row["provider"], row["model"], row["default"]) == ("local", "qwen3", True)
    assert row["prices"]["output"] == "0.6"
    refused = cli("models", "nowhere")
    assert refused.code == 2
    assert "local" in refused.err


@pytest.mark.covers("CP2-L9")
@pytest.mark.parametrize(
    ("keys", "provider", "model"),
    [
        (("GOOGLE_API_KEY",), "gemini", "gemini-3.8-flash"),
        (("GEMINI_API_KEY", "OPENAI_API_KEY"), "openai", "gpt-6.1-sol"),
        (("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), "anthropic", "claude-opus-5-5"),
    ],
)
def test_a_key_alone_is_enough_and_the_default_is_printed_and_stored(
    cli: Cli, nearby: Provider, monkeypatch: pytest.MonkeyPatch, keys: list[str], provider: str, model: str
) -> None:
    for name in keys:
        monkeypatch.setenv(name, KEY)
    for name, end in (("OPENAI", "/v1"), ("ANTHROPIC", ""), ("GEMINI", "")):
        monkeypatch.setenv(f"{name}_BASE_URL", f"{nearby.url}{end}")
    nearby.says(Answer("done"))
    Path("one.dot").write_text(FILE)
    ended = cli("run", "one.dot", "--json")
    assert ended.code == 0
    assert f"Default model: {model} ({provider})" in ended.err
    (seen,) = nearby.seen
    assert model in f"{seen.path} {seen.json.get('model')}"
    shown = cli("show", ended.json["id"], "--json")
    assert KEY not in ended.out + ended.err + shown.out


@pytest.mark.covers("CP2-L9")
def test_a_run_keeps_the_default_of_its_creation(
    cli: Cli, nearby: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nearby.url}/v1")
    Path("one.dot").write_text(FILE)
    started = cli("run", "one.dot", "--detach", "--json")
    assert started.code == 0, started.err
    assert "gpt-6.1-sol (openai)" in started.err
    # A process where another provider would be the first.
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    nearby.says(Answer("done"))
    assert cli("worker", "--until-idle").code == 0
    assert [seen.json["model"] for seen in nearby.seen] == ["gpt-6.1-sol"]
