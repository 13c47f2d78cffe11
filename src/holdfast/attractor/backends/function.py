"""A Python function as a backend."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from holdfast.attractor.backends.base import OPTIONAL_PARAMETERS, BackendAnswer, optional_parameters_of
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.attractor.context import PipelineContext
    from holdfast.frontends.dot.document import Stage

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CallableBackend:
    """`fn(node, prompt, context)`, `fn(node, prompt)` or `fn(prompt)`: returns text or an Outcome, sync or
    async. With parameters `preamble` or `session` it gets what the stage's fidelity carries over, with
    `verdict` how to report the verdict, or "" if the stage wants none. A mapping with `outcome` is one.
    With an attribute `effect` of "read" or "pure" it may be called again after a crash."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        if not callable(fn):
            raise InputError("a backend must be callable or have `run`.", hint="backend=my_function")
        self._fn = fn
        named: Any = fn if hasattr(fn, "__qualname__") else type(fn)
        self.backend_name = f"function:{named.__module__}.{named.__qualname__}"
        self.effect = getattr(fn, "effect", None)
        self._count = _parameters(fn)
        self.wants = optional_parameters_of(fn)

    def run(
        self, node: Stage, prompt: str, context: PipelineContext, **more: Any
    ) -> BackendAnswer | Awaitable[BackendAnswer]:
        if self._count == 1:
            return self._fn(prompt, **more)
        if self._count == 2:
            return self._fn(node, prompt, **more)
        return self._fn(node, prompt, context, **more)


def _parameters(fn: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 3
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 3
    needed = (p for p in parameters if p.kind in _POSITIONAL and p.default is inspect.Parameter.empty)
    return sum(1 for p in needed if p.name not in OPTIONAL_PARAMETERS)
