"""What a declaration returns: the node's id, which can also be called like the plain function."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class NodeHandle(str, Generic[P, R]):  # noqa: SLOT000  (it carries the function's name and doc)
    """The node's id, which can be used wherever an id is expected (edges, routers, `route:`).

    The handle of a function can be called like the function: a test can call it without a run.
    """

    fn: Callable[P, R] | None

    def __new__(cls, node_id: str, fn: Callable[P, R] | None = None) -> NodeHandle[P, R]:
        handle = super().__new__(cls, node_id)
        handle.fn = fn
        if fn is not None:
            update_wrapper(handle, fn)
        return handle

    @property
    def id(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"<node {str(self)!r}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fn is None:
            raise TypeError(f"node {str(self)!r} has no function to call")
        return self.fn(*args, **kwargs)


def node_id(given: Any) -> str:
    """The plain text of a handle or an id; of a function, its name."""
    return str.__str__(given) if isinstance(given, str) else str(getattr(given, "__name__", given))
