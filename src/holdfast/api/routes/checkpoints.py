"""The paths that the seeds name: a hold is their checkpoint.

`/checkpoints/{id}/...` is for people as for programs: whose it is decides. The proxy's form needs
`scaicore:manage`, the module's `scaicore:checkpoint_resolve` (PE-1). The proxy forwards to the module in the
same process: status, body, request id, idempotency key and caller are those of the request (PE-2), and there
is no upstream that could time out.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

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
from holdfast.api.routing import ApiCall, ApiReply, Handler, Routes
from holdfast.api.schemas.common import Page
from holdfast.api.schemas.hold_query import ListHolds
from holdfast.api.schemas.holds import EntryWire, HoldAnswer, HoldWire, Reason, ReassignHold
from holdfast.errors import ForbiddenError, HoldfastError, InputError

routes = Routes("checkpoints", prefix="")

PLAIN = "/v1/checkpoints"
PROXY = "/v1/scaicore/checkpoints"
MODULE = "/v1/modules/scaicore/checkpoints"


async def list_checkpoints(call: ApiCall, query: ListHolds) -> Page[HoldWire]:
    """Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints."""
    return await _list(call, query)


async def get_checkpoint(call: ApiCall, checkpoint: str) -> ApiReply[HoldWire]:
    """One checkpoint."""
    service = await call.holds()
    return hold_reply(service, await service.get(call.actor, checkpoint))


async def resolve_checkpoint(call: ApiCall, checkpoint: str, body: HoldAnswer) -> ApiReply[HoldWire]:
    """Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`."""
    return await resolve_reply(call, checkpoint, body)


async def cancel_checkpoint(call: ApiCall, checkpoint: str, body: Reason) -> ApiReply[HoldWire]:
    """Withdraw it without a decision."""
    return await cancel_reply(call, checkpoint, body)


async def reassign_checkpoint(call: ApiCall, checkpoint: str, body: ReassignHold) -> ApiReply[HoldWire]:
    """Give it to somebody else, who is told."""
    return await reassign_reply(call, checkpoint, body)


async def checkpoint_history(call: ApiCall, checkpoint: str) -> Page[EntryWire]:
    """Created, notification sent, resolved, and what else happened, oldest first."""
    return await _history(call, checkpoint)


Kind = tuple[str, str, Handler, tuple[type[HoldfastError], ...]]
READING: tuple[Kind, ...] = (
    ("GET", "", list_checkpoints, (InputError, ForbiddenError)),
    ("GET", "/{checkpoint}", get_checkpoint, LOOKING),
    ("GET", "/{checkpoint}/history", checkpoint_history, LOOKING),
)
ACTING: tuple[Kind, ...] = (
    ("POST", "/{checkpoint}/resolve", resolve_checkpoint, DECIDING),
    ("POST", "/{checkpoint}/cancel", cancel_checkpoint, CHANGING),
    ("POST", "/{checkpoint}/reassign", reassign_checkpoint, CHANGING),
)


def _declare(base: str, reading: Right, acting: Right, prefix: str = "", bare: str | None = None) -> None:
    for needs, kinds in ((reading, READING), (acting, ACTING)):
        for method, path, handler, raises in kinds:
            also = () if bare is None else (f"{bare}{path}",)
            routes.route(
                method,
                f"{base}{path}",
                needs=needs,
                raises=raises,
                also=also,
                keyed=raises is DECIDING,
                guarded=method == "POST",
            )(_named(handler, f"{prefix}{handler.__name__}"))


def _named(handler: Handler, name: str) -> Handler:
    """The same under a name of its own: an operation's id is there once."""
    if handler.__name__ == name:
        return handler

    @wraps(handler)
    async def renamed(*given: Any, **named: Any) -> Any:
        return await handler(*given, **named)

    renamed.__name__ = name
    return renamed


_declare(PLAIN, Right.holds_read, Right.holds_write, bare="/checkpoints")
_declare(PROXY, Right.manage, Right.manage, prefix="proxy_")
_declare(MODULE, Right.resolve, Right.resolve, prefix="module_")
