"""The reasoning effort in the words and the field of each protocol. An effort that a model does not know is
lowered to the nearest that it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

Protocol = Literal["openai", "responses", "anthropic", "gemini"]
EffortWord = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: Final[tuple[EffortWord, ...]] = get_args(EffortWord)
"""From the least to the most."""
_LOW_TO_HIGH: Final = ("low", "medium", "high")
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "responses": EFFORTS,
    "openai": ("none", "minimal", *_LOW_TO_HIGH, "xhigh"),
    "anthropic": (*_LOW_TO_HIGH, "xhigh", "max"),
    "gemini": ("minimal", *_LOW_TO_HIGH, "xhigh"),
}
# Older models, which know less: by how their names begin.
_OLDER: Final = {
    "o1": _LOW_TO_HIGH,
    "o3": _LOW_TO_HIGH,
    "o4": _LOW_TO_HIGH,
    "gpt-5-": ("minimal", *_LOW_TO_HIGH),
    "claude-opus-4-5": _LOW_TO_HIGH,
    "claude-opus-4-6": (*_LOW_TO_HIGH, "max"),
    "claude-sonnet-4-6": (*_LOW_TO_HIGH, "max"),
    "gemini-3-pro": ("low", "high"),
    "gemini-3-flash": ("minimal", *_LOW_TO_HIGH),
    "gemini-2": ("minimal", *_LOW_TO_HIGH),
}
# These know a number of tokens in place of a word.
_BUDGETED: Final = "gemini-2"
_BUDGETS: Final = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24_576}
# These accept the default of the specification, high; others may not know the field.
_REASONING: Final = ("o1", "o3", "o4", "gpt-5", "gpt-6", "codex")


def effort_options(
    protocol: Protocol,
    model: str,
    effort: str,
    *,
    explicit: bool,
    known: bool | tuple[str, ...] = True,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """`options` with the effort. `explicit`: the pipeline sets it; the default is sent only to models that
    certainly know the field, and whose own default may be another. `known`: the words of this endpoint, or
    whether it wants the field at all."""
    wanted = explicit or (protocol in ("openai", "responses") and model.startswith(_REASONING))
    if known is False or known == () or not wanted or effort not in EFFORTS:
        return dict(options)
    word = nearest(effort, _words(protocol, model) if known is True else known)
    return _merged(options, _field(protocol, model, word))


def nearest(effort: str, known: tuple[str, ...]) -> str:
    """Itself, else the next lower one; the lowest of them if there is none."""
    order = sorted(known, key=EFFORTS.index)
    lower = [word for word in order if EFFORTS.index(word) <= EFFORTS.index(effort)]
    return lower[-1] if lower else order[0]


def _words(protocol: str, model: str) -> tuple[str, ...]:
    if model == "gpt-5":
        return _OLDER["gpt-5-"]
    return next((words for start, words in _OLDER.items() if model.startswith(start)), _KNOWN[protocol])


def _field(protocol: str, model: str, word: str) -> dict[str, Any]:
    if protocol == "responses":
        return {"reasoning": {"effort": word}}
    if protocol == "anthropic":
        return {"output_config": {"effort": word}}
    if protocol == "gemini":
        budgeted = model.startswith(_BUDGETED)
        level = {"thinkingBudget": _BUDGETS[word]} if budgeted else {"thinkingLevel": word.upper()}
        return {"generationConfig": {"thinkingConfig": level}}
    return {"reasoning_effort": word}


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What is set in both is that of `base`: the operator's options win."""
    found = {**more, **base}
    for name, value in more.items():
        own: Any = base.get(name)
        if isinstance(value, dict) and isinstance(own, Mapping):
            found[name] = _merged(cast("Mapping[str, Any]", own), cast("dict[str, Any]", value))
    return found
