"""Reads a state's annotations: which values a field accepts, its reducer, and the types that it names."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, cast, get_args, get_origin

import msgspec

from holdfast.model.reducer_marks import ReducerMark
from holdfast.types.redaction import is_secret_mark
from holdfast.types.value import SCALARS

Check = Callable[[Any], Any]
"""Returns the value as it is to be stored; raises msgspec.ValidationError."""

UNIONS: Final = (Union, types.UnionType)
_NONE: Final = type(None)
# A text is not bytes: reading it as base64 would change its meaning.
_NATIVE: Final = (bytes, bytearray)
_GROUPS: Final[tuple[type[Any], ...]] = (list, tuple, set, frozenset)


def field_types(cls: Any) -> dict[str, Any]:
    """Annotations with their extras. A class made in a function may name types that are local to it."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError:
        pass
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        try:
            return typing.get_type_hints(cls, localns=dict(frame.f_locals), include_extras=True)
        except NameError:
            frame = frame.f_back
    return dict.fromkeys(_own_annotations(cls), Any)


def _own_annotations(cls: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(inspect.get_annotations(base))
    return found


def split_annotation(annotation: Any) -> tuple[Any, ReducerMark | None]:
    """The type without its reducer and the mark of a secret. Other extras, such as msgspec.Meta, stay."""
    if get_origin(annotation) in (Required, NotRequired):
        return split_annotation(get_args(annotation)[0])
    if get_origin(annotation) is not Annotated:
        return annotation, None
    inner, *extras = get_args(annotation)
    marks = [extra for extra in extras if isinstance(extra, ReducerMark)]
    kept = [extra for extra in extras if not isinstance(extra, ReducerMark) and not is_secret_mark(extra)]
    bare, nested = split_annotation(inner)
    for extra in kept:
        bare = Annotated[bare, extra]
    return bare, marks[-1] if marks else nested


def plain_types(annotation: Any) -> frozenset[type]:
    """Scalar types that fit as they are, so that the common value needs no converting."""
    if annotation is Any or annotation is object:
        return SCALARS
    if annotation is None:
        return frozenset({_NONE})
    if get_origin(annotation) in UNIONS:
        return frozenset[type]().union(*(plain_types(part) for part in get_args(annotation)))
    return frozenset({annotation}) if annotation in _SIMPLE else frozenset()


_SIMPLE: Final = (str, int, float, bool, bytes, _NONE)


def checker(annotation: Any) -> Check | None:
    """The check of a field, compiled once; None if any value is accepted."""
    if annotation is Any or annotation is object:
        return None
    try:
        holder: Any = msgspec.defstruct("Holder", [("value", annotation)])
        msgspec.json.Decoder(holder)
    except TypeError:
        return None  # a union that msgspec cannot tell apart: freezing is the only check
    numbered = frozenset(filter(_is_numbered, named_types(annotation)))

    def check(value: Any) -> Any:
        given = _by_number(value, numbered) if numbered else value
        held = msgspec.convert({"value": given}, holder, builtin_types=_NATIVE, dec_hook=_instance)
        found: Any = held.value
        _require_whole(value, found)
        return found

    return check


def _is_numbered(cls: type) -> bool:
    """An enum with numeric values that is not a number type: msgspec reads its members by number only."""
    return issubclass(cls, Enum) and not issubclass(cls, int) and all(type(m.value) is int for m in cls)


def _by_number(value: Any, kinds: frozenset[type]) -> Any:
    if type(value) in kinds:
        return value.value
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {_by_number(key, kinds): _by_number(item, kinds) for key, item in pairs}
    group: Any = next((kind for kind in _GROUPS if isinstance(value, kind)), None)
    if group is None:
        return cast("Any", value)
    return group(_by_number(item, kinds) for item in cast("Iterable[Any]", value))


def _require_whole(given: Any, found: Any) -> None:
    """Converting must not lose anything: keys that a TypedDict does not have, digits of a Decimal."""
    if type(given) is Decimal and type(found) is float:
        raise msgspec.ValidationError("expected `float`, got `Decimal`, which has more digits")
    if isinstance(found, dict) and isinstance(given, dict):
        lost = cast("dict[Any, Any]", given).keys() - cast("dict[Any, Any]", found).keys()
        if lost:
            raise msgspec.ValidationError(f"unknown keys {', '.join(sorted(map(repr, lost)))}")


def _instance(kind: type, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise TypeError(f"expected `{kind.__name__}`, got `{type(value).__name__}`")


def item_type(annotation: Any) -> Any:
    """The item type of a list or tuple of this type."""
    for part in _members(annotation):
        if get_origin(part) in (list, tuple) and get_args(part):
            return get_args(part)[0]
    return Any


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in UNIONS else (annotation,)


def named_types(annotation: Any) -> Iterator[type]:
    """The classes that values of this annotation may have, which a store has to know by name."""
    seen: set[Any] = set()
    todo = [annotation]
    while todo:
        part = todo.pop()
        if isinstance(part, type) and is_record(part):
            if part not in seen:
                seen.add(part)
                yield part
                todo.extend(_parts(part))
        elif get_origin(part) is not Literal:
            todo.extend(get_args(part))
            origin = get_origin(part)
            if isinstance(origin, type) and is_record(origin):
                todo.append(origin)  # `Box[Address]`


def is_record(cls: Any) -> bool:
    """Whether a registry accepts it: an enum, a dataclass, a struct, a pydantic model."""
    return (
        issubclass(cls, (Enum, msgspec.Struct)) or dataclasses.is_dataclass(cls) or is_pydantic(cls)
    ) and get_origin(cls) is None


def is_pydantic(cls: Any) -> bool:
    return hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_fields")


def is_frozen(cls: Any) -> bool:
    if issubclass(cls, Enum):
        return True
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_config__.frozen
    if dataclasses.is_dataclass(cls):
        return bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    return bool(cls.model_config.get("frozen"))


def _parts(cls: Any) -> list[Any]:
    if issubclass(cls, Enum):
        return []
    return [split_annotation(annotation)[0] for annotation in field_types(cls).values()]


def type_text(annotation: Any, within: tuple[type, ...] = ()) -> str:
    """The same text for the same type in every process: it is part of the graph's fingerprint.

    Classes appear by name and content and never by module, because a script's own module is `__main__`
    in one process and a proper name in another.
    """
    if annotation is None or annotation is _NONE:
        return "None"
    if get_origin(annotation) in UNIONS:
        return " | ".join(sorted(type_text(part, within) for part in get_args(annotation)))
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        return f"Annotated[{type_text(inner, within)}, {', '.join(map(_extra_text, extras))}]"
    if get_origin(annotation) is not None:
        inside = ", ".join("..." if part is ... else type_text(part, within) for part in get_args(annotation))
        return f"{_name(get_origin(annotation))}[{inside}]"
    if isinstance(annotation, type) and is_record(annotation) and annotation not in within:
        return _name(annotation) + _content(annotation, (*within, annotation))
    return _name(annotation)


def _extra_text(extra: Any) -> str:
    if isinstance(extra, msgspec.Meta):
        return repr(extra)
    return "Secret" if is_secret_mark(extra) else type(extra).__name__


def _content(cls: Any, within: tuple[type, ...]) -> str:
    if issubclass(cls, Enum):
        return f"({', '.join(f'{name}={member.value!r}' for name, member in cls.__members__.items())})"
    parts = ", ".join(f"{name}: {type_text(part, within)}" for name, part in field_types(cls).items())
    return f"{{{parts}}}"


def _name(what: Any) -> str:
    return getattr(what, "__qualname__", None) or getattr(what, "__name__", None) or str(what)
