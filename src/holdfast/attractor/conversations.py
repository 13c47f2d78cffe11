"""Conversations that several stages share, stored in the context under their thread's key.

They are part of the run's state, so they survive crashes, a change of worker and long waits. A branch of a
parallel stage starts with the thread as it was; what the branch adds stays in the branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.agents.messages import Message, message_from_plain, message_to_plain
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.preamble import tokens
from holdfast.attractor.stage_history import counts_of

PREFIX: Final = "internal.session."
BOUND: Final = 60_000
"""Tokens of a conversation above which its older part is summarised (`session_max_tokens`)."""
_KEPT: Final = 0.5
"""The share of that limit that is kept verbatim."""
_DIGEST: Final = 0.1
_ASKED, _ANSWERED = 300, 600


class ConversationTurn(msgspec.Struct, frozen=True):
    """What one stage added. `model`: whose signed reasoning it may contain. A summary of older turns has no
    stage."""

    stage: str
    messages: tuple[Message, ...]
    model: str = ""
    number: int = 0
    """Of the stage's end, in the order of all stages."""

    @property
    def size(self) -> int:
        return sum(size_of(message) for message in self.messages)


def size_of(message: Message) -> int:
    calls = sum(tokens(call.arguments) + tokens(call.name) for call in message.calls)
    extra = tokens(msgspec.json.encode(message.extra).decode()) if message.extra else 0
    return tokens(message.text) + calls + extra + 4


def turns_of(context: PipelineContext, thread: str) -> list[ConversationTurn]:
    found: Any = context.get(PREFIX + thread)
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [_turn(cast("Mapping[str, Any]", item)) for item in items]


def _turn(item: Mapping[str, Any]) -> ConversationTurn:
    messages = tuple(message_from_plain(plain) for plain in item.get("messages", ()))
    number = int(item.get("number", 0))
    return ConversationTurn(str(item.get("stage", "")), messages, str(item.get("model", "")), number)


def history_of(
    turns: Iterable[ConversationTurn], *, model: str = "", tools: bool = True
) -> tuple[Message, ...]:
    """For the next model: without reasoning that another model signed; if it has no tools, calls and results
    become text."""
    return tuple(
        _for(message, own=turn.model == model, tools=tools) for turn in turns for message in turn.messages
    )


def _for(message: Message, *, own: bool, tools: bool) -> Message:
    if message.extra and not own:
        message = msgspec.structs.replace(message, extra=())
    if tools:
        return message
    if message.role == "tool":
        return Message("user", f"(result of a tool) {message.text}")
    if message.calls:
        called = "\n".join(f"(calls {call.name} with {call.arguments})" for call in message.calls)
        return Message("assistant", f"{message.text}\n{called}".strip())
    return message


def keep_turn(visit: StageVisit, thread: str, turn: ConversationTurn) -> None:
    """Add a stage's messages to its thread, without system messages: each stage has its own."""
    messages = tuple(message for message in turn.messages if message.role != "system")
    if not messages:
        return
    bound = visit.stage.integer("session_max_tokens", visit.pipeline.integer("session_max_tokens", BOUND))
    number = counts_of(visit.context).total + 1
    added = msgspec.structs.replace(turn, messages=messages, number=number)
    turns = compacted([*turns_of(visit.context, thread), added], max(1, bound))
    visit.context.set(PREFIX + thread, [_plain(each) for each in turns])


def _plain(turn: ConversationTurn) -> dict[str, Any]:
    return {
        "stage": turn.stage,
        "model": turn.model,
        "number": turn.number,
        "messages": [message_to_plain(message) for message in turn.messages],
    }


def compacted(turns: Sequence[ConversationTurn], bound: int) -> list[ConversationTurn]:
    """The latest turns in full, older ones summarised. A call is never separated from its result."""
    if sum(turn.size for turn in turns) <= bound:
        return list(turns)
    kept: list[ConversationTurn] = []
    room = int(bound * _KEPT)
    # Stops at the first turn that does not fit: what is kept must have no gaps.
    for turn in reversed(turns):
        if turn.size > room:
            break
        kept.insert(0, turn)
        room -= turn.size
    older = turns[: len(turns) - len(kept)]
    return [_digest(older, max(50, int(bound * _DIGEST))), *kept]


def _digest(turns: Sequence[ConversationTurn], budget: int) -> ConversationTurn:
    """Two messages, so that roles still alternate. If not all turns fit, the newest are kept."""
    result: list[str] = []
    for turn in reversed(turns):
        lines = [turn.messages[0].text] if not turn.stage else [_turn_digest(turn)]
        budget -= tokens(lines[0])
        if budget < 0:
            result.append(_cut(lines[0], max(0, budget * 4 + len(lines[0]))))
            break
        result += lines
    text = "\n".join(["What was said before, in short:", *reversed([each for each in result if each])])
    messages = (Message("user", text), Message("assistant", "I know what was said before."))
    return ConversationTurn("", messages, number=max(turn.number for turn in turns))


def _turn_digest(turn: ConversationTurn) -> str:
    asked = next((m.text for m in turn.messages if m.role == "user"), "")
    answered = next((m.text for m in reversed(turn.messages) if m.role == "assistant" and m.text), "")
    calls = sum(len(message.calls) for message in turn.messages)
    used = f" ({calls} tool call{'' if calls == 1 else 's'})" if calls else ""
    return (
        f"- {turn.stage} was asked: {_cut(asked, _ASKED)}\n  It answered{used}: {_cut(answered, _ANSWERED)}"
    )


def _cut(text: str, limit: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else f"{plain[:limit]}…" if limit > 0 else ""
