"""A graph together with the code of its nodes: what a worker needs to run a version of a flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from holdfast.model.graph import Graph
from holdfast.model.migration import Migration
from holdfast.types.concurrency_limits import ItemLimit, Limits
from holdfast.types.retention import DEFAULT_RETENTION
from holdfast.types.value import Adopt, refuse_instances


class NodeHandler(msgspec.Struct, frozen=True, kw_only=True):
    """A node's code. `takes`: the function's parameters in order: "state" and/or "ctx"."""

    fn: Callable[..., Any]
    is_async: bool
    takes: tuple[str, ...]
    # Errors after which the effect certainly did not happen, or that may be retried: classes of `retry_on`.
    retry_on: tuple[type[BaseException], ...] = ()
    probe: Callable[..., Any] | None = None
    code: str = ""
    # Marks of other code whose started visits this code may continue (D-34).
    compatible: frozenset[str] = frozenset()
    # "process": it runs in a child process.
    isolation: str = ""
    # False: it takes a context but never asks, sleeps or runs a sub-step, so that it needs no task.
    waits: bool = True

    @property
    def may_ask(self) -> bool:
        """Whether it may ask a person while it runs (`ctx.ask`)."""
        return self.waits and "ctx" in self.takes


class ItemCall(msgspec.Struct, frozen=True, kw_only=True):
    """The function for the items of a map whose starts are limited. It is one step of its node, or (if it
    takes the context) a script."""

    name: str
    fn: Callable[..., Any]
    limit: ItemLimit
    is_script: bool
    effect: str
    retry: Any = None
    timeout: Any = None
    idempotency_key: str | None = None


class Router(msgspec.Struct, frozen=True, kw_only=True):
    """Python code that chooses among edges of one node. `choices`: what it may return -> edge ids to fire."""

    fn: Callable[..., Any]
    is_async: bool
    takes: tuple[str, ...]
    choices: dict[Any, tuple[str, ...]]
    boolean: bool = False  # a `when=` callable of a single edge: choices[True] is that edge


class Schema(Protocol):
    """The schema of a flow's state."""

    adopt: Adopt
    defaults: dict[str, Any]
    reducers: dict[str, str]

    def start(self, given: Any) -> tuple[Any, dict[str, Any]]:
        """(input, scratch) for a new run, frozen. Raises StateError that lists every problem."""
        ...

    def is_slow_to_start(self, given: Any) -> bool:
        """Whether `start`, or `ops` with such values, may take so long that it should not be called in an
        event loop."""
        ...

    def build(self, scratch: dict[str, Any]) -> Any:
        """The state as a handler sees it. Cheap: no copies of values."""
        ...

    def build_lazily(
        self, scratch: dict[str, Any], absent: frozenset[str], load: Callable[[str], Any]
    ) -> Any:
        """Like `build`, but these fields are loaded on first access; None if the type does not support
        that."""
        ...

    def fit(self, name: str, value: Any) -> Any:
        """A whole value of one field, checked and frozen. Raises StateError. A name that the state does not
        declare is left alone."""
        ...

    def take(self, name: str, value: Any, scratch: dict[str, Any]) -> tuple[str, str, str, Any]:
        """A value that does not come from a handler, as an update of its field (by its reducer, if any).
        Raises StateError. An undeclared name is set as it is."""
        ...

    def unchanged(self, state: Any, scratch: dict[str, Any]) -> None:
        """Raises StateMutationError where the handler assigned to the state instead of returning."""
        ...

    def ops(self, update: dict[str, Any], scratch: dict[str, Any]) -> list[tuple[str, str, str, Any]]:
        """A returned update as operations on scratch, values checked and frozen. `scratch` is the state as
        the node saw it, for custom reducers, whose result is stored as a `set` (D-26)."""
        ...


class Program:
    """Handlers by node id and routers by node id, of the graph and (by name) of its sub-flows."""

    def __init__(
        self,
        graph: Graph,
        *,
        version: str,
        code: dict[str, str],
        handlers: dict[str, NodeHandler],
        routers: dict[str, list[Router]],
        schema: Schema,
        registry: Any = None,
        types: tuple[type, ...] = (),
        children: dict[str, Program] | None = None,
        migrations: tuple[Migration, ...] = (),
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
        self.migrations = migrations
        # Set by the worker from its registry: which instances of declared types a value may hold.
        self.adopt: Adopt = refuse_instances
        # The body of a map: what its node returns is the item's result.
        self.is_item = any("item" in handler.takes for handler in handlers.values())
        # What it does, in words, for people and agents that start it.
        self.description = ""
        # Of the flow's ended runs; a worker that serves the program applies it.
        self.retention = DEFAULT_RETENTION
        # How many of its runs may be running at once. It is not in the graph, so changing it makes no new
        # version.
        self.limits: Limits | None = None
        # What a run of it may spend in all: a `holdfast.Budget`. It may change during a run, as limits do.
        self.budget: Any = None
        # A task that a worker runs beside each run that it advances, called with the worker and its claim,
        # such as syncing a run directory. It must not fail the run.
        self.beside: Callable[[Any, Any], AbstractAsyncContextManager[None]] | None = None
        self._edges = {edge.id: i for i, edge in enumerate(graph.edges)}

    @cached_property
    def code_digest(self) -> str:
        """One name for the code of all handlers, sub-flows included (D-34)."""
        parts = sorted(self.code.items()) + [(n, c.code_digest) for n, c in sorted(self.children.items())]
        return "c1-" + sha256(repr(parts).encode()).hexdigest()[:32]

    @property
    def code_marks(self) -> bytes:
        """The marks of all parts, stored under `code_digest`."""
        return msgspec.json.encode(self.code, order="sorted")

    @property
    def names(self) -> frozenset[str]:
        """The names of this version."""
        return frozenset({self.version, self.graph.label} - {""})

    def changed_parts(self, old: Mapping[str, str]) -> frozenset[str]:
        """Parts of the code that have changed and do not declare the old code as compatible."""
        return frozenset(
            part for part, mark in old.items() if part in self.code and not self.accepts_code(part, mark)
        )

    def accepts_code(self, part: str, mark: str) -> bool:
        """Whether the code of `part` (a node, or a node of a sub-flow) may replace the code with this
        mark."""
        if self.code.get(part, "") == mark:
            return True
        child, _, node = part.rpartition("/")
        handler = self.at(child).handlers.get(node) if child in ("", *self.children) else None
        return handler is not None and mark in handler.compatible

    def edge_index(self, edge: str) -> int:
        return self._edges[edge]

    def all_types(self) -> tuple[type, ...]:
        found = dict.fromkeys(self.types)
        for child in self.children.values():
            found.update(dict.fromkeys(child.all_types()))
        return tuple(found)

    def adopt_with(self, adopt: Adopt) -> None:
        self.adopt = adopt
        self.schema.adopt = adopt
        for child in self.children.values():
            child.adopt_with(adopt)

    @cached_property
    def named_judges(self) -> tuple[tuple[str, str], ...]:
        """Nodes whose holds name a judge (`shadow="strict"`), with that name; also of sub-flows."""
        holds = ((node.id, node.hold.terms) for node in self.graph.spec.nodes if node.hold is not None)
        own = ((node, terms.shadow) for node, terms in holds if terms and terms.shadow is not None)
        return (*own, *(each for child in self.children.values() for each in child.named_judges))

    def at(self, path: str) -> Program:
        """The program of a scope: "" is this one, "a/b" the sub-flow b of the sub-flow a."""
        program = self
        if path:
            for name in path.split("/"):
                program = program.children[name]
        return program
