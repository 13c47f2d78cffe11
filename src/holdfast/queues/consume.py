"""Runs that take work from a queue: a hold of type `queue_consume` waits for the next message (QU-30).

The message is completed in the transaction that resolves the hold, so a crash has no second effect. Between
claim and decision it loses at most the claim, which lapses.
"""

from __future__ import annotations

import msgspec

from holdfast.errors import ConflictError, HoldfastError, NotFoundError
from holdfast.holds.actions import resolve
from holdfast.holds.actions.resolve import ResolveConditions
from holdfast.holds.actions.submission import Submission
from holdfast.holds.service import HoldService
from holdfast.queues.completions import queue_actor
from holdfast.queues.settings import QueueSettings
from holdfast.types.hold import HoldRow
from holdfast.types.queue_message import MessageAct, MessageChange, MessageClaim, MessageRow

RECEIVED = "received"
"""The decision of a hold that got a message; the message is its data."""


class QueueConsumer:
    def __init__(self, people: HoldService, settings: QueueSettings) -> None:
        self.people = people
        self.store = people.store
        self.settings = settings

    async def take_one(self, hold: HoldRow) -> bool:
        """Give the hold the next message of its queue. False: there is none now. Raises what `resolve` raises
        if the hold cannot take it; the message is released then."""
        scope, _, queue = (hold.terms.queue or "").partition("/")
        ttl = self.settings.of(scope, queue).claim_micros
        want = MessageClaim(tenant=hold.tenant, scope=scope, queue=queue, by=f"run:{hold.run}", ttl=ttl)
        for row in await self.store.claim_messages(want):
            await self._hand_over(hold, row)
            return True
        return False

    async def _hand_over(self, hold: HoldRow, row: MessageRow) -> None:
        actor = queue_actor(hold.tenant, None)
        done = self._change(
            row, MessageAct.complete, by=actor.id, result=msgspec.json.encode({"run": hold.run})
        )
        terms = ResolveConditions(idempotency_key=f"queue:{row.id}", message=done)
        submission = Submission(decision=RECEIVED, response_data=received_data(row))
        try:
            await resolve.resolve(self.people.ctx, actor, hold.id, submission, terms)
        except (ConflictError, NotFoundError):
            # The hold ended otherwise: the message is for the next one.
            await self.store.change_message(self._change(row, MessageAct.release, delay=0, counted=False))
        except HoldfastError as error:
            await self.store.change_message(self._change(row, MessageAct.release, error=str(error)[:500]))
            raise

    def _change(self, row: MessageRow, act: MessageAct, **given: object) -> MessageChange:
        fields = {"tenant": row.tenant, "id": row.id, "act": act, "token": row.claim_token, **given}
        return msgspec.convert(fields, MessageChange)


def received_data(row: MessageRow) -> dict[str, object]:
    """What the run gets."""
    return {
        "id": row.id,
        "type": row.type,
        "correlation_id": row.correlation_id,
        "priority": row.priority,
        "attempt": row.attempts + 1,
        "payload": msgspec.json.decode(row.payload),
    }
