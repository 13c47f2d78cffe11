"""Python text as a syntax tree, also while other threads parse."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable
from threading import RLock
from typing import Final, TypeVar

_Tree = TypeVar("_Tree")
# Two threads that disable and enable the collector at the same time could leave it disabled.
_LOCK: Final = RLock()


def parse_module(text: str) -> ast.Module:
    """Raises what `ast.parse` raises."""
    return _parse(lambda: ast.parse(text))


def parse_expression(text: str) -> ast.expr:
    """Raises what `ast.parse` raises with mode "eval"."""
    return _parse(lambda: ast.parse(text, mode="eval")).body


def _parse(parse: Callable[[], _Tree]) -> _Tree:
    """CPython before 3.11.8 counts the depth of all parses in one place and raises SystemError when two of
    them overlap (gh-106905), which happens only if the garbage collector calls Python code during one."""
    try:
        return parse()
    except SystemError:
        return _parse_without_collector(parse)


def _parse_without_collector(parse: Callable[[], _Tree]) -> _Tree:
    with _LOCK:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return parse()
        finally:
            if was_enabled:
                gc.enable()
