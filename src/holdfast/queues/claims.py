"""Work on the messages of a queue: claim, extend, complete and release."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from holdfast.errors import ClaimLostError, ConflictError, ForbiddenError, NotFoundError
from holdfast.holds.actions import decide
from holdfast.holds.actions.claim import require_reviewer
from holdfast.holds.actions.decide import ResolveConditions
from holdfast.holds.service import HoldService, read_submission
from holdfast.queues.content import cut_error, encode_payload, require_ttl
from holdfast.queues.operations import QueueOperations
from holdfast.queues.refusals import ended, other_result, refused, why_not_claimed
from holdfast.types.clock import Clock
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.queue_message import (
    OPEN_MESSAGES,
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
MOST_SEEN: Final = 1000
"""Ready messages that one claim considers, in a queue in which others may decide the first ones."""
_LOOK: Final = 0.25  # seconds between two looks at an empty queue, for what other processes publish


class QueueClaims(QueueOperations):
    people: HoldService
    clock: Clock

    async def claim(
        self,
        actor: Actor,
        scope: str,
        queue: str,
        *,
        limit: int = 1,
        wait: float = 0.0,
        ttl: int | None = None,
    ) -> list[MessageRow]:
        """Claim up to `limit` messages for `ttl` microseconds; `wait`: seconds to wait for a first one.
        Review requests that the actor may not decide are left for those who may."""
        spec = self.settings.of(scope, queue)
        want = MessageClaim(
            tenant=actor.tenant,
            scope=scope,
            queue=queue,
            by=actor.id,
            ttl=require_ttl(ttl if ttl is not None else spec.claim_micros),
            limit=max(1, min(limit, MAX_CLAIMED)),
        )
        until = self.clock.monotonic() + min(wait, MAX_WAIT)
        while True:
            seen = self.store.queue_changes()
            found = await self._claim_next(actor, want)
            left = until - self.clock.monotonic()
            if found or left <= 0:
                return found
            await self.store.wait_queues(seen, min(_LOOK, left))

    async def _claim_next(self, actor: Actor, want: MessageClaim) -> list[MessageRow]:
        ready = await self.store.ready_messages(want)
        if all(row.hold is None for row in ready):
            return await self.store.claim_messages(replace(want, reviews=False)) if ready else []
        found: list[MessageRow] = []
        after, seen = None, 0
        page = replace(want, limit=MAX_CLAIMED)
        while seen < MOST_SEEN and (ready := await self.store.ready_messages(page, after=after)):
            for row in ready:
                if row.hold is None or await self._may_review(actor, row.hold):
                    found += await self.store.claim_messages(replace(want, id=row.id))
                if len(found) == want.limit:
                    return found
            after, seen = ready[-1].place, seen + len(ready)
        return found

    async def _may_review(self, actor: Actor, hold: str) -> bool:
        try:
            await require_reviewer(self.people.ctx, actor, hold)
        except (ForbiddenError, ConflictError, NotFoundError):
            return False
        return True

    async def claim_one(
        self,
        actor: Actor,
        scope: str,
        queue: str,
        message: str,
        *,
        ttl: int | None = None,
    ) -> MessageRow:
        """Raises ClaimLostError if another worker has it, MessageEndedError if it is not open; for a review
        request that the actor may not decide, what deciding it raises."""
        row = await self.get(scope, queue, message, tenant=actor.tenant)
        length = require_ttl(ttl if ttl is not None else self.settings.of(scope, queue).claim_micros)
        if row.hold is not None and row.is_open:
            await require_reviewer(self.people.ctx, actor, row.hold)
        want = MessageClaim(
            tenant=actor.tenant, scope=scope, queue=queue, by=actor.id, ttl=length, id=message
        )
        found = await self.store.claim_messages(want)
        if found:
            return found[0]
        now = await self.get(scope, queue, message, tenant=actor.tenant)
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

        Raises ClaimLostError, MessageEndedError if it was completed with another result, and for a review
        request what `HoldService.resolve` raises; then neither the hold nor the message has changed."""
        row = await self.get(scope, queue, message, tenant=actor.tenant)
        if row.hold is not None:
            return await self._decide(actor, row, token, result)
        encoded = encode_payload(result, "the result")
        done = await self._act(
            scope, queue, message, actor.tenant, MessageAct.complete, token=token, by=actor.id, result=encoded
        )  # fmt: skip
        if msgspec.json.decode(done.result or b"null") != msgspec.json.decode(encoded):
            raise other_result(done)
        return done

    async def _decide(self, actor: Actor, row: MessageRow, token: int, result: Any) -> MessageRow:
        if not row.has_token(token) or row.state not in (MessageState.claimed, MessageState.completed):
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
        actor = replace(actor, channel="queue") if actor.channel == "api" else actor
        await decide.resolve(self.people.ctx, actor, row.hold or "", read_submission(answer), terms)
        return await self.get(row.scope, row.queue, row.id, tenant=row.tenant)

    async def dead(
        self,
        actor: Actor,
        scope: str,
        queue: str,
        message: str,
        *,
        token: int | None = None,
        frees: bool = False,
        error: str | None = None,
    ) -> MessageRow:
        """Give it up: a dead letter is kept until it is requeued or withdrawn. Without the token of a claim
        only a message that is not claimed; `frees`: any. Raises as `claim_one` does."""
        row = await self.get(scope, queue, message, tenant=actor.tenant)
        if row.hold is not None and row.is_open and not frees:
            await require_reviewer(self.people.ctx, actor, row.hold)
        return await self._act(
            scope,
            queue,
            message,
            actor.tenant,
            MessageAct.dead,
            token=token,
            frees=frees,
            error=cut_error(error),
        )

    async def withdraw_as(self, actor: Actor, scope: str, queue: str, message: str) -> MessageRow:
        """`withdraw` under the rights of the actor: the request of a review is taken from those who could
        decide it only by one of them. Raises as `claim_one` does."""
        row = await self.get(scope, queue, message, tenant=actor.tenant)
        if row.hold is not None and row.state in (*OPEN_MESSAGES, MessageState.dead):
            await require_reviewer(self.people.ctx, actor, row.hold)
        return await self.withdraw(scope, queue, message, tenant=actor.tenant)

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
