"""What brokers bring: completion events, and messages to publish here (QU-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import InputError
from holdfast.queues.completions import BROKER, Completion, queue_actor, read_completion
from holdfast.queues.content import encode_payload
from holdfast.queues.transport import QueueBinding
from holdfast.telemetry import log
from holdfast.types.queue_message import COMPLETED_EVENT, MESSAGE_ID, MessageAct, MessageChange

if TYPE_CHECKING:
    from holdfast.queues.service import QueueService


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
            await self._completed(binding, read_completion(body))
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
        row = None
        if completion.message_id is not None and MESSAGE_ID.fullmatch(completion.message_id):
            row = await self.queues.store.queue_message(binding.tenant, completion.message_id)
        actor = queue_actor(binding.tenant, completion.completed_by, BROKER)
        if row is None or row.hold is not None:
            await self.queues.completions.apply(completion, actor)
            return
        if not self.queues.settings.receives(f"{row.scope}/{row.queue}", row.tenant):
            log.warning("a broker completed message %s of a queue that does not receive from it", row.id)
            return
        result = encode_payload(completion.answer, "the result")
        change = MessageChange(
            tenant=row.tenant, id=row.id, act=MessageAct.settle, by=actor.id, result=result
        )
        await self.queues.store.change_message(change)
