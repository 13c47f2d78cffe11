"""The model protocol: a reply to a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from holdfast.agents.messages import ModelReply, ModelRequest
from holdfast.agents.prices import Prices

StreamCallback = Callable[[str, str], None]
"""Live output of a call: ("text", a piece of it), or ("retry", why the output starts again)."""


@runtime_checkable
class Model(Protocol):
    """A model. It has no state between two calls: the request is the whole conversation."""

    name: str
    prices: Prices | None

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        """Raises ModelError, or a subclass, if there is no usable answer."""
        ...
