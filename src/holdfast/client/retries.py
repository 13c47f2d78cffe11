"""Whether a request that went wrong is sent again, and when."""

from __future__ import annotations

from holdfast.client.problems import UnreachableError
from holdfast.client.requests import Request
from holdfast.client.settings import Retries
from holdfast.errors import HoldfastError


def pause_before(request: Request, error: HoldfastError, attempt: int, retries: Retries) -> float | None:
    """Seconds to wait; None: tell the caller. `attempt`: how often it was sent."""
    if attempt >= retries.attempts or not (
        _is_unprocessed(error) or (_is_temporary(error) and request.repeatable)
    ):
        return None
    wait = retries.wait(attempt, requested_wait(error))
    return wait if wait <= retries.longest else None


def requested_wait(error: HoldfastError) -> float | None:
    asked = error.facts.get("retry_after")
    return float(asked) if isinstance(asked, (int, float)) else None


def _is_unprocessed(error: HoldfastError) -> bool:
    """It certainly was not done: no server answered, or the server refused it."""
    if isinstance(error, UnreachableError):
        return not error.facts.get("sent", True)
    return error.facts.get("http") == 429


def _is_temporary(error: HoldfastError) -> bool:
    """It may be better the next time."""
    http = error.facts.get("http")
    return isinstance(error, UnreachableError) or (isinstance(http, int) and http >= 500)


def is_transient(error: HoldfastError) -> bool:
    return _is_unprocessed(error) or _is_temporary(error)
