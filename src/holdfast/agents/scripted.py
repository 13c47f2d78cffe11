"""A model with scripted replies: for tests and examples, without network and key."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from holdfast.agents.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolCall
from holdfast.agents.model import StreamCallback
from holdfast.agents.prices import Prices
from holdfast.errors import ModelError

Turn = str | ToolCall | list[ToolCall] | ModelReply | Exception | Callable[[ModelRequest], Any]


def tool_call(tool: str, /, **arguments: Any) -> ToolCall:
    """A tool call of a scripted model; it gets its id when it is made."""
    return ToolCall("", tool, msgspec.json.encode(arguments).decode())


class Scripted:
    """`Scripted(tool_call("search", query="tides"), "Twice a day.")`: its replies, turn by turn.

    A turn is a text, a call, a list of calls, a `ModelReply`, an error to raise, or a function of the request
    that returns one of these. The turn is the number of assistant messages in the request, so that a resumed
    run continues at the right turn in any process. `requests` are those that it received.
    """

    def __init__(
        self,
        *turns: Turn,
        name: str = "scripted",
        prices: Prices | None = None,
        tokens: TokenUsage | None = None,
    ) -> None:
        self.turns = turns
        self.name = name
        self.prices = prices
        self.tokens = tokens
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        self.requests.append(request)
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn >= len(self.turns):
            raise ModelError(
                f"the scripted model has {len(self.turns)} turns and was asked for number {turn + 1}.",
                hint="Script one more turn.",
            )
        reply = self._reply(self.turns[turn], turn, request)
        for piece in re.findall(r"\S+\s*|\s+", reply.message.text):
            emit("text", piece)
        return reply

    def count_tokens(self, request: ModelRequest) -> int:
        """The input that it reports for this request."""
        return _words(request) if self.tokens is None else self.tokens.input

    def _reply(self, scripted: Any, turn: int, request: ModelRequest) -> ModelReply:
        if callable(scripted) and not isinstance(scripted, type):
            scripted = scripted(request)
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted, ModelReply):
            return scripted
        calls: list[ToolCall] = [scripted] if isinstance(scripted, ToolCall) else []
        if isinstance(scripted, list):
            calls = cast("list[ToolCall]", scripted)
        text = scripted if isinstance(scripted, str) else ""
        named = tuple(_named(each, turn, index) for index, each in enumerate(calls))
        message = Message("assistant", text, named)
        used = self.tokens or TokenUsage(_words(request), len(text.split()) + 3 * len(named))
        return ModelReply(message, used, "tool_calls" if named else "stop")


def _named(one: ToolCall, turn: int, index: int) -> ToolCall:
    return one if one.id else ToolCall(f"call_{turn + 1}_{index + 1}", one.name, one.arguments)


def _words(request: ModelRequest) -> int:
    return sum(len(message.text.split()) for message in request.messages)
