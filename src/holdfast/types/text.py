"""Text from outside: checked where it is a name, made storable where it is only shown."""

from __future__ import annotations

from typing import Any

from holdfast.errors import InputError
from holdfast.types.redaction import redactor

MAX_TEXT = 10_000


def require_text(value: Any, what: str, *, hint: str | None = None) -> str:
    """Raises InputError for a value that is not text, or has half of a surrogate pair, which no store
    accepts."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, not {type(value).__name__}{_shown(value)}.", hint=hint)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what} has half of a surrogate pair at position {error.start}, which is not a valid "
                f"character.",
                hint="Decode it with errors='replace'.",
            ) from None
    return value


def one_line(value: Any, limit: int = MAX_TEXT) -> str:
    """The same on one line, without control characters."""
    return "".join(each if each.isprintable() else " " for each in clean_text(value, limit))


def clean_text(value: Any, limit: int = MAX_TEXT) -> str:
    """The text of any object, made storable: redacted, shortened, without invalid characters."""
    try:
        text = str(value)
    # User code: an error whose text ends the process must not do so when it is reported.
    except BaseException as error:
        text = f"(its text cannot be read: {type(error).__name__})"
    text = redactor.redact(text)
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text):,} characters)"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _shown(value: Any) -> str:
    return f" ({value!r})" if isinstance(value, (int, float)) else ""
