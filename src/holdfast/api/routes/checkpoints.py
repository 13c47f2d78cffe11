"""Holds under the names that the documents give them: a hold is their checkpoint.

The same handlers as under `/v1/holds`; the bodies have the documents' fields. `api.aliases` rewrites the
documents' other prefixes to these paths.
"""

from __future__ import annotations

from holdfast.api.auth.principal import Right
from holdfast.api.routes.holds import (
    CHANGING,
    DECIDING,
    LOOKING,
    cancel_reply,
    hold_reply,
    reassign_reply,
    resolve_reply,
)
from holdfast.api.routes.holds import hold_history as _history
from holdfast.api.routes.holds import list_holds as _list
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import Page
from holdfast.api.schemas.hold_query import ListHolds
from holdfast.api.schemas.holds import EntryWire, HoldAnswer, HoldWire, Reason, ReassignHold
from holdfast.errors import ForbiddenError, InputError

routes = Routes("checkpoints")


@routes.get("/checkpoints", needs=Right.holds_read, raises=(InputError, ForbiddenError))
async def list_checkpoints(call: ApiCall, query: ListHolds) -> Page[HoldWire]:
    """Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints."""
    return await _list(call, query)


@routes.get("/checkpoints/{checkpoint}", needs=Right.holds_read, raises=LOOKING)
async def get_checkpoint(call: ApiCall, checkpoint: str) -> ApiReply[HoldWire]:
    """One checkpoint."""
    service = await call.holds()
    return hold_reply(service, await service.get(call.actor, checkpoint))


@routes.post(
    "/checkpoints/{checkpoint}/resolve", needs=Right.holds_write, raises=DECIDING, keyed=True, guarded=True
)
async def resolve_checkpoint(call: ApiCall, checkpoint: str, body: HoldAnswer) -> ApiReply[HoldWire]:
    """Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`."""
    return await resolve_reply(call, checkpoint, body)


@routes.post("/checkpoints/{checkpoint}/cancel", needs=Right.holds_write, raises=CHANGING, guarded=True)
async def cancel_checkpoint(call: ApiCall, checkpoint: str, body: Reason) -> ApiReply[HoldWire]:
    """Withdraw it without a decision."""
    return await cancel_reply(call, checkpoint, body)


@routes.post("/checkpoints/{checkpoint}/reassign", needs=Right.holds_write, raises=CHANGING, guarded=True)
async def reassign_checkpoint(call: ApiCall, checkpoint: str, body: ReassignHold) -> ApiReply[HoldWire]:
    """Give it to somebody else, who is told."""
    return await reassign_reply(call, checkpoint, body)


@routes.get("/checkpoints/{checkpoint}/history", needs=Right.holds_read, raises=LOOKING)
async def checkpoint_history(call: ApiCall, checkpoint: str) -> Page[EntryWire]:
    """Created, notification sent, resolved, and what else happened, oldest first."""
    return await _history(call, checkpoint)
