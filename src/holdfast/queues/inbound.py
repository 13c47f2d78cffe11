"""What brokers bring: completion events, and messages to publish here (QU-21)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.errors import InputError
from holdfast.queues.completions import Completion, broker_actor, read_completion, read_event
from holdfast.queues.content import MAX_ERROR, encode_payload
from holdfast.queues.run_claims import KEPT_FOR
from holdfast.queues.transport import QueueBinding
from holdfast.telemetry import log
from holdfast.types.ids import derived_id
from holdfast.types.queue_message import (
    COMPLETED_EVENT,
    REJECTED,
    MessageAct,
    MessageChange,
    MessageFilter,
    MessageState,
    NewMessage,
)
from holdfast.types.redaction import tenant_scope
from holdfast.types.text import one_line

if TYPE_CHECKING:
    from holdfast.queues.service import QueueService


MOST_REJECTED: Final = 200
"""Of one queue: a client of the broker must not fill the store."""
_SHOWN: Final = ("event_id", "type", "tenant", "correlation_id", "message_id", "completed_by")


class _Inbound(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message that a broker brings, to be published here."""

    id: str
    payload: Any
    type: str = "message"
    correlation_id: str | None = None
    priority: str = "normal"
    group_key: str | None = None


class InboundQueue:
    def __init__(self, queues: QueueService) -> None:
        self.queues = queues

    async def take(self, binding: QueueBinding, body: dict[str, Any]) -> None:
        """Commit what a broker brought: a completion event, or a message to publish. Its tenant is the
        binding's (QB-7). Raises as `Completions.apply` and `publish` do."""
        if body.get("type") == COMPLETED_EVENT:
            await self._completed(binding, read_completion(body, binding.backend))
            return
        try:
            given = msgspec.convert(body, _Inbound, strict=True)
        except msgspec.ValidationError as error:
            raise InputError(f"the message does not fit: {error}.") from error
        await self.queues.publish(
            binding.scope,
            binding.queue,
            given.payload,
            id=given.id,
            type=given.type,
            correlation_id=given.correlation_id,
            priority=given.priority,
            group_key=given.group_key,
            tenant=binding.tenant,
        )

    async def _completed(self, binding: QueueBinding, completion: Completion) -> None:
        row = await self.queues.known_message(binding.tenant, completion.message_id)
        actor = broker_actor(binding.tenant, completion.completed_by, binding.backend, binding.actor)
        if row is None or row.hold is not None:
            done = await self.queues.completions.apply(completion, actor)
            if done.outcome == "ignored":
                raise InputError(f"the completion has no effect: {done.reason}.")
            return
        if not self.queues.settings.receives(row.address, row.tenant, binding.backend):
            raise InputError(f"the message {row.id} is in a queue that does not receive from the broker.")
        result = encode_payload(completion.answer, "the result")
        change = MessageChange(
            tenant=row.tenant, id=row.id, act=MessageAct.settle, by=actor.id, result=result
        )
        # It is withdrawn from the broker that it went out to, which need not be the one that brought this.
        notice = self.queues.relay.notice(row.id, row.scope, row.queue, f"settle:{row.updated_at}")
        await self.queues.store.change_message(change, outbox=notice)

    async def record_rejected(self, binding: QueueBinding, body: bytes, reason: str) -> None:
        """What could not be taken is a dead message of the queue: it says what came and why it has no
        effect, without its content, which is among the dead letters of the broker."""
        id_ = derived_id("rejected", binding.tenant, binding.backend, sha256(body).hexdigest())
        with tenant_scope(binding.tenant):
            said, why = _said(body), one_line(reason, MAX_ERROR)
        where = MessageFilter(
            tenant=binding.tenant,
            scope=binding.scope,
            queue=binding.queue,
            states=(MessageState.dead,),
            type=REJECTED,
        )
        if len(await self.queues.store.list_messages(where, limit=MOST_REJECTED)) >= MOST_REJECTED:
            log.warning("%d rejected messages of a broker are shown; another one is not", MOST_REJECTED)
            return
        new = NewMessage(
            id=id_,
            tenant=binding.tenant,
            scope=binding.scope,
            queue=binding.queue,
            type=REJECTED,
            correlation_id=said.get("correlation_id"),
            payload=encode_payload(said),
            digest="",
            visible_at=self.queues.store.now() + KEPT_FOR,  # never claimable, also if this ends here
        )
        await self.queues.store.publish_message(new)
        change = MessageChange(tenant=binding.tenant, id=id_, act=MessageAct.dead, error=why)
        await self.queues.store.change_message(change)


def _said(body: bytes) -> dict[str, str]:
    try:
        found = read_event(body)
    except InputError:
        return {"bytes": str(len(body))}
    data: Any = found.get("data")
    given = {**found, **(cast("dict[str, Any]", data) if isinstance(data, dict) else {})}
    given["event_id"] = found.get("id")
    return {name: one_line(value, 200) for name in _SHOWN if isinstance(value := given.get(name), str)}
