"""A run escalates a review of its own: the hold gets its new assignee and a higher priority in the
transaction that moves the message, so that the inbox, rights and links follow."""

from __future__ import annotations

import msgspec

from holdfast.errors import ConflictError
from holdfast.holds.actions.audit_entries import RAISED, entry, event
from holdfast.holds.actions.reassign import moved
from holdfast.holds.permissions.assignees import UNROUTED
from holdfast.queues.completions import queue_actor
from holdfast.queues.review_request import encoded_request, with_escalation
from holdfast.queues.service import QueueService
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.queue_message import MessageRow, urgency_of
from holdfast.types.status import HoldStatus

_TRIES = 20


async def escalate_review(
    queues: QueueService,
    row: MessageRow,
    to: str | None,
    *,
    priority: str | None,
    assignee: str | None,
    note: str | None,
) -> bool:
    """False: it is decided already. Raises ConflictError where the assignee is not known, or others change
    the hold again and again, ValueTooLargeError."""
    added = {name: value for name, value in (("assignee", assignee), ("note", note)) if value is not None}
    for _ in range(_TRIES):
        hold = await queues.store.hold(HoldId(row.hold or ""))
        if hold is None or hold.status is not HoldStatus.pending or hold.read_only:
            return False
        change = await _change(queues, hold, assignee, priority, note)
        if change is None:
            return await _move(queues, row, to, priority, added)
        after = msgspec.structs.replace(hold, **change.fields)
        payload = with_escalation(encoded_request(after, queues.bridge.base_url), added)
        message, notice = queues.moving(row, to, priority=priority, payload=payload)
        outbox = (*change.outbox, *notice)
        done = await queues.store.change_hold(msgspec.structs.replace(change, message=message, outbox=outbox))
        if isinstance(done, HoldRow):
            return True
        if done is not ChangeRefusal.stale:
            return False
    raise ConflictError(f"hold {row.hold} was changed by others in every attempt.", hint="Retry it later.")


async def _move(
    queues: QueueService, row: MessageRow, to: str | None, priority: str | None, added: dict[str, str]
) -> bool:
    change, notice = queues.moving(row, to, priority=priority, payload=with_escalation(row.payload, added))
    return isinstance(await queues.store.change_message(change, outbox=notice), MessageRow)


async def _change(
    queues: QueueService, hold: HoldRow, assignee: str | None, priority: str | None, note: str | None
) -> HoldChange | None:
    """None: the hold stays as it is."""
    change = None
    if assignee is not None and assignee != hold.assignee:
        change = await _reassigned(queues, hold, assignee, note)
    if priority is not None and urgency_of(priority) < urgency_of(hold.priority):
        change = _raised(hold, priority, note, change, queues.store.now())
    return change


def _raised(hold: HoldRow, priority: str, note: str | None, change: HoldChange | None, at: int) -> HoldChange:
    by = queue_actor(hold.tenant, None).id
    known = {"from": hold.priority, "to": priority}
    made = entry(hold, by, "raised", at, **known, **({"reason": note} if note else {}))
    if change is None:
        happened = event(hold, RAISED, at, **known, by=by)
        change = HoldChange(hold=hold.id, version=hold.version, at=at, fields={}, event=happened)
    fields = {**change.fields, "priority": priority}
    return msgspec.structs.replace(change, fields=fields, audit=(*change.audit, made))


async def _reassigned(queues: QueueService, hold: HoldRow, assignee: str, note: str | None) -> HoldChange:
    target = await queues.people.ctx.route(assignee, hold)
    if target.type == UNROUTED:
        raise ConflictError(
            f"hold {hold.id} would have no assignee: {target.reason}.", hint="Name another assignee."
        )
    by = queue_actor(hold.tenant, None).id
    return moved(hold, assignee, target, by=by, at=queues.store.now(), reason=note)
