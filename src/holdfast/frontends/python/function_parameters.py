"""Which parameters a function takes, and whether it is a coroutine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class SignatureProblem(ValueError):
    """The function cannot be called as a node."""


def is_coroutine(fn: Callable[..., Any]) -> bool:
    inner = fn
    while isinstance(inner, partial):
        inner = inner.func
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


def takes_of(fn: Callable[..., Any], first: str = "state") -> tuple[str, ...]:
    """In order of its parameters: `first` and/or "ctx". Raises SignatureProblem.

    The context is the parameter with the name `ctx` or the annotation `Context`; the other parameter is
    the state (or, in the body of a map, the item).
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return (first,)  # a builtin without a signature
    takes: list[str] = []
    for parameter in parameters:
        needed = parameter.default is inspect.Parameter.empty
        if parameter.kind in _POSITIONAL:
            what = "ctx" if is_context(parameter) else first
            if first == "item" and first in takes and parameter.name in ("index", "key"):
                what = parameter.name
            if what not in takes:
                takes.append(what)
            elif needed:
                raise SignatureProblem(
                    f"its parameter {parameter.name!r} is not supported: a node takes ({first}), "
                    f"({first}, ctx), (ctx) or nothing"
                )
            else:
                break
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY and needed:
            raise SignatureProblem(f"its keyword-only parameter {parameter.name!r} has no default")
    return tuple(takes)


def is_context(parameter: inspect.Parameter) -> bool:
    if parameter.name == "ctx":
        return True
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.strip("'\"").rpartition(".")[2] == "Context"


def context_name(fn: Callable[..., Any]) -> str | None:
    """The name of the function's context parameter."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return None
    return next((parameter.name for parameter in parameters if is_context(parameter)), None)
