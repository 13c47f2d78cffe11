"""Holds under the names that the documents give them: a hold is their checkpoint.

The same actions as under `/v1/holds`; bodies and filters have the documents' fields. `api.aliases` rewrites
the documents' other prefixes to these paths.
"""

from __future__ import annotations

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.routes.holds import (
    CHANGING,
    DECIDING,
    LOOKING,
    cancel_row,
    find_holds,
    reassign_row,
    resolve_row,
)
from holdfast.api.routes.holds import hold_history as _history
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.hold_query import ListCheckpointHolds, query_of
from holdfast.api.schemas.holds import (
    CheckpointWire,
    EntryWire,
    HoldAnswer,
    Reason,
    ReassignHold,
    checkpoint_wire,
)
from holdfast.errors import ForbiddenError, InputError
from holdfast.types.hold import HoldRow

routes = Routes("checkpoints")


@routes.get("/checkpoints", needs=Right.holds_read, raises=(InputError, ForbiddenError))
async def list_checkpoint_holds(call: ApiCall, query: ListCheckpointHolds) -> Page[CheckpointWire]:
    """Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints."""
    service = await call.holds()
    now = service.ctx.now()
    rows, following = await find_holds(call, query_of(query.native(), call.actor, now), query)
    return Page(items=[checkpoint_wire(row, now) for row in rows], next=following)


@routes.get("/checkpoints/{checkpoint}", needs=Right.holds_read, raises=LOOKING)
async def get_checkpoint_hold(call: ApiCall, checkpoint: str) -> ApiReply[CheckpointWire]:
    """One hold."""
    return await _reply(call, await (await call.holds()).get(call.actor, checkpoint))


@routes.post(
    "/checkpoints/{checkpoint}/resolve", needs=Right.holds_write, raises=DECIDING, keyed=True, guarded=True
)
async def resolve_checkpoint(call: ApiCall, checkpoint: str, body: HoldAnswer) -> ApiReply[CheckpointWire]:
    """Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`."""
    done = await resolve_row(call, checkpoint, body)
    return await _reply(call, done.row, replay=done.replay)


@routes.post("/checkpoints/{checkpoint}/cancel", needs=Right.holds_write, raises=CHANGING, guarded=True)
async def cancel_checkpoint(call: ApiCall, checkpoint: str, body: Reason) -> ApiReply[CheckpointWire]:
    """Withdraw it without a decision."""
    return await _reply(call, await cancel_row(call, checkpoint, body))


@routes.post("/checkpoints/{checkpoint}/reassign", needs=Right.holds_write, raises=CHANGING, guarded=True)
async def reassign_checkpoint(call: ApiCall, checkpoint: str, body: ReassignHold) -> ApiReply[CheckpointWire]:
    """Reassign it; the new assignee is notified."""
    return await _reply(call, await reassign_row(call, checkpoint, body))


@routes.get("/checkpoints/{checkpoint}/history", needs=Right.holds_read, raises=LOOKING)
async def checkpoint_history(call: ApiCall, checkpoint: str) -> Page[EntryWire]:
    """The history: created, notification sent, resolved and more, oldest first."""
    return await _history(call, checkpoint)


async def _reply(call: ApiCall, row: HoldRow, *, replay: bool = False) -> ApiReply[CheckpointWire]:
    now = (await call.holds()).ctx.now()
    return ApiReply(body=checkpoint_wire(row, now, replay=replay), etag=str(row.version))
