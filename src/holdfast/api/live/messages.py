"""The messages that a client may send over a WebSocket."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.problems import HttpError
from holdfast.api.routing import LONGEST_KEY, Route
from holdfast.api.schemas.events import EventNames
from holdfast.api.strict_json import decode_strictly

MOST = 0x7FFF_FFFF
MOST_SEQ = 2**53

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_KEY, pattern=r"^[\x21-\x7e]*$")]
Word = Annotated[str, msgspec.Meta(max_length=200)]

ROUTES = {"answer": "give_input", "cancel": "cancel_run", "resume": "resume_run"}
"""The route that performs each message."""


class SocketMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`id`: chosen by the sender, returned with the answer. `key`: like Idempotency-Key over HTTP. `topic`,
    in place of a run: `holds` is every change of a hold that the caller may see, `runs` every run of the
    tenant that changed."""

    type: Literal["auth", "ping", "subscribe", "unsubscribe", "answer", "cancel", "resume"]
    id: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] | Word | None = None
    token: Annotated[str, msgspec.Meta(max_length=4000)] | None = None
    run: Word | None = None
    topic: Literal["holds", "runs"] | None = None
    after: int | None = None
    names: str | None = None
    key: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_KEY, pattern=r"^[\x21-\x7e]*$")] | None
    ) = None
    # Of an answer.
    content: str | dict[str, Any] | None = None
    hold: Word | None = None
    # Of a cancel.
    reason: str | None = None
    # Of a resume.
    checkpoint_id: Word | None = None
    input_data: dict[str, Any] | None = None
    mode: str | None = None


def read_message(text: str) -> SocketMessage:
    """Raises HttpError."""
    try:
        return decode_strictly(text, SocketMessage, "message")
    except msgspec.ValidationError as error:
        raise HttpError(422, f"the message does not fit: {error}.", code="invalid_input") from error
    except RecursionError as error:
        raise HttpError(422, "the message is nested too deeply.", code="too_deep") from error


def _run_of(message: SocketMessage) -> str:
    if not message.run or "\0" in message.run:
        raise HttpError(422, f"a message of type {message.type} must name a run.", code="invalid_input")
    return message.run


class SocketSubscription(msgspec.Struct, frozen=True):
    run: str
    after: int
    names: EventNames | None

    @classmethod
    def of(cls, message: SocketMessage) -> SocketSubscription:
        """Raises HttpError."""
        run, after = _run_of(message), message.after or 0
        if not 0 <= after <= MOST:
            raise HttpError(422, "`after` must be the number of an event.", code="invalid_input")
        if message.names is not None and message.names not in tuple(EventNames):
            raise HttpError(422, f"`names` must be one of {', '.join(EventNames)}.", code="invalid_input")
        return cls(run, after, None if message.names is None else EventNames(message.names))


def topic_position(message: SocketMessage) -> int | None:
    """The number after which a topic continues; None: from now on. Raises HttpError."""
    if message.run is not None or message.names is not None:
        raise HttpError(422, "a subscription names a run or a topic, not both.", code="invalid_input")
    if message.after is not None and not 0 <= message.after <= MOST_SEQ:
        raise HttpError(422, "`after` must be the number of an event.", code="invalid_input")
    return message.after


class SocketCommand(msgspec.Struct, frozen=True):
    route: str
    run: str
    body: dict[str, Any]

    @classmethod
    def of(cls, message: SocketMessage) -> SocketCommand:
        bodies: dict[str, dict[str, Any]] = {
            "answer": {"content": message.content, "checkpoint_id": message.hold},
            "cancel": {"reason": message.reason},
            "resume": {
                "checkpoint_id": message.checkpoint_id, "input_data": message.input_data, "mode": message.mode
            },
        }  # fmt: skip
        body = {name: value for name, value in bodies[message.type].items() if value is not None}
        return cls(ROUTES[message.type], _run_of(message), body)

    def body_for(self, route: Route) -> Any:
        """Raises HttpError."""
        shape: Any = route.body
        try:
            return msgspec.convert(self.body, shape)
        except msgspec.ValidationError as error:
            raise HttpError(422, f"the message does not fit: {error}.", code="invalid_input") from error
