"""What an annotation says about values: their families, their possible values, their parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin, is_typeddict

import msgspec

from holdfast.model.annotations import UNIONS, field_types, is_pydantic, split_annotation

NUMBER, TEXT, BOOLEAN, NULL, OTHER = "number", "text", "boolean", "null", "other"
_FAMILIES: Final[tuple[tuple[Any, str], ...]] = (
    (bool, BOOLEAN),
    ((int, float, Decimal), NUMBER),
    (str, TEXT),
    (type(None), NULL),
)
_OPAQUE: Final = (date, time, timedelta, bytes)


class ValueType(msgspec.Struct, frozen=True):
    """`families`: None if any value is possible. `values`: every possible value, where they are few. `whole`:
    its numbers are integers."""

    families: frozenset[str] | None = None
    values: tuple[Any, ...] | None = None
    whole: bool = False


ANY: Final = ValueType()


def family_of(value: object) -> str:
    return next((name for kind, name in _FAMILIES if isinstance(value, kind)), OTHER)


def members_of(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, without extras."""
    bare = split_annotation(annotation)[0]
    while (inner := _meant(bare)) is not None:
        bare = inner
    if get_origin(bare) in UNIONS:
        return tuple(member for part in get_args(bare) for member in members_of(part))
    return (bare,)


def _meant(annotation: Any) -> Any:
    """What another name, a NewType or extras stand for; None if it is a type itself."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0]
    if isinstance(annotation, NewType):
        return annotation.__supertype__
    if isinstance(annotation, TypeVar):
        return Any if annotation.__bound__ is None else annotation.__bound__
    # `type X = ...` of Python 3.12
    return annotation.__value__ if type(annotation).__name__ == "TypeAliasType" else None


def type_of(annotation: Any) -> ValueType:
    found = [_single(member) for member in members_of(annotation)]
    if any(one.families is None for one in found):
        return ANY
    families = frozenset[str]().union(*(one.families or () for one in found))
    values: tuple[Any, ...] | None = ()
    for one in found:
        values = None if values is None or one.values is None else (*values, *one.values)
    return ValueType(families, values, all(one.whole for one in found if NUMBER in (one.families or ())))


def _single(member: Any) -> ValueType:
    if member is None or member is type(None):
        return ValueType(frozenset({NULL}), (None,))
    if get_origin(member) is Literal:
        return _of_values(get_args(member))
    if not isinstance(member, type):
        return ANY if get_origin(member) is None else ValueType(frozenset({OTHER}))
    if member is bool:
        return ValueType(frozenset({BOOLEAN}), (True, False))
    if issubclass(member, Enum):
        # Only members that are texts or numbers themselves equal one.
        plain = [each.value for each in member] if issubclass(member, (str, int)) else None
        if plain is not None and issubclass(member, Flag):
            # Any of its members together are a value, too.
            return ValueType(frozenset({NUMBER}), None, True)
        return ValueType(frozenset({OTHER})) if plain is None else _of_values(tuple(plain))
    family = next((name for kind, name in _FAMILIES if issubclass(member, kind)), None)
    if family is None:
        known = member in _OPAQUE or bool(fields_of_type(member)) or issubclass(member, (Mapping, Sequence))
        return ValueType(frozenset({OTHER})) if known else ANY
    return ValueType(frozenset({family}), None, member is int)


def _of_values(values: tuple[Any, ...]) -> ValueType:
    return ValueType(frozenset(map(family_of, values)), values, True)


def fields_of_type(kind: Any) -> dict[str, Any] | None:
    """The fields of a record type or a TypedDict; None if it has no declared fields."""
    if is_typeddict(kind) or (isinstance(kind, type) and _is_record(kind)):
        return field_types(kind)
    origin = get_origin(kind)
    if isinstance(origin, type) and (is_typeddict(origin) or _is_record(origin)):
        given = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
        return {name: _filled(annotation, given) for name, annotation in field_types(origin).items()}
    return None


def _filled(annotation: Any, given: Mapping[Any, Any]) -> Any:
    """With the arguments of a generic type in place of its variables."""
    if isinstance(annotation, TypeVar):
        return given.get(annotation, Any)
    variables = getattr(annotation, "__parameters__", ())
    return annotation[tuple(given.get(each, Any) for each in variables)] if variables else annotation


def _is_record(kind: type[Any]) -> bool:
    return dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_pydantic(kind)


def part_of(annotation: Any, part: str) -> tuple[bool, Any]:
    """(whether a value of this type can have that part, the part's annotation; Any if nothing is known)."""
    found: list[Any] = []
    for member in members_of(annotation):
        known, inner = _part_of_member(member, part)
        if known:
            found.append(inner)
    if not found:
        return False, Any
    return True, found[0] if len(found) == 1 else Union[tuple(found)]  # noqa: UP007


def _part_of_member(member: Any, part: str) -> tuple[bool, Any]:
    fields = fields_of_type(member)
    if fields is not None:
        return part in fields, fields.get(part, Any)
    origin, inside = get_origin(member), get_args(member)
    if origin is Literal or member is None:
        return False, Any
    kind = origin or member
    if not isinstance(kind, type):
        return True, Any
    if issubclass(kind, Mapping):
        return True, inside[1] if len(inside) == 2 else Any
    if issubclass(kind, Sequence) and not issubclass(kind, (str, bytes)):
        items = [item for item in inside if item is not ...]
        if issubclass(kind, tuple) and items and ... not in inside and part.isdigit():
            return int(part) < len(items), items[int(part)] if int(part) < len(items) else Any
        return part.isdigit(), items[0] if len(items) == 1 or ... in inside else Any
    simple = issubclass(kind, (str, bytes, int, float, Decimal, Enum, *_OPAQUE)) or kind is type(None)
    return not simple, Any
