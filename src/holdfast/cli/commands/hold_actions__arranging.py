"""`holds reassign`, `claim`, `extend`, `comment`, `ask-back` and their kin: all but the decision."""

from __future__ import annotations

from typing import Any

from holdfast.cli.commands.hold_actor import (
    ActorOptions,
    HoldSession,
    act,
    length,
    moment,
    open_hold_session,
    short,
)
from holdfast.cli.main import Exit
from holdfast.cli.output.screen import print_json, print_line
from holdfast.holds.queries.summary import assignee_of, claim_of
from holdfast.types.hold import HoldRow
from holdfast.types.human_time import clock_time


async def reassign_hold(
    which: str, to: str, *, due: str | None, reason: str | None, seat: ActorOptions
) -> Exit:
    until = None if due is None else moment(due, "--due")

    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.reassign(desk.actor, row.id, to, expires_at=until, reason=reason)

    def told(row: HoldRow) -> str:
        if row.assignee_type == "unrouted":
            why = f": {row.assignee_reason}" if row.assignee_reason else ""
            return f"{short(row)} waits for nobody now; admins see it as unrouted{why}."
        return f"{short(row)} waits for {assignee_of(row)} now."

    return await act(seat, which, do, told)


async def claim_hold(which: str, *, lasting: str | None, reason: str | None, seat: ActorOptions) -> Exit:
    seconds = length(lasting, "--for")

    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.claim(desk.actor, row.id, seconds=seconds, reason=reason)

    def told(row: HoldRow) -> str:
        claimed = claim_of(row, row.updated_at)
        return f"{short(row)} is claimed by {claimed}." if claimed else f"{short(row)} is yours."

    return await act(seat, which, do, told)


async def release_hold(which: str, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.release(desk.actor, row.id)

    return await act(seat, which, do, lambda row: f"{short(row)} is free again.")


async def extend_hold(which: str, until: str, *, reason: str | None, seat: ActorOptions) -> Exit:
    when = moment(until, "UNTIL")

    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.extend(desk.actor, row.id, when, reason=reason)

    return await act(seat, which, do, lambda row: f"{short(row)} is due at {clock_time(row.expires_at)}.")


async def ask_question(which: str, text: str, *, to: str, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.ask_back(desk.actor, row.id, text, to=to)

    return await act(
        seat, which, do, lambda row: f"Asked. The deadline of {short(row)} stands still until they reply."
    )


async def withdraw_question(which: str, question: str | None, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.drop_question(desk.actor, row.id, question=question)

    return await act(seat, which, do, lambda row: f"Nobody has to reply about {short(row)} any more.")


async def answer_question(which: str, text: str, *, question: str | None, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        return await desk.holds.reply(desk.actor, row.id, text, question=question)

    return await act(seat, which, do, lambda row: f"Replied to the question about {short(row)}.")


# ---------------------------------------------------------------------- what leaves the hold as it is


async def add_comment(which: str, text: str, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        await desk.holds.comment(desk.actor, row.id, text)
        return row

    return await act(seat, which, do, lambda row: f"Said, to all who see {short(row)}.")


async def watch_hold(which: str, *, off: bool, seat: ActorOptions) -> Exit:
    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        await (desk.holds.unwatch if off else desk.holds.watch)(desk.actor, row.id)
        return row

    done = "is not watched any more" if off else "is among those you watch"
    return await act(seat, which, do, lambda row: f"{short(row)} {done}.")


async def snooze_hold(which: str, until: str | None, seat: ActorOptions) -> Exit:
    """Without a time: it is back."""
    when = None if until is None else moment(until, "UNTIL")

    async def do(desk: HoldSession, row: HoldRow) -> HoldRow:
        if when is None:
            await desk.holds.unsnooze(desk.actor, row.id)
        else:
            await desk.holds.snooze(desk.actor, row.id, when)
        return row

    done = "is back in your list" if when is None else "is out of your sight until then; its deadline stays"
    return await act(seat, which, do, lambda row: f"{short(row)} {done}.")


async def edit_draft(
    which: str, decision: str | None, *, data: Any, comment: str | None, drop: bool, seat: ActorOptions
) -> Exit:
    """Keep one, drop it, or, where nothing is given, show it."""
    async with open_hold_session(seat) as desk:
        row = await desk.find(which)
        given = {"decision": decision, "response_data": data, "comment": comment}
        if drop:
            await desk.holds.drop_draft(desk.actor, row.id)
        elif any(value is not None for value in given.values()):
            await desk.holds.save_draft(desk.actor, row.id, given)
        kept = await desk.holds.draft(desk.actor, row.id)
    if seat.json or (kept is not None and not drop):
        print_json(kept)
    else:
        print_line(f"There is no draft of yours at {short(row)}.")
    return Exit.ok
