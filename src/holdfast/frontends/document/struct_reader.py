"""Reads plain data into structs and reports every problem with its path, not only the first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, EnumMeta
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from holdfast.frontends.document.problem import Path, ProblemReport
from holdfast.types.text import clean_text

T = TypeVar("T", bound=msgspec.Struct)

BAD: Final = object()
"""The value could not be read; that is reported."""

_PLACE: Final = re.compile(r" - at `(?:key in )?\$?(.*)`$")
_KINDS: Final = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false",
    "array": "a list", "object": "a mapping", "null": "null",
}  # fmt: skip


_SHOWN: Final[tuple[tuple[type, str], ...]] = (
    (str, "text"), (bool, "true or false"), (int, "a number"), (float, "a number"), (list, "a list"),
)  # fmt: skip


class StructReader:
    """`about`: the node or edge that problems are reported for. `broken`: the paths of what could not be
    read, each reported; a stand-in is in its place, so that one problem does not hide the others."""

    def __init__(self, report: ProblemReport, **about: Any) -> None:
        self.report = report
        self.about = about
        self.broken: list[Path] = []

    def read(self, kind: type[T], given: Any, path: Path) -> T | None:
        """None where it is no mapping, which is reported."""
        if not isinstance(given, dict):
            self._wrong(path, "type", f"it is {_shown(given)}, not a mapping", "write keys and values")
            return None
        data = cast("dict[str, Any]", given)
        self._unknown(kind, data, path)
        values: dict[str, Any] = {}
        for name, field in _fields(kind).items():
            found = BAD
            if name in data:
                found = self.value(field.type, data[name], (*path, name))
            elif field.required:
                self._wrong((*path, name), "required", f"{name!r} is missing", f"add {name!r}")
            else:
                continue
            if found is not BAD:
                values[field.name] = found
            elif field.required:
                values[field.name] = _stand_in(field.type, data.get(name))
        return kind(**values)

    def value(self, kind: Any, given: Any, path: Path) -> Any:
        """One value of any type; BAD where nothing of it could be read."""
        inner = _struct_in(kind)
        origin = get_origin(inner)
        if _is_struct(inner) and given is not None:
            found = self.read(inner, given, path)
            return BAD if found is None else found
        if origin is tuple and isinstance(given, list):
            return self._items(kind, get_args(inner)[0], cast("list[Any]", given), path)
        if origin is dict and isinstance(given, dict) and _struct_in(get_args(inner)[1]) is not Any:
            return self._entries(get_args(inner)[1], cast("dict[str, Any]", given), path)
        try:
            return msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            self._misfit(path, given, str(error), kind)
            return BAD

    def _items(self, whole: Any, kind: Any, given: list[Any], path: Path) -> Any:
        least = next((meta.min_length for meta in getattr(whole, "__metadata__", ()) if meta.min_length), 0)
        if len(given) < least:
            self._wrong(path, "type", f"it has {len(given)} items", f"give at least {least}")
        found = [self.value(kind, each, (*path, index)) for index, each in enumerate(given)]
        return tuple(each for each in found if each is not BAD)

    def _entries(self, kind: Any, given: dict[str, Any], path: Path) -> Any:
        found = {name: self.value(kind, each, (*path, name)) for name, each in given.items()}
        return {name: each for name, each in found.items() if each is not BAD}

    def _unknown(self, kind: type[msgspec.Struct], data: Mapping[str, Any], path: Path) -> None:
        if not kind.__struct_config__.forbid_unknown_fields:
            return
        known = list(_fields(kind))
        for name in data:
            if name not in known:
                fix = self.report.near(name, known) or f"use one of {', '.join(known)}, or remove it"
                message = f"the key {clean_text(name, 80)!r} is not known here"
                self._wrong((*path, name), "key-unknown", message, fix, on_key=True)

    def _misfit(self, path: Path, given: Any, text: str, kind: Any) -> None:
        place = _PLACE.search(text)
        if place is not None:
            text = text[: place.start()]
            for part in re.findall(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)", place[1]):
                step: str | int = int(part[0]) if part[0].isdigit() else part[1]
                if step == "":
                    break
                path, kind = (*path, step), _kind_at(kind, step)
        if "matching regex" in text:
            text = f"{clean_text(repr(given), 80)} is not allowed here"
        else:
            text = _message(text)
        self._wrong(
            path,
            "type",
            text,
            (_choices(kind) and _advice(kind, text)) or _description(kind) or _advice(kind, text),
        )

    def _wrong(self, path: Path, rule: str, message: str, fix: str, *, on_key: bool = False) -> None:
        self.broken.append(path)
        self.report.error(path, rule, message, fix, on_key=on_key, **self.about)


@lru_cache(maxsize=256)
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """By the name that documents use."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


_LONGEST: Final = 200
"""Characters of a text that stands for itself although it does not fit: others may refer to it."""


def _stand_in(kind: Any, given: Any) -> Any:
    """A value of a required field that could not be read."""
    while hasattr(kind, "__metadata__"):
        kind = get_args(kind)[0]
    if kind is str and isinstance(given, str) and len(given) <= _LONGEST:
        return given
    plain: dict[Any, Any] = {str: "", int: 0, dict: {}, tuple: ()}
    return plain.get(get_origin(kind) or kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@lru_cache(maxsize=1024)
def _struct_in(kind: Any) -> Any:
    """The struct, or collection of structs, that a type is, without None and annotations; else Any."""
    if _is_struct(kind):
        return kind
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return kind if _struct_in(args[0]) is not Any else Any
    if origin is dict:
        return kind if _struct_in(args[1]) is not Any else Any
    if hasattr(kind, "__metadata__"):
        return _struct_in(args[0])
    # A union with a single struct in it: None and plain texts beside it are left to msgspec.
    found = [_struct_in(each) for each in args if _struct_in(each) is not Any]
    plain = [each for each in args if each is not type(None) and _struct_in(each) is Any]
    return found[0] if len(found) == 1 and not plain else Any


def _description(kind: Any) -> str:
    """What values of the type look like. What a field is for, an annotation around a type with None or of a
    flag, does not help with a value that is wrong."""
    if get_origin(kind) in (dict, tuple, list):
        return ""  # the annotation is that of its values
    inside = next((text for each in get_args(kind) if (text := _description(each))), "")
    metas = [meta.description for meta in getattr(kind, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    text = next((each for each in metas if each), "")
    if inside or not text or kind.__origin__ is bool or type(None) in get_args(kind.__origin__):
        return inside
    return f"write {text[0].lower()}{text[1:].rstrip('.')}"


def _kind_at(kind: Any, step: str | int) -> Any:
    """The type of what a value of this type has at a key or a place; Any if that is not known."""
    if _is_struct(kind):
        field = _fields(kind).get(str(step))
        return Any if field is None else field.type
    origin, args = get_origin(kind), get_args(kind)
    if origin in (tuple, list, dict):
        return args[1] if origin is dict else args[0]
    return next((found for each in args if (found := _kind_at(each, step)) is not Any), Any)


def _advice(kind: Any, text: str) -> str:
    choices = _choices(kind)
    others = [each for each in get_args(kind) if each is not type(None) and not _choices(each)]
    # Texts that it may be, and numbers or other data beside them.
    if choices and others and text.startswith("expected "):
        return f"{choices}, or {_wanted(text)}"
    return choices or _wanted(text)


def _choices(kind: Any) -> str:
    """Of a value that is one of a few."""
    if isinstance(kind, EnumMeta):
        return f"use one of {', '.join(str(each.value) for each in cast('type[Enum]', kind))}"
    if get_origin(kind) is Literal:
        return f"use one of {', '.join(map(str, get_args(kind)))}"
    return next((found for each in get_args(kind) if (found := _choices(each))), "")


_OTHER_WORDS: Final = (
    (re.compile(r"Invalid enum value (.*)"), r"\1 is not one of the allowed values"),
    (re.compile(r"Object contains unknown field `(.*)`"), r"the key '\1' is not known here"),
    (re.compile(r"Object missing required field `(.*)`"), r"'\1' is missing"),
)


def _message(text: str) -> str:
    """msgspec's message in the words of documents."""
    found = re.match(r"Expected `(.+?)`(.*?)(?:, got `(.+)`)?$", text)
    if found is None:
        for words, said in _OTHER_WORDS:
            if (match := words.fullmatch(text)) is not None:
                return match.expand(said)
        return text[:1].lower() + text[1:]
    wanted = " or ".join(_KINDS.get(part.strip(), part.strip()) for part in found[1].split("|"))
    given = f", found {_KINDS.get(found[3], found[3])}" if found[3] else ""
    return f"expected {wanted}{found[2]}{given}"


def _wanted(message: str) -> str:
    """The advice in it."""
    if message.startswith("expected "):
        return f"write {message.removeprefix('expected ').partition(', found')[0]}"
    return "docs/reference/node-types.md lists what it may be"


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    for kind, name in _SHOWN:
        if isinstance(value, kind):
            return name
    return "no such value"
