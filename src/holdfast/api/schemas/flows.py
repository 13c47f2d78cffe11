"""Flows on the wire."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec

from holdfast.api.schemas.common import Name, moment
from holdfast.documents.deploy import SentDocument
from holdfast.frontends.document.problem import DocumentProblem
from holdfast.model.diagnostics import GraphProblem as Diagnosis
from holdfast.runs.flow_versions import FlowSummary
from holdfast.runs.migrate.check import MigrationReport
from holdfast.store.rows import FlowRow
from holdfast.types.status import RunStatus


class FlowVersion(msgspec.Struct, kw_only=True):
    """`loaded`: this server has its code. `workers`: number of live workers that have it. `current`: new runs
    start on it, if they name no version. `document`: it was deployed as a document."""

    version: str
    label: str
    created_at: str
    nodes: int
    loaded: bool
    workers: int
    current: bool = False
    document: bool = False


class FlowWire(msgspec.Struct, kw_only=True):
    """Versions, newest first. `description`: what it does, if this server has its code. `input_schema`: the
    JSON Schema of the input that its newest version takes."""

    name: str
    versions: list[FlowVersion]
    description: str = ""
    input_schema: dict[str, Any] = {}


class FlowGraph(msgspec.Struct, kw_only=True):
    """`graph`: nodes, edges and policies, the common form of every front end. Of a document that was just
    sent: `problems`, its warnings; `current`, whether new runs start on it; `stored`, false after a dry run.
    """

    name: str
    version: str
    label: str
    created_at: str
    graph: dict[str, Any]
    current: bool | None = None
    stored: bool = True
    problems: list[FlowProblem] = []


class RawSource(msgspec.Struct, kw_only=True):
    """Parameters of the query beside a body that is the text of a document."""


class RawDeploy(RawSource, kw_only=True):
    dry_run: bool = False
    activate: bool | None = None


class FlowSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of: `document`, a flow document; `source`, its text in `format`; `graph`, a compiled flow; `flow`,
    a flow of this server or a file that it may load."""

    raw_options: ClassVar[type[RawSource]] = RawSource

    document: dict[str, Any] | None = None
    source: str | None = None
    format: Literal["json", "yaml"] = "yaml"
    graph: dict[str, Any] | None = None
    flow: Name | None = None

    def __post_init__(self) -> None:
        given = [each for each in (self.document, self.source, self.graph, self.flow) if each is not None]
        if len(given) != 1:
            raise ValueError("send one of document, source, graph and flow")

    @classmethod
    def of_raw(cls, data: bytes, options: RawSource) -> Self:
        """Of a body that is the text itself. Bytes that are not UTF-8 are kept, for the reader."""
        return cls(source=data.decode(errors="surrogateescape"), **msgspec.structs.asdict(options))

    @property
    def sent(self) -> SentDocument | None:
        """The document, if it is one."""
        return sent_document(self.document, self.source, self.format)


class RegisterFlow(FlowSource, kw_only=True, forbid_unknown_fields=True):
    """Of a document: `dry_run` stores nothing. `activate`: whether new runs start on it; by default only if
    it is a new version."""

    raw_options: ClassVar[type[RawSource]] = RawDeploy

    dry_run: bool = False
    activate: bool | None = None


class ValidateFlow(FlowSource, kw_only=True, forbid_unknown_fields=True):
    """All problems are reported, and nothing is stored."""


class FlowProblem(msgspec.Struct, kw_only=True):
    """Of a document also its place: `path` is a JSON Pointer, `field` the same for people, `line` and
    `column` count from 1."""

    rule: str
    severity: str
    message: str
    node: str | None = None
    edge: str | None = None
    fix: str | None = None
    path: str | None = None
    field: str | None = None
    line: int | None = None
    column: int | None = None


class FlowValidation(msgspec.Struct, kw_only=True):
    """`valid`: no problem is an error. `version`: the fingerprint that it would have. `ports`: where
    edges may leave each node of a document."""

    valid: bool
    name: str
    version: str
    problems: list[FlowProblem]
    ports: dict[str, list[str]] = {}


class DocumentQuery(msgspec.Struct, kw_only=True):
    """`source`: the bytes that were sent. `json`, `yaml`: written anew, with the present layout."""

    format: Literal["source", "json", "yaml"] = "source"


class SaveDocument(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The text of a document, as it is to be kept."""

    source: str
    format: Literal["json", "yaml"] = "yaml"

    @property
    def sent(self) -> SentDocument:
        return SentDocument(raw=self.source.encode(errors="surrogateescape"), format=self.format)


class SavedDocument(msgspec.Struct, kw_only=True):
    """A document that people work on. `saved_by`, `saved_at`: of its draft; None without one. `version`: the
    version that new runs start on; None: it was never deployed."""

    name: str
    format: Literal["json", "yaml"]
    saved_by: str | None
    saved_at: str | None
    version: str | None


class EditableDocument(SavedDocument, kw_only=True):
    """`source`: the text of the draft; without a draft, that of the current version."""

    source: str


class NodeBoxWire(msgspec.Struct, kw_only=True):
    """`x`, `y`: its upper left corner, from that of the node around it."""

    x: float
    y: float
    width: float
    height: float


class Arrangement(msgspec.Struct, kw_only=True):
    """`nodes` by id; of a graph, a node inside of another one has its name in front: `each/pay`."""

    nodes: dict[str, NodeBoxWire]


class NodeLayout(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    label: str = ""
    position: dict[str, Any] | None = None
    ui: Any = None


class EdgeLayout(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    label: str = ""
    ui: Any = None


class FlowLayout(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a document is drawn: `nodes` by id, `edges` by id or `source:port->target`."""

    nodes: dict[str, NodeLayout] = {}
    edges: dict[str, EdgeLayout] = {}
    label: str = ""
    notes: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    ui: Any = None


class ActivateFlow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    version: Name


class DiffFlow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """From a version to another one, or to a document or its text, which need not be deployed. `current` is
    the current version."""

    since: Annotated[Name, msgspec.Meta(description="A version, or `current`.")] = msgspec.field(
        name="from", default="current"
    )
    to: Name | None = None
    document: dict[str, Any] | None = None
    source: str | None = None
    format: Literal["json", "yaml"] = "yaml"

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.to, self.document, self.source)) != 1:
            raise ValueError("send one of to, document and source")

    @property
    def sent(self) -> SentDocument | None:
        return sent_document(self.document, self.source, self.format)


class FlowChange(msgspec.Struct, kw_only=True):
    """`kind`: added, removed or changed; `path` such as `config.timeout`."""

    path: str
    kind: str
    before: Any = None
    after: Any = None


class FlowPartDiff(msgspec.Struct, kw_only=True):
    """A node or an edge; `before` and `after`: the whole of it, without layout."""

    id: str
    change: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changes: list[FlowChange]


class FlowDiff(msgspec.Struct, kw_only=True):
    """`same`: both mean the same. `reordered`: the nodes stand in another order. `settings`: other keys."""

    same: bool
    nodes: list[FlowPartDiff]
    edges: list[FlowPartDiff]
    settings: list[FlowChange]
    layout: list[FlowChange]
    reordered: bool


class FlowMismatchWire(msgspec.Struct, kw_only=True):
    node: str
    why: str
    fix: str
    soft: bool


class RunFitWire(msgspec.Struct, kw_only=True):
    run: str
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


def sent_document(
    document: dict[str, Any] | None, source: str | None, form: Literal["json", "yaml"]
) -> SentDocument | None:
    if document is not None:
        return SentDocument.of_data(document)
    if source is not None:
        return SentDocument(raw=source.encode(errors="surrogateescape"), format=form)
    return None


def version_of(
    row: FlowRow,
    summary: FlowSummary,
    *,
    loaded: bool,
    workers: int,
    current: bool = False,
    document: bool = False,
) -> FlowVersion:
    return FlowVersion(
        version=row.version,
        label=summary.label,
        created_at=moment(row.created_at) or "",
        nodes=summary.nodes,
        loaded=loaded,
        workers=workers,
        current=current,
        document=document,
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


def document_problem(problem: DocumentProblem) -> FlowProblem:
    return msgspec.convert(msgspec.to_builtins(problem), FlowProblem)


def run_fit_wire(verdict: MigrationReport) -> RunFitWire:
    return RunFitWire(
        run=verdict.run,
        status=verdict.status,
        version=verdict.version,
        fits=verdict.fits,
        misfits=[
            FlowMismatchWire(node=each.node, why=each.why, fix=each.fix, soft=each.soft)
            for each in verdict.misfits
        ],
        renamed=verdict.renamed,
    )
