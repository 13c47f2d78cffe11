"""Refusals of a server, as the errors that `holdfast.errors` has for them.

HoldfastError
├── UnreachableError            no answer: no server listens there, or the connection broke
├── UnauthenticatedError        the server wants a token, or another one
├── AnswerUnreadableError       an answer that is none of this API's
├── StillRunningError           the caller's timeout is over, and the run continues
├── ServerError                 the server says that the fault is its own
└── every class of `holdfast.errors`, by its code

`error.facts` has what the problem document says besides: `http`, `request_id`, `errors` and further members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from holdfast.errors import (
    ConflictError,
    ForbiddenError,
    HoldfastError,
    InputError,
    NotFoundError,
    RateLimitedError,
)


class UnreachableError(HoldfastError):
    code = "server_unreachable"
    status = 503
    retryable = True


class UnauthenticatedError(HoldfastError):
    code = "unauthenticated"
    status = 401


class AnswerUnreadableError(HoldfastError):
    code = "answer_unreadable"
    status = 502


class StillRunningError(HoldfastError):
    code = "still_running"
    status = 504
    retryable = True


class ServerError(HoldfastError):
    code = "server_error"
    status = 500
    retryable = True


_BY_STATUS: dict[int, type[HoldfastError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    429: RateLimitedError,
}
_OWN = {"type", "title", "status", "detail", "hint"}
SHOWN = 200


def problem_of(status: int, body: bytes, request: str, headers: dict[str, str]) -> HoldfastError:
    """`request`: what was asked for, such as `GET /v1/runs`."""
    said = _document(body)
    if said is None:
        return _foreign(status, body, request, headers)
    facts = {name: value for name, value in said.items() if name not in _OWN}
    kind = _named(said["code"]) or _by_status(status)
    error = kind(said["detail"], hint=None if said.get("hint") is None else str(said["hint"]))
    error.facts |= {**facts, "http": status}
    return error


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        said: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    if not isinstance(said, dict):
        return None
    found = cast("dict[str, Any]", said)
    # Gateways answer in JSON too, with a code of their own.
    result = isinstance(found.get("code"), str) and isinstance(found.get("detail"), str)
    return found if result else None


def _foreign(status: int, body: bytes, request: str, headers: dict[str, str]) -> HoldfastError:
    """Something between us and the server answered, or it is another server."""
    if 300 <= status < 400:
        where = headers.get("location", "elsewhere")
        return AnswerUnreadableError(
            f"{request} was sent on to {where}.",
            hint="Give the client that address: a token is sent to no other address.",
            http=status,
        )
    text = " ".join(body[: SHOWN * 4].decode(errors="replace").split())[:SHOWN]
    kind = _by_status(status)
    return kind(f"{request} was answered with {status}{f': {text}' if text else ''}.", http=status)


def _by_status(status: int) -> type[HoldfastError]:
    return _BY_STATUS.get(status, ServerError if status >= 500 else InputError)


def _named(code: str) -> type[HoldfastError] | None:
    for kind in _kinds(HoldfastError):
        if kind.code == code and (kind.__module__ == _ERRORS or kind is UnauthenticatedError):
            return kind
    return None


_ERRORS = HoldfastError.__module__


def _kinds(root: type[HoldfastError]) -> Iterator[type[HoldfastError]]:
    yield root
    for each in root.__subclasses__():
        yield from _kinds(each)
