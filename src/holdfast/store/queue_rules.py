"""What an act does to a message: the same rules in every store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.types.queue_message import (
    EVENTS,
    RELEASE_BACKOFF,
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageRefusal,
    MessageRow,
    MessageState,
    NewMessage,
    new_token,
    urgency_of,
)
from holdfast.types.record import Record
from holdfast.types.status import HoldStatus

Changed = MessageRow | MessageRefusal


def concern_queues(records: Sequence[Record]) -> bool:
    """Whether they open a hold that asks in a queue, or close one that may."""
    # A loop: this is done for every step of every run.
    for record in records:
        side = record.side
        if side is None or not (side.holds or side.close_holds):
            continue
        if side.close_holds or any(hold.terms.queue is not None for hold in side.holds):
            return True
    return False


def new_row(new: NewMessage, number: int, now: int) -> MessageRow:
    fields = {name: getattr(new, name) for name in NewMessage.__struct_fields__}
    fields["visible_at"] = max(new.visible_at, now)
    return MessageRow(**fields, number=number, created_at=now, updated_at=now)


def claimed_message(row: MessageRow, want: MessageClaim, now: int) -> MessageRow:
    return replace(
        row,
        state=MessageState.claimed,
        claimed_by=want.by,
        claim_token=new_token(row.claim_token),
        claim_until=now + want.ttl,
        updated_at=now,
    )


def changed_message(row: MessageRow, change: MessageChange, now: int) -> Changed:
    return _ACTS[change.act](row, change, now)


def lapsed_message(row: MessageRow, now: int) -> MessageRow:
    """Its claim has ended without a word: it counts as an attempt."""
    error = f"the claim of {row.claimed_by} lapsed"
    return _failed(row, now, visible_at=_place(row, now), error=error)


def message_end(status: HoldStatus) -> MessageAct:
    """What happens to the message of a hold that ended elsewhere."""
    return MessageAct.expire if status is HoldStatus.expired else MessageAct.withdraw


def _is_claimed_by(row: MessageRow, change: MessageChange) -> bool:
    return row.state is MessageState.claimed and row.has_token(change.token)


def _extend(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if not _is_claimed_by(row, change):
        return MessageRefusal.claim_lost
    return replace(row, claim_until=max(row.claim_until or 0, now + change.ttl), updated_at=now)


def _complete(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if row.state is MessageState.completed and row.has_token(change.token):
        return row  # the same request again
    if not _is_claimed_by(row, change):
        return MessageRefusal.claim_lost
    done = _ended(row, MessageState.completed, now)
    return replace(done, result=change.result, completed_by=change.by)


def _settle(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if not row.is_open and row.state is not MessageState.dead:
        return row  # it ended before: the answer counts all the same
    done = _ended(row, MessageState.completed, now)
    return replace(done, result=change.result, completed_by=change.by)


def _release(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if not _is_claimed_by(row, change):
        return MessageRefusal.claim_lost
    if not change.counted:
        return replace(_freed(row, now), visible_at=now + change.delay if change.delay else _place(row, now))
    pause = RELEASE_BACKOFF.full_pause(row.attempts + 1) if change.delay is None else change.delay
    return _failed(row, now, visible_at=now + int(pause), error=change.error)


def _dead(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if row.state is MessageState.dead:
        return row
    if change.token is not None and not _is_claimed_by(row, change):
        return MessageRefusal.claim_lost
    if not row.is_open:
        return MessageRefusal.ended
    if row.state is MessageState.claimed and change.token is None and not change.frees:
        return MessageRefusal.claimed
    return replace(_ended(row, MessageState.dead, now), error=change.error)


def _requeue(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if row.state is not MessageState.dead:
        return MessageRefusal.not_dead
    return replace(_freed(row, now), attempts=0, visible_at=now, ended_at=None, error=None)


def _withdraw(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if row.state is MessageState.withdrawn:
        return row
    if not row.is_open and row.state is not MessageState.dead:
        return MessageRefusal.ended
    return _ended(row, MessageState.withdrawn, now)


def _expire(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if not row.is_open and row.state is not MessageState.dead:
        return MessageRefusal.ended
    return _ended(row, MessageState.expired, now)


def _update(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if not row.is_open:
        return MessageRefusal.ended
    return replace(
        _freed(row, now) if change.frees else row,
        payload=row.payload if change.payload is None else change.payload,
        priority=change.priority or row.priority,
        updated_at=now,
    )


def _move(row: MessageRow, change: MessageChange, now: int) -> Changed:
    if not row.is_open:
        return MessageRefusal.ended
    if row.is_kept(now):
        return MessageRefusal.claimed  # two runs would have it at once
    raised = row.priority
    if change.priority is not None and urgency_of(change.priority) < row.urgency:
        raised = change.priority
    return replace(
        _freed(row, now),
        scope=change.scope or row.scope,
        queue=change.queue or row.queue,
        payload=row.payload if change.payload is None else change.payload,
        priority=raised,
        visible_at=now,
    )


def _place(row: MessageRow, now: int) -> int:
    """When it is visible again. An event keeps its place before those that came after it."""
    return row.visible_at if row.scope == EVENTS else now


def _freed(row: MessageRow, now: int) -> MessageRow:
    return replace(row, state=MessageState.ready, claimed_by=None, claim_until=None, updated_at=now)


def _ended(row: MessageRow, state: MessageState, now: int) -> MessageRow:
    return replace(_freed(row, now), state=state, ended_at=now)


def _failed(row: MessageRow, now: int, *, visible_at: int, error: str | None) -> MessageRow:
    """An attempt failed. Dead after the last one."""
    attempts = row.attempts + 1
    if row.max_attempts and attempts >= row.max_attempts:
        return replace(_ended(row, MessageState.dead, now), attempts=attempts, error=error)
    return replace(_freed(row, now), attempts=attempts, visible_at=visible_at, error=error)


_ACTS: Final[dict[MessageAct, Callable[[MessageRow, MessageChange, int], Changed]]] = {
    MessageAct.extend: _extend,
    MessageAct.complete: _complete,
    MessageAct.settle: _settle,
    MessageAct.release: _release,
    MessageAct.dead: _dead,
    MessageAct.requeue: _requeue,
    MessageAct.withdraw: _withdraw,
    MessageAct.expire: _expire,
    MessageAct.update: _update,
    MessageAct.move: _move,
}
