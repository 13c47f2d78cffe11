"""Queues: messages for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit, Page, cursor_of, place_of
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.common import Name, moment
from holdfast.api.schemas.queues import (
    ClaimedMessages,
    ClaimMessage,
    ClaimMessages,
    CompleteMessage,
    DeadMessage,
    ExtendMessage,
    MessageWire,
    PublishMessage,
    QueueWire,
    ReleaseMessage,
    SendEvent,
    SentEvent,
    State,
    message_wire,
    queue_wire,
)
from holdfast.errors import (
    ClaimLostError,
    ConflictError,
    ForbiddenError,
    InputError,
    MessageDiffersError,
    MessageEndedError,
    MessageNotFoundError,
    NotFoundError,
    RunEndedError,
    RunNotFoundError,
)
from holdfast.queues.visibility import with_visible_content
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.ids import derived_id
from holdfast.types.queue_message import MessageRow, MessageState

if TYPE_CHECKING:
    from holdfast.queues.service import QueueService

routes = Routes("queues")

_MESSAGES: Final = "/queues/{scope}/{queue}/messages"
_MESSAGE: Final = "/queues/{scope}/{queue}/messages/{message}"
_CLAIMED: Final = (MessageNotFoundError, ClaimLostError, InputError)
_REVIEW: Final = (ForbiddenError, ConflictError, NotFoundError)
_OPEN: Final = (MessageNotFoundError, MessageEndedError)
_MICRO: Final = timedelta(microseconds=1)


class ListMessages(msgspec.Struct, kw_only=True):
    state: list[State] = []
    type: Name | None = None
    correlation_id: Name | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


async def _queues(call: ApiCall) -> QueueService:
    return await call.hf.queues()


@routes.get("/queues", needs=Right.queues_read)
async def list_queues(call: ApiCall) -> Page[QueueWire]:
    """The tenant's queues that have messages, with the number of messages by state."""
    found = await (await _queues(call)).counts(call.tenant)
    return Page(items=[queue_wire(each) for each in found])


@routes.get(_MESSAGES, needs=Right.queues_read, raises=(InputError,))
async def list_messages(call: ApiCall, scope: str, queue: str, query: ListMessages) -> Page[MessageWire]:
    """The messages of a queue, newest first. The content of a review request is `null` for callers who may
    not see its hold."""
    after = place_of(call.hf.cell, query.cursor, tuple[int])
    rows = await (await _queues(call)).list(
        scope,
        queue,
        states=tuple(MessageState(state) for state in query.state),
        type=query.type,
        correlation_id=query.correlation_id,
        after=None if after is None else after[0],
        limit=query.limit + 1,
        tenant=call.tenant,
    )
    shown = rows[: query.limit]
    more = cursor_of(call.hf.cell, shown[-1].number) if len(rows) > len(shown) else None
    return Page(items=await _wires(call, shown), next=more)


@routes.post(
    _MESSAGES,
    needs=Right.queues_write,
    status=201,
    keyed=True,
    raises=(InputError, MessageDiffersError),
    makes="message",
)
async def publish_message(
    call: ApiCall, scope: str, queue: str, body: PublishMessage
) -> ApiReply[MessageWire]:
    """Publish a message, once for each `id` or `Idempotency-Key`."""
    queues = await _queues(call)
    now = queues.store.now()
    id_ = body.id
    if id_ is None and call.key is not None:
        id_ = derived_id("message", call.tenant, scope, queue, call.key)
    row = await queues.publish(
        scope,
        queue,
        body.payload,
        id=id_,
        type=body.type,
        correlation_id=body.correlation_id,
        priority=body.priority,
        visible_at=now + (_micros(body.delay, "delay") or 0),
        expires_at=None if body.expires_in is None else now + (_micros(body.expires_in, "expires_in") or 0),
        group_key=body.group_key,
        tenant=call.tenant,
    )
    where = call.location(f"/v1/queues/{scope}/{queue}/messages/{row.id}")
    return ApiReply(body=await _wire(call, row), status=201, headers=where)


@routes.post(
    "/events",
    needs=Right.queues_write,
    status=201,
    keyed=True,
    raises=(InputError, MessageDiffersError, RunNotFoundError, RunEndedError),
    makes="event",
)
async def send_event(call: ApiCall, body: SendEvent) -> ApiReply[SentEvent]:
    """Send an event to the run that waits for its name and key, or to one run. Without such a run it is kept
    for `keep`."""
    id_ = body.id
    if id_ is None and call.key is not None:
        id_ = derived_id("event", call.tenant, body.name, call.key)
    row = await (await _queues(call)).send_event(
        body.name,
        body.data,
        key=body.key,
        run=body.run,
        id=id_,
        keep=_micros(body.keep, "keep") or 0,
        tenant=call.tenant,
    )
    sent = SentEvent(
        id=row.id,
        name=body.name,
        key=body.key,
        run=body.run,
        delivered=row.state is MessageState.completed,
        expires_at=moment(row.expires_at),
    )
    return ApiReply(body=sent, status=201)


@routes.post(f"{_MESSAGES}/claim", needs=Right.queues_work, raises=(InputError,))
async def claim_messages(call: ApiCall, scope: str, queue: str, body: ClaimMessages) -> ClaimedMessages:
    """Claim ready messages: by priority, then the longest ready. Review requests that the caller may not
    decide are left out. The list is empty if there is none."""
    rows = await (await _queues(call)).claim(
        call.actor, scope, queue, limit=body.limit, wait=body.wait, ttl=_micros(body.ttl, "ttl")
    )
    return ClaimedMessages(items=await _wires(call, rows))


@routes.get(_MESSAGE, needs=Right.queues_read, raises=(MessageNotFoundError,))
async def get_message(call: ApiCall, scope: str, queue: str, message: str) -> MessageWire:
    """A message with its content, state and result."""
    return await _wire(call, await (await _queues(call)).get(scope, queue, message, tenant=call.tenant))


@routes.post(f"{_MESSAGE}/claim", needs=Right.queues_work, raises=(*_CLAIMED, *_REVIEW, MessageEndedError))
async def claim_message(
    call: ApiCall, scope: str, queue: str, message: str, body: ClaimMessage
) -> MessageWire:
    """Claim this message. A review request can be claimed by those who may decide its hold."""
    ttl = _micros(body.ttl, "ttl")
    row = await (await _queues(call)).claim_one(call.actor, scope, queue, message, ttl=ttl)
    return await _wire(call, row)


@routes.post(f"{_MESSAGE}/extend", needs=Right.queues_work, raises=_CLAIMED)
async def extend_message(
    call: ApiCall, scope: str, queue: str, message: str, body: ExtendMessage
) -> MessageWire:
    """Extend the claim, while the work takes longer."""
    ttl = _micros(body.ttl, "ttl")
    queues = await _queues(call)
    return await _wire(
        call, await queues.extend(scope, queue, message, int(body.token), ttl=ttl, tenant=call.tenant)
    )


@routes.post(
    f"{_MESSAGE}/complete",
    needs=Right.queues_work,
    raises=(*_CLAIMED, *_REVIEW),
)
async def complete_message(
    call: ApiCall, scope: str, queue: str, message: str, body: CompleteMessage
) -> MessageWire:
    """Complete a claimed message. Completing a review request decides its hold, under the caller's rights."""
    queues = await _queues(call)
    return await _wire(
        call, await queues.complete(call.actor, scope, queue, message, int(body.token), body.result)
    )


@routes.post(f"{_MESSAGE}/release", needs=Right.queues_work, raises=_CLAIMED)
async def release_message(
    call: ApiCall, scope: str, queue: str, message: str, body: ReleaseMessage
) -> MessageWire:
    """Give a claimed message back. After its last attempt it becomes a dead letter."""
    row = await (await _queues(call)).release(
        scope,
        queue,
        message,
        int(body.token),
        delay=_micros(body.delay, "delay"),
        error=body.error,
        tenant=call.tenant,
    )
    return await _wire(call, row)


@routes.post(f"{_MESSAGE}/dead", needs=Right.queues_work, raises=(*_CLAIMED, *_REVIEW, *_OPEN))
async def give_up_message(
    call: ApiCall, scope: str, queue: str, message: str, body: DeadMessage
) -> MessageWire:
    """Give the message up, as its worker or while it is not claimed. It is kept until it is requeued or
    withdrawn."""
    queues = await _queues(call)
    token = None if body.token is None else int(body.token)
    row = await queues.dead(call.actor, scope, queue, message, token=token, error=body.error)
    return await _wire(call, row)


@routes.post(f"{_MESSAGE}/requeue", needs=Right.queues_write, raises=(*_OPEN, InputError))
async def requeue_message(call: ApiCall, scope: str, queue: str, message: str) -> MessageWire:
    """Make a dead message ready again."""
    return await _wire(call, await (await _queues(call)).requeue(scope, queue, message, tenant=call.tenant))


@routes.delete(_MESSAGE, needs=Right.queues_write, raises=(*_REVIEW, *_OPEN))
async def withdraw_message(call: ApiCall, scope: str, queue: str, message: str) -> None:
    """Withdraw an open or dead message. A worker that has claimed it cannot complete it any more. The request
    of a review is withdrawn only by those who may decide it."""
    await (await _queues(call)).withdraw_as(call.actor, scope, queue, message)


async def _wires(call: ApiCall, rows: Iterable[MessageRow]) -> list[MessageWire]:
    queues = await _queues(call)
    shown = await with_visible_content(queues.people, call.actor, rows)
    return [message_wire(row, reader=call.actor.id) for row in shown]


async def _wire(call: ApiCall, row: MessageRow) -> MessageWire:
    (found,) = await _wires(call, [row])
    return found


def _micros(text: str | None, field: str) -> int | None:
    if text is None:
        return None
    try:
        length: Any = parse_duration(text, allow_zero=True)
    except DurationError as error:
        raise InputError(f"{field}: {error}.", hint="Write for instance 30s or 5m.") from error
    return length // _MICRO
