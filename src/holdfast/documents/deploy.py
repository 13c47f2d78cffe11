"""Documents that a tenant deployed: their versions, the bytes that were sent, and which version is current.

The graph of a version is stored once for all tenants, as every flow's is; that a tenant has it is a record of
that tenant. So names are per tenant, and the same document of two tenants is one version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast.documents.functions import registered_functions
from holdfast.documents.program import default_site
from holdfast.documents.queue_allow_list import require_listed_queues
from holdfast.errors import (
    DocumentChangedError,
    FlowInvalidError,
    FlowNotFoundError,
    InputError,
    NoDocumentError,
)
from holdfast.frontends.document.available_names import DocumentSite, FoundFlow
from holdfast.frontends.document.compile import CompiledDocument, compile_document
from holdfast.frontends.document.document import FlowDocument, Json
from holdfast.frontends.document.dump import dump_data
from holdfast.frontends.document.layout import with_layout
from holdfast.frontends.document.limits import MAX_BYTES, MAX_EXPANSION
from holdfast.frontends.document.problem import DocumentProblem, require_valid_document
from holdfast.frontends.document.read import ReadDocument, read_data, read_sent, read_text
from holdfast.frontends.document.source import Format
from holdfast.model.fingerprint import CODED, decode_graph, dialect_of, encode_graph, graph_fingerprint
from holdfast.model.graph import GraphSpec
from holdfast.runs.flow_versions import require_free_name
from holdfast.runs.service_protocol import RunAccess
from holdfast.store.rows import FlowRow
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.document import Document
from holdfast.types.tenant_thread_pool import TenantThreads

VERSION: Final = "flow_version"
SOURCE: Final = "flow_source"
CURRENT: Final = "flow_current"
LAYOUT: Final = "flow_layout"
MOST_CHECKED: Final = 16
"""Documents of one tenant that are checked or wait: most take milliseconds, the largest a few seconds."""
checks = TenantThreads("checks", threads=2, most=MOST_CHECKED, what="documents are being checked")
_SHORTEST: Final = 6
_LEAST_DIGITS: Final = 3
_PAGE: Final = 1000
Functions = Mapping[str, Callable[..., Any]]


class SentDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was sent: its exact bytes, or data that has none."""

    raw: bytes
    format: Format
    data: Json | None = None

    @classmethod
    def of_data(cls, data: Json) -> SentDocument:
        """Of the body of a request. Its bytes are written, not kept: the body had other keys around it."""
        return cls(raw=dump_data(data, "json").encode(errors="surrogatepass"), format="json", data=data)

    def read(self) -> ReadDocument:
        return read_text(self.raw, self.format) if self.data is None else read_sent(self.data)

    def read_stored(self) -> ReadDocument:
        """With any number of values: it was taken, perhaps before there was a limit."""
        return read_text(self.raw, self.format, most=MAX_BYTES * MAX_EXPANSION)


class DeployedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """`unfinished`: it is to become current, which did not happen yet; who sends it again makes up for it."""

    flow: str
    version: str
    created_at: int
    created_by: str
    unfinished: bool = False


class DeployResult(msgspec.Struct, frozen=True, kw_only=True):
    """`new`: the tenant did not have this version. `problems`: warnings and hints."""

    version: DeployedVersion
    spec: GraphSpec
    problems: list[DocumentProblem]
    new: bool
    current: bool
    stored: bool


class DeployedFlows:
    """The documents of one tenant. `functions`: all that its workers have; None: only workers know."""

    def __init__(self, service: RunAccess, tenant: str, functions: Functions | None = None) -> None:
        self.service = service
        self.store = service.store
        self.tenant = tenant
        self.functions = functions

    # ------------------------------------------------------------------ look-up
    async def has(self, flow: str, version: str) -> bool:
        return await self.store.document(self.tenant, VERSION, _name(flow, version)) is not None

    async def versions(self, flow: str) -> list[DeployedVersion]:
        """Newest first."""
        found: list[DeployedVersion] = []
        after = ""
        while page := await self.store.documents(
            self.tenant, VERSION, prefix=f"{flow}/", after=after, limit=_PAGE
        ):
            found += [msgspec.json.decode(each.body, type=DeployedVersion) for each in page]
            after = page[-1].name
        return sorted(found, key=lambda each: (each.created_at, each.version), reverse=True)

    async def current(self, flow: str) -> str | None:
        kept = await self.store.document(self.tenant, CURRENT, flow)
        return None if kept is None else msgspec.json.decode(kept.body)["version"]

    async def format_of(self, flow: str, current: Document) -> Format:
        """In which format the current version was sent."""
        about = msgspec.json.decode(current.body)
        if "format" in about:
            return about["format"]
        sent = await self.sent(flow, about["version"])
        return "yaml" if sent is None else sent.format

    async def find(self, flow: str, wanted: str | None = None) -> DeployedVersion | None:
        """By its version or a prefix of it; without one, the current version. None: the tenant has no
        document of that name. Raises FlowNotFoundError if it has, but not this version."""
        versions = await self.versions(flow)
        if not versions:
            return None
        if wanted == "latest":
            return versions[0]
        if wanted in (None, "current"):
            current = await self.current(flow)
            found = [each for each in versions if each.version == current]
            missing = f"flow {flow!r} has no current version"
            hint = "Activate one: POST /v1/flows/{flow}/activate, or `holdfast deploy FILE`."
        else:
            found = [each for each in versions if is_version(str(wanted), each.version)]
            missing = f"there is no version {wanted!r} of flow {flow!r} here"
            hint = "GET /v1/flows/{flow} lists them."
        if found:
            return found[0]
        raise FlowNotFoundError(f"{missing}.", hint=hint.replace("{flow}", flow), flow=flow)

    async def spec(self, flow: str, version: str) -> GraphSpec:
        row = await self.store.flow(flow, version)
        assert row is not None, "the graph is stored before the version"
        return decode_graph(row.graph)

    async def sent(self, flow: str, version: str) -> SentDocument | None:
        """The bytes that were sent first. None: this version was not deployed in this tenant."""
        kept = await self.store.document(self.tenant, SOURCE, _name(flow, version))
        if kept is None or not await self.has(flow, version):
            return None
        return msgspec.msgpack.decode(kept.body, type=SentDocument)

    async def document(self, flow: str, version: str) -> FlowDocument:
        """As it was sent, with its present layout. Raises NoDocumentError."""
        sent = await self.sent(flow, version)
        if sent is None:
            raise NoDocumentError(
                f"version {version} of flow {flow!r} was not deployed as a document here.",
                hint="GET the version itself for its graph.",
                flow=flow,
            )
        found = (await checks.run(self.tenant, sent.read_stored)).document
        assert found is not None, "it was read before it was stored"
        kept = await self.store.document(self.tenant, LAYOUT, _name(flow, version))
        if kept is None:
            return found
        changed = read_data(with_layout(found, msgspec.json.decode(kept.body))).document
        assert changed is not None, "a layout is checked before it is stored"
        return changed

    async def layout_revision(self, flow: str, version: str) -> int:
        """0: the layout is the one that was sent."""
        kept = await self.store.document(self.tenant, LAYOUT, _name(flow, version))
        return 0 if kept is None else kept.revision

    async def put_layout(self, flow: str, version: str, layout: Json, *, expect: int) -> FlowDocument:
        """Replaces the layout; the version stays. Raises NoDocumentError, InputError, FlowInvalidError,
        DocumentChangedError if another writer was first."""
        document = await self.document(flow, version)
        _require_known_parts(document, layout)
        read = read_data(with_layout(document, layout))
        require_valid_document(flow, read.problems())
        row = Document(
            tenant=self.tenant, kind=LAYOUT, name=_name(flow, version), body=msgspec.json.encode(layout)
        )
        if await self.store.put_document(row, expect=expect) is None:
            raise DocumentChangedError(
                f"the layout of flow {flow!r} was changed by another writer.", hint="Read it again."
            )
        assert read.document is not None
        return read.document

    # ------------------------------------------------------------------ compile
    async def compile(self, sent: SentDocument) -> CompiledDocument:
        """With the tenant's connections, and its other documents as sub-flows. A function that this process
        does not have is a warning: only workers call it. Raises SettingsError, RateLimitedError."""
        read = await checks.run(self.tenant, sent.read)
        flows = await self._flows(read.document)

        def find(name: str, version: str) -> FoundFlow | None:
            return flows.get((name, version))

        site = msgspec.structs.replace(
            default_site(tenant=self.tenant),
            functions=self.functions,
            flows=find,
        )
        now = self.store.now()
        workers = [
            set(row.offers) for row in await self.store.workers() if row.is_alive(now) and not row.draining
        ]
        compiled = await checks.run(self.tenant, _compile, read, site, workers)
        queues = self.service.runtime.queues
        return compiled if queues is None else require_listed_queues(compiled, read, queues.open().settings)

    async def _flows(self, document: FlowDocument | None) -> dict[tuple[str, str], FoundFlow]:
        found: dict[tuple[str, str], FoundFlow] = {}
        for name, version in sorted(_subflows(document)):
            try:
                known = await self.find(name, version or None)
            except FlowNotFoundError:
                continue
            if known is not None:
                spec = await self.spec(name, known.version)
                found[name, version] = FoundFlow(version=known.version, spec=spec)
        return found

    # ------------------------------------------------------------------ change
    async def deploy(
        self, sent: SentDocument, *, by: str, dry_run: bool = False, activate: bool | None = None
    ) -> DeployResult:
        """Raises FlowInvalidError that lists every problem, FlowNameTakenError. With `dry_run` nothing is
        stored. `activate`: whether it becomes current; by default only if the tenant did not have it, so that
        an old document that is sent again does not take the place of a newer one."""
        compiled = await self.compile(sent)
        spec = compiled.require_valid()
        version = graph_fingerprint(spec)
        has_name = await self.current(spec.name) is not None
        await require_free_name(self.service, spec.name, version, is_deployed=has_name)
        known = await self.store.document(self.tenant, VERSION, _name(spec.name, version))
        about = (
            DeployedVersion(
                flow=spec.name,
                version=version,
                created_at=self.store.now(),
                created_by=by,
                unfinished=activate is not False,
            )
            if known is None
            else msgspec.json.decode(known.body, type=DeployedVersion)
        )
        new = known is None
        if not dry_run:
            new = new and await self._put(about, spec, sent)
            if activate or (activate is None and about.unfinished):
                await self._finish(about, by=by)
        return DeployResult(
            version=about,
            spec=spec,
            problems=compiled.problems,
            new=new,
            current=await self.current(spec.name) == version,
            stored=not dry_run,
        )

    async def _put(self, about: DeployedVersion, spec: GraphSpec, sent: SentDocument) -> bool:
        """The record of the version last: without it nothing of the rest is visible. False: another caller
        was first."""
        row = FlowRow(
            name=spec.name, version=about.version, graph=encode_graph(spec), created_at=about.created_at
        )
        await self.store.put_flow(row)
        name = _name(about.flow, about.version)
        # With its format: of two that send it at once, one may be first here and the other below.
        kept = msgspec.msgpack.encode(SentDocument(raw=sent.raw, format=sent.format))
        await self.store.put_document(
            Document(tenant=self.tenant, kind=SOURCE, name=name, body=kept), expect=0
        )
        body = msgspec.json.encode(about)
        made = await self.store.put_document(
            Document(tenant=self.tenant, kind=VERSION, name=name, body=body), expect=0
        )
        return made is not None

    async def _finish(self, about: DeployedVersion, *, by: str) -> None:
        if await self.current(about.flow) != about.version:
            await self._set_current(about.flow, about.version, by=by, action="flow_deployed")
        if about.unfinished:
            body = msgspec.json.encode(msgspec.structs.replace(about, unfinished=False))
            name = _name(about.flow, about.version)
            await self.store.put_document(Document(tenant=self.tenant, kind=VERSION, name=name, body=body))

    async def activate(self, flow: str, version: str, *, by: str) -> DeployedVersion:
        """New runs start on it; runs that exist keep theirs. Raises FlowNotFoundError."""
        found = await self.find(flow, version)
        if found is None:
            raise FlowNotFoundError(
                f"there is no document of flow {flow!r} here.", hint="Deploy it first.", flow=flow
            )
        if await self.current(flow) != found.version:
            await self._set_current(flow, found.version, by=by, action="flow_activated")
        return found

    async def _set_current(self, flow: str, version: str, *, by: str, action: str) -> None:
        sent = await self.sent(flow, version)
        # So that a list need not read its text.
        body = msgspec.json.encode({"version": version} | ({} if sent is None else {"format": sent.format}))
        row = Document(tenant=self.tenant, kind=CURRENT, name=flow, body=body)
        changed = False
        while not changed:
            kept = await self.store.document(self.tenant, CURRENT, flow)
            before = None if kept is None else msgspec.json.decode(kept.body)["version"]
            data = canonical({"flow": flow, "version": version, "before": before})
            # The entry first: a change must never be missing from the audit. Another caller may be faster:
            # then a second entry follows theirs, so that the last one names what is current.
            entry = NewAudit(at=self.store.now(), actor=by, action=action, data=data)
            await self.store.append_audit(self.tenant, [entry])
            expect = 0 if kept is None else kept.revision
            changed = await self.store.put_document(row, expect=expect) is not None


def is_version(wanted: str, version: str) -> bool:
    """Whether this is the version, or a prefix of it, with or without its dialect."""
    digits = wanted.removeprefix(f"{dialect_of(version)}-")
    if len(wanted) < _SHORTEST or len(digits) < _LEAST_DIGITS:
        return False
    return version.partition("-")[2].startswith(digits)


def _name(flow: str, version: str) -> str:
    return f"{flow}/{version}"


def _require_known_parts(document: FlowDocument, layout: Json) -> None:
    """Raises InputError for a node or an edge that the document does not have."""
    known = {"nodes": {node.id for node in document.nodes}, "edges": {edge.name for edge in document.edges}}
    for part, names in known.items():
        unknown = sorted(set(layout.get(part, {})) - names)
        if unknown:
            raise InputError(
                f"the document has no {part.removesuffix('s')} {unknown[0]!r}.",
                hint="A layout names nodes by id and edges by id or source:port->target.",
            )


def _subflows(document: FlowDocument | None) -> Iterable[tuple[str, str]]:
    """The flows that it names, each with a version or an empty text."""
    for node in () if document is None else document.nodes:
        flow, version = node.config.get("flow"), node.config.get("version") or ""
        if node.type == "subflow" and isinstance(flow, str) and isinstance(version, str):
            yield flow, version


def _compile(read: ReadDocument, site: DocumentSite, workers: list[set[str]]) -> CompiledDocument:
    """With a warning where no live worker can run it (CV-34)."""
    compiled = compile_document(read, site)
    needs = {need: node for node in compiled.nodes for need in node.type.requires(node)}
    if site.functions is None and not any(needs.keys() <= offers for offers in workers):
        here = {*registered_functions(), *(site.tools or {})}
        offered = set[str]().union(*workers)
        for need in (needs.keys() - offered) or needs:
            kind, _, name = need.partition(":")
            if name not in here:
                message = f"no live worker has the {kind} {name!r}: runs wait for one that has it"
                fix = "start one: holdfast worker --functions FILE"
                node = needs[need]
                listed = name in getattr(node.config, "tools", ())
                field = kind if kind in node.given else "tools" if listed else "toolkit"
                read.report.warn(node.at(field), f"{kind}-missing", message, fix, node=node.id)
    return msgspec.structs.replace(compiled, problems=read.problems())


def require_not_document(spec: GraphSpec) -> None:
    """Raises FlowInvalidError for a graph that says that it was made from a document: the two could differ,
    and workers take the code of its nodes from the document."""
    if dialect_of(graph_fingerprint(spec)) == CODED or (spec.document or {}).get("dialect") != "canvas":
        return
    raise FlowInvalidError(
        "this graph was made from a flow document.", hint='Send the document itself: {"document": {...}}.'
    )
