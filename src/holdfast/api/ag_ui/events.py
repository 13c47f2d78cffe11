"""From events of a run to events of AG-UI 1.0. Pure: the same log gives the same events and ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.api.schemas.events import EncodedEvent, EventWire

PROTOCOL: Final = "1.0"
AgUiEvent = dict[str, Any]
_encode: Final = msgspec.json.Encoder().encode

_ENDS: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped_failure", "node.unknown", "node.abandoned"}
)
_AGAIN: Final = frozenset({"node.restarted", "node.retried"})
_OPENED: Final = frozenset({"hold.opened", "hold.asked_again"})
_DECIDED: Final = frozenset({"hold.resolved", "hold.cancelled", "hold.expired"})


class _Message(msgspec.Struct):
    """What the front end has built of our events. `place`: the step that says it."""

    id: str
    place: str
    texts: list[str] = []
    calls: list[dict[str, Any]] = []

    def plain(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": self.id, "role": "assistant"}
        if self.texts:
            shown["content"] = "".join(self.texts)
        if self.calls:
            shown["toolCalls"] = self.calls
        return shown


class AgUiRenderer:
    """One stream. `given`: the messages that the front end has sent."""

    def __init__(self, thread: str, run_id: str, run: str, given: Sequence[Mapping[str, Any]]) -> None:
        self._thread = thread
        self._run_id = run_id
        self._run = run
        self._given = given
        self._steps: dict[str, None] = {}
        self._messages: list[_Message] = []
        # By step: the message that is under way.
        self._open: dict[str, _Message] = {}
        self.has_asked = False
        # Decided, but the run has not gone on yet; and decided holds after which it has.
        self._decided: set[str] = set()
        self.answered: set[str] = set()
        self.over = False

    def started(self) -> AgUiEvent:
        return {
            "type": "RUN_STARTED",
            "threadId": self._thread,
            "runId": self._run_id,
            "protocolVersion": PROTOCOL,
            "metadata": {"holdfast": {"run": self._run}},
        }

    def render(self, event: EventWire | EncodedEvent) -> list[AgUiEvent]:
        """The end of the run has no event here: what it gives is read first."""
        kind, place = event.type, event.scope + event.node
        if kind == "node.emitted":
            if self._decided:
                self.answered |= self._decided
            return self._emitted(place, event)
        self._note_answer(event)
        if kind == "node.started":
            return self._begin_step(place)
        if kind in _ENDS:
            return [*self._closed(place), *self._end_step(place)]
        if kind in _AGAIN:
            return self._discarded(place)
        if kind in _OPENED:
            self.has_asked = True
        elif kind in ("run.completed", "run.failed", "run.cancelled"):
            self.over = True
        return []

    def _begin_step(self, place: str) -> list[AgUiEvent]:
        if place in self._steps:
            return []
        self._steps[place] = None
        return [{"type": "STEP_STARTED", "stepName": place}]

    def _end_step(self, place: str) -> list[AgUiEvent]:
        if place not in self._steps:
            return []
        del self._steps[place]
        return [{"type": "STEP_FINISHED", "stepName": place}]

    def _note_answer(self, event: EventWire | EncodedEvent) -> None:
        """A decision has its event when it is made. What the run does with it comes after that."""
        if event.type in _DECIDED:
            self._decided.add(str(event.data.get("hold_id", "")))
        elif event.type == "hold.answered":
            self.answered.add(str(event.data.get("hold_id", "")))
        elif not event.type.startswith("hold."):
            self.answered |= self._decided

    # ------------------------------------------------------------------ what a node emits
    def _emitted(self, place: str, event: EventWire | EncodedEvent) -> list[AgUiEvent]:
        kind, data = event.data.get("kind", ""), event.data.get("data")
        if kind == "text" and isinstance(data, str):
            return self._said(place, event.number, data)
        if kind == "tool" and isinstance(data, Mapping):
            return self._called(place, cast("Mapping[str, Any]", data))
        if kind == "retry":
            # The model's answer begins again.
            return self._discarded(place)
        if kind == "log":
            return []
        return [*self._closed(place), {"type": "CUSTOM", "name": str(kind), "value": data}]

    def _said(self, place: str, number: int, text: str) -> list[AgUiEvent]:
        if not text:
            return []
        message, begins = self._open.get(place), list[AgUiEvent]()
        if message is None:
            message = self._begun(place, str(number))
            begins.append({"type": "TEXT_MESSAGE_START", "messageId": message.id, "role": "assistant"})
        message.texts.append(text)
        begins.append({"type": "TEXT_MESSAGE_CONTENT", "messageId": message.id, "delta": text})
        return begins

    def _begun(self, place: str, number: str) -> _Message:
        # By the number of the event: the same in every stream of this run.
        message = self._open[place] = _Message(f"{self._run}:{number}", place)
        self._messages.append(message)
        return message

    def _called(self, place: str, data: Mapping[str, Any]) -> list[AgUiEvent]:
        closed = self._closed(place)
        call, name = str(data.get("call", "")), str(data.get("tool", ""))
        arguments = _encode(data.get("arguments", {})).decode()
        function = {"name": name, "arguments": arguments}
        # The protocol puts a call into a message of its own if it names no other.
        self._messages.append(
            _Message(call, place, calls=[{"id": call, "type": "function", "function": function}])
        )
        return [
            *closed,
            {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name},
            {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments},
            {"type": "TOOL_CALL_END", "toolCallId": call},
        ]

    def _closed(self, place: str) -> list[AgUiEvent]:
        message = self._open.pop(place, None)
        return [] if message is None else [{"type": "TEXT_MESSAGE_END", "messageId": message.id}]

    def _discarded(self, place: str) -> list[AgUiEvent]:
        """What an attempt has said is void: the front end gets the messages without it."""
        closed = self._closed(place)
        kept = [message for message in self._messages if message.place != place]
        if len(kept) == len(self._messages):
            return closed
        self._messages = kept
        shown = [*self._given, *(message.plain() for message in kept)]
        return [*closed, {"type": "MESSAGES_SNAPSHOT", "messages": shown}]

    # ------------------------------------------------------------------ the end
    def finished(self, state: Mapping[str, Any], outcome: AgUiEvent, result: Any = None) -> list[AgUiEvent]:
        """`outcome`: success, cancelled, or the interrupts that wait for an answer."""
        end: AgUiEvent = {"type": "RUN_FINISHED", "threadId": self._thread, "runId": self._run_id}
        return [
            *self._left(),
            {"type": "STATE_SNAPSHOT", "snapshot": dict(state)},
            {**end, **({} if result is None else {"result": result}), "outcome": outcome},
        ]

    def failed(self, message: str, code: str) -> list[AgUiEvent]:
        return [*self._left(), {"type": "RUN_ERROR", "message": message, "code": code}]

    def _left(self) -> list[AgUiEvent]:
        """Everything that is under way is closed first, as the protocol demands."""
        closed = [event for place in list(self._open) for event in self._closed(place)]
        return [*closed, *(event for place in list(self._steps) for event in self._end_step(place))]
