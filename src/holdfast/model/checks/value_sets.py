"""The set of values that an expression can take, as far as the graph and its code show it.

A set is over-approximated: what is not known is `AnyValue`, which may equal everything. So a comparison that
never holds between two sets never holds in a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from holdfast.model.checks.value_types import NUMBER, OTHER, TEXT, ValueType, family_of
from holdfast.model.expressions import Path
from holdfast.model.expressions.nodes import (
    AllOf,
    AnyOf,
    Choose,
    Comparison,
    Default,
    Exists,
    Items,
    Literal,
    Name,
    Node,
    Not,
)
from holdfast.model.expressions.values import equal

LITERAL, DECISION, INITIAL, OUTCOME, TYPE, TRUTH = (
    "literal",
    "decision",
    "initial",
    "outcome",
    "type",
    "truth",
)
PART_METHODS: Final = ("startswith", "endswith")
"""Methods of texts that code asks about a part."""
_MOST: Final = 100
_ORDERED: Final = frozenset({NUMBER, TEXT, OTHER})


class Constant(msgspec.Struct, frozen=True):
    """One value. `source`: a literal of the text, an option, the value before the first decision, an outcome,
    a value of a type, or true and false. `name`: what has it, for people."""

    value: Any
    source: str = LITERAL
    name: str = ""
    family: str = ""  # true and 1 are equal in Python, and two values here


class FixedList(msgspec.Struct, frozen=True):
    members: tuple[ValueSet, ...]


class FixedMap(msgspec.Struct, frozen=True):
    entries: tuple[tuple[Any, ValueSet], ...]


class AnyValue(msgspec.Struct, frozen=True):
    """`computed`: the decision that it is computed from, in a way that is not followed. `free`: the answer to
    a question without options."""

    families: frozenset[str] | None = None
    computed: str = ""
    free: bool = False


Alternative: TypeAlias = Constant | FixedList | FixedMap | AnyValue
ValueSet: TypeAlias = frozenset[Alternative]
Read: TypeAlias = Callable[[Path], ValueSet]

UNKNOWN: Final[ValueSet] = frozenset({AnyValue()})
FREE_ANSWER: Final[ValueSet] = frozenset({AnyValue(free=True)})


def constants(values: Iterable[Any], source: str = LITERAL, name: str = "") -> ValueSet:
    found = list(values)
    if any(isinstance(value, (list, dict, set)) or family_of(value) == OTHER for value in found):
        return UNKNOWN
    return frozenset(Constant(value, source, name, family_of(value)) for value in found)


def of_type(known: ValueType, name: str) -> ValueSet:
    if known.values is not None:
        return constants(known.values, TYPE, name)
    return frozenset({AnyValue(known.families)})


def union(sets: Iterable[ValueSet]) -> ValueSet:
    found = frozenset[Alternative](chain.from_iterable(sets))
    return found if len(found) <= _MOST else UNKNOWN


def values_of(node: Node, read: Read) -> ValueSet:
    match node:
        case Literal(value):
            return constants([value])
        case Name(path):
            return read(path)
        case Default(path, fallback):
            return union((read(path), values_of(fallback, read)))
        case Items(items):
            return frozenset({FixedList(tuple(values_of(item, read) for item in items))})
        case Choose(_, then, otherwise):
            return union((values_of(then, read), values_of(otherwise, read)))
        case Comparison(_, left, right):
            return truths(values_of(left, read), values_of(right, read))
        case Not() | AllOf() | AnyOf() | Exists():
            return truths()
        case _:
            assert_never(node)


def truths(*sides: ValueSet) -> ValueSet:
    """The result of a comparison of these; it stands for the decision if one of them does."""
    decided = next((each.name for side in sides for each in leaves(side) if each.source == DECISION), None)
    return constants([True, False], TRUTH if decided is None else DECISION, decided or "")


def leaves(values: ValueSet) -> Iterator[Constant]:
    """Every constant in it, those inside lists too."""
    for each in values:
        if isinstance(each, Constant):
            yield each
        elif isinstance(each, FixedList):
            for member in each.members:
                yield from leaves(member)
        elif isinstance(each, FixedMap):
            for _, value in each.entries:
                yield from leaves(value)


def is_decided(values: ValueSet) -> bool:
    """Whether a decision, or a copy of one, is among it."""
    return any(each.source == DECISION for each in leaves(values))


def can_equal(left: ValueSet, right: ValueSet) -> bool:
    return any(_can_equal(one, other) for one in left for other in right)


def _can_equal(one: Alternative, other: Alternative) -> bool:
    if isinstance(one, Constant) and isinstance(other, Constant):
        return equal(one.value, other.value)
    if isinstance(one, FixedList) and isinstance(other, FixedList):
        return len(one.members) == len(other.members) and all(map(can_equal, one.members, other.members))
    return bool(_families(one) & _families(other))


def can_have_part(method: str, whole: ValueSet, part: ValueSet) -> bool:
    return any(
        not isinstance(one, Constant)
        or not isinstance(other, Constant)
        or not isinstance(one.value, str)
        or not isinstance(other.value, str)
        or getattr(one.value, method)(other.value)
        for one in whole
        for other in part
    )


def can_be_ordered(left: ValueSet, right: ValueSet) -> bool:
    return any(_families(one) & _families(other) & _ORDERED for one in left for other in right)


_ALL: Final = frozenset({NUMBER, TEXT, "boolean", "null", OTHER})


def _families(one: Alternative) -> frozenset[str]:
    if isinstance(one, Constant):
        return frozenset({one.family or family_of(one.value)})
    if isinstance(one, (FixedList, FixedMap)):
        return frozenset({OTHER})
    return _ALL if one.families is None else one.families


def members(values: ValueSet) -> ValueSet:
    """What is in the lists among it."""
    return union(member for each in values if isinstance(each, FixedList) for member in each.members)


def computed_from(values: ValueSet) -> str:
    """The decision that one of these is computed from, if it is not known what the result can be."""
    return next((each.computed for each in values if isinstance(each, AnyValue) and each.computed), "")


def entries(values: ValueSet, key: ValueSet) -> ValueSet:
    """What the mappings among these have under a key."""
    found: list[ValueSet] = []
    for each in values:
        if not isinstance(each, FixedMap):
            return UNKNOWN
        known = [k.value for k in key if isinstance(k, Constant)] if all(map(_is_constant, key)) else None
        found += [value for name, value in each.entries if known is None or name in known]
    # A key that none of them has is an error of the code, and says nothing about values.
    return union(found) if found else UNKNOWN


def _is_constant(each: Alternative) -> bool:
    return isinstance(each, Constant)
