"""Events from machines, and the ends of child runs: messages that a waiting run takes (`queues.consume`).

An event is a message of a queue for its name and key: it is found at once, is taken once and in order, and is
kept until a run waits for it or its time is over. The end of a run becomes a message when a run waits for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any, Final, cast

import msgspec

from holdfast.errors import HoldfastError, InputError, RunEndedError, RunNotFoundError, StoreError
from holdfast.queues.bridge import QueueBridge
from holdfast.queues.consume import received_id
from holdfast.queues.content import content_digest, encode_payload, optional_text, require_id
from holdfast.queues.operations import QueueOperations
from holdfast.store.rows import RunRow
from holdfast.telemetry import log
from holdfast.types.clock import MICROS
from holdfast.types.hold import CONSUME, HoldFilter, HoldOrder, HoldRow
from holdfast.types.ids import DEFAULT_TENANT, HoldId, RunId, derived_id, new_id
from holdfast.types.queue_message import (
    EVENTS,
    LONGEST_EVENT_NAME,
    RUNS,
    MessageRow,
    NewMessage,
    event_queue,
    event_tag,
)
from holdfast.types.status import ENDED, HoldStatus
from holdfast.types.text import require_length, require_text

KEPT_FOR: Final = 7 * 86_400 * MICROS
"""How long an event waits for a run, if its sender does not say."""
LONGEST_KEPT: Final = 365 * 86_400 * MICROS
_MOST_WAITING: Final = 100
"""Waiting runs that `send_event` offers the event to itself; a worker offers it to the others."""


class QueueEvents(QueueOperations):
    bridge: QueueBridge

    async def send_event(
        self,
        name: str,
        data: Any = None,
        *,
        key: str | None = None,
        run: str | None = None,
        id: str | None = None,  # noqa: A002
        keep: int = KEPT_FOR,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Send an event to the run that waits for this name and key, or (`run`) only to this one. Without
        such a run it is kept for `keep` microseconds. Sent again with the same `id`, it is one event.

        Raises InputError, ValueTooLargeError, MessageDiffersError if the id belongs to another event,
        RunNotFoundError, RunEndedError."""
        require_length(name, "the name of an event", LONGEST_EVENT_NAME)
        optional_text(key, "the key of an event")
        if not isinstance(cast("object", keep), int) or not 0 < keep <= LONGEST_KEPT:
            raise InputError("an event is kept from a moment to a year.", hint="Give a duration such as 7d.")
        if run is not None:
            if key is not None:
                raise InputError("an event has a key or a run, not both.")
            await self._require_run(require_text(run, "the run of an event"), tenant)
        now = self.store.now()
        payload = {"name": name, "key": key, "data": data}
        new = NewMessage(
            id=require_id(id) if id is not None else new_id(),
            tenant=tenant,
            scope=EVENTS,
            queue=event_queue(name, key, run),
            type=name,
            correlation_id=key,
            priority="normal",
            payload=encode_payload(payload, "the event"),
            digest="",
            visible_at=0,
            expires_at=now + keep,
            # One at a time, in order; one that no run accepts does not hold up those behind it.
            group_key=name,
            run=run,
            node=None,
            max_attempts=0,
            retention=KEPT_FOR,
        )
        # The digest leaves out `expires_at`: a repeat is sent later, has another one, and must still count as
        # the same event.
        same = msgspec.structs.replace(new, expires_at=None)
        row = await self._published(msgspec.structs.replace(new, digest=content_digest(same)))
        if row.is_open:
            await self._offer(row, name, run)
        return await self.store.queue_message(tenant, row.id) or row

    async def _require_run(self, run: str, tenant: str) -> None:
        row = await self.store.get_run(RunId(run))
        if row is None or row.tenant != tenant:
            raise RunNotFoundError(f"there is no run {run!r} in this store.", run=run)
        if row.status in ENDED:
            raise RunEndedError(
                f"run {run} has ended ({row.status}): it takes no events.", run=run, status=row.status
            )

    async def _offer(self, row: MessageRow, name: str, run: str | None) -> None:
        """To the runs that have waited longest, without waiting for a worker."""
        async for hold in self._waiting(row, name, run):
            try:
                if await self.bridge.consumer.try_one(hold):
                    return
            except HoldfastError as error:
                if isinstance(error, StoreError):
                    raise
                # It is kept: a worker offers it again.
                log.warning("hold %s cannot take event %s: %s", hold.id, row.id, error)

    async def _waiting(self, row: MessageRow, name: str, run: str | None) -> AsyncIterator[HoldRow]:
        where = HoldFilter(tenant=row.tenant, status=(HoldStatus.pending,), type=(CONSUME,))
        if run is None:
            where = msgspec.structs.replace(where, tags=(event_tag(row.queue),))
        else:
            where = msgspec.structs.replace(where, run=(run,))
        page = await self.store.list_holds(where, order=HoldOrder.oldest, limit=_MOST_WAITING)
        for hold, _ in page:
            if msgspec.json.decode(hold.context).get("event") == name:
                yield hold

    async def look(self, hold: str) -> bool:
        """Give a waiting hold a message that is there already. True if there was one."""
        row = await self.store.hold(HoldId(hold))
        if row is None or row.status is not HoldStatus.pending or row.type != CONSUME:
            return False
        await self.bridge.publish_run_end(row)
        return await self.bridge.consumer.try_one(row)

    async def give_back(self, hold: str, used: Collection[str]) -> None:
        """The events that earlier attempts of a node were given for this wait and that its script never got,
        because it failed at the same moment. `used`: the holds whose answers are recorded."""
        row = await self.store.hold(HoldId(hold))
        if row is None or not (row.terms.queue or "").startswith(f"{EVENTS}/"):
            return
        place = (CONSUME, row.scope, row.node, row.visit, row.terms.queue)
        for old in await self.store.holds(run=row.run, status=HoldStatus.resolved, limit=1000):
            if old.id in used or (old.type, old.scope, old.node, old.visit, old.terms.queue) != place:
                continue
            taken = await self.store.queue_message(row.tenant, received_id(old) or "")
            if taken is not None:
                same = NewMessage(**{name: getattr(taken, name) for name in NewMessage.__struct_fields__})
                # With an id that follows from the old wait: done twice, it is one event.
                again, keep = derived_id("again", old.id), self.store.now() + KEPT_FOR
                await self._published(msgspec.structs.replace(same, id=again, visible_at=0, expires_at=keep))

    async def run_ended(self, run: RunRow) -> None:
        """Tell the parent of a run that it has ended, if the parent waits for it."""
        if run.parent_run is None:
            return
        # One that was rewound is waited for under the id that it had before.
        queue = f"{RUNS}/{run.id if run.forked_from is None else ''}"
        for hold in await self.store.holds(run=run.parent_run, status=HoldStatus.pending, limit=1000):
            if hold.type == CONSUME and (hold.terms.queue or "").startswith(queue):
                await self.look(hold.id)
