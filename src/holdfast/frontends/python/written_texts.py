"""Which texts the program itself contains: those in the source of a function's module, and in what the
function was made with.

A text that a function computes from its state, or looks up, is not among them: a caller may have given it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from types import CodeType
from typing import Any, Final, cast

import msgspec

from holdfast.frontends.python.code import innermost
from holdfast.model.syntax_tree import parse_module

_DEPTH: Final = 8
_MOST: Final = 20_000
_PLAIN: Final = (tuple, list, set, frozenset)


def written_texts(fn: Callable[..., Any]) -> frozenset[str]:
    """Of the source of its module and its own code, and of the values that were bound when it was made
    (defaults, variables of the functions around it, the object of a method)."""
    inner = innermost(fn)
    code: CodeType | None = getattr(inner, "__code__", None)
    found = set[str]() if code is None else {*_of_module(code.co_filename), *_of_code(code)}
    found.update(_Bound().texts(_bound_to(fn, inner)))
    # Functions of the program that say whom the handler asks.
    for other in getattr(inner, "written_in", ()):
        found |= written_texts(other)
    return frozenset(found)


@lru_cache(maxsize=256)
def _of_module(file: str) -> frozenset[str]:
    lines = linecache.getlines(file)
    try:
        tree = parse_module("".join(lines))
    except (SyntaxError, ValueError):
        return frozenset()
    found = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(text for text in found if isinstance(text, str))


def _of_code(code: CodeType) -> Iterator[str]:
    """For functions without source."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _of_code(each)
        elif isinstance(each, (tuple, frozenset)):
            yield from (text for text in cast("Iterable[Any]", each) if isinstance(text, str))
        elif isinstance(each, str):
            yield each


def _bound_to(fn: Any, inner: Any) -> Iterator[Any]:
    while isinstance(fn, partial):
        bound = cast("partial[Any]", fn)
        yield from (*bound.args, *bound.keywords.values())
        fn = bound.func
    yield getattr(fn, "__self__", None)
    for each in (fn, inner):
        yield from getattr(each, "__defaults__", None) or ()
        yield from (getattr(each, "__kwdefaults__", None) or {}).values()
        for cell in getattr(each, "__closure__", None) or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned yet
                continue


class _Bound:
    """Walks through plain values, records and functions. Not through modules: what they hold at run time may
    come from anywhere."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def texts(self, values: Iterable[Any], depth: int = 0) -> Iterator[str]:
        for value in values:
            if isinstance(value, str):
                yield value
            elif depth < _DEPTH and id(value) not in self._seen and len(self._seen) < _MOST:
                self._seen.add(id(value))
                yield from self.texts(_inside(value), depth + 1)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, _PLAIN):
        return list(cast("Iterable[Any]", value))
    # A document that a caller has sent is the caller's text.
    if isinstance(value, (type, type(ast), int, float, bytes)) or getattr(value, "submitted", False) is True:
        return ()
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.astuple(value)
    if callable(value) and hasattr(value, "__code__"):
        return list(_bound_to(value, value))
    return list(getattr(value, "__dict__", {}).values())
