"""Calls of a context that have to be awaited: one that is not is found when its handler has ended."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from holdfast.errors import ScriptError

P = ParamSpec("P")
T = TypeVar("T")


class MadeCalls:
    """The calls that a handler has made and that may not have begun."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: list[Coroutine[Any, Any, Any]] = []

    def add(self, call: Coroutine[Any, Any, Any]) -> None:
        # Code that awaits one call after the other keeps one of them here.
        while self._made and inspect.getcoroutinestate(self._made[-1]) != inspect.CORO_CREATED:
            del self._made[-1]
        self._made.append(call)

    def require_begun(self, node: str) -> None:
        """Raises ScriptError for a call without `await`: nobody was asked by it, and nothing was done."""
        lost = [call for call in self._made if inspect.getcoroutinestate(call) == inspect.CORO_CREATED]
        if not lost:
            return
        for call in lost:
            call.close()
        name = lost[0].__name__
        raise ScriptError(
            f"node {node!r} called ctx.{name} without `await`, so that it was not done.",
            hint=f"Write `await ctx.{name}(...)`.",
        )


class CallMaker(Protocol):
    made_calls: MadeCalls


C = TypeVar("C", bound=CallMaker)


def awaited(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[C, P], Coroutine[Any, Any, T]]:
    @wraps(method)
    def call(self: C, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        made = method(self, *args, **kwargs)
        self.made_calls.add(made)
        return made

    return call
