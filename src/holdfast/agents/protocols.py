"""The protocols that endpoints of models speak, and the class for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.agents.anthropic import Anthropic
from holdfast.agents.effort import Protocol
from holdfast.agents.gemini import Gemini
from holdfast.agents.model import Model
from holdfast.agents.openai_chat import OpenAI
from holdfast.agents.openai_responses import OpenAIResponses

MODELS: Final[Mapping[Protocol, Callable[..., Model]]] = {
    "openai": OpenAI,
    "responses": OpenAIResponses,
    "anthropic": Anthropic,
    "gemini": Gemini,
}
