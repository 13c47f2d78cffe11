"""Lowers what a builder collected to a graph with its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from holdfast.errors import StateError
from holdfast.frontends.python.code import (
    code_fingerprint,
    innermost,
    visible_substeps,
)
from holdfast.frontends.python.concurrency_limits import limit_problems
from holdfast.frontends.python.declarations import Collector
from holdfast.frontends.python.guard_nodes import Parts, parts_of
from holdfast.frontends.python.state_facts import given_to, state_facts
from holdfast.model.checks.names import near_name
from holdfast.model.checks.value_types import type_of
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Edge, EdgeKind, Graph, GraphSpec, InDoubt, Node
from holdfast.model.migration import Migration
from holdfast.model.program import NodeHandler, Program
from holdfast.model.secrets import parsed, secret_paths, spelled
from holdfast.model.state_schema import StateSchema
from holdfast.model.validate import (
    FieldValues,
    StateFacts,
    bound_names,
    field_values,
    validate,
    within_subflow,
)
from holdfast.types.status import REPEATABLE


class LoweredFlow(msgspec.Struct, frozen=True, kw_only=True):
    builder: Collector
    parts: Parts
    spec: GraphSpec
    schema: StateSchema
    facts: StateFacts
    problems: list[GraphProblem]
    children: dict[str, LoweredFlow]

    def program(self) -> Program:
        """Call it only for a flow without errors."""
        program = Program(
            Graph(self.spec),
            version=graph_fingerprint(self.spec),
            code=self._code(),
            handlers=dict(self.parts.handlers),
            routers={name: list(routers) for name, routers in self.parts.routers.items()},
            schema=self.schema,
            children={name: child.program() for name, child in self.children.items()},
            types=self._types(),
            migrations=self._migrations(),
        )
        # Declared, not only inferred: a body that takes nothing, or only the context, is one too.
        program.is_item = self.builder.is_item
        program.retention = self.builder.retention
        program.description = self.builder.description
        program.limits = self.builder.limits
        program.budget = self.builder.budget
        return program

    def _migrations(self) -> tuple[Migration, ...]:
        """Including those of the flows that they start from, so that old versions migrate step by step."""
        found: list[Migration] = []
        for declared in self.builder.migrations:
            if isinstance(declared.source, str):
                found.append(declared.migration)
                continue
            old = lower(declared.source)
            version = graph_fingerprint(old.spec)
            found.append(msgspec.structs.replace(declared.migration, source=version))
            found += [
                msgspec.structs.replace(step, target=step.target or version) for step in old._migrations()
            ]
        return tuple(found)

    def _code(self) -> dict[str, str]:
        """By node; routers, probes and reducers beside them; sub-flows as `child/node`."""
        code = {name: handler.code for name, handler in self.parts.handlers.items()}
        for name, handler in self.parts.handlers.items():
            if handler.probe is not None:
                code[f"{name}:probe"] = code_fingerprint(handler.probe)
        for name, routers in self.parts.routers.items():
            for i, router in enumerate(routers):
                code[f"{name}:router{i}"] = code_fingerprint(router.fn)
        for name, fn in self.schema.custom.items():
            code[f"reducer:{name}"] = code_fingerprint(fn)
        for name, child in self.children.items():
            code |= {f"{name}/{part}": mark for part, mark in child._code().items()}
        return code

    def _types(self) -> tuple[type, ...]:
        types = list(self.schema.types)
        for child in self.children.values():
            types += child._types()
        return tuple(dict.fromkeys(types))


def lower(builder: Collector) -> LoweredFlow:
    lowered = _lower(builder)
    return _checked(lowered, field_values(lowered.spec, lowered.facts), child=False)


def _lower(
    builder: Collector, within: tuple[Collector, ...] = (), given: frozenset[str] | None = None
) -> LoweredFlow:
    """Not checked yet, because that needs the whole flow. `given`: the names of its input, if all of them are
    known."""
    problems = list(builder.found)
    around = (*within, builder)
    children = {
        name: _lower(child, around, given_to(builder, name))
        for name, child in builder.children.items()
        if child not in around
    }
    problems += _circles(builder, around)
    schema = _schema(builder, problems)
    parts = parts_of(builder)
    problems += parts.problems
    edges = (*parts.edges, *_implied_edges(builder, parts.nodes))
    spec = GraphSpec(
        name=builder.name,
        nodes=tuple(parts.nodes),
        edges=edges,
        start=_starts(parts, edges),
        reducers=schema.reducers,
        fields=schema.describe(),
        defaults=schema.defaults,
        subgraphs=tuple(child.spec for child in children.values()),
        secrets=_secrets(builder) or msgspec.UNSET,
        label=builder.label or msgspec.UNSET,
        **builder.settings,
    )
    facts = state_facts(builder, schema, given, {name: child.facts for name, child in children.items()})
    return LoweredFlow(
        builder=builder, parts=parts, spec=spec, schema=schema, facts=facts, problems=problems,
        children=children,
    )  # fmt: skip


def _checked(lowered: LoweredFlow, values: FieldValues, *, child: bool) -> LoweredFlow:
    """With all of its problems, and those of its sub-flows."""
    builder, spec, schema = lowered.builder, lowered.spec, lowered.schema
    problems = [*lowered.problems, *schema.problems()]
    problems += validate(spec, facts=lowered.facts, values=values, deep=False)
    problems += _handler_problems(builder)
    problems += _router_problems(builder)
    problems += _migration_problems(builder, spec)
    problems += limit_problems(builder, schema, parsed(spec.secrets or ()), child=child)
    problems = [_placed(builder, problem) for problem in problems]
    children = {
        name: _checked(inner, values.children[inner.spec.name], child=True)
        for name, inner in lowered.children.items()
    }
    for name, inner in children.items():
        problems += within_subflow(name, inner.problems)
    return msgspec.structs.replace(lowered, problems=problems, children=children)


def _placed(builder: Collector, problem: GraphProblem) -> GraphProblem:
    """With the line that declares its node or edge. A guardrail or an edge that a policy implies has none of
    its own."""
    for kind, name in (("edge", problem.edge), ("node", problem.node)):
        if name is not None and (kind, name) in builder.origins:
            file, line = builder.origins[kind, name]
            return msgspec.structs.replace(problem, file=file, line=line)
    return problem


def _circles(builder: Collector, around: tuple[Collector, ...]) -> list[GraphProblem]:
    return [
        GraphProblem(
            rule="subflow-cycle",
            message=f"the sub-flow {name!r} contains itself: {' > '.join([*(f.name for f in around), name])}",
            fix="use a loop inside one flow",
        )
        for name, child in builder.children.items()
        if child in around
    ]


def _schema(builder: Collector, problems: list[GraphProblem]) -> StateSchema:
    bound = bound_names(builder.nodes)
    try:
        return StateSchema(builder.state, types=builder.types, extra=bound, reducers=builder.reducers)
    except StateError as error:
        problems.append(GraphProblem(rule="state-type", message=str(error)))
        return StateSchema(None, types=builder.types, extra=bound, reducers=builder.reducers)


def _secrets(builder: Collector) -> tuple[str, ...]:
    declared = [] if builder.state is None else secret_paths(builder.state)
    return spelled([*declared, *parsed(builder.secrets)])


def _implied_edges(builder: Collector, nodes: list[Node]) -> list[Edge]:
    """Edges that a node's policies imply: failure routes, reroutes of guardrails, branches of timeouts."""
    edges: list[Edge] = []
    for node in nodes:
        if node.on_failure.startswith("route:"):
            edges.append(_implied(builder, node, node.on_failure[6:], EdgeKind.failure, ":failed"))
        if node.guard is not None and node.guard.on_violation == "reroute" and node.guard.reroute is not None:
            edges.append(_implied(builder, node, node.guard.reroute, EdgeKind.chosen, ":rerouted"))
        if node.hold is not None and (node.hold.on_timeout or "").startswith("branch:"):
            edges.append(
                _implied(builder, node, (node.hold.on_timeout or "")[7:], EdgeKind.chosen, ":expired")
            )
    return edges


def _implied(builder: Collector, node: Node, target: str, kind: EdgeKind, what: str) -> Edge:
    return Edge(id=builder.free_id(node.id, target, what), source=node.id, target=target, kind=kind)


def _starts(parts: Parts, edges: tuple[Edge, ...]) -> tuple[str, ...]:
    if parts.first is not None:
        return tuple(dict.fromkeys(parts.first))
    reached = {edge.target for edge in edges if edge.loop is None}
    return tuple(dict.fromkeys(node.id for node in parts.nodes if node.id not in reached))


def _handler_problems(builder: Collector) -> list[GraphProblem]:
    problems: list[GraphProblem] = []
    undeclared = set(builder.undeclared)
    for node in builder.nodes:
        handler = builder.handlers.get(node.id)
        if handler is None:
            continue
        problems += _substep_problems(node, handler)
        if node.in_doubt is InDoubt.probe and handler.probe is None:
            problems.append(
                GraphProblem(rule="probe", message="in_doubt='probe' without a probe", node=node.id,
                        fix="pass probe=fn, which finds out whether the effect happened")
            )  # fmt: skip
        if node.id in undeclared and node.effect not in REPEATABLE:
            problems.append(_effect_hint(node))
    return problems


def _router_problems(builder: Collector) -> list[GraphProblem]:
    """A function whose annotation says what it returns must have an arm for each, and no others."""
    problems: list[GraphProblem] = []
    for node, routers in builder.routers.items():
        for router in routers:
            returned = _returned_values(router.fn)
            if router.boolean or returned is None:
                continue
            name, known = getattr(router.fn, "__name__", "the function"), list(router.choices)
            missing = [value for value in returned if value not in router.choices]
            extra = [key for key in known if key is not None and key not in returned]
            found = [
                (f"{name} may return {value!r}, for which there is no arm", value, known, "add the arm")
                for value in missing
            ] + [
                (f"{name} never returns {key!r}, which has an arm", key, returned, "remove the arm")
                for key in extra
            ]
            problems += [
                GraphProblem(
                    rule="router-arm",
                    node=node,
                    message=message,
                    fix=near_name(str(wrong), [str(other) for other in others if other is not None]) or fix,
                )
                for message, wrong, others, fix in found
            ]
    return problems


def _returned_values(fn: Callable[..., Any]) -> tuple[Any, ...] | None:
    """Every value that the function may return, if its annotation lists them."""
    try:
        annotation = get_type_hints(innermost(fn)).get("return", Any)
    except (NameError, TypeError):
        return None
    return None if annotation is bool else type_of(annotation).values


def _migration_problems(builder: Collector, spec: GraphSpec) -> list[GraphProblem]:
    """A rename to a missing node is reported when the flow is compiled, not when a run is migrated."""
    known = {node.id for node in spec.nodes}
    final = [d.migration for d in builder.migrations if not d.migration.target]
    return [
        GraphProblem(
            rule="migration",
            message=f"a migration renames {old!r} to {new!r}, but that node does not exist",
            fix="name a node of this version",
        )
        for migration in final
        for old, new in migration.rename.items()
        if new not in known
    ]


def _effect_hint(node: Node) -> GraphProblem:
    return GraphProblem(
        rule="effect-undeclared",
        severity=Severity.hint,
        node=node.id,
        message=f"it declares no effect and counts as {node.effect}: after a crash in it a person is asked",
        fix='declare effect="pure" or effect="read" if it may simply run again',
    )


def _substep_problems(node: Node, handler: NodeHandler) -> list[GraphProblem]:
    if node.script or node.effect in REPEATABLE:
        return []
    return [
        GraphProblem(
            rule="substep-in-effect",
            node=node.id,
            message=f"its class is {node.effect}, but it calls {call}, and code around sub-steps runs again",
            fix="declare it with @flow.script and give the sub-step the effect: "
            f'ctx.step(name, fn, effect="{node.effect}")',
        )
        for call in visible_substeps(handler.fn)
    ]
