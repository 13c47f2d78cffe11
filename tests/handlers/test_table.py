"""The table of user callables is complete: a new one fails here until it is in the matrix, and code that
calls one without the boundary fails too."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_overloads

import pytest

import holdfast
from tests.handlers.callables import BOTH, DECLARED, PLAIN

ROOT = Path(holdfast.__file__).parent
# The attributes in which functions of users are kept, called or handed to a thread.
DIRECT = re.compile(
    r"(?:(?:\w+\.)+(?:fn|_fn|custom|_callback)|handler\.probe|self\.when|judge\.judge)\("
    r"|(?:to|\bin)_thread\(\s*[\w.]*(?:fn|_fn|custom|_callback|probe|when|judge)\b"
)
# Where a direct call is right.
FRAMES = {
    "runs/driver/handler_call.py": "the boundary of nodes",
    "runs/driver/handler_result.py": "called inside the boundary of nodes",
    "runs/node_process/child.py": "a process of its own",
    "frontends/python/handle.py": "a node that its author calls like a function",
    "agents/tools.py": "a tool that its author calls like a function",
    "app/effect_function.py": "the handler of a node, called inside its boundary",
    "attractor/backends/function.py": "called by `call_backend`, which has the boundary",
}


@pytest.mark.covers("SAFE-HANDLER-01")
def test_every_callable_of_the_public_api_is_in_the_table() -> None:
    found = set(public_callables())
    assert found - DECLARED.keys() == set(), "add it to DECLARED, with a kind of the matrix"
    assert DECLARED.keys() - found == set(), "no longer there"


@pytest.mark.covers("SAFE-HANDLER-01")
def test_every_kind_of_the_table_is_in_the_matrix() -> None:
    declared = {kind for kinds in DECLARED.values() if not isinstance(kinds, str) for kind in kinds}
    assert declared == {*BOTH, *PLAIN}


@pytest.mark.covers("SAFE-HANDLER-01")
def test_no_module_calls_a_users_function_without_the_boundary() -> None:
    found = {
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if DIRECT.search(path.read_text())
    }
    assert found == FRAMES.keys()


@pytest.mark.parametrize("text", ["tool.fn(1)", "await asyncio.to_thread(tool.fn)", "field.custom(a, b)"])
def test_a_direct_call_is_found(text: str) -> None:
    assert DIRECT.search(text)


def public_callables() -> Iterator[str]:
    for name in holdfast.__all__:
        found = getattr(holdfast, name)
        if inspect.isclass(found):
            yield from _of_class(found)
        elif inspect.isfunction(found):
            yield from _of_function(found)


def _of_class(found: type) -> Iterator[str]:
    for name in dir(found):
        method: Any = inspect.getattr_static(found, name)
        method = getattr(method, "__func__", method)
        ours = inspect.isfunction(method) and method.__module__.startswith("holdfast")
        if ours and (name == "__init__" or not name.startswith("_")):
            yield from _of_function(method)
    if hasattr(found, "__struct_fields__"):
        names = vars(sys.modules[found.__module__])
        for name, annotation in inspect.get_annotations(found).items():
            if _is_callable(annotation, names):
                yield f"{found.__qualname__}.{name}"


def _of_function(fn: Callable[..., Any]) -> Iterator[str]:
    for form in (fn, *get_overloads(fn)):
        for parameter in inspect.signature(form).parameters.values():
            if _is_callable(parameter.annotation, form.__globals__):  # type: ignore[attr-defined]
                yield f"{fn.__qualname__}({parameter.name})"


def _is_callable(annotation: Any, names: dict[str, Any]) -> bool:
    if isinstance(annotation, str):
        with suppress(NameError):  # a name for type checkers only
            annotation = eval(annotation, names)  # noqa: S307
    return "Callable" in str(annotation)
