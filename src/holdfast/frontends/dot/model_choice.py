"""Which model answers for a stage: by the stage or the stylesheet, then the graph, then by default."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.frontends.dot.document import Pipeline, Stage

DEFAULT_EFFORT: Final = "high"
PROVIDERS: Final = frozenset({"anthropic", "openai", "gemini"})
"""Those that a model's name leads to."""
_BEGINNINGS: Final = {
    "claude": "anthropic",
    "gpt": "openai",
    "chatgpt": "openai",
    "codex": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "gemini",
}


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Empty where nothing says it."""

    model: str = ""
    provider: str = ""
    effort: str = DEFAULT_EFFORT


def model_choice(stage: Stage, pipeline: Pipeline) -> ModelChoice:
    """Of a pipeline whose transforms have run."""
    model = stage.text("llm_model") or pipeline.text("llm_model")
    provider = stage.text("llm_provider") or pipeline.text("llm_provider") or provider_of(model)
    effort = stage.text("reasoning_effort") or pipeline.text("reasoning_effort") or DEFAULT_EFFORT
    return ModelChoice(model=model, provider=provider, effort=effort)


def provider_of(model: str) -> str:
    """By how the model's name begins; `provider/model` says it itself. Empty where nothing is known."""
    named, slash, rest = model.lower().partition("/")
    if slash and named in PROVIDERS:
        return named
    name = rest or named
    return next((provider for start, provider in _BEGINNINGS.items() if name.startswith(start)), "")
