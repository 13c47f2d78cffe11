"""A spec as the rules see it, with the lookups that several of them need, each computed once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from holdfast.model.checks.field_values import FieldValues, field_values
from holdfast.model.checks.names import ReadableNames, StateFacts, near_name
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.expressions import Expr, ExprSyntaxError, Path, compile_expr, required_names
from holdfast.model.graph import END, Edge, GraphSpec, Node
from holdfast.model.template import Template, TemplateSyntaxError, compile_template, single_braces


class ValidationView:
    """Reports problems and answers questions about the graph. Ids may be invalid or not unique."""

    def __init__(self, spec: GraphSpec, facts: StateFacts | None, values: FieldValues | None = None) -> None:
        self.spec = spec
        self.facts = facts or StateFacts()
        self.values = values or field_values(spec, facts)
        self.names = ReadableNames(spec, facts)
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

    def field_name(self, name: str, what: str, *, node: str, implied: str = "") -> None:
        """Report a name that cannot be a field, or is none of a typed state. `implied`: a name that need not
        be declared."""
        if not name.isidentifier():
            self.error("field-name", f"{what}={name!r} cannot be a field", node=node, fix="use a plain name")
        elif self.spec.fields is not None and name not in self.spec.fields and name != implied:
            near = near_name(name, self.spec.fields)
            fix = near or f"declare the field {name!r} in the state's type"
            self.error("unknown-field", f"{what}={name!r} is not a field of the state", node=node, fix=fix)

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

    def compiled(self, text: str) -> Expr | ExprSyntaxError:
        if text not in self._expressions:
            try:
                self._expressions[text] = compile_expr(text)
            except ExprSyntaxError as problem:
                self._expressions[text] = problem
        return self._expressions[text]

    def expression(self, text: str, what: str, *, node: str | None = None, edge: str | None = None) -> None:
        """Report a text that is not an expression, and names that cannot have a value."""
        found = self.compiled(text)
        if isinstance(found, ExprSyntaxError):
            self.error("expression", f"{what}: {found}", node=node, edge=edge, fix=found.hint or None)
            return
        needed = required_names(found.node)
        self._known(needed, what, node=node, edge=edge)
        self._known(found.names - needed, what, node=node, edge=edge, may_miss=True)

    def template(self, text: str, what: str, *, node: str) -> Template | None:
        """As `expression`, for text with placeholders."""
        self._single_braces(text, what, node=node)
        if "{{" not in text:
            return None
        try:
            found = compile_template(text)
        except TemplateSyntaxError as problem:
            self.error("template", f"{what} {text!r}: {problem}", node=node)
            return None
        self._known(found.required, what, node=node, in_template=True)
        self._known(found.names - found.required, what, node=node, may_miss=True, in_template=True)
        return found

    def _single_braces(self, text: str, what: str, *, node: str) -> None:
        """A person who is shown `{amount}` decides without the amount."""
        for path in single_braces(text):
            if path.partition(".")[0] in self.names.settable:
                fix = f"write {{{{{path}}}}}"
                self.warn("single-braces", f"{what} shows {{{path}}} as it is written", node=node, fix=fix)

    def _known(
        self,
        paths: Iterable[Path],
        what: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        may_miss: bool = False,
        in_template: bool = False,
    ) -> None:
        for path in sorted(paths):
            found = self.names.problem(
                path, on_edge=edge is not None, may_miss=may_miss, in_template=in_template
            )
            if found is not None:
                self.problems.append(
                    GraphProblem(
                        rule="unknown-field" if self.names.typed else "unknown-name",
                        severity=found.severity,
                        message=f"{what} {found.message}",
                        node=node,
                        edge=edge,
                        fix=found.fix,
                    )
                )
