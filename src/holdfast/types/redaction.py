"""Values of secret fields that this process has seen, masked in every text that leaves it.

Values are added where records are written and read, and masked in every output: JSON, the command line's
screen, log lines, error messages. Short values would mask half of every text, so they are masked only in
their own field (`model.secrets`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Final, cast

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
MAX_SECRETS: Final = 8_000


class Secret:
    """Marks a secret field: `Annotated[str, Secret]`. The annotated type does not change."""


def is_secret_mark(extra: Any) -> bool:
    return extra is Secret or isinstance(extra, Secret)


class Redactor:
    """Masks the secrets that were added to it. It keeps the newest MAX_SECRETS forms of values."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        # The longest first: a secret may be a part of another.
        self._by_length: tuple[str, ...] = ()
        self._lock = Lock()

    def learn(self, value: Any) -> None:
        """Add every text and long number in a secret value."""
        fresh = [form for text in _texts(value) for form in _forms(text) if form not in self._values]
        if fresh:
            with self._lock:
                self._values.update(dict.fromkeys(fresh))
                for oldest in list(self._values)[: max(0, len(self._values) - MAX_SECRETS)]:
                    del self._values[oldest]
                self._by_length = tuple(sorted(self._values, key=len, reverse=True))

    def redact(self, text: str) -> str:
        """The text with every known secret in it masked."""
        for value in self._by_length:
            if value in text:
                text = text.replace(value, MASK)
        return text

    def redact_bytes(self, data: bytes) -> bytes:
        """The same for encoded text."""
        if not self._by_length:
            return data
        text = data.decode("utf-8", "surrogateescape")
        return self.redact(text).encode("utf-8", "surrogateescape")

    def is_known_secret(self, number: int) -> bool:
        # No secret has thousands of digits, and Python refuses to write such numbers out.
        return bool(self._values) and number.bit_length() < 10_000 and str(number) in self._values

    def forget(self) -> None:
        with self._lock:
            self._values.clear()
            self._by_length = ()


def _forms(text: str) -> Iterable[str]:
    """As it is, and as JSON and HTML write it. JSON twice: the arguments of a tool are JSON inside a text,
    which is written as JSON again."""
    # Imported with the first secret: its table of characters takes a millisecond of every start.
    from html import escape

    found = {text: None}
    for plain in (True, False):
        once = json.dumps(text, ensure_ascii=plain)[1:-1]
        found |= dict.fromkeys((once, json.dumps(once, ensure_ascii=plain)[1:-1]))
    for form in list(found):
        for quoted in (escape(form), escape(form, quote=False)):
            # The templates of pages write quotes in the second way.
            found |= dict.fromkeys((quoted, quoted.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")))
    return found


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        if len(value) >= MIN_SECRET_LENGTH:
            yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10 ** (MIN_SECRET_LENGTH - 1) and value.bit_length() < 4096:
            yield str(value)
    elif isinstance(value, (bytes, bytearray)):
        yield from _texts(bytes(value).decode("utf-8", "replace"))
    elif isinstance(value, Mapping):
        for part in cast("Mapping[Any, Any]", value).values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in cast("Iterable[Any]", value):
            yield from _texts(part)


redactor: Final = Redactor()
"""The redactor of this process."""
