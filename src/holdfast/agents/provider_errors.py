"""What a provider says when it refuses a request: whether another attempt may succeed, and when."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

import msgspec

_SHOWN: Final = 500
# In the code or the type of an error: what was paid for is used up, and no retry helps.
_USED_UP: Final = frozenset(
    {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"}
)


def is_transient(status: int) -> bool:
    """Whether it is worth a retry."""
    return status in (408, 429) or 500 <= status <= 599


def is_quota_used_up(body: str) -> bool:
    """Whether a refusal is about what was paid for, or about the quota of a day, not about this minute."""
    error = _error_in(body)
    if _USED_UP & {str(error.get("code")), str(error.get("type"))}:
        return True
    violations = [each for detail in _details(error) for each in _list(detail.get("violations"))]
    return any("PerDay" in str(each.get("quotaId")) for each in violations)


def delay_in(body: str) -> float | None:
    """Gemini names it in the error: `retryDelay`, "30s"."""
    for detail in _details(_error_in(body)):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and delay.endswith("s"):
            return _number(delay[:-1])
    return None


def _error_in(body: str) -> dict[str, Any]:
    try:
        found: Any = msgspec.json.decode(body)
    except ValueError:
        return {}
    error: Any = cast("dict[str, Any]", found).get("error") if isinstance(found, dict) else None
    return cast("dict[str, Any]", error) if isinstance(error, dict) else {}


def _details(error: dict[str, Any]) -> list[dict[str, Any]]:
    return _list(error.get("details"))


def _list(found: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", each) for each in items if isinstance(each, dict)]


def message_in(body: str) -> str:
    """Providers send {"error": {"message": ...}}; anything else is shown shortened."""
    try:
        found: Any = msgspec.json.decode(body)
        error: Any = found["error"]
        return str(cast("dict[str, Any]", error)["message"] if isinstance(error, dict) else error)[:_SHOWN]
    except (ValueError, KeyError, TypeError):
        return " ".join(body.split())[:_SHOWN]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds: from `retry-after-ms`, or `Retry-After` as a number or a date."""
    millis = headers.get("retry-after-ms", "")
    if _number(millis) is not None:
        return cast("float", _number(millis)) / 1000
    header = headers.get("retry-after", "")
    if not header or _number(header) is not None:
        return _number(header)
    try:
        until, since = parsedate_to_datetime(header), parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None  # a date is useless without the endpoint's clock
    return max(0.0, (until - since).total_seconds())


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None
