"""What an agent, its model and its tools said up to a question: read from the records of the agent's node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.agents.messages import Message, ToolCall, message_from_plain
from holdfast.checkpoint.visit import QuestionDetail, Visit
from holdfast.types.value import BlobRef

MOST: Final = 200
"""Messages in one answer, the newest."""
_ASKED: Final = "ask:="
_TURN = re.compile(r"/([0-9]+)/")


class ConversationCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call. `arguments`: as the model gave them. `hold`: the question whether it may run, if there is
    one."""

    id: str
    tool: str
    arguments: Any = None
    hold: str | None = None


class ConversationMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`role`: system, user, assistant or tool. `call`: of a tool's result, the id of its call. The text of a
    tool comes from outside: it is not checked. `omitted`: it is too large to be here; the step of the run
    has it."""

    role: str
    turn: int
    text: str = ""
    calls: list[ConversationCall] = []
    call: str = ""
    failed: bool = False
    omitted: bool = False


class HoldConversation(msgspec.Struct, frozen=True, kw_only=True):
    """`turn`: the turn in which the question was asked. `left_out`: older messages that are not listed. A
    hold that no agent asked has no messages."""

    hold: str
    agent: str = ""
    turn: int = 0
    messages: list[ConversationMessage] = []
    left_out: int = 0


def conversation_at(visits: Iterable[Visit], hold: str) -> HoldConversation:
    for visit in visits:
        question = next((each for each in visit.questions if each.hold == hold and each.key), None)
        if question is not None:
            return _conversation(visit, question)
    return HoldConversation(hold=hold)


def _conversation(visit: Visit, question: QuestionDetail) -> HoldConversation:
    # Keys of sub-steps and questions are stored with a sign before them.
    records = {each.ordinal.removeprefix("="): each.value for each in visit.calls}
    own = question.key.removeprefix(_ASKED)
    # A sub-agent's conversation is inside another one: the innermost is meant.
    paths = [name.removesuffix("/prompt") for name in records if name.endswith("/prompt")]
    around = [path for path in paths if own.startswith(f"{path}/")]
    if not around:
        return HoldConversation(hold=question.hold)
    path = max(around, key=len)
    found = _TURN.match(own.removeprefix(path))
    turn = int(found[1]) if found else 0
    holds = {each.key.removeprefix(_ASKED): each.hold for each in visit.questions}
    messages = list(_messages(path, turn, records, holds))
    first: Any = records[f"{path}/prompt"]
    return HoldConversation(
        hold=question.hold,
        agent="" if isinstance(first, BlobRef) else str(first["agent"]),
        turn=turn,
        messages=messages[-MOST:],
        left_out=max(0, len(messages) - MOST),
    )


def _messages(
    path: str, last: int, records: Mapping[str, Any], holds: Mapping[str, str]
) -> Iterator[ConversationMessage]:
    yield from _beginning(records[f"{path}/prompt"])
    for turn in range(1, last + 1):
        kept: Any = records.get(f"{path}/{turn}/model")
        if isinstance(kept, BlobRef):
            yield ConversationMessage(role="assistant", turn=turn, omitted=True)
        if not isinstance(kept, Mapping):
            continue
        message = message_from_plain(cast("Mapping[str, Any]", kept)["message"])
        places = [f"{path}/{turn}/tool/{index}" for index in range(len(message.calls))]
        asked = zip(message.calls, places, strict=True)
        calls = [_call(each, holds.get(f"{at}/approval")) for each, at in asked]
        yield _shown(message, turn, calls)
        # Results without a record of their own: refusals, errors, what a sub-agent said.
        others: Any = records.get(f"{path}/{turn}/turn") or {}
        for index, (call, at) in enumerate(zip(message.calls, places, strict=True)):
            own: Any = records.get(f"{at}/call")
            result = _result(own, others.get(str(index)))
            if result is not None:
                text, failed = result
                yield ConversationMessage(role="tool", turn=turn, text=text, call=call.id, failed=failed)
            elif isinstance(own, BlobRef):
                yield ConversationMessage(role="tool", turn=turn, call=call.id, omitted=True)
        taken: Any = records.get(f"{path}/{turn}/steer") or []
        for each in () if isinstance(taken, BlobRef) else taken:
            yield ConversationMessage(role="user", turn=turn, text=str(each["text"]))
        if "warning" in others:
            yield ConversationMessage(role="user", turn=turn, text=str(others["warning"]))


def _beginning(kept: Any) -> Iterator[ConversationMessage]:
    if isinstance(kept, BlobRef):
        yield ConversationMessage(role="user", turn=0, omitted=True)
        return
    for plain in kept["messages"]:
        yield _shown(message_from_plain(plain), 0, [])
    if kept["prompt"]:
        yield ConversationMessage(role="user", turn=0, text=str(kept["prompt"]))


def _shown(message: Message, turn: int, calls: list[ConversationCall]) -> ConversationMessage:
    return ConversationMessage(
        role=message.role,
        turn=turn,
        text=message.text,
        calls=calls or [_call(each, None) for each in message.calls],
        call=message.call,
        failed=message.failed,
    )


def _call(call: ToolCall, hold: str | None) -> ConversationCall:
    try:
        arguments = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        arguments = call.arguments
    return ConversationCall(id=call.id, tool=call.name, arguments=arguments, hold=hold)


def _result(kept: Any, other: Any) -> tuple[str, bool] | None:
    """None: there is none yet."""
    if isinstance(other, str):
        return other, False
    if isinstance(kept, Mapping) and "text" in kept:
        whole = cast("Mapping[str, Any]", kept)
        return str(whole["text"]), bool(whole.get("failed"))
    return None
