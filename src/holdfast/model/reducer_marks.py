"""How a state type declares its reducers: `log: Annotated[list[str], append]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

CUSTOM: Final = "custom:"


class ReducerMark(msgspec.Struct, frozen=True):
    """A reducer's name; `fn` only for a custom one, whose result is stored as a `set`."""

    name: str
    fn: Callable[[Any, Any], Any] | None = None


append: Final = ReducerMark("append")
concat: Final = ReducerMark("concat")
merge: Final = ReducerMark("merge")
sum_: Final = ReducerMark("sum")
max_: Final = ReducerMark("max")
min_: Final = ReducerMark("min")
avg: Final = ReducerMark("avg")
last: Final = ReducerMark("last")
first: Final = ReducerMark("first")
longest: Final = ReducerMark("longest")


def reducer(fn: Callable[[Any, Any], Any]) -> ReducerMark:
    """A custom reducer: `fn(old, new)`, called only if the field already has a value."""
    return ReducerMark(CUSTOM + getattr(fn, "__qualname__", type(fn).__qualname__), fn)


def as_mark(given: ReducerMark | str | Callable[[Any, Any], Any]) -> ReducerMark:
    if isinstance(given, ReducerMark):
        return given
    return ReducerMark(given) if isinstance(given, str) else reducer(given)
