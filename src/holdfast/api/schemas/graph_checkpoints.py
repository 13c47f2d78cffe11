"""Checkpoints with the names of the graph document, in camelCase (docs/reference/graph-checkpoints.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

EffectName = Literal["pure", "read", "write", "external", "human"]


class GraphState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The partitions of the state. Values that are declared secret are hidden."""

    input: Any
    scratch: Any
    artifacts: Any
    diagnostics: dict[str, Any]


class GraphNodeResult(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    effect_class: EffectName
    output: Any
    duration_ms: float


class GraphMemoryRead(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    trace_id: str
    content: str
    strength: float


class GraphMemoryWrite(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    type: str
    content: str
    scope: str


class GraphMemory(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`pendingWrites`: those that were not committed yet."""

    reads: list[GraphMemoryRead]
    pending_writes: list[GraphMemoryWrite]


class GraphCheckpoint(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A run at a node boundary. `timestamp`: milliseconds since 1970. `visitedNodes`: completed nodes in
    order; `skippedNodes`: bypassed by routing; `pendingEdges`: taken, the target not started."""

    id: str
    graph_id: str
    run_id: str
    node_id: str
    timestamp: int
    state: GraphState
    node_results: dict[str, GraphNodeResult]
    visited_nodes: list[str]
    pending_edges: list[str]
    skipped_nodes: list[str] = []
    memory_snapshot: GraphMemory | msgspec.UnsetType = msgspec.UNSET


class GraphCheckpointMetadata(msgspec.Struct, kw_only=True, rename="camel"):
    """Without its state. `stateSize`: the bytes that it added to the store."""

    id: str
    run_id: str
    graph_id: str
    node_id: str
    timestamp: int
    state_size: int
    has_memory_snapshot: bool


class ListGraphCheckpoints(msgspec.Struct, kw_only=True, rename="camel"):
    """`graphId`: the version of a flow; `runId`: only of this run."""

    graph_id: str
    run_id: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


class LoadGraphCheckpoint(msgspec.Struct, kw_only=True, rename="camel"):
    node_id: str | None = None


class ForkGraphCheckpoint(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`patch`: changes of `input`, `scratch`, `artifacts` and `diagnostics`, each merged key by key.
    `repeat_effects`: as for `POST /runs/{run}/fork`."""

    patch: dict[str, Any] | None = None
    repeat_effects: bool = False


class GraphRun(msgspec.Struct, kw_only=True, rename="camel"):
    run_id: str


def to_plain(checkpoint: GraphCheckpoint) -> dict[str, Any]:
    """As `Checkpoint.as_interface` gives it."""
    return msgspec.to_builtins(checkpoint)
