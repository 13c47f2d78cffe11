"""docs/reference/api.md: every public name with its signature and its promise."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import msgspec

import holdfast

TOP = """# The Python API

<!-- Made by tools/docs.py of the public names of the package. -->

What can be imported from `holdfast` and `holdfast.testing`. Everything else may change without a word.
Errors have [a page of their own](errors.md), settings [too](settings.md).

"""
MODULES = (
    "holdfast",
    "holdfast.testing.clock",
    "holdfast.testing.crashpoints",
    "holdfast.testing.human",
    "holdfast.testing.proxy",
)
ELSEWHERE = "an error: see [errors](errors.md)"


def page() -> str:
    return TOP + "\n".join(_module(name) for name in MODULES)


def _module(name: str) -> str:
    module = importlib.import_module(name)
    names = sorted(public(module), key=str.casefold)
    return f"## {name}\n\n" + "\n".join(_entry(one, getattr(module, one)) for one in names)


def public(module: ModuleType) -> list[str]:
    """What the module says is public; else what it defines without an underscore."""
    said = getattr(module, "__all__", None)
    if said is not None:
        return [one for one in said if not one.startswith("__")]
    own = {
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    }
    return [name for name in own if not name.startswith("_")]


def _entry(name: str, value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, Exception):
        said = f"{ELSEWHERE}\n" if issubclass(value, holdfast.HoldfastError) else f"{_doc(value)}\n"
        return f"### {name}\n\n{said}"
    if inspect.isclass(value):
        return "\n".join([f"### {name}\n", *_class(name, value)])
    if callable(value):
        return f"### {name}\n\n{_code(f'{name}{_signature(value)}')}\n{_doc(value)}\n"
    return f"### {name}\n\n{_doc(value) if isinstance(value, type) else _constant(value)}\n"


def _class(name: str, cls: type) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield f"{_doc(cls)}\n"
        yield ", ".join(f"`{member.value}`" for member in cls) + "\n"
        return
    fields = msgspec.structs.fields(cls) if issubclass(cls, msgspec.Struct) else ()
    if not fields:
        yield _code(f"{name}{_signature(cls)}")
    yield f"{_doc(cls)}\n"
    if fields:
        yield "\n".join(f"- `{field.name}`: `{_plain(field.type)}`" for field in fields) + "\n"
    for method, found in _methods(cls):
        text = f"{method}{_signature(found)}" if callable(found) else method
        yield f"**`{text}`**\n\n{_doc(found)}\n"


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public ones with something to say, in the order of their source."""
    for base in [one for one in cls.__mro__ if one.__module__.startswith("holdfast.")]:
        for name, found in vars(base).items():
            if name.startswith("_") or (name in vars(cls) and base is not cls):
                continue
            bare = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            if (inspect.isfunction(bare) or isinstance(bare, property)) and bare.__doc__:
                yield name, bare


def _signature(value: Any) -> str:
    try:
        return _tidy(str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"


def _tidy(text: str) -> str:
    text = re.sub(r"<object object at 0x[0-9a-f]+>|<[\w.]+ object at 0x[0-9a-f]+>", "...", text)
    text = re.sub(r"<(?:built-in )?function ([\w.]+)(?: at 0x[0-9a-f]+)?>", r"\1", text)
    text = re.sub(r"'([\w\[\]|., ]+)'", r"\1", text)
    return re.sub(r"\b(?:holdfast|collections|typing|types|datetime)(?:\.\w+)*\.(\w+)", r"\1", text)


def _plain(value: Any) -> str:
    return _tidy(value.__name__ if isinstance(value, type) and not hasattr(value, "__args__") else str(value))


def _doc(value: Any) -> str:
    doc = inspect.getdoc(value) or ""
    return re.sub(r"(?<=\S)\n(?=\S)", " ", doc).strip()


def _constant(value: Any) -> str:
    return f"`{_tidy(repr(value))}`"


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n"
