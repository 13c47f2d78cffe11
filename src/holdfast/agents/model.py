"""The one thing that an agent needs of a model: an answer to a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from holdfast.agents.messages import ModelReply, ModelRequest
from holdfast.agents.prices import Prices

StreamCallback = Callable[[str, str], None]
"""Live output of a call: ("text", a piece of it), or ("retry", why what was shown so far starts anew)."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers. It keeps nothing between two calls: the request is the whole conversation."""

    name: str
    prices: Prices | None

    async def reply(self, request: ModelRequest, tell: StreamCallback) -> ModelReply:
        """Raises ModelError, or one of its kinds, where no usable answer can be had."""
        ...
