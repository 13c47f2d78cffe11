"""Runs that take work from a queue: a hold of type `queue_consume` waits for the next message (QU-30).

The message is completed in the transaction that resolves the hold, so a crash has no second effect. Between
claim and decision it loses at most the claim, which lapses.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from holdfast.errors import ConflictError, ExpressionError, HoldfastError, NotFoundError
from holdfast.holds.actions import resolve
from holdfast.holds.actions.resolve import ResolveConditions
from holdfast.holds.actions.submission import Submission
from holdfast.holds.service import HoldService
from holdfast.model.expr import compile_expr, mapping_resolver
from holdfast.queues.completions import queue_actor
from holdfast.queues.settings import QueueSettings
from holdfast.types.hold import HoldRow
from holdfast.types.queue_message import (
    HITL_REQUEST,
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessageRow,
    MessageState,
)

RECEIVED = "received"
"""The decision of a hold that got a message; the message is its data."""
LOOKED_AT: Final = 500
"""The newest messages of a queue with which a condition is compared at a time."""
_PAGE: Final = 200


class QueueConsumer:
    def __init__(self, people: HoldService, settings: QueueSettings) -> None:
        self.people = people
        self.store = people.store
        self.settings = settings

    async def take_one(self, hold: HoldRow) -> bool:
        """Give the hold the next message of its queue that matches its condition. False: there is none now.
        Raises what `resolve` raises if the hold cannot take it; the message is released then."""
        scope, _, queue = (hold.terms.queue or "").partition("/")
        ttl = self.settings.of(scope, queue).claim_micros
        want = MessageClaim(tenant=hold.tenant, scope=scope, queue=queue, by=f"run:{hold.run}", ttl=ttl)
        row = await self._claimed(want, msgspec.json.decode(hold.context))
        if row is None:
            return False
        await self._hand_over(hold, row)
        return True

    async def _claimed(self, want: MessageClaim, condition: dict[str, Any]) -> MessageRow | None:
        if "match" not in condition:
            found = await self.store.claim_messages(want)
            if not found or not _is_review(found[0]):
                return found[0] if found else None
            await self.store.change_message(
                self._change(found[0], MessageAct.release, delay=0, counted=False)
            )
        for each in await self._ready(want):
            if matches(each, condition):
                found = await self.store.claim_messages(msgspec.structs.replace(want, id=each.id))
                if found:
                    return found[0]
        return None

    async def _ready(self, want: MessageClaim) -> list[MessageRow]:
        """In the order in which they would be claimed; without the questions of other holds."""
        where = MessageFilter(
            tenant=want.tenant, scope=want.scope, queue=want.queue, states=(MessageState.ready,)
        )
        found, after = list[MessageRow](), None
        while len(found) < LOOKED_AT and (
            page := await self.store.list_messages(where, after=after, limit=_PAGE)
        ):
            found += page
            after = page[-1].number
        now = self.store.now()
        due = [each for each in found if each.visible_at <= now and not _is_review(each)]
        return sorted(due, key=lambda each: (each.urgency, each.visible_at, each.number))

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


def _is_review(row: MessageRow) -> bool:
    """The question of another hold, which only its answer completes."""
    return row.hold is not None or row.type == HITL_REQUEST


def matches(row: MessageRow, condition: dict[str, Any]) -> bool:
    """Whether the condition in the context of a hold holds for this message: `match` is an expression about
    `message`, `values` are those of the run. One that cannot be evaluated does not hold."""
    if "match" not in condition:
        return True
    names: dict[str, Any] = {"message": received_data(row)}
    for name, value in cast("dict[str, Any]", condition.get("values") or {}).items():
        place = names
        *parts, last = name.split(".")
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    try:
        return compile_expr(str(condition["match"])).evaluate(mapping_resolver(names)) is True
    except ExpressionError:
        return False
