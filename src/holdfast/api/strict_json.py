"""JSON that a caller sent, decoded so that it has one meaning.

Decoders differ on an object that has a key twice: most take the last value, some the first. A proxy, a log or
a person could then approve another value than the one that is used, so such a text is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar, cast

import msgspec

from holdfast.api.problems import HttpError

T = TypeVar("T")


def decode_strictly(data: bytes | str, shape: type[T], what: str = "body") -> T:
    """Raises HttpError: 400 if it is no JSON, 422 if a key is repeated; msgspec.ValidationError for another
    shape; RecursionError."""
    try:
        found = msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError:
        # First what is ambiguous: which of the two values does not fit would be a guess.
        with suppress(ValueError, RecursionError):
            require_unique_keys(data, what)
        raise
    except (msgspec.DecodeError, UnicodeError) as error:
        raise HttpError(400, f"the {what} is not JSON: {_reason(error)}.", code="not_json") from error
    require_unique_keys(data, what)
    return found


def require_unique_keys(data: bytes | str, what: str = "body") -> None:
    """Of a valid JSON text. Raises HttpError."""
    try:
        # Numbers are not looked at: `int` refuses very long ones.
        json.loads(data, object_pairs_hook=_unique, parse_int=float)
    except _RepeatedKeyError:
        place = next(_repeated(json.loads(data, object_pairs_hook=_Pairs, parse_int=float), ""))
    else:
        return
    name = place.rpartition(".")[2]
    raise HttpError(
        422,
        f"the {what} has the key {name!r} more than once (at {place}).",
        code="repeated_key",
        hint="Send each key of an object once.",
        errors=[{"field": place, "code": "repeated", "message": f"The key {name!r} is repeated."}],
    )


class _RepeatedKeyError(Exception):
    pass


class _Pairs(list[tuple[str, Any]]):
    """An object with all its keys."""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs):
        raise _RepeatedKeyError


def _repeated(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, inner in value:
            below = f"{place}.{key}" if place else key
            if key in seen:
                yield below
            seen.add(key)
            yield from _repeated(inner, below)
    elif isinstance(value, list):
        for at, inner in enumerate(cast("list[Any]", value)):
            yield from _repeated(inner, f"{place}[{at}]")


def _reason(error: Exception) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
