"""What must not be shown: values of secret fields that this process has met, hidden where text leaves it.

Values are learned where records are written and read, and hidden at the ways out: JSON, the command line's
screen, log lines, the texts of errors. Short ones would hide half of every text; they are hidden at their own
place only (`model.secrets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Final, cast

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
MAX_SECRETS: Final = 2_000


class Secret:
    """The mark of a secret field: `Annotated[str, Secret]`. The type within stays what it is."""


def is_secret_mark(extra: Any) -> bool:
    return extra is Secret or isinstance(extra, Secret)


class Redactor:
    """Grows by what it is told; over a bound the oldest values go."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        # The longest first: a secret may be a part of another.
        self._by_length: tuple[str, ...] = ()
        self._lock = Lock()

    def learn(self, value: Any) -> None:
        """Every text and long number in a secret value."""
        fresh = [text for text in _texts(value) if text not in self._values]
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

    def is_known_secret(self, number: int) -> bool:
        # No secret has thousands of digits, and Python refuses to write such numbers out.
        return bool(self._values) and number.bit_length() < 10_000 and str(number) in self._values

    def forget(self) -> None:
        with self._lock:
            self._values.clear()
            self._by_length = ()


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
"""That of this process."""
