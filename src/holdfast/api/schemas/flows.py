"""Flows on the wire."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.schemas.common import Name, moment
from holdfast.model.diagnostics import GraphProblem as Diagnosis
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import Graph
from holdfast.runs.migrate.check import MigrationReport
from holdfast.store.rows import FlowRow
from holdfast.types.status import RunStatus


class FlowVersion(msgspec.Struct, kw_only=True):
    """`loaded`: this server has its code. `workers`: number of live workers that have it."""

    version: str
    label: str
    created_at: str
    nodes: int
    loaded: bool
    workers: int


class FlowWire(msgspec.Struct, kw_only=True):
    """Versions, newest first. `description`: what it does, if this server has its code. `input_schema`: the
    JSON Schema of the input that its newest version takes."""

    name: str
    versions: list[FlowVersion]
    description: str = ""
    input_schema: dict[str, Any] = {}


class FlowGraph(msgspec.Struct, kw_only=True):
    """`graph`: nodes, edges and policies, the common form of every front end."""

    name: str
    version: str
    label: str
    created_at: str
    graph: dict[str, Any]


class RegisterFlow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`graph`: a compiled flow; or `flow`: a file that the operator allows, which is loaded."""

    graph: dict[str, Any] | None = None
    flow: Name | None = None


class ValidateFlow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`graph`: a compiled flow; or `flow`: a flow of this server, or a file that it may load."""

    graph: dict[str, Any] | None = None
    flow: Name | None = None


class FlowProblem(msgspec.Struct, kw_only=True):
    rule: str
    severity: str
    message: str
    node: str | None = None
    edge: str | None = None
    fix: str | None = None


class FlowValidation(msgspec.Struct, kw_only=True):
    """`valid`: no problem is an error. `version`: the fingerprint that it would have."""

    valid: bool
    name: str
    version: str
    problems: list[FlowProblem]


class FlowMismatchWire(msgspec.Struct, kw_only=True):
    node: str
    why: str
    mend: str
    soft: bool


class RunFitWire(msgspec.Struct, kw_only=True):
    run_id: str
    status: RunStatus
    version: str
    fits: bool
    misfits: list[FlowMismatchWire]
    renamed: dict[str, str]


class FlowCheck(msgspec.Struct, kw_only=True):
    """For each active run on another version, whether it fits this one. Nothing is changed."""

    flow: str
    version: str
    fits: int
    breaks: int
    runs: list[RunFitWire]


def version_of(row: FlowRow, *, loaded: bool, workers: int) -> FlowVersion:
    graph = Graph(decode_graph(row.graph))
    return FlowVersion(
        version=row.version,
        label=graph.label,
        created_at=moment(row.created_at) or "",
        nodes=len(graph.nodes),
        loaded=loaded,
        workers=workers,
    )


def flow_problem(problem: Diagnosis) -> FlowProblem:
    return FlowProblem(
        rule=problem.rule,
        severity=str(problem.severity),
        message=problem.message,
        node=problem.node,
        edge=problem.edge,
        fix=problem.fix,
    )


def run_fit_wire(verdict: MigrationReport) -> RunFitWire:
    return RunFitWire(
        run_id=verdict.run,
        status=verdict.status,
        version=verdict.version,
        fits=verdict.fits,
        misfits=[
            FlowMismatchWire(node=each.node, why=each.why, mend=each.fix, soft=each.soft)
            for each in verdict.misfits
        ],
        renamed=verdict.renamed,
    )
