"""A flow document in memory: its data as it was written, and typed views of it.

The data is kept whole, with layout and the order of its keys: writing a document loses nothing. The views
have only what could be read; what could not is a problem.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cached_property
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from holdfast.frontends.document.problem import Path
from holdfast.frontends.document.source import DocumentSource

FORMAT: Final = (1, 0)
"""The major and minor version of the format that this code writes."""

NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,99}$"
NODE_ID: Final = r"^[A-Za-z0-9_-]{1,64}$"
QUEUE_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,62}$"

Name = Annotated[str, Meta(pattern=NAME, description="Lower-case letters, digits, dots, dashes.")]
NodeId = Annotated[str, Meta(pattern=NODE_ID, description="Letters, digits, _ and -, at most 64.")]
Json = dict[str, Any]


class CanvasPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the canvas draws a node. Other keys are kept and never read."""

    x: float = 0
    y: float = 0


class FlowNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`parent`: the `map` or `loop` that it is inside of. `disabled`: edges pass through it."""

    id: NodeId
    type: str
    label: str = ""
    position: CanvasPosition | None = None
    parent: NodeId | None = None
    disabled: bool = False
    config: Json = {}
    ui: Any = None


class FlowEdge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: NodeId
    target: NodeId
    id: Annotated[str, Meta(min_length=1, max_length=300)] | None = None
    # `true` and `false` without quotes are the ports of a condition, not texts.
    source_port: str | bool | None = None
    source_handle: Annotated[str | bool | None, Meta(description="Read as `source_port`.")] = msgspec.field(
        default=None, name="sourceHandle"
    )
    when: Annotated[str | None, Meta(description="An expression; only on the port `out`.")] = None
    otherwise: Annotated[
        bool, Meta(description="Taken if no edge of the node with `when` is; only on the port `out`.")
    ] = False
    label: str = ""
    ui: Any = None

    @property
    def port(self) -> str:
        given = self.source_handle if self.source_port is None else self.source_port
        return str(given).lower() if isinstance(given, bool) else given or "out"

    @property
    def is_free(self) -> bool:
        """Whether it is taken whenever its port is."""
        return self.when is None and not self.otherwise

    @property
    def name(self) -> str:
        return self.id or f"{self.source}:{self.port}->{self.target}"


class Variable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["string", "number", "integer", "boolean", "array", "object", "any"] = "any"
    default: Any = msgspec.UNSET
    schema: Json | None = None
    reducer: str | None = None
    secret: bool = False
    description: str = ""


class QueueDefaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    scope: str | None = None


class ConnectionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a node reaches by this name. Other keys belong to the kind."""

    kind: str


class FlowConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`defaults`: config values of every node whose type has them, where the node does not say."""

    scaiqueue: QueueDefaults = QueueDefaults()
    defaults: Json = {}
    connections: dict[str, ConnectionConfig] = {}


class FlowNote(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    text: str = ""


class FlowGroup(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    label: str = ""
    nodes: tuple[str, ...] = ()


class DocumentFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a document."""

    holdfast: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$", description="Version of the format: 1.0.")]
    name: Name
    nodes: tuple[FlowNode, ...]
    label: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    config: FlowConfig = FlowConfig()
    input: Json | None = None
    output: Json | None = None
    variables: dict[str, Variable] = {}
    edges: tuple[FlowEdge, ...] = ()
    notes: tuple[FlowNote, ...] = ()
    groups: tuple[FlowGroup, ...] = ()
    ui: Any = None


class FlowDocument:
    """`data`: as written. `node_paths`, `edge_paths`: where each node and edge stands in it; one that could
    not be read has no view. `broken`: the paths in nodes and edges of values that have a stand-in."""

    def __init__(
        self,
        data: Json,
        fields: DocumentFields,
        node_paths: tuple[Path, ...],
        edge_paths: tuple[Path, ...],
        source: DocumentSource | None = None,
        broken: Collection[Path] = (),
    ) -> None:
        self.data = data
        self.fields = fields
        self.node_paths = node_paths
        self.edge_paths = edge_paths
        self.source = source
        self.broken = broken

    @property
    def name(self) -> str:
        return self.fields.name

    @property
    def nodes(self) -> tuple[FlowNode, ...]:
        return self.fields.nodes

    @property
    def edges(self) -> tuple[FlowEdge, ...]:
        return self.fields.edges

    @property
    def variables(self) -> dict[str, Variable]:
        return self.fields.variables

    @cached_property
    def written(self) -> str:
        """The data with its order and number types: what two equal documents have in common."""
        return json.dumps(self.data, ensure_ascii=False, allow_nan=False)

    def __eq__(self, other: object) -> bool:
        return self.written == other.written if isinstance(other, FlowDocument) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.written)
