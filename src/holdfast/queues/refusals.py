"""The errors of acts that the store refused."""

from __future__ import annotations

from holdfast.errors import ClaimLostError, HoldfastError, MessageEndedError, MessageNotFoundError
from holdfast.types.queue_message import MessageRefusal, MessageRow, MessageState


def refused(why: MessageRefusal, row: MessageRow) -> HoldfastError:
    """The error for an act that the store refused."""
    if why is MessageRefusal.unknown:
        return MessageNotFoundError(f"the message {row.id} was deleted.", message_id=row.id)
    if why is MessageRefusal.claim_lost:
        is_open = row.state in (MessageState.ready, MessageState.claimed)
        if row.state is MessageState.claimed:
            return ClaimLostError(
                f"the token is not that of the claim on the message {row.id}; {row.claimed_by} has it now.",
                hint="Your claim has ended, or the token is wrong. Claim the message when it is ready again.",
                message_id=row.id,
                state=str(row.state),
            )
        return ClaimLostError(
            f"the claim on the message {row.id} has ended{'' if is_open else f': it is {row.state}'}.",
            hint="Claim it again." if is_open else _why_ended(row),
            message_id=row.id,
            state=str(row.state),
        )
    if why is MessageRefusal.claimed:
        return ClaimLostError(
            f"the message {row.id} is claimed by {row.claimed_by}, and no token was given.",
            hint="If that is you, give the token of the claim. With the right queues:write it can be "
            "withdrawn instead.",
            message_id=row.id,
            state=str(MessageState.claimed),
        )
    if why is MessageRefusal.not_dead:
        return MessageEndedError(
            f"the message {row.id} is {row.state}; only a dead one can be requeued.",
            hint="Publish a new message instead.",
            message_id=row.id,
            state=str(row.state),
        )
    return ended(row)


def _why_ended(row: MessageRow) -> str:
    if row.hold is not None and row.state is not MessageState.dead:
        return f"Nothing is left to do: its hold {row.hold} has ended."
    return (
        "Nothing is left to do, unless it is requeued."
        if row.state is MessageState.dead
        else "Drop the work."
    )


def ended(row: MessageRow) -> MessageEndedError:
    return MessageEndedError(
        f"the message {row.id} is {row.state}.",
        hint="It cannot change any more.",
        message_id=row.id,
        state=str(row.state),
    )


def other_result(row: MessageRow) -> MessageEndedError:
    return MessageEndedError(
        f"the message {row.id} was completed before, with another result.",
        hint="The first result counts: read it with the message.",
        message_id=row.id,
        state=str(row.state),
    )


def why_not_claimed(row: MessageRow, now: int) -> str:
    if row.state is MessageState.claimed:
        return f"{row.claimed_by} has claimed it"
    if row.visible_at > now:
        return "its delay has not passed"
    return "an earlier message of its group is not done"
