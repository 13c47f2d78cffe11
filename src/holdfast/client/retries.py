"""Whether a failed request is retried, and when."""

from __future__ import annotations

from holdfast.client.problems import UnreachableError
from holdfast.client.requests import Request
from holdfast.client.settings import Retries
from holdfast.errors import HoldfastError


def pause_before(request: Request, error: HoldfastError, attempt: int, retries: Retries) -> float | None:
    """Seconds to wait; None: raise the error. `attempt`: how often it was sent."""
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
    """It certainly had no effect: no server was reached, or the server refused it."""
    if isinstance(error, UnreachableError):
        return not error.facts.get("sent", True)
    return error.facts.get("http") == 429


def _is_temporary(error: HoldfastError) -> bool:
    """A retry may succeed."""
    http = error.facts.get("http")
    return isinstance(error, UnreachableError) or (isinstance(http, int) and http >= 500)


def is_transient(error: HoldfastError) -> bool:
    return _is_unprocessed(error) or _is_temporary(error)
