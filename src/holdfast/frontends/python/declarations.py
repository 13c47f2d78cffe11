"""What a flow collects while it is declared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypedDict

import msgspec

from holdfast.frontends.python.function_parameters import SignatureProblem, takes_of
from holdfast.frontends.python.guard import GuardPlan
from holdfast.frontends.python.handle import node_id
from holdfast.frontends.python.policies import DeclarationReader
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.graph import Edge, InDoubt, Node
from holdfast.model.migration import Migration
from holdfast.model.program import NodeHandler, Router
from holdfast.model.reducer_marks import ReducerMark, as_mark
from holdfast.types.concurrency_limits import Limits
from holdfast.types.retention import DEFAULT_RETENTION, Retention
from holdfast.types.status import Effect

_OWN: Final = ("holdfast.frontends.python", "holdfast.app", "holdfast.agents")


class DeclaredMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A migration as declared: from a flow, or from the label or fingerprint of its version."""

    source: Collector | str
    migration: Migration


class DeclaredParts:
    """What is declared one by one: nodes, edges and their code. Empty at first."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.handlers: dict[str, NodeHandler] = {}
        self.routers: dict[str, list[Router]] = {}
        self.guards: dict[str, GuardPlan] = {}
        self.edge_guards: dict[str, GuardPlan] = {}
        self.children: dict[str, Collector] = {}
        self.migrations: list[DeclaredMigration] = []
        self.first: list[str] | None = None
        self.undeclared: list[str] = []
        self.edge_ids: set[str] = set()
        # Where nodes and edges are declared, by ("node" or "edge", id).
        self.origins: dict[tuple[str, str], tuple[str, int]] = {}


class FlowSettings(TypedDict, total=False):
    """What a flow takes besides its name and the type of its state."""

    version: str | None
    description: str
    effect: str
    in_doubt: str
    checkpoints: str
    checkpoint_when: str
    mode: str
    lane: str
    priority: int
    memory: str
    types: Iterable[type]
    reducers: Mapping[str, ReducerMark | str | Callable[[Any, Any], Any]] | None
    code_change: str
    allow_uncheckpointed: bool
    traversal: str
    max_visits: int
    max_goal_jumps: int
    retry_target: str | None
    fallback_retry_target: str | None
    retention: Retention
    limits: Limits | None
    secrets: Iterable[str]


class Collector(DeclaredParts):
    """Settings, nodes, edges, code, and what was wrong with any of them."""

    def __init__(
        self,
        name: str,
        state: Any = None,
        *,
        version: str | None = None,
        description: str = "",
        effect: str = "external",
        in_doubt: str = "ask",
        checkpoints: str = "every_node",
        checkpoint_when: str = "after",
        mode: str = "barrier",
        lane: str = "default",
        priority: int = 0,
        memory: str = "live",
        types: Iterable[type] = (),
        reducers: Mapping[str, ReducerMark | str | Callable[[Any, Any], Any]] | None = None,
        code_change: str = "allow",
        allow_uncheckpointed: bool = False,
        traversal: str = "dataflow",
        max_visits: int = 0,
        max_goal_jumps: int = 10,
        retry_target: str | None = None,
        fallback_retry_target: str | None = None,
        retention: Retention = DEFAULT_RETENTION,
        limits: Limits | None = None,
        budget: Any = None,
        secrets: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self.name, self.state = name, state
        self.found: list[GraphProblem] = []
        self.label = self._label(version)
        read = DeclarationReader(self.found.append)
        self.default_effect = read.choice(Effect, effect, "effect", Effect.external)
        self.settings: dict[str, Any] = {
            "in_doubt": read.choice(InDoubt, in_doubt, "in-doubt policy", InDoubt.ask),
            "checkpoints": checkpoints, "checkpoint_when": checkpoint_when, "mode": mode, "lane": lane,
            "priority": priority, "memory": memory, "code_change": code_change,
            "allow_uncheckpointed": allow_uncheckpointed, "traversal": traversal, "max_visits": max_visits,
            "max_goal_jumps": max_goal_jumps, "retry_target": retry_target and node_id(retry_target),
            "fallback_retry_target": fallback_retry_target and node_id(fallback_retry_target),
        }  # fmt: skip
        # Not part of the graph: a change of retention makes no new version.
        self.retention = retention
        # Neither is what people and agents read about it.
        self.description = description
        # Not part of the graph either: operators change limits without a new version.
        self.limits = limits
        # Not part of the graph either: what each of its runs may spend in all.
        self.budget = budget
        self._check_budget()
        # In addition to those that the state's type declares: paths such as "card" and "cards.*.number".
        self.secrets = tuple(secrets)
        self.types = tuple(types)
        self.reducers = {name: as_mark(given) for name, given in (reducers or {}).items()}
        self.revision = 0
        # The body of a map over a function: what the function returns is the item's result.
        self.is_item = False

    def _check_budget(self) -> None:
        if self.budget is not None and not callable(getattr(self.budget, "limits", None)):
            self.wrong(
                "budget", f"budget={self.budget!r} is not a budget", fix="write budget=Budget(tokens=50_000)"
            )

    def _label(self, version: Any) -> str:
        """The label of this version. `refund@2` refers to it, so it must be one word."""
        label = "" if version is None else str(version)
        if version is not None and (not label or any(c.isspace() or c in "@:/" for c in label)):
            self.wrong(
                "version",
                f"the version {label!r} must be one word, without @, : or /",
                fix="write version='2' or '2026-11'",
            )
            return ""
        return label

    def takes_of(self, name: str, fn: Callable[..., Any], first: str = "state") -> tuple[str, ...]:
        try:
            return takes_of(fn, first)
        except SignatureProblem as problem:
            self.wrong("signature", f"{getattr(fn, '__name__', fn)!r} cannot be called: {problem}", node=name)
            return (first,)

    def wrong(self, rule: str, message: str, *, node: str | None = None, fix: str | None = None) -> None:
        self.found.append(GraphProblem(rule=rule, message=message, node=node, fix=fix))

    def note_origin(self, kind: str, name: str) -> None:
        """The line of the caller's code that is running now declares this node or edge."""
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
            frame = frame.f_back
        if frame is not None:
            self.origins.setdefault((kind, name), (frame.f_code.co_filename, frame.f_lineno))

    def free_id(self, source: str, target: str, what: str = "") -> str:
        base = f"{node_id(source)}->{node_id(target)}{what}"
        name, count = base, 1
        while name in self.edge_ids:
            count += 1
            name = f"{base}#{count}"
        return name

    def stamp(self) -> int:
        """Grows with every declaration, here and in sub-flows."""
        if not self.children:
            return self.revision
        seen: dict[int, Collector] = {}
        todo: list[Collector] = [self]
        while todo:
            flow = todo.pop()
            if id(flow) not in seen:
                seen[id(flow)] = flow
                todo.extend(flow.children.values())
        return sum(flow.revision for flow in seen.values())
