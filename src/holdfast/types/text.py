"""Text from outside: checked where it is a name, made storable where it is only shown."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from holdfast.errors import InputError
from holdfast.types.redaction import redactor

MAX_TEXT = 10_000
_HEX: Final = "[0-9A-Fa-f]{2}"
# Every escape is consumed, so that the second half of `\\` begins none.
_ESCAPE: Final = re.compile(
    rf"\\(?:u[Dd][89ABab]{_HEX}\\u[Dd][C-Fc-f]{_HEX}|(u[Dd][89A-Fa-f]{_HEX})|.)", re.DOTALL
)


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


def require_length(given: str, what: str, longest: int) -> str:
    """Raises InputError for text that is empty, longer, or has NUL."""
    require_text(given, what)
    if not 0 < len(given) <= longest or "\0" in given:
        raise InputError(f"{what} must have 1 to {longest} characters.")
    return given


def decode_json(text: str) -> Any:
    """The value of a JSON text from another program. Half of a surrogate pair, which programs write that cut
    a text between two UTF-16 units, becomes U+FFFD. Raises msgspec.DecodeError."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        whole = _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text)
        if whole == text:
            raise
        return msgspec.json.decode(whole)


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
