"""Callbacks: a system outside completes the wait of a run with a token, which is all that it needs."""

from __future__ import annotations

from typing import Final

from holdfast.api.auth.rights import Access, Right
from holdfast.api.request_body import has_no_body
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.callbacks import (
    CallbackWire,
    CompleteCallback,
    OpenCallback,
    OpenCallbacks,
    callback_wire,
)
from holdfast.api.schemas.common import moment
from holdfast.errors import (
    CallbackExpiredError,
    CallbackNotFoundError,
    CallbackUsedError,
    InputError,
    RateLimitedError,
    RunNotFoundError,
)
from holdfast.holds.callbacks import Callbacks, callback_name
from holdfast.types.hold import HoldRow
from holdfast.types.redaction import enter_tenant

routes = Routes("callbacks")

_TOKEN: Final = (
    CallbackNotFoundError,
    CallbackUsedError,
    CallbackExpiredError,
    InputError,
    RateLimitedError,
)


async def _callbacks(call: ApiCall) -> Callbacks:
    return await call.hf.callbacks()


def _wire(row: HoldRow) -> CallbackWire:
    enter_tenant(row.tenant)
    return callback_wire(row)


@routes.post("/callbacks/{token}", needs=Access.link, raises=_TOKEN)
async def complete_callback(call: ApiCall, token: str, body: CompleteCallback) -> CallbackWire:
    """Complete a callback, or report that it failed (`error`).

    The token in the path is the credential. The first outcome counts: the same one again changes nothing,
    another one is 409. 410: the run has given it up."""
    if has_no_body(call.request):
        # Such as a heartbeat that was sent to the wrong address: work that goes on would count as done.
        raise InputError(
            "the request has no body, so it is no outcome.",
            hint='Send {"result": ...}, {"error": "..."}, or {} if there is no result; a heartbeat goes to '
            "the same address with /heartbeat.",
        )
    return await apply_outcome(call, token, body)


async def apply_outcome(call: ApiCall, token: str, body: CompleteCallback) -> CallbackWire:
    """Also for agents."""
    callbacks = await _callbacks(call)
    if body.error is not None:
        if body.result is not None:
            raise InputError("it has a result and an error.", hint="Send one of them.")
        return _wire(await callbacks.fail(token, body.error, body.data))
    if body.data is not None:
        raise InputError("data belongs to an error.", hint='Send {"result": ...}, or an error with data.')
    return _wire(await callbacks.complete(token, body.result))


@routes.post("/callbacks/{token}/heartbeat", needs=Access.link, raises=_TOKEN)
async def send_heartbeat(call: ApiCall, token: str) -> CallbackWire:
    """Tell the run that the work is still in progress: its next heartbeat is due later (`expires_at`)."""
    return _wire(await (await _callbacks(call)).heartbeat(token))


@routes.get("/runs/{run}/callbacks", needs=Right.queues_write, raises=(RunNotFoundError,))
async def list_callbacks(call: ApiCall, run: str) -> OpenCallbacks:
    """The callbacks that a run waits for, with their tokens."""
    row = await (await call.runs()).get(run, tenant=call.tenant)
    callbacks = await _callbacks(call)
    callbacks.base_url = callbacks.base_url or str(call.request.base_url)
    return OpenCallbacks(
        items=[
            OpenCallback(
                name=callback_name(hold),
                status="waiting",
                expires_at=moment(hold.expires_at),
                hold=hold.id,
                node=hold.node,
                token=token,
                url=callbacks.url(token),
            )
            for hold, token in await callbacks.of_run(row.id)
        ]
    )
