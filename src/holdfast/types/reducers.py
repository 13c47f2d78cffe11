"""Built-in reducers: how an update is combined with the present value. Their meaning never changes.

A reducer is called only when the key already has a value; the first write sets it. `avg` is a true
running mean: the sum and the count are stored beside the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import StateError
from holdfast.types.value import FrozenDict, FrozenList

Reducer = Callable[[Any, Any], Any]


def _concat(old: Any, new: Any) -> Any:
    if isinstance(old, list):
        return FrozenList([*old, *_items(new)])
    if isinstance(old, (str, bytes)) and type(old) is type(new):
        return old + new  # type: ignore[operator]
    if isinstance(old, tuple):
        return (*old, *_items(new))
    raise StateError(f"concat cannot add a {type(new).__name__} to a {type(old).__name__}")


def _items(new: Any) -> Any:
    return new if isinstance(new, (list, tuple)) else (new,)  # pyright: ignore[reportUnknownVariableType]


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        merged: dict[Any, Any] = dict(old)  # type: ignore[arg-type]
        for key, value in new.items():  # type: ignore[misc]
            merged[key] = _merge(merged[key], value) if key in merged else value
        return FrozenDict(merged)
    return new


def _size(value: Any) -> int:
    if isinstance(value, (list, tuple, str, bytes, dict, frozenset)):
        return len(value)  # pyright: ignore[reportUnknownArgumentType]
    return len(str(value))


def _longest(old: Any, new: Any) -> Any:
    return new if _size(new) > _size(old) else old


def _last(_old: Any, new: Any) -> Any:
    return new


def _first(old: Any, _new: Any) -> Any:
    return old


def _sum(old: Any, new: Any) -> Any:
    return old + new


def _max(old: Any, new: Any) -> Any:
    return new if new > old else old


def _min(old: Any, new: Any) -> Any:
    return new if new < old else old


REDUCERS: dict[str, Reducer] = {
    "append": _concat,
    "concat": _concat,
    "merge": _merge,
    "sum": _sum,
    "max": _max,
    "min": _min,
    "last": _last,
    "first": _first,
    "longest": _longest,
}
GROWS = frozenset({"append", "concat"})
FIELD_REDUCERS = frozenset(REDUCERS) - {"set", "delete"} | {"avg"}
"""Those that a field can be declared with."""


def reduce(name: str, old: Any, new: Any) -> Any:
    """Combine `new` with the present value. Raises StateError if the two do not fit."""
    try:
        return REDUCERS[name](old, new)
    except TypeError:
        raise StateError(
            f"the reducer {name!r} cannot combine {type(old).__name__} and {type(new).__name__}"
        ) from None
