"""Messages between an agent, its model and its tools, independent of a provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

Role = Literal["system", "user", "assistant", "tool"]

FINAL = "final_answer"
"""The tool by which a model gives a typed answer."""


class ToolCall(msgspec.Struct, frozen=True):
    """`arguments` is the JSON text exactly as the model wrote it: a resumed prompt repeats it unchanged."""

    id: str
    name: str
    arguments: str = "{}"


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """`call`: for a tool's result, the id of its call. `extra`: what only the model that said it can read,
    and must get back unchanged (signed or encrypted reasoning). `origin`: that model, with its protocol."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    failed: bool = False
    extra: tuple[dict[str, Any], ...] = ()
    origin: str = ""

    def extra_for(self, origin: str) -> tuple[dict[str, Any], ...]:
        """Nothing for another model. Messages that were recorded before `origin` was are taken for its
        own."""
        return self.extra if self.origin in ("", origin) else ()


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """One call of a model. `must_call`: it must use a tool. `output_schema`: its answer is JSON of this form.
    `thread`: the same for all calls of one conversation, for the provider's cache."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    must_call: bool = False
    output_schema: dict[str, Any] | None = None
    thread: str = ""

    @property
    def instructions(self) -> str:
        """The texts of its system messages."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")


class TokenUsage(msgspec.Struct, frozen=True):
    """What a call used. `cached` and `written` (to the provider's cache) are parts of `input`, `reasoning` is
    a part of `output`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


class ModelReply(msgspec.Struct, frozen=True):
    """`finish`: stop, tool_calls, length (it was cut), refused, or the provider's word. `broken`: earlier
    attempts of the same call that broke off and may have been paid for. `model`: which one answered, if
    the provider says so."""

    message: Message
    tokens: TokenUsage = TokenUsage()
    finish: str = "stop"
    broken: int = 0
    model: str = ""


def message_to_plain(message: Message) -> dict[str, Any]:
    """As it is stored in the journal: plain data."""
    return cast("dict[str, Any]", msgspec.to_builtins(message))


def message_from_plain(plain: Mapping[str, Any]) -> Message:
    return msgspec.convert(dict(plain), Message)


def unanswered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Tool calls of the latest turn that have no result yet, in order. A final answer waits for none."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "tool":
            answered.add(message.call)
        elif message.role == "assistant":
            return [call for call in message.calls if call.id not in answered and call.name != FINAL]
        else:
            return []
    return []
