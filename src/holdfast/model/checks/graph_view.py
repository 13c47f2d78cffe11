"""A spec as the rules see it, with the lookups that several of them need, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.expr import PARTITIONS, Expr, ExprSyntaxError, Path, compile_expr
from holdfast.model.graph import END, Edge, GraphSpec, Node
from holdfast.model.template import Template, TemplateSyntaxError, compile_template

_SPECIAL: Final = PARTITIONS | {"state", "outcome", "output", "preferred_label", "context", "item"}


class ValidationView:
    """Reports problems and answers questions about the graph. Ids may be invalid or not unique."""

    def __init__(self, spec: GraphSpec, writes: Mapping[str, frozenset[str]]) -> None:
        self.spec = spec
        self.writes = writes
        self.walk = spec.traversal == "walk"
        self.problems: list[GraphProblem] = []
        self.nodes: dict[str, Node] = {}
        for node in spec.nodes:
            self.nodes.setdefault(node.id, node)
        self._expressions: dict[str, Expr | ExprSyntaxError] = {}

    def error(
        self,
        rule: str,
        message: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problems.append(GraphProblem(rule=rule, message=message, node=node, edge=edge, fix=fix))

    def warn(
        self,
        rule: str,
        message: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problems.append(
            GraphProblem(rule=rule, severity=Severity.warning, message=message, node=node, edge=edge, fix=fix)
        )

    def one_of(self, rule: str, value: str, allowed: tuple[str, ...], *, node: str | None = None) -> None:
        if value not in allowed:
            names = ", ".join(allowed)
            self.error(rule, f"{value!r} is not one of {names}", node=node, fix=f"use one of {names}")

    def field_name(self, name: str, what: str, *, node: str) -> None:
        if not name.isidentifier():
            self.error("field-name", f"{what}={name!r} cannot be a field", node=node, fix="use a plain name")

    @cached_property
    def sound_edges(self) -> list[Edge]:
        """Edges between nodes that exist."""
        return [edge for edge in self.spec.edges if edge.source in self.nodes and edge.target in self.nodes]

    @cached_property
    def forward(self) -> list[Edge]:
        return [edge for edge in self.sound_edges if edge.loop is None]

    @cached_property
    def into(self) -> dict[str, list[Edge]]:
        """Forward edges by target."""
        found: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        for edge in self.forward:
            found[edge.target].append(edge)
        return found

    @cached_property
    def out(self) -> dict[str, list[Edge]]:
        """Edges by source, those to the end included."""
        found: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        for edge in self.spec.edges:
            if edge.source in self.nodes and (edge.target in self.nodes or edge.target == END):
                found[edge.source].append(edge)
        return found

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The names that a path may begin with; None if the state accepts any key."""
        if self.spec.fields is None:
            return None
        return _SPECIAL.union(self.spec.fields, bound_names(self.spec.nodes))

    def expression(self, text: str, what: str, *, node: str | None = None, edge: str | None = None) -> None:
        """Report a text that is not an expression, and names that the state does not have."""
        if text not in self._expressions:
            try:
                self._expressions[text] = compile_expr(text)
            except ExprSyntaxError as problem:
                self._expressions[text] = problem
        found = self._expressions[text]
        if isinstance(found, ExprSyntaxError):
            self.error("expression", f"{what}: {found}", node=node, edge=edge, fix=found.hint or None)
        else:
            self._known(map(_root, found.names), what, self.warn, node=node, edge=edge)

    def template(self, text: str, what: str, *, node: str, strict: bool = False) -> Template | None:
        """As `expression`, for text with placeholders. `strict`: an unknown name is an error."""
        if "{{" not in text:
            return None
        try:
            found = compile_template(text)
        except TemplateSyntaxError as problem:
            self.error("template", f"{what} {text!r}: {problem}", node=node)
            return None
        self._known(map(_root, found.names), what, self.error if strict else self.warn, node=node)
        return found

    def _known(
        self, roots: Iterable[str], what: str, report: Callable[..., None], **place: str | None
    ) -> None:
        if self.names is None:
            return
        for name in sorted(set(roots) - self.names):
            report(
                "unknown-field",
                f"{what} reads {name!r}, which the state does not have",
                fix=f"declare the field, or use one of {', '.join(self.spec.fields or ())}",
                **place,
            )


def _root(path: Path) -> str:
    """`state.x` and `x` are the same field."""
    first, *rest = path
    return rest[0] if first == "state" and rest else first


def bound_names(nodes: tuple[Node, ...] | list[Node]) -> tuple[str, ...]:
    """Fields that the flow itself fills: decisions, results of maps, outputs of sub-flows."""
    names: list[str] = []
    for node in nodes:
        names += bound_by(node)
    return tuple(dict.fromkeys(names))


def bound_by(node: Node) -> list[str]:
    if node.hold is not None:
        return [
            node.hold.bind,
            *([node.hold.into] if node.hold.into else []),
            *(node.hold.modifies or {}).values(),
        ]
    if node.map is not None:
        return [node.map.into]
    if node.subflow is not None:
        return list(node.subflow.outputs or ())
    return []
