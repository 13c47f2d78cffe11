"""The service of queues: publish, list, claim, complete, release, requeue and withdraw messages.

Every method raises InputError for a wrong name, and MessageNotFoundError if the tenant's queue has no such
message.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from holdfast.app.extensions import QUEUES
from holdfast.errors import (
    ClaimLostError,
    InputError,
    MessageDiffersError,
    MessageNotFoundError,
)
from holdfast.holds.actions import resolve
from holdfast.holds.actions.resolve import ResolveConditions
from holdfast.holds.service import HoldService, read_submission
from holdfast.model.graph import GraphSpec
from holdfast.queues.bridge import QueueBridge
from holdfast.queues.completions import Completions
from holdfast.queues.content import (
    content_digest,
    cut_error,
    encode_payload,
    optional_text,
    require_id,
    require_length,
    require_priority,
    require_ttl,
)
from holdfast.queues.inbound import InboundQueue
from holdfast.queues.listed import require_listed
from holdfast.queues.maintenance import QueueMaintenance
from holdfast.queues.refusals import ended, refused, why_not_claimed
from holdfast.queues.relay import QueueRelay
from holdfast.queues.run_claims import RunClaims
from holdfast.queues.settings import QueueSettings, queue_settings, require_queue_name
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock
from holdfast.types.ids import DEFAULT_TENANT, new_id
from holdfast.types.queue_message import (
    HITL_REQUEST,
    MESSAGE_ID,
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessageRefusal,
    MessageRow,
    MessageState,
    NewMessage,
    QueueCounts,
)
from holdfast.types.terms import Actor

MAX_CLAIMED: Final = 100
MAX_WAIT: Final = 30.0
_ENDS: Final = (MessageAct.complete, MessageAct.dead, MessageAct.requeue, MessageAct.withdraw)
"""Acts after which a broker has to delete the message, or to get it back."""
_LOOK: Final = 0.25  # seconds between two looks at an empty queue, for what other processes publish


class QueueService(QueueMaintenance):
    def __init__(
        self,
        store: Store,
        people: HoldService,
        clock: Clock,
        settings: QueueSettings,
        *,
        base_url: str = "",
    ) -> None:
        self.store = store
        self.people = people
        self.clock = clock
        self.settings = settings
        self.completions = Completions(
            people, lambda row: settings.receives(row.terms.queue or "", row.tenant)
        )
        self.relay = QueueRelay(settings, clock, InboundQueue(self).take)
        self.bridge = QueueBridge(store, settings, self.completions, self.relay, base_url)
        self.run_claims = RunClaims(store, self.relay)
        self.reconciled_at = store.now()

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
        if type == HITL_REQUEST:
            raise InputError(
                f"{HITL_REQUEST!r} is the type of messages that holds publish.", hint="Use another type."
            )
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

    # ------------------------------------------------------------------ working
    async def claim(
        self,
        scope: str,
        queue: str,
        *,
        by: str,
        limit: int = 1,
        wait: float = 0.0,
        ttl: int | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> list[MessageRow]:
        """Claim up to `limit` messages for `ttl` microseconds; `wait`: seconds to wait for a first one."""
        spec = self.settings.of(scope, queue)
        want = MessageClaim(
            tenant=tenant,
            scope=scope,
            queue=queue,
            by=by,
            ttl=require_ttl(ttl if ttl is not None else spec.claim_micros),
            limit=max(1, min(limit, MAX_CLAIMED)),
        )
        until = self.clock.monotonic() + min(wait, MAX_WAIT)
        while True:
            seen = self.store.queue_changes()
            found = await self.store.claim_messages(want)
            left = until - self.clock.monotonic()
            if found or left <= 0:
                return found
            await self.store.wait_queues(seen, min(_LOOK, left))

    async def claim_one(
        self,
        scope: str,
        queue: str,
        message: str,
        *,
        by: str,
        ttl: int | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Raises ClaimLostError if another worker has it, MessageEndedError if it is not open."""
        row = await self.get(scope, queue, message, tenant=tenant)
        length = require_ttl(ttl if ttl is not None else self.settings.of(scope, queue).claim_micros)
        want = MessageClaim(tenant=tenant, scope=scope, queue=queue, by=by, ttl=length, id=message)
        found = await self.store.claim_messages(want)
        if found:
            return found[0]
        now = await self.get(scope, queue, message, tenant=tenant)
        if not now.is_open:
            raise ended(now)
        raise ClaimLostError(
            f"the message {message} cannot be claimed now: {why_not_claimed(now, self.store.now())}.",
            hint="Try again later.",
            message_id=row.id,
            state=str(now.state),
        )

    async def extend(
        self,
        scope: str,
        queue: str,
        message: str,
        token: int,
        *,
        ttl: int | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Raises ClaimLostError, as `complete` and `release` do."""
        length = require_ttl(ttl if ttl is not None else self.settings.of(scope, queue).claim_micros)
        return await self._act(scope, queue, message, tenant, MessageAct.extend, token=token, ttl=length)

    async def complete(
        self,
        actor: Actor,
        scope: str,
        queue: str,
        message: str,
        token: int,
        result: Any = None,
    ) -> MessageRow:
        """Complete a claimed message with a result. Completing a review request decides its hold, under the
        actor's rights and in one transaction: `result` is the answer, `{decision, response_data, comment}`.

        Raises ClaimLostError, and for a review request what `HoldService.resolve` raises; then neither the
        hold nor the message has changed."""
        row = await self.get(scope, queue, message, tenant=actor.tenant)
        if row.hold is not None:
            return await self._decide(actor, row, token, result)
        return await self._act(
            scope,
            queue,
            message,
            actor.tenant,
            MessageAct.complete,
            token=token,
            by=actor.id,
            result=encode_payload(result, "the result"),
        )

    async def _decide(self, actor: Actor, row: MessageRow, token: int, result: Any) -> MessageRow:
        if row.claim_token != token or row.state not in (MessageState.claimed, MessageState.completed):
            raise refused(MessageRefusal.claim_lost, row)
        answer = cast("dict[str, Any] | str", result if isinstance(result, (dict, str)) else {})
        change = MessageChange(
            tenant=row.tenant,
            id=row.id,
            act=MessageAct.complete,
            token=token,
            by=actor.id,
            result=encode_payload(answer, "the result"),
        )
        terms = ResolveConditions(message=change)
        actor = msgspec.structs.replace(actor, channel="queue") if actor.channel == "api" else actor
        await resolve.resolve(self.people.ctx, actor, row.hold or "", read_submission(answer), terms)
        return await self.get(row.scope, row.queue, row.id, tenant=row.tenant)

    async def release(
        self,
        scope: str,
        queue: str,
        message: str,
        token: int,
        *,
        delay: int | None = None,
        error: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Give it back; it can be claimed again after `delay` (microseconds), or after a back-off. After its
        last attempt it is dead."""
        return await self._act(
            scope,
            queue,
            message,
            tenant,
            MessageAct.release,
            token=token,
            delay=delay,
            error=cut_error(error),
        )

    # ------------------------------------------------------------------ operating
    async def dead(
        self,
        scope: str,
        queue: str,
        message: str,
        *,
        token: int | None = None,
        error: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Give it up: a dead letter is kept until it is requeued or withdrawn."""
        return await self._act(
            scope, queue, message, tenant, MessageAct.dead, token=token, error=cut_error(error)
        )

    async def requeue(
        self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT
    ) -> MessageRow:
        """Make a dead message ready again, with all its attempts."""
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
        never lowered. False: it is not open (any more)."""
        new_scope, _, new_queue = to.partition("/")
        self.settings.of(new_scope, new_queue)
        row = await self.get(scope, queue, message, tenant=tenant)
        change = MessageChange(
            tenant=tenant,
            id=row.id,
            act=MessageAct.move,
            scope=new_scope,
            queue=new_queue,
            priority=None if priority is None else require_priority(priority),
        )
        return isinstance(await self.store.change_message(change), MessageRow)

    def require_queues(self, spec: GraphSpec) -> None:
        """Raises FlowInvalidError if a hold asks in a queue that is not listed where that is required."""
        require_listed(spec, self.settings)

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


def open_queues(
    store: Store, people: HoldService, clock: Clock, settings: Any, *, base_url: str = ""
) -> QueueService:
    """Raises SettingsError, also for the settings of a broker; the broker itself may be away."""
    found = QueueService(store, people, clock, queue_settings(settings), base_url=base_url)
    found.relay.open()
    return found


QUEUES.register(open_queues)
