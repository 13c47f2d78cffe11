"""The checkpoint store of the graph document, with its names: save, get, load, latest, list, delete, fork."""

from __future__ import annotations

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.graph_checkpoints import (
    ForkGraphCheckpoint,
    GraphCheckpoint,
    GraphCheckpointMetadata,
    GraphRun,
    ListGraphCheckpoints,
    LoadGraphCheckpoint,
    to_plain,
)
from holdfast.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ConflictError,
    EffectsRepeatedError,
    FlowNotFoundError,
    ForbiddenError,
    InputError,
    StateError,
    VersionMismatchError,
)
from holdfast.runs.history.checkpoint_store import CheckpointView

routes = Routes("graph")


async def _store(call: ApiCall) -> CheckpointView:
    return CheckpointView(await call.runs(), call.tenant)


@routes.get("/graph/checkpoints", needs=Right.runs_read)
async def list_graph_checkpoints(call: ApiCall, query: ListGraphCheckpoints) -> Page[GraphCheckpointMetadata]:
    """The newest checkpoints of a graph (the version of a flow), or of one run of it, without their state."""
    found = await (await _store(call)).list(query.graph_id, run_id=query.run_id, limit=query.limit)
    return Page(items=msgspec.convert(found, list[GraphCheckpointMetadata]))


@routes.get(
    "/graph/checkpoints/{checkpoint}",
    needs=Right.runs_read,
    raises=(CheckpointNotFoundError, CheckpointCorruptError, FlowNotFoundError),
)
async def get_graph_checkpoint(call: ApiCall, checkpoint: str) -> GraphCheckpoint:
    """One checkpoint."""
    found = await (await _store(call)).get(checkpoint)
    if found is None:
        raise _missing(f"there is no checkpoint {checkpoint!r} in this store.")
    return msgspec.convert(found, GraphCheckpoint)


@routes.get(
    "/graph/runs/{run}/checkpoint",
    needs=Right.runs_read,
    raises=(CheckpointNotFoundError, CheckpointCorruptError, FlowNotFoundError),
)
async def load_graph_checkpoint(call: ApiCall, run: str, query: LoadGraphCheckpoint) -> GraphCheckpoint:
    """The newest checkpoint of a run, or of a node of it."""
    found = await (await _store(call)).load(run, query.node_id)
    if found is None:
        at = f" at node {query.node_id!r}" if query.node_id else ""
        raise _missing(f"there is no checkpoint of run {run!r}{at} in this store.")
    return msgspec.convert(found, GraphCheckpoint)


@routes.put(
    "/graph/checkpoints/{checkpoint}",
    needs=Right.runs_write,
    raises=(
        CheckpointNotFoundError,
        ConflictError,
        CheckpointCorruptError,
        FlowNotFoundError,
        InputError,
    ),
)
async def save_graph_checkpoint(call: ApiCall, checkpoint: str, body: GraphCheckpoint) -> GraphCheckpoint:
    """Save a checkpoint that is stored exactly like this: nothing changes.

    409 for any other: checkpoints are written by the run, and a changed one is a fork."""
    if body.id != checkpoint:
        raise InputError(f"the body has the id {body.id!r}, not {checkpoint!r}.")
    store = await _store(call)
    await store.find(checkpoint)
    await store.save(to_plain(body))
    return body


@routes.delete(
    "/graph/checkpoints/{checkpoint}", needs=Right.admin, raises=(CheckpointNotFoundError, ConflictError)
)
async def delete_graph_checkpoint(call: ApiCall, checkpoint: str) -> None:
    """Delete the oldest checkpoint of an ended run; 409 for any other."""
    store = await _store(call)
    await store.find(checkpoint)
    await store.delete(checkpoint)


@routes.post(
    "/graph/checkpoints/{checkpoint}/fork",
    needs=Right.runs_write,
    status=201,
    raises=(
        CheckpointNotFoundError, StateError, VersionMismatchError, FlowNotFoundError, EffectsRepeatedError,
        ForbiddenError,
    ),
)  # fmt: skip
async def fork_graph_checkpoint(
    call: ApiCall, checkpoint: str, body: ForkGraphCheckpoint
) -> ApiReply[GraphRun]:
    """Create a run that starts at this checkpoint, with a patch of its state; the source is not changed."""
    made = await (await _store(call)).fork(
        checkpoint, body.patch, actor=call.actor, repeat_effects=body.repeat_effects
    )
    return ApiReply(body=GraphRun(run_id=made), status=201, headers=call.location(f"/v1/runs/{made}"))


def _missing(text: str) -> CheckpointNotFoundError:
    return CheckpointNotFoundError(text, hint="GET /v1/graph/checkpoints lists checkpoints.")
