"""What a message may contain: checks of names, sizes and times."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import InputError, ValueTooLargeError
from holdfast.holds.actions.submission import is_deeper
from holdfast.types.audit import canonical
from holdfast.types.clock import MICROS
from holdfast.types.queue_message import LONGEST_EVENT_KEY, MESSAGE_ID, NewMessage
from holdfast.types.terms import PRIORITIES
from holdfast.types.text import require_length, require_text

MAX_PAYLOAD: Final = 256 * 1024
"""Bytes of a message's content, as JSON."""
MAX_LEVELS: Final = 50
"""Of its content: the values of a run have 64, and the content is inside of what a run gets."""
MAX_CLAIM_TTL: Final = 12 * 3600 * MICROS
MAX_ERROR: Final = 2000
_REQUEST_FIELDS: Final = (
    "scope", "queue", "type", "correlation_id", "priority", "group_key", "expires_at",
)  # fmt: skip


def encode_payload(value: Any, what: str = "the payload") -> bytes:
    """Raises ValueTooLargeError, InputError."""
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}.") from error
    if len(data) > MAX_PAYLOAD:
        raise ValueTooLargeError(
            f"{what} has {len(data)} bytes; at most {MAX_PAYLOAD} are allowed.",
            hint="Store large data elsewhere, and send its address.",
        )
    if data.count(b"[") + data.count(b"{") > MAX_LEVELS and is_deeper(msgspec.json.decode(data), MAX_LEVELS):
        raise ValueTooLargeError(
            f"{what} is nested deeper than {MAX_LEVELS} levels.", hint="Send it flatter."
        )
    return data


def content_digest(new: NewMessage) -> str:
    """The same content gives the same digest, whatever the order of the fields in the payload."""
    content = {name: getattr(new, name) for name in _REQUEST_FIELDS}
    whole = canonical({**content, "payload": msgspec.json.decode(new.payload)})
    return sha256(whole).hexdigest()


def require_id(given: str) -> str:
    require_text(given, "the id of a message")
    if not MESSAGE_ID.fullmatch(given):
        raise InputError(
            f"{given!r} is not an id of a message.",
            hint="Use 1 to 64 letters, digits, hyphens and underscores.",
        )
    return given


def require_priority(given: str) -> str:
    if given not in PRIORITIES:
        raise InputError(f"{given!r} is not a priority.", hint=f"Choose from: {', '.join(PRIORITIES)}.")
    return given


def optional_text(given: str | None, what: str) -> str | None:
    return None if given is None else require_length(given, what, LONGEST_EVENT_KEY)


def require_ttl(ttl: int) -> int:
    if not 0 < ttl <= MAX_CLAIM_TTL:
        raise InputError("a claim lasts from a moment to 12 hours.", hint="Extend it while you work.")
    return ttl


def cut_error(error: str | None) -> str | None:
    return None if error is None else error[:MAX_ERROR]
