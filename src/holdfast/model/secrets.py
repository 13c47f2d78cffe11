"""Secret fields: nodes see them and the store keeps them, but they are never shown.

    class Order:
        card: Annotated[str, Secret]

A path names a field, starting at the state; `*` is any item of a list or value of a map: `cards.*.number`.
The paths are part of the graph, so that a reader needs no code to know what to hide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin, is_typeddict

import msgspec

from holdfast.model.annotations import field_types, is_pydantic
from holdfast.types.redaction import MASK, is_secret_mark, redactor
from holdfast.types.value import FrozenDict, FrozenList

Path = tuple[str, ...]
Paths = tuple[Path, ...]
ANY: Final = "*"


# ---------------------------------------------------------------------- declared


def secret_paths(annotation: Any, within: tuple[Any, ...] = ()) -> list[Path]:
    """The paths of secret fields in values of this type; `()` is the value itself."""
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        return [()] if any(map(is_secret_mark, extras)) else secret_paths(inner, within)
    if _has_fields(annotation):
        return [] if annotation in within else list(_of_fields(annotation, (*within, annotation)))
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        return []
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [(ANY, *path) for path in secret_paths(parts[1], within)] if len(parts) == 2 else []
    if isinstance(origin, type) and issubclass(origin, (Sequence, set, frozenset)):
        return [(ANY, *path) for part in parts for path in secret_paths(part, within)]
    return [path for part in parts for path in secret_paths(part, within)]


def _of_fields(cls: Any, within: tuple[Any, ...]) -> Iterator[Path]:
    for name, annotation in field_types(cls).items():
        for path in secret_paths(annotation, within):
            yield (name, *path)


def _has_fields(annotation: Any) -> bool:
    if not isinstance(annotation, type):
        return False
    return (
        is_typeddict(annotation)
        or dataclasses.is_dataclass(annotation)
        or issubclass(annotation, msgspec.Struct)
        or is_pydantic(annotation)
    )


def spelled(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted({".".join(path) for path in paths if path}))


def parsed(texts: Iterable[str]) -> Paths:
    return tuple(tuple(text.split(".")) for text in texts)


@lru_cache(maxsize=1024)
def secret_fields(cls: type) -> Paths:
    """The secret paths of a class whose instances are shown."""
    return tuple(_of_fields(cls, (cls,))) if _has_fields(cls) else ()


def _kind(value: Any) -> type:
    return value.__class__


# ---------------------------------------------------------------------- hiding and learning


def masked(value: Any, paths: Paths) -> Any:
    """A copy in which values at the paths are masked, counted from this value or from any map inside it."""
    if not paths:
        return value
    return _masked(value, paths, paths)


def hide_at(value: Any, path: Path, paths: Paths) -> Any:
    """The value at `path`: masked, or with the secrets inside it masked."""
    here = paths
    for part in path:
        here = tuple(rest[1:] for rest in here if rest and rest[0] in (part, ANY))
        if () in here:
            return None if value is None else MASK
    return _masked(value, (*here, *paths), paths)


def _masked(value: Any, here: Paths, all_: Paths) -> Any:
    """`here`: paths that lead on from this value."""
    if () in here:
        return None if value is None else MASK
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return FrozenDict({key: _masked(part, _after(str(key), here, all_), all_) for key, part in items})
    if isinstance(value, (list, tuple)):
        below = _after(ANY, here, ())
        parts = [_masked(part, (*below, *all_), all_) for part in cast("Iterable[Any]", value)]
        return tuple(parts) if isinstance(value, tuple) else FrozenList(parts)
    fields = _fields_of(value)
    return value if fields is None else _masked(fields, (*here, *secret_fields(_kind(value))), all_)


def _after(name: str, here: Paths, all_: Paths) -> Paths:
    on = tuple(path[1:] for path in here if path and path[0] in (name, ANY))
    return on if () in on else (*on, *all_)


def register_secrets(value: Any, paths: Paths, tenant: str) -> None:
    """Add the values at the paths, anywhere in the value, to the tenant's in the redactor."""
    if paths:
        _register_secrets(value, paths, paths, tenant)


def _register_secrets(value: Any, here: Paths, all_: Paths, tenant: str) -> None:
    if () in here:
        redactor.learn_for(tenant, value)
    elif isinstance(value, Mapping):
        for key, part in cast("Mapping[Any, Any]", value).items():
            _register_secrets(part, _after(str(key), here, all_), all_, tenant)
    elif isinstance(value, (list, tuple)):
        below = (*_after(ANY, here, ()), *all_)
        for part in cast("Iterable[Any]", value):
            _register_secrets(part, below, all_, tenant)
    elif (fields := _fields_of(value)) is not None:
        _register_secrets(fields, (*here, *secret_fields(_kind(value))), all_, tenant)


def _fields_of(value: Any) -> dict[str, Any] | None:
    """Of an instance of a type with fields."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return dict(cast("Iterable[tuple[str, Any]]", value)) if is_pydantic(type(value)) else None


def outgoing(value: Any, paths: Paths = ()) -> Any:
    """Plain data as it may leave the process: without what lies at the secret paths, and without every known
    secret in any text. Everything that leaves passes here, or through `redactor.redact` where it is text."""
    return redact_known_secrets(masked(value, paths) if paths else value)


def redact_known_secrets(value: Any) -> Any:
    """A copy of plain data in which every known secret is masked in every text that is a value."""
    if isinstance(value, str):
        return redactor.redact(value)
    if isinstance(value, Mapping):
        return {key: redact_known_secrets(part) for key, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [redact_known_secrets(part) for part in cast("Iterable[Any]", value)]
    return value
