"""A graph together with the code that does its work: what a worker needs to run a flow version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from holdfast.model.graph import Graph


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """A node's code. `takes`: what the function wants, in order: "state" and/or "ctx"."""

    fn: Callable[..., Any]
    is_async: bool
    takes: tuple[str, ...]
    # Errors after which the effect certainly did not happen, or that may be retried: classes of `retry_on`.
    retry_on: tuple[type[BaseException], ...] = ()
    probe: Callable[..., Any] | None = None
    code: str = ""


class Router(msgspec.Struct, frozen=True, kw_only=True):
    """Python code that chooses among edges of one node. `choices`: what it may return -> edge ids to fire."""

    fn: Callable[..., Any]
    is_async: bool
    takes: tuple[str, ...]
    choices: dict[Any, tuple[str, ...]]
    boolean: bool = False  # a `when=` callable of a single edge: choices[True] is that edge


class Schema(Protocol):
    """What the state of a flow may hold."""

    defaults: dict[str, Any]
    reducers: dict[str, str]

    def start(self, given: Any) -> tuple[Any, dict[str, Any]]:
        """(input, scratch) for a new run, frozen. Raises StateError that lists every problem."""
        ...

    def build(self, scratch: dict[str, Any]) -> Any:
        """The state as a handler sees it. Cheap: no copies of values."""
        ...

    def unchanged(self, state: Any, scratch: dict[str, Any]) -> None:
        """Raises StateMutationError where the handler assigned to the state instead of returning."""
        ...

    def ops(self, update: dict[str, Any], scratch: dict[str, Any]) -> list[tuple[str, str, str, Any]]:
        """A returned update as operations on scratch, values checked and frozen. `scratch` is the state as the
        node saw it, for custom reducers, whose result is stored as a `set` (D-26)."""
        ...


class Program:
    """Handlers by node id and routers by node id, of the graph and (by name) of its sub-flows."""

    def __init__(
        self,
        graph: Graph,
        *,
        version: str,
        code: dict[str, str],
        handlers: dict[str, Handler],
        routers: dict[str, list[Router]],
        schema: Schema,
        registry: Any = None,
        types: tuple[type, ...] = (),
        children: dict[str, Program] | None = None,
    ) -> None:
        self.graph = graph
        self.version = version
        self.code = code
        self.handlers = handlers
        self.routers = routers
        self.schema = schema
        self.registry = registry
        # What the flow's state may hold besides plain data; a worker makes its registry of them.
        self.types = types
        self.children = children or {}

    def at(self, path: str) -> Program:
        """The program of a scope: "" is this one, "a/b" the sub-flow b of the sub-flow a."""
        program = self
        if path:
            for name in path.split("/"):
                program = program.children[name]
        return program
