"""A checkpoint: the complete state of a run at one record, folded from the journal."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.checkpoint.json_view import as_interface
from holdfast.checkpoint.visit import Visit
from holdfast.model.migration import MIGRATED
from holdfast.model.secrets import masked, redact_known_secrets
from holdfast.types.ids import CheckpointId, RunId
from holdfast.types.record import Kind, Record
from holdfast.types.status import CheckpointStatus


class CheckpointMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows: read from columns alone, no state is loaded."""

    id: CheckpointId
    run: RunId
    flow: str
    version: str
    node: str
    seq: int
    at: int
    status: CheckpointStatus
    # Bytes that this checkpoint added to the store: a checkpoint is a delta.
    state_size: int
    has_memory_snapshot: bool
    # The turn of an agent, if the checkpoint was taken at the end of one.
    turn: int | None = None


class PendingInput(msgspec.Struct, frozen=True, kw_only=True):
    """A hold that was open at the checkpoint, with everything that the person was shown."""

    hold: str
    node: str
    scope: str
    visit: int
    type: str
    prompt: str
    options: Any
    assignee: str | None
    priority: str
    context: Any
    schema: Any
    expires_at: int | None
    asked_at: int


class ArtifactRef(msgspec.Struct, frozen=True, kw_only=True):
    """Where an artifact is stored: in the blob store under `digest`, with `size` bytes; both None for one in
    the records themselves. An encrypted store keeps it under another address."""

    digest: str | None = None
    size: int | None = None


class FidelityState(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the past a walk passes to its next node, and its summary."""

    mode: str | None = None
    summaries: dict[str, Any] = {}


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Times are microseconds since the epoch. `visited`: completed nodes in order, each once."""

    id: CheckpointId
    run: RunId
    seq: int
    node: str
    at: int
    status: CheckpointStatus
    parent: CheckpointId | None
    lineage: dict[str, Any]
    flow: str
    version: str
    code: str
    schema_version: int
    input: Any
    state: Any
    artifacts: Any
    diagnostics: dict[str, Any]
    executions: list[Visit]
    visited: list[str]
    skipped: list[str]
    pending_edges: list[str]
    visits: dict[str, int]
    retries: dict[str, int]
    loops: dict[str, int]
    goal_gates: dict[str, bool]
    artifact_refs: dict[str, ArtifactRef]
    fidelity_state: FidelityState
    memory: dict[str, Any] | None
    pending_input: list[PendingInput]
    # As in `CheckpointMeta`.
    state_size: int
    turn: int | None = None
    secrets: tuple[tuple[str, ...], ...] = ()
    # Of running agents: turn, messages, calls without a result, what was spent; by node and sub-agent.
    agents: dict[str, Any] = {}

    @property
    def node_results(self) -> dict[str, Visit]:
        """The last completed execution of each node; `executions` has them all."""
        return {e.label: e for e in self.executions if e.settled}

    def shown(self) -> Checkpoint:
        """The same without values that are declared secret: for people, files and other programs."""
        if not self.secrets:
            return self
        return msgspec.structs.replace(
            self,
            secrets=(),
            input=masked(self.input, self.secrets),
            state=masked(self.state, self.secrets),
            artifacts=masked(self.artifacts, self.secrets),
            executions=[self._shown(execution) for execution in self.executions],
            memory=None if self.memory is None else redact_known_secrets(self.memory),
        )

    def _shown(self, execution: Visit) -> Visit:
        return msgspec.structs.replace(execution, output=masked(execution.output, self.secrets))

    def as_interface(self) -> dict[str, Any]:
        """The published interface (docs/reference/checkpoint.schema.json): JSON-safe, camelCase."""
        return as_interface(self)


def checkpoint_status(record: Record) -> CheckpointStatus:
    """From columns alone. A pruned run's horizon is a snapshot with the columns of the record it replaced; a
    migration's has the effect `human` if the run waits for a person."""
    kept = record.kind == Kind.snapshot and record.effect == "human" and record.outcome in ("", MIGRATED)
    if record.kind == Kind.asked or kept:
        return CheckpointStatus.pending_input
    if record.outcome == "completed":
        return CheckpointStatus.completed
    if record.outcome in ("fail", "failed"):
        return CheckpointStatus.failed
    return CheckpointStatus.active
