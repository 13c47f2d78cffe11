"""Settings that a client read and sends back: a mask in them must not take the place of the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from holdfast.errors import InputError
from holdfast.types.redaction import MASK, redactor


def require_unmasked(given: Any, stored: Any) -> None:
    """`stored`: what the client may have read, None: nothing. Raises InputError for a text that is what the
    client was shown instead of a stored one with a secret in it."""
    if stored is None:
        return
    hidden = {
        redactor.redact(text) for _, text in _texts(_plain(stored), "") if redactor.redact(text) != text
    }
    for place, text in _texts(_plain(given), "") if hidden else ():
        if text in hidden:
            raise InputError(
                f"{place or 'the value'} has {MASK!r} in place of a secret, which would be lost.",
                hint="Send the value itself.",
            )


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=str)


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            yield from _texts(each, f"{place}.{key}" if place else key)
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _texts(each, f"{place}[{index}]")
