"""How instances of registered types are converted to fields and back.

`take` gives a member's name (enums), a number (flags) or a dict of fields; `make` is its inverse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, Flag
from functools import cached_property
from typing import Any, Final

import msgspec

from holdfast.errors import ValueNotStorableError

Take = Callable[[Any], Any]
Make = Callable[[Any], Any]
Shape = tuple[Take, Make]

kind_of: Final[Callable[[object], type[object]]] = type
"""`type`, with a result type that checkers know."""

FIELDS_SET: Final = "*set"
"""Stored with a pydantic model's fields: which of them were given, not defaulted."""


def shape_of(cls: type[Any]) -> Shape:
    """Raises ValueNotStorableError for a type that is none of the kinds, or not frozen."""
    if issubclass(cls, Flag):
        return _take_value, lambda raw: _member(cls, lambda: cls(raw), raw)
    if issubclass(cls, Enum):
        return _take_name, lambda raw: _member(cls, lambda: cls[raw], raw)
    if issubclass(cls, msgspec.Struct):
        _require(cls, cls.__struct_config__.frozen, "class ...(msgspec.Struct, frozen=True)")
        return _struct(cls)
    if dataclasses.is_dataclass(cls):
        _require(cls, cls.__dataclass_params__.frozen, "@dataclass(frozen=True)")  # type: ignore[attr-defined]
        return _dataclass(cls)
    if hasattr(cls, "model_fields") and hasattr(cls, "model_construct"):
        _require(cls, bool(cls.model_config.get("frozen")), "model_config = ConfigDict(frozen=True)")  # type: ignore[attr-defined]
        return _pydantic(cls)
    raise ValueNotStorableError(
        f"{cls.__module__}.{cls.__qualname__} is no Enum, dataclass, msgspec Struct or pydantic model.",
        hint="Store plain data instead, or wrap it in a frozen dataclass.",
    )


def _require(cls: type, frozen: bool, how: str) -> None:
    if not frozen:
        raise ValueNotStorableError(
            f"{cls.__module__}.{cls.__qualname__} is not frozen, so a handler could change it in place.",
            hint=f"Declare it frozen: {how}.",
        )


def _take_name(value: Enum) -> str:
    return value.name


def _take_value(value: Flag) -> int:
    return value.value


def _member(cls: type, find: Callable[[], Any], raw: object) -> Any:
    try:
        return find()
    except (KeyError, ValueError):
        raise ValueNotStorableError(
            f"the record holds {cls.__qualname__}.{raw}, which the enum does not have any more.",
            hint="Add the member again (an alias of its successor is enough).",
        ) from None


def _check_fields(cls: type, known: Iterable[str], required: Iterable[str], raw: Mapping[str, Any]) -> None:
    """Unknown fields would be lost and missing ones invented: both are errors."""
    unknown = sorted(set(raw).difference(known))
    missing = sorted(set(required).difference(raw))
    if unknown or missing:
        what = f"the unknown fields {unknown}" if unknown else f"no value for the required fields {missing}"
        raise ValueNotStorableError(
            f"the record of a {cls.__qualname__} has {what}.",
            hint="Keep the field in the class, or give new fields a default."
            if unknown
            else "Give new fields a default, so that older records can be read.",
        )


def _struct(cls: type[msgspec.Struct]) -> Shape:
    infos = msgspec.structs.fields(cls)
    names = cls.__struct_fields__
    required = [f.name for f in infos if f.required]

    def take(value: Any) -> dict[str, Any]:
        return {name: getattr(value, name) for name in names}

    def make(raw: Mapping[str, Any]) -> Any:
        _check_fields(cls, names, required, raw)
        made = cls(**raw)
        # __post_init__ may have altered what was stored.
        for name, part in raw.items():
            if getattr(made, name) is not part:
                msgspec.structs.force_setattr(made, name, part)
        return made

    return take, make


def _dataclass(cls: Any) -> Shape:
    fields = dataclasses.fields(cls)
    names = tuple(f.name for f in fields)
    required = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    allowed = {*names, *_computed(cls)}

    def take(value: Any) -> dict[str, Any]:
        extra = getattr(value, "__dict__", {}).keys() - allowed
        if extra:
            raise ValueNotStorableError(
                f"a {cls.__qualname__} has attributes that are not fields: {sorted(extra)}.",
                hint="Declare them as fields (init=False will do), or compute them by a cached_property.",
            )
        return {name: getattr(value, name) for name in names}

    def make(raw: Mapping[str, Any]) -> Any:
        _check_fields(cls, names, required, raw)
        made = object.__new__(cls)
        for field in fields:
            # Not by the constructor: it would compute again what is already in the fields.
            object.__setattr__(made, field.name, raw[field.name] if field.name in raw else _default(field))
        return made

    return take, make


def _computed(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        yield from (name for name, what in vars(base).items() if isinstance(what, cached_property))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    assert field.default_factory is not dataclasses.MISSING  # checked as required
    return field.default_factory()


def _pydantic(cls: Any) -> Shape:
    infos: Mapping[str, Any] = cls.model_fields
    names = tuple(infos)
    required = [name for name, info in infos.items() if info.is_required()]

    def take(value: Any) -> dict[str, Any]:
        if value.__pydantic_extra__ or value.__pydantic_private__:
            raise ValueNotStorableError(
                f"a {cls.__qualname__} has extra or private attributes, which are not kept.",
                hint="Declare them as fields.",
            )
        parts = {name: getattr(value, name) for name in names}
        return {**parts, FIELDS_SET: tuple(sorted(value.model_fields_set))}

    def make(raw: Mapping[str, Any]) -> Any:
        parts = dict(raw)
        given = set(parts.pop(FIELDS_SET, parts))
        _check_fields(cls, names, required, parts)
        return cls.model_construct(given, **parts)

    return take, make
