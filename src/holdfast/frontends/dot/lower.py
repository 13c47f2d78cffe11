"""Lowers a pipeline to the graph that the engine walks.

Every stage becomes a task; the `handler` in its metadata names code that every worker has. A parallel stage
becomes a `parallel` node: its branches are a sub-graph with its name, and one edge leads from it to the join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast.errors import PipelineInvalidError
from holdfast.frontends.dot.document import Link, Pipeline
from holdfast.frontends.dot.handler_kinds import BUILT_IN, kind_of
from holdfast.frontends.dot.parallel_regions import PARALLEL, Region, Regions
from holdfast.frontends.dot.policies import branches_of, node_of
from holdfast.frontends.dot.render import render
from holdfast.frontends.dot.values import Duration
from holdfast.model.fingerprint import PIPELINES, REQUIRES
from holdfast.model.graph import END, Edge, EdgeKind, GraphSpec, InDoubt, Node

DIALECT: Final = PIPELINES
MAX_VISITS: Final = 100
MAX_GOAL_JUMPS: Final = 10
MAX_RESTARTS: Final = 10
# Nested fan-outs repeat stages. The graph may have ten nodes per stage, plus a number for small pipelines.
_REPEATED: Final = 10
_SOME: Final = 1_000


def lower(pipeline: Pipeline, *, known_types: Collection[str] = BUILT_IN) -> GraphSpec:
    """Call it after transforms and validation. A problem that remains is read as the specification says."""
    return _Lowering(pipeline, known_types).whole()


def edge_ids(pipeline: Pipeline) -> dict[str, Link]:
    """The links by the ids of their edges in the graph, which are the same inside and outside of branches."""
    found: dict[str, Link] = {}
    for link in pipeline.links:
        name, number = f"{link.source}->{link.target}", 1
        while name in found:
            number += 1
            name = f"{link.source}->{link.target}#{number}"
        found[name] = link
    return found


def context_of(pipeline: Pipeline) -> dict[str, Any]:
    """The initial context of every run."""
    found = {f"graph.{key}": _plain(value) for key, value in pipeline.attrs.items()}
    return {"graph.goal": pipeline.goal, **found}


def document_of(pipeline: Pipeline) -> dict[str, Any]:
    """What is stored with the graph, and therefore goes with every run, fork and export of it. Each child
    pipeline is there once, by its digest."""
    files: dict[str, Any] = {}
    found: dict[str, Any] = {"dialect": DIALECT, **_stored(pipeline, files)}
    found |= {"files": files} if files else {}
    return {**found, "submitted": True} if pipeline.submitted else found


def _stored(pipeline: Pipeline, files: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"source": render(pipeline), REQUIRES: sorted(pipeline.requires or ())}
    children: dict[str, str] = {}
    for name, child in pipeline.children.items():
        text = _stored(child, files)
        digest = sha256(msgspec.json.encode(text, order="sorted")).hexdigest()
        files[digest] = text
        children[name] = digest
    return {**found, "children": children} if children else found


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Duration) else value


class _Lowering:
    def __init__(self, pipeline: Pipeline, known: Collection[str]) -> None:
        self.pipeline = pipeline
        self.kinds = {name: kind_of(stage, known) for name, stage in pipeline.stages.items()}
        self.regions = Regions(pipeline, self.kinds)
        self.made = 0
        self.leaving: dict[str, list[tuple[str, Link]]] = {}
        for name, link in edge_ids(pipeline).items():
            self.leaving.setdefault(link.source, []).append((name, link))
        self.shared: dict[str, Any] = {
            "traversal": "walk",
            "defaults": context_of(pipeline),
            "mirrors": True,
            "own_targets": True,
            "max_visits": pipeline.integer("max_visits", MAX_VISITS),
            "max_goal_jumps": pipeline.integer("max_goal_jumps", MAX_GOAL_JUMPS),
            "max_restarts": pipeline.integer("max_restarts", MAX_RESTARTS),
            "in_doubt": _in_doubt(pipeline),
        }

    def whole(self) -> GraphSpec:
        start = self.pipeline.start()
        first = [start.id] if start is not None else list(self.pipeline.stages)[:1]
        return self.graph(
            self.pipeline.name,
            first,
            frozenset(),
            retry_target=self.pipeline.text("retry_target") or None,
            fallback_retry_target=self.pipeline.text("fallback_retry_target") or None,
            document=document_of(self.pipeline),
        )

    def graph(self, name: str, starts: Iterable[str], stops: frozenset[str], **more: Any) -> GraphSpec:
        """The graph of all stages that can be reached from `starts` without entering one of `stops`."""
        starts = tuple(dict.fromkeys(starts))
        nodes, edges, inside = dict[str, Node](), list[Edge](), list[GraphSpec]()
        todo = list(reversed(starts))
        while todo:
            each = todo.pop()
            if each in nodes:
                continue
            region = self.regions.of(each, stops) if self.kinds[each] == PARALLEL else None
            nodes[each] = self.node(each, region)
            self.count(each)
            if region is not None and region.starts:
                inside.append(self.graph(each, region.starts, region.stops))
            found = self.edges(each, region, stops)
            edges += found
            todo += [edge.target for edge in reversed(found) if edge.target != END]
            if not todo and not stops:
                todo += self.jumped_to(nodes)
        return GraphSpec(
            name=name,
            nodes=tuple(nodes.values()),
            edges=tuple(edges),
            start=starts,
            subgraphs=tuple(inside),
            **self.shared,
            **more,
        )

    def count(self, name: str) -> None:
        """Raises PipelineInvalidError: fan-outs that lead into one another would be nested without end."""
        self.made += 1
        if self.made > _REPEATED * len(self.pipeline.stages) + _SOME:
            raise PipelineInvalidError(
                f"the fan-outs of {self.pipeline.name!r} lead into one another too often, at {name!r}.",
                hint="Let the branches of each fan-out end at their own fan-in.",
            )

    def jumped_to(self, nodes: dict[str, Node]) -> list[str]:
        """Stages that a retry target names and no edge leads to."""
        places = [self.pipeline, *(self.pipeline.stages[name] for name in nodes)]
        keys = ("retry_target", "fallback_retry_target")
        named = [where.text(key) for where in places for key in keys]
        return [name for name in named if name in self.pipeline.stages and name not in nodes]

    def node(self, name: str, region: Region | None) -> Node:
        stage = self.pipeline.stages[name]
        made = node_of(stage, self.kinds[name], self.pipeline)
        if region is None:
            return made
        edges = tuple(each for each, link in self.leaving.get(name, ()) if link.target in region.starts)
        return branches_of(made, stage, region, edges)

    def edges(self, name: str, region: Region | None, stops: frozenset[str]) -> list[Edge]:
        if self.kinds[name] == "exit":
            return []
        if region is None:
            return [self.edge(each, link, stops) for each, link in self.leaving.get(name, ())]
        if not region.join:
            return []
        joined = Edge(id=f"{name}->{region.join}", source=name, target=region.join)
        return [_ending(joined) if region.join in stops else joined]

    def edge(self, name: str, link: Link, stops: frozenset[str]) -> Edge:
        condition = link.condition.strip()
        more: dict[str, Any] = {}
        if condition:
            more = {"kind": EdgeKind.when, "when": condition, "language": "clauses"}
        if link.flag("loop_restart"):
            more["restart"] = True
        made = Edge(
            id=name, source=link.source, target=link.target, label=link.label, weight=link.weight, **more
        )
        return _ending(made) if link.target in stops else made


def _ending(edge: Edge) -> Edge:
    """The edge as the end of its branch; `leads` is the stage that it led to."""
    return replace(edge, target=END, leads=edge.target)


def _in_doubt(pipeline: Pipeline) -> InDoubt:
    value = pipeline.text("in_doubt")
    return InDoubt(value) if value in ("ask", "retry", "fail") else InDoubt.ask
