"""What equal, ordered, contained and true mean for the values that a state can hold.

Every function here is total: a pair of values that Python refuses to compare is simply not equal, not
ordered. Only faults of comparison are caught, never those of loading a lazy value, which must surface.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, cast

_INCOMPARABLE = (TypeError, ValueError, ArithmeticError, RecursionError)
_NUMBERS = (int, float, Decimal)
_SCALARS = frozenset({str, int, float, bool, type(None)})
_PLAINLY_ORDERED = frozenset({str, int, float})
_ORDERED_FAMILIES = (str, bytes, datetime, date, time, timedelta)


class Missing(enum.Enum):
    """The type of MISSING: an enum so that type checkers can narrow `value is MISSING`."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing.MISSING


def truthy(value: object) -> bool:
    """Python's truth, where a value that has none (it raises) counts as false."""
    try:
        return bool(value)
    except _INCOMPARABLE:
        return False


def equal(left: object, right: object) -> bool:
    if left is MISSING:
        return right is None
    if right is MISSING:
        return left is None
    return _same(left, right)


def strictly_equal(left: object, right: object) -> bool:
    if left is MISSING or right is MISSING:
        return False
    return _same(left, right)


def ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    """One of Python's ordering operators, false for values of different families."""

    def ordering(left: object, right: object) -> bool:
        if type(left) is type(right) and type(left) in _PLAINLY_ORDERED:
            return compare(left, right)
        if _is_number(left) and _is_number(right):
            pair = _aligned(left, right)
        elif _same_family(left, right):
            pair = (left, right)
        else:
            return False
        try:
            return bool(compare(*pair))
        except _INCOMPARABLE:
            return False

    return ordering


LESS: Final = ordered(operator.lt)
LESS_OR_EQUAL: Final = ordered(operator.le)
GREATER: Final = ordered(operator.gt)
GREATER_OR_EQUAL: Final = ordered(operator.ge)


def contains(container: object, item: object) -> bool:
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    if not isinstance(container, (Mapping, Set)) and not _is_list(container):
        return False
    members = cast("Collection[object]", container)
    if type(item) is str and isinstance(container, (Mapping, Set)):
        return item in members
    return any(equal(item, member) for member in members)


def _same(left: object, right: object) -> bool:
    if type(left) is type(right) and type(left) in _SCALARS:
        return left == right
    try:
        return _same_slowly(left, right)
    except _INCOMPARABLE:
        return False


def _same_slowly(left: object, right: object) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if _is_number(left) and _is_number(right):
        first, second = _aligned(left, right)
        return bool(first == second)
    if _is_list(left) and _is_list(right):
        return _same_items(cast("Sequence[object]", left), cast("Sequence[object]", right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _same_entries(cast("Mapping[object, object]", left), cast("Mapping[object, object]", right))
    return bool(left == right)


def _same_items(left: Sequence[object], right: Sequence[object]) -> bool:
    return len(left) == len(right) and all(map(_same, left, right))


def _same_entries(left: Mapping[object, object], right: Mapping[object, object]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and _same(value, right[key]) for key, value in left.items())


def _is_number(value: object) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    """Tuples count: a frozen input holds them where its author wrote a list."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Decimal('99.99') against the literal 99.99 must not differ in the 17th digit: people compare money."""
    if isinstance(left, Decimal) and isinstance(right, float):
        return left, Decimal(float.__repr__(right))
    if isinstance(left, float) and isinstance(right, Decimal):
        return Decimal(float.__repr__(left)), right
    return left, right


def _same_family(left: object, right: object) -> bool:
    for family in _ORDERED_FAMILIES:
        if isinstance(left, family):
            return isinstance(right, family)
    return False
