"""Calls of models and tools, from the records of Holdfast's own agents.

Their sub-steps have keys that say what they are: `agent/2/model` is the model's call of turn 2, and
`agent/2/tool/0/call` the first tool call of that turn (`agents.loop`, `agents.toolbox`). Agents of other
frameworks have keys of their own: those frameworks trace their calls themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.integrations.otel import conventions as names
from holdfast.integrations.otel.ids import Key
from holdfast.model.record_bodies import ErrorInfo, SubstepBody
from holdfast.types.record import Record

_AGENT: Final = r"(agent(?:#\d+)?(?:/\d+/tool/\d+/agent)*)"
_PROMPT: Final = re.compile(_AGENT + r"/prompt")
_MODEL: Final = re.compile(_AGENT + r"/(\d+)/model")
_TOOL: Final = re.compile(_AGENT + r"/(\d+)/tool/(\d+)/call")

Place = tuple[Key, str]
"""A conversation: the step, and the path of its keys in it."""


class AgentCall(msgspec.Struct, frozen=True):
    """A call of a model (`chat`) or of a tool (`execute_tool`). `content` has values of the user's, and is
    empty unless it was asked for."""

    key: Key
    ordinal: str
    operation: str
    subject: str  # the model or the tool
    started_at: int
    ended_at: int
    attributes: dict[str, Any]
    content: dict[str, Any]
    error: ErrorInfo | None = None


class _Talk(msgspec.Struct):
    agent: str = ""
    model: str = ""
    provider: str = ""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    # Of each turn: the calls that the model asked for.
    calls: dict[str, Sequence[Mapping[str, Any]]] = {}


class AgentCalls:
    """The conversations of one run. `capture`: keep their content too."""

    def __init__(self, *, capture: bool) -> None:
        self._capture = capture
        self._talks: dict[Place, _Talk] = {}

    def agent_of(self, key: Key) -> str:
        """The agent that works in this step, if one does."""
        talk = self._talks.get((key, "agent"))
        return "" if talk is None else talk.agent

    def any_agent(self) -> bool:
        return bool(self._talks)

    def end(self, key: Key) -> None:
        """The step has ended."""
        for place in [place for place in self._talks if place[0] == key]:
            # Without the content: that there was an agent is remembered for the root of the run.
            self._talks[place] = _Talk()

    def read(self, record: Record, key: Key, body: SubstepBody) -> AgentCall | None:
        # A key is written with "=" before it, after the number of its branch.
        ordinal = body.ordinal.rpartition("=")[2]
        if not ordinal.startswith("agent"):
            return None
        if (found := _MODEL.fullmatch(ordinal)) is not None:
            return self._model(record, key, body, found[1], found[2])
        if (found := _TOOL.fullmatch(ordinal)) is not None:
            return self._tool(record, key, body, found[1], (found[2], int(found[3])))
        if (found := _PROMPT.fullmatch(ordinal)) is not None:
            self._prompt(key, body, found[1])
        return None

    def _talk(self, key: Key, path: str) -> _Talk:
        return self._talks.setdefault((key, path), _Talk())

    def _prompt(self, key: Key, body: SubstepBody, path: str) -> None:
        value = _fields(body.value)
        talk = self._talks[(key, path)] = _Talk(agent=str(value.get("agent", "")))
        if self._capture:
            for message in _items(value.get("messages")):
                target = talk.system if message.get("role") == "system" else talk.messages
                target.append(message)
            if value.get("prompt"):
                talk.messages.append({"role": "user", "text": value["prompt"]})

    def _model(self, record: Record, key: Key, body: SubstepBody, path: str, turn: str) -> AgentCall:
        talk, value = self._talk(key, path), _fields(body.value)
        talk.model, talk.provider = value.get("model", talk.model), value.get("provider", talk.provider)
        message, usage = _fields(value.get("message")), _fields(value.get("usage"))
        talk.calls[turn] = _items(message.get("calls"))
        attributes: dict[str, Any] = {names.AGENT: talk.agent, names.PROVIDER: talk.provider}
        attributes |= {names.REQUEST_MODEL: talk.model, names.RESPONSE_MODEL: value.get("response_model", "")}
        if usage:
            attributes[names.INPUT_TOKENS] = int(usage.get("input", 0))
            attributes[names.OUTPUT_TOKENS] = int(usage.get("output", 0))
            attributes[names.CACHED_TOKENS] = int(usage.get("cached", 0))
            attributes["holdfast.cost"] = float(value.get("cost", 0))
        if value.get("finish"):
            attributes[names.FINISH_REASONS] = [str(value["finish"])]
        content: dict[str, Any] = {}
        if self._capture:
            content = _chat_content(talk, message, str(value.get("finish", "")))
            if message:
                talk.messages.append(dict(message))
        return _call(record, key, body, names.CHAT, talk.model, attributes, content)

    def _tool(
        self, record: Record, key: Key, body: SubstepBody, path: str, place: tuple[str, int]
    ) -> AgentCall:
        talk, value = self._talk(key, path), _fields(body.value)
        turn, index = place
        calls = talk.calls.get(turn, ())
        call: Mapping[str, Any] = calls[index] if index < len(calls) else {}
        # An earlier worker's record may be out of reach: then the name of the step is what is left.
        name = str(call.get("name") or body.name.rpartition("/")[2].partition("(")[0])
        attributes = {names.AGENT: talk.agent, names.TOOL: name, names.TOOL_CALL: call.get("id", "")}
        content: dict[str, Any] = {}
        if self._capture:
            result = value.get("text", "")
            content = {names.TOOL_ARGUMENTS: str(call.get("arguments", "")), names.TOOL_RESULT: str(result)}
            talk.messages.append({"role": "tool", "text": result, "call": call.get("id", "")})
        return _call(record, key, body, names.EXECUTE_TOOL, name, attributes, content)


def _call(
    record: Record,
    key: Key,
    body: SubstepBody,
    operation: str,
    subject: str,
    attributes: dict[str, Any],
    content: dict[str, Any],
) -> AgentCall:
    took = 0 if body.usage is None else body.usage.micros
    named = {name: value for name, value in attributes.items() if value != ""}
    named[names.OPERATION] = operation
    return AgentCall(
        key, body.ordinal, operation, subject, record.at - took, record.at, named, content, body.error
    )


def _chat_content(talk: _Talk, message: Mapping[str, Any], finish: str) -> dict[str, Any]:
    """As the conventions write messages."""
    found: dict[str, Any] = {names.INPUT: [_message(each) for each in talk.messages]}
    if talk.system:
        found[names.SYSTEM] = [{"type": "text", "content": each.get("text", "")} for each in talk.system]
    if message:
        found[names.OUTPUT] = [{**_message(message), "finish_reason": finish}]
    return found


def _message(plain: Mapping[str, Any]) -> dict[str, Any]:
    role, text = str(plain.get("role", "")), str(plain.get("text", ""))
    if role == "tool":
        return {
            "role": role,
            "parts": [{"type": "tool_call_response", "id": plain.get("call", ""), "response": text}],
        }
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    parts += [
        {
            "type": "tool_call",
            "id": call.get("id", ""),
            "name": call.get("name", ""),
            "arguments": call.get("arguments", "{}"),
        }
        for call in _items(plain.get("calls"))
    ]
    return {"role": role, "parts": parts}


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return (
        [_fields(each) for each in cast("Sequence[Any]", value)] if isinstance(value, (list, tuple)) else []
    )
