"""The Python functions that documents may call by name. Only what the operator registers can be called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar, overload

from holdfast.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_registered: dict[str, Callable[..., Any]] = {}


@overload
def document_function(fn: F) -> F: ...
@overload
def document_function(*, name: str) -> Callable[[F], F]: ...
def document_function(fn: Any = None, *, name: str = "") -> Any:
    """Registers a function for the `python` nodes of documents, under its own name or another."""

    def register(given: Any) -> Any:
        _registered[name or given.__name__] = given
        return given

    return register if fn is None else register(fn)


def registered_functions() -> dict[str, Callable[..., Any]]:
    return dict(_registered)


_tools: dict[str, Any] = {}


def document_tool(given: Any) -> Any:
    """Registers a tool (`holdfast.tool`, or a function, which becomes one with its defaults) for the `tool`
    and `agent` nodes of documents. The operator must also list its name (`tools` in the file of
    HOLDFAST_CONNECTIONS)."""
    # Here: a run of a flow without agents does not load them.
    from holdfast.agents.tools import as_tool

    made = as_tool(given)
    _tools[made.name] = made
    return made


def allowed_tools(names: Iterable[str]) -> dict[str, Any]:
    """Those that are registered and that the operator lists."""
    return {name: _tools[name] for name in names if name in _tools}


def functions_of(module: ModuleType) -> Mapping[str, Callable[..., Any]]:
    """The public functions that a module defines itself, for a module that is given on the command line."""
    found = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", None) == module.__name__
    }
    if not found and not _registered and not _tools:
        raise InputError(f"{module.__name__} defines no function.", hint="Define the functions in it.")
    return found
