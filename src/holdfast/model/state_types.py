"""The kinds of types that can describe a state: how each is taken apart, built and compared.

A shape knows nothing of checks or reducers; it gives parts (fields) to the schema and builds what a
handler sees.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, is_typeddict

import msgspec

from holdfast.errors import StateError
from holdfast.model.annotations import Check, field_types, is_pydantic
from holdfast.types.value import FrozenDict

_ABSENT = object()
# By the `id` of a lazily built dataclass instance: the fields left out, and the function that loads them. Not
# stored in the instance, because `changed` would report such an attribute as set by the handler.
_LOADERS: dict[int, tuple[frozenset[str], Callable[[str], Any]]] = {}


class FieldDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    annotation: Any
    required: bool = False
    default: Callable[[], Any] | None = None
    check: Check | None = None


class Shape:
    """Any mapping: the state of a flow without a state type."""

    def __init__(self, cls: Any = None) -> None:
        self.cls = cls
        self.parts: tuple[FieldDeclaration, ...] = ()

    def take(self, given: Any) -> Mapping[str, Any] | None:
        """A mapping or an instance as field -> value; None for anything else."""
        return given if isinstance(given, Mapping) else None  # type: ignore[return-value]

    def build(self, scratch: dict[str, Any]) -> Any:
        return FrozenDict(scratch)

    def build_lazily(
        self, scratch: dict[str, Any], absent: frozenset[str], load: Callable[[str], Any]
    ) -> Any:
        """Like `build`, but these fields are loaded on first access. None if the type does not support
        that."""
        return LazyDict(scratch, absent, load)

    def changed(self, state: Any, scratch: dict[str, Any]) -> list[str]:
        """Names whose value is not the one that `build` put there. A FrozenDict refuses changes itself."""
        return []


class LazyDict(FrozenDict):
    """A state whose long lists are loaded on first access."""

    __slots__ = ("_absent", "_load")

    def __init__(self, scratch: dict[str, Any], absent: frozenset[str], load: Callable[[str], Any]) -> None:
        super().__init__(scratch)
        self._absent = set(absent)
        self._load = load

    def __missing__(self, key: str) -> Any:
        if key not in self._absent:
            raise KeyError(key)
        value = self._load(key)
        self._absent.discard(key)
        dict[Any, Any].__setitem__(self, key, value)
        return value

    def _all(self) -> LazyDict:
        for key in list(self._absent):
            self[key]
        return self

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 (it would call itself)

    def __contains__(self, key: object) -> bool:
        return key in self._absent or super().__contains__(key)

    def __iter__(self) -> Any:
        return super(LazyDict, self._all()).__iter__()

    def __len__(self) -> int:
        return super().__len__() + len(self._absent)

    def __eq__(self, other: object) -> bool:
        return super(LazyDict, self._all()).__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> Any:
        return super(LazyDict, self._all()).keys()

    def values(self) -> Any:
        return super(LazyDict, self._all()).values()

    def items(self) -> Any:
        return super(LazyDict, self._all()).items()

    def copy(self) -> dict[Any, Any]:
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __repr__(self) -> str:
        return super(LazyDict, self._all()).__repr__()


class MappingShape(Shape):
    """A TypedDict: known keys, any of which may be absent until a node sets it."""

    def __init__(self, cls: Any) -> None:
        super().__init__(cls)
        self.parts = tuple(
            FieldDeclaration(name=name, annotation=what) for name, what in field_types(cls).items()
        )


class DataclassShape(Shape):
    """Built without its constructor if that makes no difference, because that is faster."""

    def __init__(self, cls: Any) -> None:
        super().__init__(cls)
        hints = field_types(cls)
        self._fields = [field for field in dataclasses.fields(cls) if field.init]
        self._names = tuple(field.name for field in dataclasses.fields(cls))
        self.parts = tuple(
            FieldDeclaration(
                name=field.name,
                annotation=hints.get(field.name, Any),
                required=field.default is field.default_factory is dataclasses.MISSING,
                default=_dataclass_default(field),
            )
            for field in self._fields
        )
        self._direct = _builds_directly(cls, len(self._names) == len(self._fields))
        if self._direct:
            self.build = self._build_directly

    def take(self, given: Any) -> Mapping[str, Any] | None:
        if type(given) is self.cls:
            return {field.name: getattr(given, field.name) for field in self._fields}
        return super().take(given)

    def _build_directly(self, scratch: dict[str, Any]) -> Any:
        state = object.__new__(self.cls)
        state.__dict__.update(scratch)
        return state

    def build(self, scratch: dict[str, Any]) -> Any:
        return construct(self.cls, (field.name for field in self._fields), scratch)

    def build_lazily(
        self, scratch: dict[str, Any], absent: frozenset[str], load: Callable[[str], Any]
    ) -> Any:
        # A class-level default would be found before __getattr__ is called.
        if (
            not self._direct
            or any(hasattr(self.cls, name) for name in absent)
            or hasattr(self.cls, "__getattr__")
        ):
            return None
        state = object.__new__(self._lazy_cls)
        state.__dict__.update(scratch)
        _LOADERS[id(state)] = (absent, load)
        weakref.finalize(state, _LOADERS.pop, id(state), None)
        return state

    @cached_property
    def _lazy_cls(self) -> Any:
        """A subclass of the user's class that loads missing fields on first access."""

        def fetch(state: Any, name: str) -> Any:
            absent, load = _LOADERS.get(id(state), (frozenset[str](), None))
            if load is None or name not in absent:
                raise AttributeError(name)
            value = state.__dict__[name] = load(name)
            return value

        return type(self.cls.__name__, (self.cls,), {"__getattr__": fetch, "__module__": self.cls.__module__})

    def changed(self, state: Any, scratch: dict[str, Any]) -> list[str]:
        if not self._direct:
            return _unlike(state, self.build(scratch), self._names)
        held = state.__dict__
        lost = [name for name, value in scratch.items() if held.get(name, _ABSENT) is not value]
        return lost + [name for name in held if name not in scratch and not _is_cached(self.cls, name)]


class StructShape(Shape):
    def __init__(self, cls: Any) -> None:
        super().__init__(cls)
        hints = field_types(cls)
        self._names: tuple[str, ...] = cls.__struct_fields__
        self._known = frozenset(self._names)
        self.parts = tuple(
            FieldDeclaration(
                name=info.name,
                annotation=hints.get(info.name, Any),
                required=info.required,
                default=_struct_default(info),
            )
            for info in msgspec.structs.fields(cls)
        )

    def take(self, given: Any) -> Mapping[str, Any] | None:
        if type(given) is self.cls:
            return {name: getattr(given, name) for name in self._names}
        return super().take(given)

    def build(self, scratch: dict[str, Any]) -> Any:
        if scratch.keys() <= self._known:
            try:
                return self.cls(**scratch)
            except TypeError:
                pass  # a required field is missing: the slow path below names it
        return construct(self.cls, self._names, scratch)

    def build_lazily(
        self, scratch: dict[str, Any], absent: frozenset[str], load: Callable[[str], Any]
    ) -> Any:
        return None

    def changed(self, state: Any, scratch: dict[str, Any]) -> list[str]:
        return _unlike(state, self.build(scratch), self._names)


class PydanticShape(Shape):
    """Fields are checked one by one; the model's own validators run once, on the input."""

    def __init__(self, cls: Any) -> None:
        super().__init__(cls)
        hints = field_types(cls)
        self._names = tuple(cls.model_fields)
        self.parts = tuple(
            FieldDeclaration(
                name=name,
                annotation=hints.get(name, info.annotation),
                required=info.is_required(),
                default=None if info.is_required() else _pydantic_default(info),
                check=_pydantic_check(name, info),
            )
            for name, info in cls.model_fields.items()
        )

    def take(self, given: Any) -> Mapping[str, Any] | None:
        if type(given) is not self.cls:
            if not isinstance(given, Mapping):
                return None
            given = self._validated(given)
        return {name: getattr(given, name) for name in self._names}

    def _validated(self, given: Any) -> Any:
        unknown = sorted(str(name) for name in given if name not in self._names)
        if unknown and not any(info.alias for info in self.cls.model_fields.values()):
            raise StateError(f"the state has no fields {', '.join(map(repr, unknown))}.")
        try:
            return self.cls.model_validate(given)
        except ValueError as error:
            raise StateError(f"the input does not fit the state: {_pydantic_text(error)}.") from None

    def build(self, scratch: dict[str, Any]) -> Any:
        state = self.cls.__new__(self.cls)
        held = dict(scratch)
        object.__setattr__(state, "__dict__", held)
        object.__setattr__(state, "__pydantic_fields_set__", set(held))
        object.__setattr__(state, "__pydantic_extra__", None)
        object.__setattr__(state, "__pydantic_private__", None)
        return state

    def build_lazily(
        self, scratch: dict[str, Any], absent: frozenset[str], load: Callable[[str], Any]
    ) -> Any:
        return None

    def changed(self, state: Any, scratch: dict[str, Any]) -> list[str]:
        held = state.__dict__
        return [name for name in scratch if held.get(name, _ABSENT) is not scratch[name]]


def shape_of(cls: Any) -> Shape:
    """Raises StateError for a type that cannot describe a state."""
    if cls is None or cls is dict:
        return Shape()
    if is_typeddict(cls):
        return MappingShape(cls)
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        return StructShape(cls)
    if is_pydantic(cls):
        return PydanticShape(cls)
    if isinstance(cls, type) and dataclasses.is_dataclass(cls):
        return DataclassShape(cls)
    raise StateError(
        f"{_shown(cls)} cannot describe a state.",
        hint="Use a dataclass, a msgspec Struct, a TypedDict or a pydantic model.",
    )


def _shown(cls: Any) -> str:
    return getattr(cls, "__qualname__", None) or repr(cls)


def construct(cls: Any, names: Any, scratch: dict[str, Any]) -> Any:
    given = {name: scratch[name] for name in names if name in scratch}
    try:
        return cls(**given)
    except TypeError as error:
        raise StateError(f"the state cannot be built: {error}") from None


def _builds_directly(cls: Any, all_init: bool) -> bool:
    """Whether it has no slots, no __post_init__, and no custom __init__ or __new__."""
    code = getattr(cls.__init__, "__code__", None)
    return (
        all_init
        and code is not None
        and code.co_filename == "<string>"  # written by the dataclass decorator
        and not hasattr(cls, "__post_init__")
        and all("__slots__" not in base.__dict__ for base in cls.__mro__)
        and cls.__new__ is object.__new__
    )


def _dataclass_default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    if field.default is not dataclasses.MISSING:
        value = field.default
        return lambda: value
    return None


def _struct_default(info: msgspec.structs.FieldInfo) -> Callable[[], Any] | None:
    if info.required:
        return None
    if info.default_factory is not msgspec.NODEFAULT:
        return info.default_factory
    value = info.default
    return lambda: value


def _pydantic_default(info: Any) -> Callable[[], Any]:
    return lambda: info.get_default(call_default_factory=True)


def _pydantic_check(name: str, info: Any) -> Check:
    # Imported here because only a flow whose state is a pydantic model has the library.
    from pydantic import TypeAdapter

    adapt: Any = TypeAdapter
    adapter = adapt(Annotated[info.annotation, info])  # pyright: ignore[reportInvalidTypeForm]

    def check(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValueError as error:
            raise msgspec.ValidationError(_pydantic_text(error)) from None

    return check


def _pydantic_text(error: Any) -> str:
    parts = getattr(error, "errors", None)
    if parts is None:
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, part['loc']))}: {part['msg']}" if part["loc"] else part["msg"]
        for part in parts()
    )


def _unlike(state: Any, twin: Any, names: tuple[str, ...]) -> list[str]:
    changed: list[str] = []
    for name in names:
        now, before = getattr(state, name, _ABSENT), getattr(twin, name, _ABSENT)
        if now is not before and not (type(now) is type(before) and now == before):
            changed.append(name)
    return changed


def _is_cached(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), cached_property)
