"""Messages of queues on the wire. Durations are texts such as `30s` or `5m`, times are RFC 3339."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.schemas.common import Name
from holdfast.queues.view import counts_view, message_view
from holdfast.types.queue_message import MessageRow, QueueCounts

Length = Annotated[str, msgspec.Meta(max_length=60, description="`30s`, `5m`, `1h30m`")]
Token = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,19}$", description="`claim_token` of the claim.")]
ErrorText = Annotated[str, msgspec.Meta(max_length=2000)]
State = Literal["ready", "claimed", "completed", "dead", "withdrawn", "expired"]
Priority = Literal["low", "normal", "high", "critical"]


class PublishMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`id`: the message is published once for it; without one, or an `Idempotency-Key`, a new one is made.
    `delay`: it cannot be claimed before. `expires_in`: it expires if it is not completed by then.
    `group_key`: messages of one group are claimed one at a time, in order."""

    payload: Any
    id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None
    type: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "message"
    correlation_id: Name | None = None
    priority: Priority = "normal"
    delay: Length | None = None
    expires_in: Length | None = None
    group_key: Name | None = None


class SendEvent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`key`: the run that waits for this key gets it; or `run`: only this run. `id`: it is sent once for it;
    without one, or an `Idempotency-Key`, a new one is made. `keep`: how long it waits for a run."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    data: Any = None
    key: Name | None = None
    run: Annotated[str, msgspec.Meta(min_length=36, max_length=36)] | None = None
    id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None
    keep: Length = "7d"


class SentEvent(msgspec.Struct, kw_only=True):
    """`delivered`: a run has it; otherwise it is kept until `expires_at`."""

    id: str
    name: str
    key: str | None
    run: str | None
    delivered: bool
    expires_at: str | None


class ClaimMessages(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`wait`: at most this many seconds, until there is a message. `ttl`: how long the claim lasts."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    wait: Annotated[float, msgspec.Meta(ge=0, le=30)] = 0
    ttl: Length | None = None


class ClaimMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ttl: Length | None = None


class ExtendMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    token: Token
    ttl: Length | None = None


class CompleteMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`result`: any JSON. For a review request `{decision, response_data, comment}`: it decides the hold."""

    token: Token
    result: Any = None


class ReleaseMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Without `delay` it backs off, from one second to five minutes."""

    token: Token
    delay: Length | None = None
    error: ErrorText | None = None


class DeadMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`token`: of the claim; needed while the message is claimed."""

    token: Token | None = None
    error: ErrorText | None = None


class MessageWire(msgspec.Struct, kw_only=True):
    """`attempts`: claims that ended without completion. `claim_token`: only for the worker that claimed
    it."""

    id: str
    tenant: str
    scope: str
    queue: str
    type: str
    correlation_id: str | None
    priority: str
    group_key: str | None
    payload: Any
    state: State
    attempts: int
    max_attempts: int
    claimed_by: str | None
    claim_token: str | None
    claim_until: str | None
    result: Any
    completed_by: str | None
    run: str | None
    node: str | None
    hold: str | None
    error: str | None
    visible_at: str
    expires_at: str | None
    created_at: str
    updated_at: str
    ended_at: str | None


class ClaimedMessages(msgspec.Struct, kw_only=True):
    items: list[MessageWire]


class QueueWire(msgspec.Struct, kw_only=True):
    """`delayed`: of the ready messages, those that cannot be claimed yet. `oldest_seconds`: how long the
    oldest ready message could have been claimed."""

    tenant: str
    scope: str
    queue: str
    ready: int
    delayed: int
    claimed: int
    dead: int
    oldest_seconds: float


def message_wire(row: MessageRow, *, reader: str | None = None) -> MessageWire:
    """`reader`: the caller; they see the token of their own claim."""
    return MessageWire(**message_view(row, token=reader is not None and row.claimed_by == reader))


def queue_wire(counts: QueueCounts) -> QueueWire:
    return QueueWire(**counts_view(counts))
