"""Which version of a flow is its current one.

A flow's graph comes from its code, or it was posted: sent over HTTP, submitted as a pipeline, or imported
with a run. What was posted is marked, and never passes for the code's: where a flow of that name has code,
the newest version of its code is the current one, whatever was posted after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from holdfast.errors import FlowNameTakenError
from holdfast.model.fingerprint import CODED, decode_graph, dialect_of
from holdfast.model.graph import Graph
from holdfast.model.input_schema import input_schema
from holdfast.runs.service_protocol import RunAccess
from holdfast.store.protocols import Store
from holdfast.store.rows import FlowRow
from holdfast.types.document import Document

_TENANT: Final = "_server"
_KIND: Final = "posted_flow"
_PAGE: Final = 1000
_SUMMARIES: Final = 10_000


class FlowSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What lists show of a version: a version never changes, so it is read from its graph once."""

    label: str
    nodes: int
    submitted: bool  # the graph of a pipeline that was sent, not code
    description: str
    goal: str  # of a pipeline
    input_schema: dict[str, Any]


async def flow_summary(service: RunAccess, row: FlowRow) -> FlowSummary:
    """Of a version that is stored or loaded. Kept by the runtime: a list costs the same however large the
    graphs are."""
    kept, key = service.runtime.flow_summaries, (row.name, row.version)
    found = kept.get(key)
    if found is None:
        if len(kept) >= _SUMMARIES:
            kept.clear()
        found = kept[key] = _summary_of(await graph_of(service, row))
    return found


async def graph_of(service: RunAccess, row: FlowRow) -> Graph:
    """The graph of a version that is stored or loaded."""
    if row.graph:
        return Graph(decode_graph(row.graph))
    stored = await service.store.flow(row.name, row.version)
    return (
        service.runtime.programs[row.version].graph if stored is None else Graph(decode_graph(stored.graph))
    )


def _summary_of(graph: Graph) -> FlowSummary:
    document: dict[str, Any] = graph.spec.document or {}
    source: dict[str, Any] = document["source"] if document.get("dialect") == "canvas" else {}
    return FlowSummary(
        label=graph.label,
        nodes=len(graph.nodes),
        submitted=bool(document.get("submitted")),
        description=str(source.get("description") or ""),
        goal=str(graph.spec.defaults.get("graph.goal") or ""),
        input_schema=source.get("input") or input_schema(graph.spec),
    )


async def put_posted(store: Store, row: FlowRow) -> None:
    """Stores a version that does not come from code. One that is already stored keeps its origin."""
    if await store.flow(row.name, row.version) is not None:
        return
    # The mark first: without it, the row would count as the code's.
    await store.put_document(
        Document(tenant=_TENANT, kind=_KIND, name=_name(row.name, row.version), body=b"{}")
    )
    await store.put_flow(row)


async def newest_first(service: RunAccess, rows: Iterable[FlowRow]) -> list[FlowRow]:
    """Versions of one flow or of several: those of code before those that were posted. The first of a flow is
    its current version."""
    code = await _CodeVersions.read(service)
    known = [((await code.has(row), row.created_at, row.version), row) for row in rows]
    return [row for _, row in sorted(known, key=lambda each: each[0], reverse=True)]


async def require_free_name(
    service: RunAccess, name: str, version: str, *, is_deployed: bool = False
) -> None:
    """Raises FlowNameTakenError if another version of a flow of that name comes from code. `is_deployed`: a
    document has the name already; then code that ran once does not take it, only code that is loaded."""
    code = await _CodeVersions.read(service)
    stored = await service.store.flows(graphs=False)
    rows = [row for row in stored if row.name == name and row.version != version]
    live = {known for known, flow in code.live.items() if flow == name} - {version}
    if live or (not is_deployed and any([await code.has(row) for row in rows])):
        raise FlowNameTakenError(
            f"{name!r} is the name of a flow whose graph comes from its code, and this is another graph.",
            hint="Give the graph another name, or deploy the code that it belongs to.",
            flow=name,
        )


class _CodeVersions:
    """`live`: versions, with their flow, whose code is loaded here or by a live worker; `marked`: those that
    were posted."""

    def __init__(self, service: RunAccess, live: dict[str, str], marked: set[str]) -> None:
        self.service = service
        self.live = live
        self.marked = marked

    @classmethod
    async def read(cls, service: RunAccess) -> _CodeVersions:
        now = service.store.now()
        live = {each.version: each.graph.name for each in service.runtime.programs.values()}
        for worker in await service.store.workers():
            if worker.is_alive(now):
                live.update(worker.versions)
        return cls(
            service,
            {v: flow for v, flow in live.items() if dialect_of(v) == CODED},
            await _marked(service.store),
        )

    async def has(self, row: FlowRow) -> bool:
        if dialect_of(row.version) == "canvas":
            return False  # a tenant deploys it, and it has no code
        if dialect_of(row.version) != CODED:
            # A document needs no code: who sent it is a part of it.
            return not (await flow_summary(self.service, row)).submitted
        return row.version in self.live or _name(row.name, row.version) not in self.marked


async def _marked(store: Store) -> set[str]:
    found: set[str] = set()
    after = ""
    while page := await store.documents(_TENANT, _KIND, after=after, limit=_PAGE):
        found.update(each.name for each in page)
        after = page[-1].name
    return found


def _name(flow: str, version: str) -> str:
    return f"{version}/{flow}"
