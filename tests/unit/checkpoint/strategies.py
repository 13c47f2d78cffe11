"""Frozen values of every kind that the state may hold, and a comparison that looks at types and bits."""

from __future__ import annotations

import dataclasses
import enum
import struct
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from hypothesis import strategies as st

from holdfast.checkpoint.registry import TypeRegistry
from holdfast.types.value import BlobRef, FrozenDict, FrozenList


class Colour(enum.Enum):
    red = 1
    green = "g"


class Level(enum.IntEnum):
    low = 1
    high = 2


class Rights(enum.Flag):
    read = 1
    write = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0


class Line(msgspec.Struct, frozen=True):
    start: Any
    end: Any = None


REGISTRY = TypeRegistry(Colour, Level, Rights, Point, Line)

ZONES = st.one_of(
    st.none(),
    st.sampled_from([ZoneInfo("Europe/Zurich"), ZoneInfo("America/New_York"), ZoneInfo("UTC"), UTC]),
    st.builds(
        timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)), st.text("abcZ+", min_size=1)
    ),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
)

HASHABLE_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**62, max_value=2**66),
    st.integers(min_value=-(2**66), max_value=-(2**62)),
    st.floats(),
    st.text(),
    st.binary(),
    st.complex_numbers(),
    # A signalling NaN cannot be hashed.
    st.decimals().filter(lambda d: not d.is_snan()),
    st.sampled_from([Decimal("-0"), Decimal("1.500"), Decimal("1E+400"), Decimal("NaN123")]),
    st.datetimes(timezones=ZONES),
    st.dates(),
    st.times(timezones=ZONES),
    st.timedeltas(),
    st.uuids(),
    st.builds(BlobRef, st.binary(min_size=32, max_size=32), st.integers(0, 2**40)),
    st.sampled_from([*Colour, *Level, Rights.read, Rights.read | Rights.write, Rights(0)]),
)

HASHABLE = st.recursive(
    HASHABLE_LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.frozensets(inner, max_size=4),
        st.builds(Point, inner, inner),
    ),
    max_leaves=6,
)

VALUES = st.recursive(
    st.one_of(HASHABLE_LEAVES, HASHABLE),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5).map(FrozenList),
        st.lists(inner, max_size=5).map(tuple),
        st.dictionaries(st.text(), inner, max_size=5).map(FrozenDict),
        st.dictionaries(HASHABLE, inner, max_size=5).map(FrozenDict),
        st.builds(Line, inner, inner),
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal, of equal type at every depth, floats to the bit, dicts in the same order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, frozenset):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    if isinstance(a, Point):
        return same((a.x, a.y), (b.x, b.y))
    if isinstance(a, Line):
        return same((a.start, a.end), (b.start, b.end))
    if hasattr(a, "tzinfo"):
        return repr(a) == repr(b) and type(a.tzinfo) is type(b.tzinfo) and a.fold == b.fold
    return bool(a == b)
