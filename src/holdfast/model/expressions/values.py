"""What equal, ordered, contained and true mean for the values that a state can hold.

A pair of values that Python refuses to compare is simply not equal; whether one without an order is false or
an error is the choice of the caller (`ORDER`, `STRICT_ORDER`). Only faults of comparison are caught, never
those of loading a lazy value, which must surface.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final, cast

from holdfast.errors import NotComparableError
from holdfast.model.expressions.visit_limit import CHARACTERS, visit

_INCOMPARABLE = (TypeError, ValueError, ArithmeticError, RecursionError)
_NUMBERS = (int, float, Decimal)
_SCALARS = frozenset({str, int, float, bool, type(None)})
_STEP = 1_000
_LONGEST = 100
"""A text of more characters spells no number that a person compares."""
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


def is_small(value: object) -> bool:
    """Whether a comparison with it visits next to nothing."""
    return type(value) in _SCALARS and (type(value) is not str or len(value) <= _STEP)


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


def clearly_equal(left: object, right: object) -> bool:
    """As `equal`, for conditions. Raises NotComparableError for a text that spells the number or boolean
    beside it, and for true beside 1: they are not equal, and the author of the condition means that they
    are."""
    if type(left) is type(right) and type(left) in _SCALARS:
        return left == right
    if equal(left, right):
        return True
    require_alike(left, right)
    return False


def clearly_strictly_equal(left: object, right: object) -> bool:
    if left is MISSING or right is MISSING:
        return False
    return clearly_equal(left, right)


def require_alike(left: object, right: object) -> None:
    """Raises NotComparableError where values that are not equal differ only in their types."""
    if _spells(left, right) or _spells(right, left):
        names = [_type_word(value) for value in (left, right)]
        raise NotComparableError(
            f"{names[0]} and {names[1]} have different types and can never be equal",
            hint="Compare two numbers, two texts or two booleans: declare the type of what is compared, or "
            "write the literal in its type.",
        )


def _spells(text: object, value: object) -> bool:
    """Whether the one has another type, and reads as the other."""
    if isinstance(value, bool):
        if isinstance(text, str):
            return len(text) < _LONGEST and text.strip().lower() == ("true" if value else "false")
        return _is_number(text) and text == value
    if not isinstance(text, str) or not _is_number(value) or len(text) >= _LONGEST:
        return False
    try:
        number = Decimal(float.__repr__(value)) if isinstance(value, float) else value
        return Decimal(text.strip()) == number
    except ArithmeticError:
        return False


def ordered(compare: Callable[[Any, Any], bool], *, strict: bool) -> Callable[[object, object], bool]:
    """One of Python's ordering operators. Values of different families have no order: false, or with `strict`
    NotComparableError."""

    def ordering(left: object, right: object) -> bool:
        if type(left) is type(right) and type(left) in _PLAINLY_ORDERED:
            return compare(left, right)
        if _is_number(left) and _is_number(right):
            pair = _aligned(left, right)
        elif _same_family(left, right):
            pair = (left, right)
        else:
            return _unordered(left, right) if strict else False
        try:
            return bool(compare(*pair))
        except _INCOMPARABLE:
            return _unordered(left, right) if strict else False

    return ordering


def _unordered(left: object, right: object) -> bool:
    # Only their types: the values may be secret.
    names = [_type_word(value) for value in (left, right)]
    raise NotComparableError(
        f"{names[0]} and {names[1]} have no order",
        hint="Compare two numbers, two texts or two dates; null is none of them.",
    )


def _type_word(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    words = ((int | float | Decimal, "a number"), (str, "a text"), (Mapping, "a mapping"))
    found = next((word for kind, word in words if isinstance(value, kind)), None)
    return found or ("a list" if _is_list(value) else f"a {type(value).__name__}")


_COMPARES: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
ORDER: Final = {sign: ordered(compare, strict=False) for sign, compare in _COMPARES.items()}
STRICT_ORDER: Final = {sign: ordered(compare, strict=True) for sign, compare in _COMPARES.items()}


def contains(container: object, item: object) -> bool:
    if isinstance(container, str):
        visit(len(container) // CHARACTERS)
        return isinstance(item, str) and item in container
    if not isinstance(container, (Mapping, Set)) and not _is_list(container):
        return False
    members = cast("Collection[object]", container)
    if type(item) is str and isinstance(container, (Mapping, Set)):
        return item in members
    return not _all_in_turn((not equal(item, member) for member in members), len(members))


def clearly_contains(container: object, item: object) -> bool:
    """As `contains`, for conditions: raises NotComparableError as `clearly_equal` does, if no member is
    equal."""
    if contains(container, item):
        return True
    if not isinstance(container, str) and (isinstance(container, (Mapping, Set)) or _is_list(container)):
        members = cast("Collection[object]", container)
        for member in members:
            require_alike(item, member)
    return False


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
    return len(left) == len(right) and _all_in_turn(map(_same, left, right), len(left))


def _same_entries(left: Mapping[object, object], right: Mapping[object, object]) -> bool:
    if len(left) != len(right):
        return False
    same = (key in right and _same(value, right[key]) for key, value in left.items())
    return _all_in_turn(same, len(left))


def _all_in_turn(holds: Iterator[bool], count: int) -> bool:
    """As `all`; what is visited until one does not hold is counted, in large steps."""
    if count <= _STEP:
        visit(count)
        return all(holds)
    for begun in range(0, count, _STEP):
        visit(min(_STEP, count - begun))
        if not all(islice(holds, _STEP)):
            return False
    return True


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
