"""Runs that take work from a queue: a hold of type `queue_wait` waits for the next message (QU-30).

The message is completed in the transaction that resolves the hold, so a crash has no second effect. Between
claim and decision it loses at most the claim, which the run takes again at its next turn.
With `complete: run_end` the run keeps the claim until it ends (`queues.run_claims`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from holdfast.errors import (
    ConflictError,
    ExpressionError,
    HoldfastError,
    MissingNameError,
    NotComparableError,
    NotFoundError,
    StoreError,
)
from holdfast.holds.actions import decide
from holdfast.holds.actions.decide import ResolveConditions
from holdfast.holds.actions.submission import Submission
from holdfast.holds.service import HoldService
from holdfast.model.expressions import Expr, compile_expr, mapping_resolver, nested_values
from holdfast.queues.completions import queue_actor
from holdfast.queues.run_claims import KEPT_FOR, RUN_END, claimer_of
from holdfast.queues.settings import QueueSettings
from holdfast.telemetry import log
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.own_threads import in_thread
from holdfast.types.queue_message import (
    EVENTS,
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessageRow,
    MessageState,
    event_queue,
)
from holdfast.types.status import HoldStatus

RECEIVED = "received"
"""The decision of a hold that got a message; the message is its data."""
PAGE: Final = 200
MOST_TRIES: Final = 5
"""Attempts to hand an event over; then it is dead."""
MOST_WAITING: Final = 10_000
"""Holds that one process remembers; the others are found by their next turn in the outbox."""
_MARGIN: Final = 10 * MICROS
"""Other processes stamp their messages by their own clocks."""
_AT_ONCE: Final = 50_000
"""Bytes times conditions that are compared in the event loop; everything else would wait for more."""

Place = tuple[str, str, str]
"""Tenant, scope and queue."""


class WaitingHold(msgspec.Struct, frozen=True):
    """`size`: bytes of the condition, with the values of the run that it reads."""

    id: HoldId
    run: str
    condition: dict[str, Any]
    size: int


class QueueConsumer:
    def __init__(self, people: HoldService, settings: QueueSettings) -> None:
        self.people = people
        self.store = people.store
        self.settings = settings
        self._waiting: dict[Place, dict[HoldId, WaitingHold]] = {}
        self._looked: dict[Place, int] = {}

    async def take_one(self, hold: HoldRow) -> bool:
        """Give the hold the next message of its queue that matches its condition. False: there is none now;
        `offer` gives it one that comes. Raises what `resolve` raises if the hold cannot take it; the message
        is released then."""
        # Remembered before the search, so that `offer` finds the hold if a message comes meanwhile.
        for place in _places(hold):
            self._remember(place, _waiting(hold))
        return await self.try_one(hold)

    async def try_one(self, hold: HoldRow) -> bool:
        """Like `take_one`, for a process that does not call `offer` afterwards."""
        one = _waiting(hold)
        for place in _places(hold):
            row = await self._retaken(place, one) or await self._found(place, one)
            if row is not None:
                self.forget(hold)
                return await self._hand_over(one, row)
        return False

    def forget(self, hold: HoldRow) -> None:
        """It does not wait any more."""
        for place in _places(hold):
            self._forget(place, hold.id)

    async def offer(self) -> None:
        """Give what has become ready since the last look to the holds that are known to wait for it."""
        for place in list(self._waiting):
            try:
                await self._offer(place)
            except StoreError:
                raise
            except Exception:
                # Those who wait in other queues, of other tenants too, must not wait for this one.
                log.exception("the messages of %s/%s could not be offered", *place[1:])

    async def _offer(self, place: Place) -> None:
        # Only messages since the last look: each hold searched the whole queue when it began to wait.
        now, since, after = self.store.now(), self._looked.get(place, 0) - _MARGIN, None
        while waiting := list(self._waiting.get(place, {}).values()):
            page = await self.store.ready_messages(self._want(place), after=after, since=since)
            for row in page:
                await self._offer_one(place, row, waiting)
            if len(page) < PAGE:
                break
            after = page[-1].place
            await asyncio.sleep(0)
        self._looked[place] = now

    async def _offer_one(self, place: Place, row: MessageRow, waiting: list[WaitingHold]) -> None:
        """To the hold that has waited longest, of those whose condition it meets."""
        one = await _first_match(row, waiting)
        if one is None:
            return
        claimed = await self._claim(place, one, row.id)
        if claimed is None:
            return
        waiting.remove(one)
        self._forget(place, one.id)
        try:
            await self._hand_over(one, claimed)
        except HoldfastError as error:
            if isinstance(error, StoreError):
                raise
            # The others must not wait for it; the outbox tries this hold again.
            log.warning("hold %s cannot take message %s: %s", one.id, row.id, error)

    def _remember(self, place: Place, one: WaitingHold) -> None:
        known = self._waiting.setdefault(place, {})
        if one.id in known or sum(map(len, self._waiting.values())) < MOST_WAITING:
            known[one.id] = one

    def _forget(self, place: Place, hold: HoldId) -> None:
        known = self._waiting.get(place, {})
        known.pop(hold, None)
        if not known:
            self._waiting.pop(place, None)
            self._looked.pop(place, None)

    async def _retaken(self, place: Place, one: WaitingHold) -> MessageRow | None:
        """What this run claimed before its worker died, with a new claim: if that worker lives, it has lost
        its own, so that the message is handed over once."""
        tenant, scope, queue = place
        where = MessageFilter(tenant=tenant, scope=scope, queue=queue, states=(MessageState.claimed,))
        after = None
        while page := await self.store.list_messages(where, after=after, limit=PAGE):
            for row in page:
                if self._is_left(row, one) and isinstance(await self.store.change_message(
                    self._change(row, MessageAct.release, delay=0, counted=False)
                ), MessageRow):  # fmt: skip
                    return await self._claim(place, one, row.id)
            after = page[-1].number
        return None

    def _is_left(self, row: MessageRow, one: WaitingHold) -> bool:
        """Not one that the run has got already, and keeps until it ends."""
        kept = (row.claim_until or 0) > self.store.now() + KEPT_FOR // 2
        return row.claimed_by == claimer_of(one.run) and not kept and matches(row, one.condition)

    async def _found(self, place: Place, one: WaitingHold) -> MessageRow | None:
        """Claimed: the first that matches, of all that are ready."""
        if "match" not in one.condition:
            return await self._claim(place, one)
        after = None
        while page := await self.store.ready_messages(self._want(place), after=after):
            for row in page:
                if await _first_match(row, [one]) and (claimed := await self._claim(place, one, row.id)):
                    return claimed
            after = page[-1].place
            await asyncio.sleep(0)
        return None

    def _want(self, place: Place, by: str = "", limit: int = PAGE) -> MessageClaim:
        tenant, scope, queue = place
        ttl = self.settings.claim_time(scope, queue)
        # Questions of other holds are completed by their answers alone.
        return MessageClaim(
            tenant=tenant, scope=scope, queue=queue, by=by, ttl=ttl, limit=limit, reviews=False
        )

    async def _claim(self, place: Place, one: WaitingHold, id_: str | None = None) -> MessageRow | None:
        want = msgspec.structs.replace(self._want(place, claimer_of(one.run), limit=1), id=id_)
        found = await self.store.claim_messages(want)
        return found[0] if found else None

    async def _hand_over(self, one: WaitingHold, row: MessageRow) -> bool:
        """False if the hold still waits, because the message was taken from it meanwhile."""
        actor = queue_actor(row.tenant, None)
        done = self._change(
            row, MessageAct.complete, by=actor.id, result=msgspec.json.encode({"run": one.run})
        )
        if one.condition.get("complete") == RUN_END:
            done = self._change(row, MessageAct.extend, ttl=KEPT_FOR)
        terms = ResolveConditions(idempotency_key=f"queue:{row.id}", message=done)
        try:
            submission = Submission(decision=RECEIVED, response_data=received_data(row))
            await decide.resolve(self.people.ctx, actor, one.id, submission, terms)
        except (ConflictError, NotFoundError):
            # The hold ended otherwise: the message is for the next one. Or the message was withdrawn.
            await self.store.change_message(self._change(row, MessageAct.release, delay=0, counted=False))
            now = await self.store.hold(one.id)
            return now is None or now.status is not HoldStatus.pending
        except HoldfastError as error:
            # Events have no limit of attempts, and a refused one blocks those behind it: it is dead after
            # MOST_TRIES.
            counted = not isinstance(error, StoreError)
            last = counted and row.max_attempts == 0 and row.attempts + 1 >= MOST_TRIES
            act = MessageAct.dead if last else MessageAct.release
            await self.store.change_message(self._change(row, act, error=str(error)[:500], counted=counted))
            raise
        return True

    def _change(self, row: MessageRow, act: MessageAct, **given: object) -> MessageChange:
        fields = {"tenant": row.tenant, "id": row.id, "act": act, "token": row.claim_token, **given}
        return msgspec.convert(fields, MessageChange)


def _waiting(hold: HoldRow) -> WaitingHold:
    return WaitingHold(hold.id, hold.run, msgspec.json.decode(hold.context), len(hold.context))


def _places(hold: HoldRow) -> list[Place]:
    """Where its message may be. An event may also have been sent to its run alone."""
    scope, _, queue = (hold.terms.queue or "").partition("/")
    if scope != EVENTS:
        return [(hold.tenant, scope, queue)]
    name = str(msgspec.json.decode(hold.context).get("event"))
    return [(hold.tenant, scope, event_queue(name, None, hold.run)), (hold.tenant, scope, queue)]


def received_id(hold: HoldRow) -> str | None:
    """The message that a resolved hold got."""
    if hold.resolution is None:
        return None
    given: Any = msgspec.json.decode(hold.resolution).get("response_data")
    return cast("dict[str, str]", given).get("id") if isinstance(given, dict) else None


def received_data(row: MessageRow) -> dict[str, object]:
    """What the run gets; of an event also its name, key and data by themselves."""
    payload = msgspec.json.decode(row.payload)
    of_event = {name: payload[name] for name in ("name", "key", "data")} if row.scope == EVENTS else {}
    return {
        **of_event,
        "id": row.id,
        "type": row.type,
        "correlation_id": row.correlation_id,
        "priority": row.priority,
        "attempt": row.attempts + 1,
        "payload": payload,
    }


async def _first_match(row: MessageRow, waiting: Sequence[WaitingHold]) -> WaitingHold | None:
    """The first hold whose condition the message meets; in a thread if that may take long."""

    def search() -> WaitingHold | None:
        return next((each for each in waiting if matches(row, each.condition)), None)

    asked = [each for each in waiting if "match" in each.condition]
    cost = sum(
        (len(row.payload) + each.size) * (1 + len(str(each.condition["match"])) // 20) for each in asked
    )
    return search() if cost <= _AT_ONCE else await in_thread(search)


@lru_cache(maxsize=64)
def _compiled(match: str) -> Expr:
    return compile_expr(match)


def matches(row: MessageRow, condition: dict[str, Any]) -> bool:
    """Whether the condition in the context of a hold holds for this message: `match` is an expression about
    `message`, `values` are those of the run. One that cannot be evaluated does not hold: the sender chooses
    which fields a message has, and of what type."""
    if "match" not in condition:
        return True
    message = received_data(row)
    names = {"message": message, **nested_values(condition.get("values") or {})}
    if row.scope == EVENTS:
        names["event"] = cast("dict[str, Any]", message["payload"])["data"]
    try:
        return _compiled(str(condition["match"])).evaluate(mapping_resolver(names)) is True
    except (ExpressionError, MissingNameError, NotComparableError):
        return False
