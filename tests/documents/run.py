"""Reads, compiles and runs documents that a test writes as YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from textwrap import dedent
from typing import Any

import msgspec

from holdfast import Holdfast
from holdfast.app.flow import advance
from holdfast.app.result import Result
from holdfast.documents.connections import Connections, ConnectionSettings
from holdfast.documents.program import default_site, program_for, program_of
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.compile import CompiledDocument, compile_document
from holdfast.frontends.document.problem import DocumentProblem
from holdfast.frontends.document.read import read_text
from holdfast.model.diagnostics import Severity
from holdfast.model.graph import GraphSpec
from holdfast.model.program import Program
from holdfast.types.ids import DEFAULT_TENANT

Functions = Mapping[str, Callable[..., Any]]


def flow_text(nodes: str, edges: str = "", head: str = "") -> str:
    """A document with these nodes and edges, each a block of YAML or a chain `a -> b -> c`."""
    listed = "\n".join(f"  - {line.strip()}" for line in dedent(nodes).strip().splitlines() if line.strip())
    arrows = "\n".join(f"  - {each}" for each in _edges(edges))
    top = f'holdfast: "1.0"\nname: sample\n{dedent(head).strip()}'
    return f"{top}\nnodes:\n{listed}\nedges:\n{arrows or '  []'}\n"


def _edges(text: str) -> list[str]:
    """`a -> b`, `a:port -> b`, or a mapping as it is."""
    found: list[str] = []
    for line in dedent(text).strip().splitlines():
        line = line.strip()
        if line.startswith("{"):
            found.append(line)
            continue
        stops = [part.strip() for part in line.split("->")]
        for source, target in pairwise(stops):
            name, _, port = source.partition(":")
            at = f", source_port: {port}" if port else ""
            found.append(f"{{source: {name}{at}, target: {target.partition(':')[0]}}}")
    return found


def site_of(functions: Functions | None = None, **more: Any) -> DocumentSite:
    """`settings`: the operator's connections; without, none are known and none are checked."""
    settings: ConnectionSettings | None = more.pop("settings", None)
    if settings is not None:
        site = default_site(Connections(settings))
        return msgspec.structs.replace(site, functions=functions or {}, **more)
    return DocumentSite(functions=functions or {}, validate=default_site().validate, **more)


def compiled(text: str, functions: Functions | None = None, **more: Any) -> CompiledDocument:
    return compile_document(read_text(dedent(text), "yaml"), site_of(functions, **more))


def graph(text: str, functions: Functions | None = None, **more: Any) -> GraphSpec:
    return compiled(text, functions, **more).require_valid()


def problems(text: str, functions: Functions | None = None, **more: Any) -> list[DocumentProblem]:
    return compiled(text, functions, **more).problems


def rules(
    text: str, functions: Functions | None = None, *, severity: str = "error", **more: Any
) -> list[str]:
    return [each.rule for each in problems(text, functions, **more) if each.severity is Severity(severity)]


async def start(
    hf: Holdfast,
    text: str,
    given: Any = None,
    functions: Functions | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    **more: Any,
) -> Result[Any]:
    """Runs it until it ends or waits."""
    site = site_of(functions, **more)
    program = program_for(compile_document(read_text(dedent(text), "yaml"), site), site)
    hf.register(program)
    service = await hf.service()
    row, _ = await service.create(program, given if given is not None else {}, tenant=tenant)
    return await advance(service, program, row.id, created=True)


async def answer(hf: Holdfast, result: Result[Any], decision: str, data: Any = None) -> Result[Any]:
    """Decides its one open hold, and runs on from the stored graph alone."""
    service = await hf.service()
    [hold] = await service.holds(result.run_id)
    await service.answer(hold.id, decision, data=data)
    row = await service.get(result.run_id)
    program = await service.runtime.find_program(row.version, row.flow)
    return await advance(service, program, row.id)


async def stored_program(hf: Holdfast, program: Program, functions: Functions | None = None) -> Program:
    """As another worker makes it from what is stored."""
    return program_of(program.graph.spec, site_of(functions))
