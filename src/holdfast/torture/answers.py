"""Answers in a trial: questions as the user configured, unknown outcomes by what really happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from holdfast.errors import InputError
from holdfast.torture.trial_log import CallBegun, CallEnded, CallId, Note
from holdfast.types.hold import HoldRow

IN_DOUBT: Final = "in_doubt"
Policy = Literal["truth", "happened", "not_happened", "fail"]
POLICIES: Final = ("truth", "happened", "not_happened", "fail")


class TrialAnswer(msgspec.Struct, frozen=True):
    decision: str
    data: Any = None
    comment: str | None = None


Answers = dict[str, list[TrialAnswer | None]]
"""By node: the first answer, the second, ...; the last one is repeated. None: the hold expires."""


def read_answers(given: Mapping[str, Any]) -> Answers:
    """From {"approve": "yes"}, {"approve": {"decision": ..., "data": ...}}, or lists of these."""
    return {node: _replies(node, answers) for node, answers in given.items()}


def _replies(node: str, answers: Any) -> list[TrialAnswer | None]:
    many = cast("list[Any]", answers) if isinstance(answers, list) else [answers]
    if not many:
        raise _wrong(node, "an empty list")
    return [_reply(node, one) for one in many]


def _reply(node: str, answer: Any) -> TrialAnswer | None:
    if answer is None:
        return None
    if isinstance(answer, str):
        return TrialAnswer(answer)
    try:
        return msgspec.convert(answer, TrialAnswer)
    except msgspec.ValidationError as error:
        raise _wrong(node, str(error)) from error


def _wrong(node: str, why: str) -> InputError:
    return InputError(
        f"the answer to {node!r} is not valid: {why}.",
        hint='Write {"node": "approve"} or {"node": {"decision": "approve", "data": {}, "comment": ""}}.',
    )


def reply_to(hold: HoldRow, answers: Answers, before: int) -> TrialAnswer | Literal["unanswered"] | None:
    """`before`: number of earlier questions of this node. "unanswered": the user gave no answer for it."""
    replies = answers.get(hold.node) or answers.get("*")
    if not replies:
        return "unanswered"
    return replies[min(before, len(replies) - 1)]


def doubted_call(hold: HoldRow, notes: Sequence[Note]) -> CallId:
    """Which call an in-doubt hold asks about."""
    asked: dict[str, Any] = msgspec.json.decode(hold.context)
    name = asked.get("step") or ""
    for note in reversed(notes):
        if isinstance(note, CallBegun) and _is_same_call(note.call, hold, name):
            return note.call
    return CallId(hold.scope, hold.node, hold.visit, name=name)


def _is_same_call(call: CallId, hold: HoldRow, name: str) -> bool:
    return (call.scope, call.node, call.visit, call.name) == (hold.scope, hold.node, hold.visit, name)


def resolve_doubt(call: CallId, notes: Sequence[Note], policy: Policy) -> TrialAnswer:
    """With `truth`, an effect whose call ended has happened, with its return value; else it has not."""
    ended = [n for n in notes if isinstance(n, CallEnded) and n.call == call and n.done]
    if policy == "fail":
        return TrialAnswer("fail")
    if policy == "not_happened" or (policy == "truth" and not ended):
        return TrialAnswer("not_happened")
    value = ended[-1].value if ended else None
    # A node answers with an update of the state, a sub-step with its value.
    as_update = isinstance(value, dict) and not call.step
    return TrialAnswer("happened", {"update": value} if as_update else {"value": value})
