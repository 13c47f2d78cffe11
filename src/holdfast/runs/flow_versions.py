"""Which version of a flow is its current one.

A flow's graph comes from its code, or it was posted: sent over HTTP, submitted as a pipeline, or imported
with a run. What was posted is marked, and never passes for the code's: where a flow of that name has code,
the newest version of its code is the current one, whatever was posted after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.errors import FlowNameTakenError
from holdfast.model.fingerprint import CODED, decode_graph, dialect_of
from holdfast.runs.access import RunAccess
from holdfast.store.protocols import Store
from holdfast.store.rows import FlowRow
from holdfast.types.document import Document

_TENANT: Final = "_server"
_KIND: Final = "posted_flow"
_PAGE: Final = 1000


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
    return sorted(rows, key=lambda row: (code.has(row), row.created_at, row.version), reverse=True)


async def require_free_name(
    service: RunAccess, name: str, version: str, *, is_deployed: bool = False
) -> None:
    """Raises FlowNameTakenError if another version of a flow of that name comes from code. `is_deployed`: a
    document has the name already; then code that ran once does not take it, only code that is loaded."""
    code = await _CodeVersions.read(service)
    rows = [row for row in await service.store.flows() if row.name == name and row.version != version]
    live = {known for known, flow in code.live.items() if flow == name} - {version}
    if live or (not is_deployed and any(map(code.has, rows))):
        raise FlowNameTakenError(
            f"{name!r} is the name of a flow whose graph comes from its code, and this is another graph.",
            hint="Give the graph another name, or deploy the code that it belongs to.",
            flow=name,
        )


class _CodeVersions:
    """`live`: versions, with their flow, whose code is loaded here or by a live worker; `marked`: those that
    were posted."""

    def __init__(self, live: dict[str, str], marked: set[str]) -> None:
        self.live = live
        self.marked = marked

    @classmethod
    async def read(cls, service: RunAccess) -> _CodeVersions:
        now = service.store.now()
        live = {each.version: each.graph.name for each in service.runtime.programs.values()}
        for worker in await service.store.workers():
            if worker.until > now:
                live.update(worker.versions)
        return cls(
            {v: flow for v, flow in live.items() if dialect_of(v) == CODED}, await _marked(service.store)
        )

    def has(self, row: FlowRow) -> bool:
        if dialect_of(row.version) == "canvas":
            return False  # a tenant deploys it, and it has no code
        if dialect_of(row.version) != CODED:
            # A document needs no code: who sent it is a part of it.
            return not (decode_graph(row.graph).document or {}).get("submitted")
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
