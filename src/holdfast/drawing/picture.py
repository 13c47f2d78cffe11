"""The model of a drawing: boxes and lines with labels, states and marks; without positions and colours."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.errors import InputError
from holdfast.types.redaction import redactor


class NodeShape(StrEnum):
    """The kind of a node: an icon in an SVG, a sign in a terminal. `entry` and `exit` are the first and last
    of a pipeline, which have names; `start` and `end` are the dots of a flow."""

    task = "task"
    hold = "hold"
    timer = "timer"
    map = "map"
    subflow = "subflow"
    guard = "guard"
    choice = "choice"
    fork = "fork"
    meet = "meet"
    tool = "tool"
    manager = "manager"
    entry = "entry"
    exit = "exit"
    start = "start"
    end = "end"


class State(StrEnum):
    """The state of a node: shown by a sign, a word and a colour, so that no reader depends on one of them."""

    idle = ""
    ready = "ready"
    running = "running"
    done = "done"
    failed = "failed"
    waiting = "waiting"
    asking = "asking"
    skipped = "skipped"
    unknown = "unknown"


class EdgeStyle(StrEnum):
    """The kind of an edge. A `loop` leads back and is drawn at the side."""

    plain = "plain"
    conditional = "conditional"
    loop = "loop"
    failure = "failure"
    dead = "dead"


class Highlight(StrEnum):
    """A highlight: `taken` for the path of a run, the others for a comparison."""

    none = ""
    taken = "taken"
    added = "added"
    removed = "removed"
    changed = "changed"


class PictureNode(msgspec.Struct, frozen=True, kw_only=True):
    """`note` is a short second line (a duration, a count); `detail` is shown on demand.
    `inside` is a separate picture, drawn within the node's frame (an expanded sub-flow); `closed`: there is
    one, which is not drawn."""

    id: str
    label: str
    shape: NodeShape = NodeShape.task
    state: State = State.idle
    mark: Highlight = Highlight.none
    note: str = ""
    detail: str = ""
    inside: Picture | None = None
    closed: bool = False


class PictureEdge(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    label: str = ""
    look: EdgeStyle = EdgeStyle.plain
    mark: Highlight = Highlight.none
    id: str = ""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """The order of nodes and edges is a hint: what is declared first is drawn further left."""

    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        """Raises InputError for duplicate ids, and for an edge to a node that does not exist."""
        known = {node.id for node in self.nodes}
        if len(known) < len(self.nodes):
            raise InputError(f"the picture {self.title!r} has two nodes with the same id.")
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in known:
                    raise InputError(
                        f"the picture {self.title!r} has an edge to {end!r}, which is not one of its nodes."
                    )

    def without_secrets(self) -> Picture:
        """With known secrets masked in every text that is drawn."""
        return msgspec.structs.replace(
            self,
            title=redactor.redact(self.title),
            nodes=tuple(_node_without_secrets(node) for node in self.nodes),
            edges=tuple(
                msgspec.structs.replace(edge, label=redactor.redact(edge.label)) for edge in self.edges
            ),
        )


def _node_without_secrets(node: PictureNode) -> PictureNode:
    texts = {name: redactor.redact(getattr(node, name)) for name in ("label", "note", "detail")}
    inside = None if node.inside is None else node.inside.without_secrets()
    return msgspec.structs.replace(node, inside=inside, **texts)
