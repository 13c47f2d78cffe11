"""Chooses the model of a stage: that of the stage or the stylesheet, then of the graph, then the default."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.frontends.dot.document import Pipeline, Stage

DEFAULT_EFFORT: Final = "high"
PROVIDERS: Final = frozenset({"anthropic", "openai", "gemini"})
"""The providers that can be found from a model's name."""
PROVIDER_ALIASES: Final = {"google": "gemini"}
AGENT_PROVIDERS: Final = {"claude": "anthropic", "codex": "openai", "gemini": "gemini"}
"""Whose models a command-line agent runs."""
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
    """A field is empty if nothing sets it."""

    model: str = ""
    provider: str = ""
    effort: str = DEFAULT_EFFORT


def model_choice(stage: Stage, pipeline: Pipeline) -> ModelChoice:
    """Call it after the transforms of the pipeline, which apply its stylesheet."""
    model = stage.text("llm_model") or pipeline.text("llm_model")
    provider = stage.text("llm_provider") or pipeline.text("llm_provider") or provider_of(model)
    provider = PROVIDER_ALIASES.get(provider, provider)
    effort = stage.text("reasoning_effort") or pipeline.text("reasoning_effort") or DEFAULT_EFFORT
    return ModelChoice(model=model, provider=provider, effort=effort)


def provider_of(model: str) -> str:
    """Found from `provider/model`, or from how the model's name begins. Empty if it is not known."""
    named, slash, rest = model.lower().partition("/")
    named = PROVIDER_ALIASES.get(named, named) if slash else named
    if slash and named in PROVIDERS:
        return named
    name = rest or named
    return next((provider for start, provider in _BEGINNINGS.items() if name.startswith(start)), "")


def agent_fault(agent: str, stage: Stage, pipeline: Pipeline) -> tuple[str, str]:
    """Why an agent cannot do a stage with its model, and what to do; two empty texts if it can."""
    choice, own = model_choice(stage, pipeline), AGENT_PROVIDERS.get(agent, "")
    if not own or not choice.model or choice.provider in ("", own):
        return "", ""
    what = f"stage {stage.id!r} runs {agent} with the model {choice.model!r} of {choice.provider}"
    return what, f"Set llm_model to a model of {own}, or remove it."
