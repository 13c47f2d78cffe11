"""Work on the messages of a queue: claim, extend, complete and release."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from holdfast.errors import ClaimLostError
from holdfast.holds.actions import resolve
from holdfast.holds.actions.resolve import ResolveConditions
from holdfast.holds.service import HoldService, read_submission
from holdfast.queues.content import cut_error, encode_payload, require_ttl
from holdfast.queues.operations import QueueOperations
from holdfast.queues.refusals import ended, refused, why_not_claimed
from holdfast.types.clock import Clock
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.queue_message import (
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageRefusal,
    MessageRow,
    MessageState,
)
from holdfast.types.terms import Actor

MAX_CLAIMED: Final = 100
MAX_WAIT: Final = 30.0
_LOOK: Final = 0.25  # seconds between two looks at an empty queue, for what other processes publish


class QueueClaims(QueueOperations):
    people: HoldService
    clock: Clock

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
