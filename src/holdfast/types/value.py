"""Values that the state may contain: frozen in memory, and the same after a round trip through any store.

Containers in the state are read-only. That lets a step hand them to a handler by reference, so that
its cost does not depend on the size of what it does not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NoReturn, cast
from uuid import UUID

import msgspec

from holdfast.errors import StateMutationError, ValueNotStorableError

MAX_DEPTH = 64
SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})
EXACT: Final = frozenset({Decimal, datetime, date, time, timedelta, UUID, complex})


def _refuse(*_args: object, **_kwargs: object) -> NoReturn:
    raise StateMutationError(
        "the state is read-only inside a node.",
        hint="Return the change instead, for instance `return {'items': [new_item]}` with an append reducer.",
    )


class FrozenDict(dict[Any, Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    update = setdefault = pop = popitem = clear = _refuse  # type: ignore[assignment]

    def __deepcopy__(self, _memo: dict[int, Any]) -> dict[Any, Any]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))


class FrozenList(list[Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # type: ignore[assignment]
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # type: ignore[assignment]

    def __deepcopy__(self, _memo: dict[int, Any]) -> list[Any]:
        return thaw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))


class BlobRef(msgspec.Struct, frozen=True):
    """Reference to a large value that is in the blob store under its content hash."""

    digest: bytes
    size: int


Adopt = Callable[[object], bool]


def refuse_instances(_value: object) -> bool:
    return False


def freeze(value: Any, adopt: Adopt = refuse_instances, where: str = "value", depth: int = 0) -> Any:
    """The read-only form of a value. Always makes new containers, so that none is shared with the caller.

    `adopt` says which instances of registered types (enums, frozen dataclasses, structs) may pass.
    Raises ValueNotStorableError for anything that could not be read back exactly.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in SCALARS or kind in EXACT:
        return value
    if depth > MAX_DEPTH:
        raise ValueNotStorableError(
            f"{where} is nested more than {MAX_DEPTH} levels deep (or contains itself).",
            hint="Store a flatter value, or put it into an artifact as text.",
        )
    deeper = depth + 1
    if kind is dict or kind is FrozenDict:
        return FrozenDict(
            {
                _key(k, adopt, where): freeze(v, adopt, f"{where}[{k!r}]", deeper)
                if type(v) not in SCALARS
                else v
                for k, v in value.items()
            }
        )
    if kind is list or kind is FrozenList:
        return FrozenList(
            [
                v if type(v) in SCALARS else freeze(v, adopt, f"{where}[{i}]", deeper)
                for i, v in enumerate(value)
            ]
        )
    if kind is tuple:
        return tuple(freeze(v, adopt, f"{where}[{i}]", deeper) for i, v in enumerate(value))
    if kind is set or kind is frozenset:
        return frozenset(freeze(v, adopt, where, deeper) for v in value)
    if kind is bytearray or kind is memoryview:
        return bytes(value)
    if kind is BlobRef or adopt(value):
        return value
    raise ValueNotStorableError(
        f"{where} is a {kind.__module__}.{kind.__qualname__}, which the store cannot read back exactly.",
        hint="Return plain data (text, numbers, lists, dicts, datetimes, Decimals, bytes), "
        "or declare the type in `types=[...]` of the flow: an Enum, a frozen dataclass or msgspec Struct.",
    )


def _key(key: Any, adopt: Adopt, where: str) -> Any:
    if type(key) in SCALARS:
        return key
    # Near the limit from the start: a key (a tuple, for example) may be only 8 levels deep.
    return freeze(key, adopt, f"a key of {where}", MAX_DEPTH - 8)


def thaw(value: Any) -> Any:
    """A mutable copy of a frozen value, all the way down."""
    if isinstance(value, Mapping):
        return {k: thaw(v) for k, v in value.items()}  # type: ignore[misc]
    if isinstance(value, list):
        return [thaw(v) for v in value]  # type: ignore[misc]
    if type(value) is tuple:
        return tuple(thaw(v) for v in value)  # type: ignore[misc]
    return value


def has_few_values(value: Any, most: int) -> bool:
    """Whether there are at most so many in it, at any depth. What is over the limit is not walked through."""
    rest: list[Any] = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, (dict, list, tuple)):
            inside = cast("Any", each)
            most -= len(inside)
            if most < 0:
                return False
            rest.extend(inside.values() if isinstance(each, dict) else inside)
    return True
