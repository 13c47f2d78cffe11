"""The bridge between holds and queues: publishes, changes and withdraws the message of each hold that asks in
a queue (QB-1, QB-2, QB-9, QB-12), after the commit that opened or changed the hold.

Each step may be repeated: the hold names its message.
"""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec

from holdfast.errors import InputError, StoreError, TransportError
from holdfast.queues.completions import (
    REFUSALS,
    Completion,
    Completions,
    broker_actor,
    queue_actor,
    read_completion,
    read_event,
)
from holdfast.queues.consume import QueueConsumer, received_id
from holdfast.queues.relay import QueueRelay
from holdfast.queues.review_request import escalation_of, request_id, review_request, with_escalation
from holdfast.queues.settings import QueueSettings
from holdfast.queues.transport import TransportStatus
from holdfast.runs.child_questions import CHILD_CHANGED, awaited_change, is_unchanged, run_of
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.telemetry import log
from holdfast.types.backoff import Backoff
from holdfast.types.clock import MICROS
from holdfast.types.delivery_retry import next_try
from holdfast.types.hold import CONSUME, HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import HoldId, RunId, new_id
from holdfast.types.outbox import QUEUE, QUEUE_OUT, OutboxRow, OutboxState
from holdfast.types.queue_message import (
    EVENTS,
    OPEN_MESSAGES,
    RUNS,
    MessageAct,
    MessageChange,
    MessageFilter,
    MessageRow,
    MessageState,
    NewMessage,
    event_queue,
    urgency_of,
)
from holdfast.types.redaction import redactor, tenant_scope
from holdfast.types.status import ENDED, HoldStatus
from holdfast.types.text import clean_text

BATCH: Final = 50
LEASE: Final = 60 * MICROS
CONSUME_BACKOFF: Final = Backoff(first=MICROS, longest=60 * MICROS)
"""How often a run that waits for a message searches the whole queue, in case that its worker died: messages
that come are offered to it at once."""
BROKER_BACKOFF: Final = Backoff(first=2 * MICROS, longest=300 * MICROS, spread=0.25)
"""How often a broker that is away is tried. It is never given up: no other step withdraws a message whose
hold has ended meanwhile."""


MOST_COMPARED: Final = 10_000
"""Ready messages for machines that one reconciliation asks the brokers about."""


class ReconcileCounts(msgspec.Struct, kw_only=True):
    """What a reconciliation found: holds that ask in a queue, messages published again, completions that
    were missed, messages withdrawn from a broker because they had ended, and messages there that this store
    does not know."""

    holds: int = 0
    published: int = 0
    applied: int = 0
    withdrawn: int = 0
    unknown: int = 0


class QueueBridge:
    def __init__(
        self,
        store: Store,
        settings: QueueSettings,
        completions: Completions,
        relay: QueueRelay,
        base_url: str,
    ) -> None:
        self.store = store
        self.relay = relay
        self.settings = settings
        self.completions = completions
        self.consumer = QueueConsumer(completions.people, settings)
        self.base_url = settings.base_url or base_url

    async def work(self) -> int:
        """Everything that is due now; returns the number of messages of the outbox."""
        done = 0
        while True:
            found = await self.store.claim_outbox(limit=BATCH, lease=LEASE, topics=(QUEUE, QUEUE_OUT))
            for message in found:
                with tenant_scope(message.tenant):
                    await self._one(message)
            done += len(found)
            if len(found) < BATCH:
                await self.consumer.offer()
                return done

    async def _one(self, message: OutboxRow) -> None:
        state, error, due = OutboxState.done, None, 0
        try:
            state = await (self._relayed(message) if message.topic == QUEUE_OUT else self._asked(message))
            if state is OutboxState.waiting:
                due = self.store.now() + int(CONSUME_BACKOFF.full_pause(message.attempts))
        except Exception as fault:
            if isinstance(fault, StoreError) and fault.retryable:
                raise  # not the message's fault: its claim expires, and it is done when the store is back
            what = f"the message of hold {message.hold}" if message.hold else message.key
            log.warning("%s could not be published: %s", what, fault)
            again = _next_try(fault, message, self.store.now())
            state = OutboxState.dead if again is None else OutboxState.waiting
            error, due = clean_text(redactor.redact_operator(clean_text(fault)), 200), again or 0
        # Not flushed: each step may be repeated.
        await self.store.finish_outbox(
            message.id, attempt=message.attempts, state=state, error=error, due_at=due, flushed=False
        )

    async def _asked(self, message: OutboxRow) -> OutboxState:
        """A hold was opened, changed or ended."""
        row = await self.store.hold(HoldId(message.hold or ""))
        if row is None or row.read_only:
            return OutboxState.skipped
        if row.type == CONSUME:
            return await self._wait(row)
        if row.status is HoldStatus.pending:
            await self.publish(row)
        elif row.message_id is not None:
            published = await self.store.queue_message(row.tenant, row.message_id)
            if published is not None:
                await self.relay.send(published)
        return OutboxState.done

    async def _wait(self, row: HoldRow) -> OutboxState:
        """Its place in the outbox is the place in which the run waits for a message."""
        if row.status is HoldStatus.pending:
            return OutboxState.done if await self._taken(row) else OutboxState.waiting
        self.consumer.forget(row)
        got = received_id(row)
        taken = None if got is None else await self.store.queue_message(row.tenant, got)
        if taken is not None and not taken.is_open:
            await self.relay.send(taken)
        return OutboxState.done

    async def _taken(self, row: HoldRow) -> bool:
        """It is never given up over a message that it cannot take: the next one may be another one."""
        try:
            await self.publish_run_end(row)
            await self._publish_change(row)
            return await self.consumer.take_one(row)
        except Exception as fault:
            if isinstance(fault, StoreError) and fault.retryable:
                raise
            log.warning("hold %s cannot take a message: %s", row.id, fault)
            return False

    async def publish_run_end(self, hold: HoldRow) -> None:
        """The message that a run waits for which waits for the end of another one, if that has ended."""
        scope, _, ended = (hold.terms.queue or "").partition("/")
        run = await self._in_its_place(RunId(ended)) if scope == RUNS else None
        if run is None or run.tenant != hold.tenant or run.status not in ENDED:
            return
        payload = msgspec.json.encode({"run": run.id, "status": run.status, "error": run.error})
        where = MessageFilter(tenant=hold.tenant, scope=scope, queue=ended, states=OPEN_MESSAGES)
        if await self.store.list_messages(where, limit=1):
            return
        # With an id that no caller can have chosen; of two at once, the other one expires.
        new = NewMessage(
            id=new_id(),
            tenant=hold.tenant,
            scope=scope,
            queue=ended,
            type="run.ended",
            payload=payload,
            digest="",
            expires_at=self.store.now() + 86_400 * MICROS,
            run=run.id,
            max_attempts=0,
        )
        await self.store.publish_message(new)

    async def _in_its_place(self, run: RunId) -> RunRow | None:
        """The run, or the one to which it was rewound: who waits for its end waits for that one's."""
        row = await self.store.get_run(run)
        while row is not None and row.superseded_by is not None:
            newer = await self.store.get_run(row.superseded_by)
            if newer is None:
                break
            row = newer
        return row

    async def _publish_change(self, hold: HoldRow) -> None:
        """The event for a run that waits for a change of a run which it manages, if that has changed: the
        process that changed it may have died before it sent the event."""
        change = awaited_change(hold)
        if not change:
            return
        child = await self.store.get_run(run_of(change))
        if child is not None and await is_unchanged(self.store, child, change):
            return
        queue = event_queue(CHILD_CHANGED, change)
        where = MessageFilter(tenant=hold.tenant, scope=EVENTS, queue=queue, states=OPEN_MESSAGES)
        if await self.store.list_messages(where, limit=1):
            return
        payload = {"name": CHILD_CHANGED, "key": change, "data": None}
        new = NewMessage(
            id=new_id(),
            tenant=hold.tenant,
            scope=EVENTS,
            queue=queue,
            type=CHILD_CHANGED,
            correlation_id=change,
            payload=msgspec.json.encode(payload),
            digest="",
            expires_at=self.store.now() + 60 * MICROS,
            group_key=CHILD_CHANGED,
            max_attempts=0,
        )
        await self.store.publish_message(new)

    async def _relayed(self, message: OutboxRow) -> OutboxState:
        notice: dict[str, Any] = msgspec.json.decode(message.payload)
        row = await self.store.queue_message(message.tenant, notice["id"])
        if row is None:
            return OutboxState.skipped
        if "from" in notice:
            await self.relay.moved(row, *notice["from"])
        else:
            await self.relay.send(row)
        return OutboxState.done

    async def publish(self, hold: HoldRow) -> bool:
        """Publish the hold's message, or bring it up to date. Returns whether it is new. Raises InputError if
        the queue is not listed where that is required: the hold stays in the inbox."""
        scope, _, queue = (hold.terms.queue or "").partition("/")
        new = review_request(hold, self.settings.of(scope, queue), self.base_url)
        found = await self.store.publish_message(new)
        if found is not None and found[0].hold != hold.id:
            # A caller has published a message with this id: it is theirs, whatever comes of it.
            found = await self.store.publish_message(msgspec.structs.replace(new, id=new_id()))
        if found is None:
            return False  # it ended meanwhile
        row, fresh = found
        payload = new.payload if fresh else with_escalation(new.payload, escalation_of(row.payload))
        changed = not fresh and row.is_open and row.payload != payload
        if changed:
            row = await self._update(row, payload, hold.priority)
        await self.completions.apply_early(hold)
        # As it is now: the early completion may have ended it, may be one of several votes, or invalid.
        now = await self.store.queue_message(row.tenant, row.id) or row
        if now.is_open:
            await self.relay.send(now, again=changed)
        return fresh

    async def _update(self, row: MessageRow, payload: bytes, priority: str) -> MessageRow:
        """A claim ends if the assignee changed, so that the new one finds it; it survives a new deadline."""
        before, after = msgspec.json.decode(row.payload), msgspec.json.decode(payload)
        change = MessageChange(
            tenant=row.tenant,
            id=row.id,
            act=MessageAct.update,
            payload=payload,
            priority=min(row.priority, priority, key=urgency_of),  # a flow may have raised it
            frees=before.get("assignee") != after.get("assignee"),
        )
        done = await self.store.change_message(change)
        return done if isinstance(done, MessageRow) else row

    # ------------------------------------------------------------------ reconciling
    async def reconcile(self, *, holds: bool = True) -> ReconcileCounts:
        """Compare open holds, and ready messages for machines, with the brokers, and repair what was missed
        (QB-11, QU-24). Without `holds`: only apply completions that came before their hold."""
        found = ReconcileCounts()
        if holds:
            await self._reconcile_holds(found)
            await self._reconcile_messages(found)
            try:
                found.withdrawn, found.unknown = await self.relay.discard_ended(self.store)
            except TransportError as error:
                log.warning("what is left at the brokers could not be compared: %s", error)
        for tenant in await self.store.audit_tenants():
            found.applied += await self.completions.sweep_early(tenant)
        return found

    async def _reconcile_holds(self, found: ReconcileCounts) -> None:
        after = None
        where = HoldFilter(status=(HoldStatus.pending,))
        while page := await self.store.list_holds(where, order=HoldOrder.oldest, after=after, limit=200):
            for row, _ in page:
                if row.terms.queue is not None and row.type != CONSUME:
                    await self._reconcile_one(row, found)
            after = page[-1][1]

    async def _reconcile_one(self, hold: HoldRow, found: ReconcileCounts) -> None:
        found.holds += 1
        row = await self.store.queue_message(hold.tenant, hold.message_id or request_id(hold.id))
        try:
            if row is None or hold.message_id is None or row.hold != hold.id:
                found.published += await self.publish(hold)
            elif row.state is MessageState.completed:
                found.applied += await self._apply(hold, row)
            elif row.is_open:
                await self._compare(row, found)
        except (*REFUSALS, TransportError) as error:
            log.warning("hold %s and its message could not be reconciled: %s", hold.id, error)

    async def _reconcile_messages(self, found: ReconcileCounts) -> None:
        """Messages that are no reviews, of queues that go out to a broker: a lost one is published again."""
        left = MOST_COMPARED
        for address in self.settings.queues:
            scope, _, queue = address.partition("/")
            if not self.relay.sends(scope, queue):
                continue
            where, after = MessageFilter(scope=scope, queue=queue, states=(MessageState.ready,)), None
            try:
                while left > 0 and (page := await self.store.list_messages(where, after=after, limit=200)):
                    for row in page:
                        if row.hold is None:
                            await self._publish_if_gone(row, found)
                    left, after = left - len(page), page[-1].number
            except TransportError as error:
                log.warning("the messages of %s could not be reconciled: %s", address, error)

    async def _publish_if_gone(self, row: MessageRow, found: ReconcileCounts) -> None:
        if (await self.relay.status(row)).status is TransportStatus.gone:
            await self.relay.send(row)
            found.published += 1

    async def _compare(self, row: MessageRow, found: ReconcileCounts) -> None:
        """With what the broker knows, if the queue is bound to one."""
        known = await self.relay.status(row)
        if known.status is TransportStatus.gone:
            await self.relay.send(row)
            found.published += 1
        elif known.status is TransportStatus.completed and known.completion is not None:
            found.applied += await self._missed(row, known.completion)

    async def _missed(self, row: MessageRow, event: bytes) -> bool:
        """A completion that the broker has and did not bring: as good as one that it brings, no better."""
        backend = self.settings.of(row.scope, row.queue).backend
        completion = read_completion(read_event(event), backend)
        if completion.correlation_id != row.correlation_id:
            raise InputError("the completion at the broker names another hold.")
        if completion.tenant not in (None, row.tenant):
            raise InputError("the completion at the broker names another tenant.")
        actor = broker_actor(row.tenant, completion.completed_by, backend, self.settings.actor_of(backend))
        return (await self.completions.apply(completion, actor)).outcome in ("resolved", "voted")

    async def _apply(self, hold: HoldRow, row: MessageRow) -> bool:
        """The message is completed and its hold is open: the store was restored, or a row was changed."""
        answer: Any = msgspec.json.decode(row.result or b"{}")
        done = Completion(
            correlation_id=hold.id,
            answer={"decision": answer} if isinstance(answer, str) else answer,
            key=row.id,
            completed_by=row.completed_by,
        )
        applied = await self.completions.apply(done, queue_actor(hold.tenant, row.completed_by))
        return applied.outcome in ("resolved", "voted")


def _next_try(fault: Exception, message: OutboxRow, now: int) -> int | None:
    """When it is tried again; None: it is given up."""
    if isinstance(fault, TransportError):
        return now + int(BROKER_BACKOFF.pause(message.attempts, random.random()))
    return next_try(message.key, message.attempts, now)
