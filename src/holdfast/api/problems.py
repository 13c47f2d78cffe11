"""Errors on the wire: application/problem+json (RFC 9457), one for each class of `holdfast.errors`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right
from holdfast.errors import HoldfastError, StoreError, StoreUnavailableError
from holdfast.telemetry import log
from holdfast.types.clock import iso

MEDIA = "application/problem+json"
NAMED = {
    "hold_decided": ("already-resolved", "Already resolved"),
    "answer_invalid": ("invalid-response", "Invalid response"),
    "form_invalid": ("invalid-response", "Invalid response"),
}
"""Problem types whose name in the documents differs from our code."""


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`code` is stable; `detail` says what is wrong, `hint` what to do. Further members are facts."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    retryable: bool = False
    request_id: str | None = None
    errors: list[dict[str, Any]] = []  # one for each invalid field: {field, code, message}


class HttpError(HoldfastError):
    """Errors of HTTP itself: an unknown path, a body that is not JSON, a missing header."""

    code = "bad_request"

    def __init__(
        self, status: int, message: str, *, code: str, hint: str | None = None, **facts: object
    ) -> None:
        super().__init__(message, hint=hint, **facts)
        self.given_status = status
        self.given_code = code


def no_right(right: str) -> HttpError:
    return HttpError(
        403,
        f"this credential does not have the right {right}.",
        code="forbidden",
        hint=f"An administrator can create one that has it: `holdfast tokens create WHO --right {right}`.",
        right=right,
    )


def status_of(error: HoldfastError) -> int:
    return error.given_status if isinstance(error, HttpError) else error.status


def problem_of(error: HoldfastError, request_id: str | None = None) -> tuple[Problem, dict[str, Any]]:
    """The problem, and its additional members."""
    status = status_of(error)
    code = error.given_code if isinstance(error, HttpError) else error.code
    facts = {name: value for name, value in error.facts.items() if value is not None}
    listed: Any = facts.pop("errors", facts.pop("problems", []))
    name, title = NAMED.get(code, (code.replace("_", "-"), HTTPStatus(status).phrase))
    problem = Problem(
        type=f"/errors/{name}",
        title=title,
        status=status,
        code=code,
        detail=error.message,
        hint=error.hint,
        retryable=error.retryable,
        request_id=request_id,
        errors=[_place(each) for each in listed],
    )
    return problem, facts


def _place(each: Any) -> dict[str, Any]:
    if isinstance(each, Mapping):
        return dict(each)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(each, msgspec.Struct):
        return msgspec.to_builtins(each)
    return {"message": str(each)}


_OF_DATABASE = (StoreError, StoreUnavailableError)


def for_caller(error: HoldfastError, principal: Principal | None, request_id: str) -> HoldfastError:
    """Errors of the store name its host, file or schema: a caller who is not known gets none of it, and who
    does not administer the server no failures of the database."""
    if not isinstance(error, StoreError):
        return error
    if principal is not None and (principal.may(Right.admin) or type(error) not in _OF_DATABASE):
        return error
    log.warning("request %s: %s", request_id, error.message)
    return type(error)("the store is not available.", hint="Try again soon.")


def problem_response(
    error: HoldfastError, request_id: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    problem, facts = problem_of(error, request_id)
    # The standard members last: a fact with the name of one must not replace it.
    document = {**_plain(facts), **msgspec.to_builtins(problem)}
    body = msgspec.json.encode(document)
    given = dict(headers or {})
    if isinstance(wait := facts.get("retry_after"), (int, float)):
        given.setdefault("Retry-After", str(math.ceil(wait)))
    if problem.status == 401:
        # HTTP requires this header with each 401.
        given.setdefault("WWW-Authenticate", 'Bearer realm="holdfast"')
    return Response(body, problem.status, media_type=MEDIA, headers=given)


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts that are JSON values, times as RFC 3339; the others are for Python callers."""
    return {name: _instant(name, value) for name, value in facts.items() if _is_json_value(value)}


def _instant(name: str, value: Any) -> Any:
    return iso(value) if name.endswith(("_at", "_until")) and type(value) is int else value


def _is_json_value(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError):
        return False
    return True


def internal_error(error: BaseException, request_id: str) -> Response:
    """An error of the server: the log has its traceback, the caller gets the request id."""
    log.error("request %s failed unexpectedly", request_id, exc_info=error)
    failure = HttpError(
        500,
        "the server failed to process this request.",
        code="internal",
        hint=f"Report the request id {request_id} to the operator of this server.",
    )
    return problem_response(failure, request_id)
