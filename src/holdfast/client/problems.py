"""Error answers of a server, as the classes of `holdfast.errors`.

HoldfastError
├── UnreachableError            no answer: no server listens there, or the connection broke
├── UnauthenticatedError        the token is missing or not valid
├── AnswerUnreadableError       an answer that is not of this API
├── StillRunningError           the caller's timeout has passed, and the run continues
├── ServerError                 an internal error of the server
└── every class of `holdfast.errors`, by its code

`error.facts` has the other members of the problem document: `http`, `request_id`, `errors` and more.
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
    """`request`: its method and path, such as `GET /v1/runs`."""
    document = _document(body)
    if document is None:
        return _foreign(status, body, request, headers)
    facts = {name: value for name, value in document.items() if name not in _OWN}
    kind = _named(document["code"]) or _by_status(status)
    error = kind(document["detail"], hint=None if document.get("hint") is None else str(document["hint"]))
    error.facts |= {**facts, "http": status}
    return error


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    if not isinstance(document, dict):
        return None
    found = cast("dict[str, Any]", document)
    # Gateways answer in JSON too, with other codes.
    result = isinstance(found.get("code"), str) and isinstance(found.get("detail"), str)
    return found if result else None


def _foreign(status: int, body: bytes, request: str, headers: dict[str, str]) -> HoldfastError:
    """A proxy answered, or it is not a Holdfast server."""
    if 300 <= status < 400:
        where = headers.get("location", "elsewhere")
        return AnswerUnreadableError(
            f"{request} was redirected to {where}.",
            hint="Use that address: the token is not sent to an address that you did not give.",
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
