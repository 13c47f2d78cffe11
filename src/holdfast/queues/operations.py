"""Messages of a queue for programs and operators: publish, list, requeue, withdraw and move."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import InputError, MessageDiffersError, MessageNotFoundError
from holdfast.queues.content import (
    content_digest,
    encode_payload,
    optional_text,
    require_id,
    require_priority,
)
from holdfast.queues.refusals import refused
from holdfast.queues.relay import QueueRelay
from holdfast.queues.settings import QueueSettings, require_queue_name
from holdfast.store.protocols import Store
from holdfast.types.ids import DEFAULT_TENANT, new_id
from holdfast.types.outbox import OutboxMessage
from holdfast.types.queue_message import (
    HITL_REQUEST,
    MESSAGE_ID,
    REJECTED,
    MessageAct,
    MessageChange,
    MessageFilter,
    MessageRow,
    MessageState,
    NewMessage,
    QueueCounts,
)
from holdfast.types.text import require_length

_ENDS: Final = (MessageAct.complete, MessageAct.dead, MessageAct.requeue, MessageAct.withdraw)
"""Acts after which a broker has to delete the message, or to get it back."""


class QueueOperations:
    store: Store
    settings: QueueSettings
    relay: QueueRelay

    async def publish(
        self,
        scope: str,
        queue: str,
        payload: Any,
        *,
        id: str | None = None,  # noqa: A002
        type: str = "message",  # noqa: A002
        correlation_id: str | None = None,
        priority: str = "normal",
        visible_at: int = 0,
        expires_at: int | None = None,
        group_key: str | None = None,
        run: str | None = None,
        node: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Publish a message, once for each id. `visible_at` and `expires_at`: microseconds.

        Raises MessageDiffersError if the id belongs to a message with other content, ValueTooLargeError."""
        spec = self.settings.of(scope, queue)
        if type in (HITL_REQUEST, REJECTED):
            raise InputError(f"{type!r} is a type of messages that Holdfast makes.", hint="Use another type.")
        new = NewMessage(
            id=require_id(id) if id is not None else new_id(),
            tenant=tenant,
            scope=scope,
            queue=queue,
            type=require_length(type, "the type", 100),
            correlation_id=optional_text(correlation_id, "the correlation id"),
            priority=require_priority(priority),
            payload=encode_payload(payload),
            digest="",
            visible_at=visible_at,
            expires_at=expires_at,
            group_key=optional_text(group_key, "the group key"),
            run=run,
            node=node,
            max_attempts=spec.max_attempts,
            retention=spec.retention_micros,
        )
        return await self._published(msgspec.structs.replace(new, digest=content_digest(new)))

    async def _published(self, new: NewMessage) -> MessageRow:
        notice = self.relay.notice(new.id, new.scope, new.queue, "publish")
        found = await self.store.publish_message(new, outbox=notice)
        assert found is not None
        row, fresh = found
        if not fresh and row.digest != new.digest:
            raise MessageDiffersError(
                f"a message with the id {new.id} exists with other content.",
                hint="Use a new id for other content; repeat the same content to publish it again.",
                message_id=new.id,
            )
        return row

    async def get(self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT) -> MessageRow:
        row = await self.store.queue_message(tenant, message) if MESSAGE_ID.fullmatch(message) else None
        if row is None or (row.scope, row.queue) != (scope, queue):
            raise MessageNotFoundError(
                f"the queue {scope}/{queue} has no message {message}.",
                hint="List its messages; a message may have been moved to another queue.",
                message_id=message,
            )
        return row

    async def list(
        self,
        scope: str,
        queue: str,
        *,
        states: tuple[MessageState, ...] = (),
        type: str | None = None,  # noqa: A002
        correlation_id: str | None = None,
        after: int | None = None,
        limit: int = 50,
        tenant: str = DEFAULT_TENANT,
    ) -> list[MessageRow]:
        """Newest first; `after`: the number of the last row seen."""
        require_queue_name(scope, "scope")
        require_queue_name(queue, "queue")
        where = MessageFilter(
            tenant=tenant, scope=scope, queue=queue, states=states, type=type, correlation_id=correlation_id
        )
        return await self.store.list_messages(where, after=after, limit=limit)

    async def counts(self, tenant: str | None = DEFAULT_TENANT) -> list[QueueCounts]:
        return await self.store.queue_counts(tenant)

    async def requeue(
        self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT
    ) -> MessageRow:
        """Make a dead message ready again, with all its attempts. Raises InputError for one that only says
        what a broker brought: there is no work in it."""
        row = await self.get(scope, queue, message, tenant=tenant)
        if row.type == REJECTED:
            raise InputError(
                f"the message {message} says what a broker brought and could not be taken: {row.error}",
                hint="Correct it and send it again through the broker; withdraw this message.",
                message_id=message,
            )
        return await self._act(scope, queue, message, tenant, MessageAct.requeue)

    async def withdraw(
        self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT
    ) -> MessageRow:
        """Take an open or dead message back."""
        return await self._act(scope, queue, message, tenant, MessageAct.withdraw)

    async def escalate(
        self,
        scope: str,
        queue: str,
        message: str,
        to: str,
        *,
        priority: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> bool:
        """Move an open message to the queue `to` (`scope/queue`): a claim on it ends, and its priority is
        never lowered. False: it is not open (any more), or a run keeps it until it ends."""
        return await self.move(await self.get(scope, queue, message, tenant=tenant), to, priority=priority)

    async def move(
        self, row: MessageRow, to: str | None, *, priority: str | None = None, payload: Any = None
    ) -> bool:
        """The same for a row. Without `to` it stays in its queue. `payload`: its new content, None: as it is.
        Raises ValueTooLargeError."""
        change, notice = self.moving(
            row, to, priority=priority, payload=None if payload is None else encode_payload(payload)
        )
        return isinstance(await self.store.change_message(change, outbox=notice), MessageRow)

    def moving(
        self, row: MessageRow, to: str | None, *, priority: str | None, payload: bytes | None
    ) -> tuple[MessageChange, list[OutboxMessage]]:
        scope, _, queue = (to or row.address).partition("/")
        self.settings.of(scope, queue)
        change = MessageChange(
            tenant=row.tenant,
            id=row.id,
            act=MessageAct.move,
            scope=scope,
            queue=queue,
            priority=None if priority is None else require_priority(priority),
            payload=payload,
        )
        return change, self.relay.move_notice(row, scope, queue)

    async def _act(
        self,
        scope: str,
        queue: str,
        message: str,
        tenant: str,
        act: MessageAct,
        **given: Any,
    ) -> MessageRow:
        row = await self.get(scope, queue, message, tenant=tenant)
        # The token tells apart what happened to the message in different claims.
        notice = self.relay.notice(row.id, scope, queue, f"{act}:{row.claim_token}:{row.updated_at}")
        change = MessageChange(tenant=tenant, id=message, act=act, **given)
        done = await self.store.change_message(change, outbox=notice if act in _ENDS else ())
        if isinstance(done, MessageRow):
            return done
        raise refused(done, row)
