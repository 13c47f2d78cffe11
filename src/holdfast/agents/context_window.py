"""Keeps a conversation inside the context window of its model: old results of tools become one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.agents.messages import Message

WARNED: Final = 0.8
SHRUNK: Final = 0.95
_ROOM: Final = 0.6
"""The share of the window that is used after old results were shrunk, if there are enough of them."""
_CHARACTERS: Final = 4
"""Of one token."""


class ContextWindow:
    """`size`: tokens; 0 if it is not known. What is used is what the model counted last, and an estimate of
    what was added since."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.warned = False
        self._counted = 0
        self._until = 0

    def count(self, tokens: int, messages: int) -> None:
        """The model counted so many tokens in its latest call, up to this number of messages."""
        if tokens > 0:
            self._counted, self._until = tokens, messages

    def used(self, messages: Sequence[Message]) -> int:
        return self._counted + sum(map(tokens_of, messages[self._until :]))

    def share(self, messages: Sequence[Message]) -> float:
        return self.used(messages) / self.size if self.size else 0.0

    def to_shrink(self, messages: Sequence[Message]) -> list[int]:
        """The places of the oldest results, until there is room. Those of the latest turn stay."""
        latest = max((i for i, each in enumerate(messages) if each.role == "assistant"), default=0)
        over = self.used(messages) - int(self.size * _ROOM)
        found: list[int] = []
        for index, message in enumerate(messages[:latest]):
            saved = tokens_of(message) - tokens_of(_line(message))
            if over <= 0:
                break
            if message.role == "tool" and saved > 0:
                found.append(index)
                over -= saved
        return found

    def shrink(self, messages: list[Message], places: Sequence[int]) -> None:
        """The model has not counted what is left: until it does, all of it is estimated."""
        for index in places:
            messages[index] = _line(messages[index])
        self._counted = self._until = 0


def tokens_of(message: Message) -> int:
    size = len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)
    size += len(msgspec.json.encode(message.extra)) if message.extra else 0
    return size // _CHARACTERS + 1


def _line(message: Message) -> Message:
    text = f"[This result of {len(message.text):,} characters was left out to save room.]"
    return msgspec.structs.replace(message, text=text)
