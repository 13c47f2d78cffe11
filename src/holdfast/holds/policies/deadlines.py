"""A rule's deadline, as the columns of a hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from holdfast.errors import InputError
from holdfast.types.clock import micros
from holdfast.types.duration import BusinessDuration, parse_length

_WAYS = "Write cancel, default, fail, accept, reject or escalate:ASSIGNEE."


class TimeoutAction(NamedTuple):
    """What an expiry does. `consents`: it approves (True) or rejects (False), by the hold's option for it."""

    action: str | None
    target: str | None = None
    consents: bool | None = None


def read_on_timeout(text: str) -> TimeoutAction:
    """Raises InputError. Branches are chosen by the flow, not by a rule."""
    action, _, target = text.strip().partition(":")
    if action == "escalate" and target.strip():
        return TimeoutAction("escalate", target.strip())
    found = _PLAIN.get(text.strip())
    if found is None:
        raise InputError(f"on_timeout {text!r} is not valid.", hint=_WAYS)
    return found


_PLAIN = {
    "cancel": TimeoutAction("cancel"),
    "default": TimeoutAction("default_option"),
    "default_option": TimeoutAction("default_option"),
    "accept": TimeoutAction("default_option", consents=True),
    "reject": TimeoutAction("default_option", consents=False),
    "fail": TimeoutAction(None),
    "error": TimeoutAction(None),
}


def deadline(timeout: str | int | float | timedelta, created_at: int) -> dict[str, Any]:
    """Columns of the row; for business time only the text, which is resolved with the calendar later."""
    length = parse_length(timeout)
    if isinstance(length, BusinessDuration):
        return {"expires_at": None, "original_timeout": None}
    return {"expires_at": created_at + micros(length), "original_timeout": micros(length)}
