"""`holdfast holds reassign`, `claim`, `release`, `extend`, `snooze` and `watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app import Json, Store, Text, run_async
from holdfast.cli.commands.holds.group import As, Hold, Whose, group
from holdfast.cli.hold_session import ActorOptions, HoldSession, act, length, moment, short
from holdfast.cli.main import Exit
from holdfast.errors import InputError
from holdfast.types.human_time import clock_time

if TYPE_CHECKING:
    from holdfast.types.hold import HoldRow

Reason = Annotated[Text, typer.Option(help="Reason, stored in the audit log")]
Until = Annotated[str, typer.Argument(help="Duration from now (4h, 2d) or a time", metavar="WHEN")]


@group.command(
    epilog="Examples:  holdfast holds reassign 3fa9c1d2 group:finance   ·   "
    "holdfast holds reassign 3fa9c1d2 user:sam@acme --due 2d --reason 'on leave'"
)
def reassign(
    hold: Hold,
    to: Annotated[str, typer.Argument(help="user:NAME, group:KEY or role:KEY", metavar="WHOM")],
    due: Annotated[Text, typer.Option(help="Also set a new deadline", metavar="WHEN")] = None,
    reason: Reason = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Reassign a hold and notify the new assignee. Older links become invalid."""
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(reassign_hold(hold, to, due=due, reason=reason, options=options))


@group.command(epilog="Examples:  holdfast holds claim 3fa9c1d2   ·   holdfast holds claim 3fa9c1d2 --for 1h")
def claim(
    hold: Hold,
    lasting: Annotated[Text, typer.Option("--for", help="Duration, e.g. 15m", metavar="DURATION")] = None,
    reason: Reason = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Claim a hold for a while. An unassigned one becomes yours."""
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(claim_hold(hold, lasting=lasting, reason=reason, options=options))


@group.command(epilog="Example:  holdfast holds release 3fa9c1d2")
def release(
    hold: Hold, as_: As = None, tenant: Whose = "default", store: Store = None, json: Json = False
) -> int:
    """Release your claim."""
    return run_async(release_hold(hold, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(
    epilog="Examples:  holdfast holds extend 3fa9c1d2 2d   ·   "
    "holdfast holds extend 3fa9c1d2 2030-01-31T17:00"
)
def extend(
    hold: Hold,
    until: Until,
    reason: Reason = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Extend the deadline of a hold."""
    return run_async(
        extend_hold(
            hold, until, reason=reason, options=ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
        )
    )


@group.command(
    epilog="Examples:  holdfast holds snooze 3fa9c1d2 4h   ·   holdfast holds snooze 3fa9c1d2 --off"
)
def snooze(
    hold: Hold,
    until: Annotated[
        Text, typer.Argument(help="Duration from now (4h, 2d) or a time", metavar="WHEN")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="End the snooze")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Hide a hold from your list for a while. Its deadline stays."""
    if off == (until is not None):
        raise InputError("give a time, or --off.", hint="Write 4h, 2d or 2030-01-31T09:00.")
    return run_async(snooze_hold(hold, until, ActorOptions(as_=as_, tenant=tenant, store=store, json=json)))


@group.command(epilog="Examples:  holdfast holds watch 3fa9c1d2   ·   holdfast holds watch 3fa9c1d2 --off")
def watch(
    hold: Hold,
    off: Annotated[bool, typer.Option("--off", help="Stop watching")] = False,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Watch a hold: it is listed in the view `watching`."""
    return run_async(
        watch_hold(hold, off=off, options=ActorOptions(as_=as_, tenant=tenant, store=store, json=json))
    )


async def reassign_hold(
    which: str, to: str, *, due: str | None, reason: str | None, options: ActorOptions
) -> Exit:
    from holdfast.holds.queries.summary import assignee_of

    until = None if due is None else moment(due, "--due")

    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.reassign(session.actor, row.id, to, expires_at=until, reason=reason)

    def done_text(row: HoldRow) -> str:
        if row.assignee_type == "unrouted":
            why = f": {row.assignee_reason}" if row.assignee_reason else ""
            return f"{short(row)} is unassigned now; administrators see it{why}."
        return f"{short(row)} is assigned to {assignee_of(row)}."

    return await act(options, which, do, done_text)


async def claim_hold(which: str, *, lasting: str | None, reason: str | None, options: ActorOptions) -> Exit:
    from holdfast.holds.queries.summary import claim_of

    seconds = length(lasting, "--for")

    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.claim(session.actor, row.id, seconds=seconds, reason=reason)

    def done_text(row: HoldRow) -> str:
        claimed = claim_of(row, row.updated_at)
        return f"{short(row)} is claimed by {claimed}." if claimed else f"{short(row)} is yours."

    return await act(options, which, do, done_text)


async def release_hold(which: str, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.release(session.actor, row.id)

    return await act(options, which, do, lambda row: f"Your claim on {short(row)} is released.")


async def extend_hold(which: str, until: str, *, reason: str | None, options: ActorOptions) -> Exit:
    when = moment(until, "WHEN")

    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        return await session.holds.extend(session.actor, row.id, when, reason=reason)

    return await act(options, which, do, lambda row: f"{short(row)} is due at {clock_time(row.expires_at)}.")


async def watch_hold(which: str, *, off: bool, options: ActorOptions) -> Exit:
    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        await (session.holds.unwatch if off else session.holds.watch)(session.actor, row.id)
        return row

    done = "is no longer watched" if off else "is watched"
    return await act(options, which, do, lambda row: f"{short(row)} {done}.")


async def snooze_hold(which: str, until: str | None, options: ActorOptions) -> Exit:
    """Without a time: end the snooze."""
    when = None if until is None else moment(until, "WHEN")

    async def do(session: HoldSession, row: HoldRow) -> HoldRow:
        if when is None:
            await session.holds.unsnooze(session.actor, row.id)
        else:
            await session.holds.snooze(session.actor, row.id, when)
        return row

    done = "is back in your list" if when is None else "is snoozed until then; its deadline stays"
    return await act(options, which, do, lambda row: f"{short(row)} {done}.")
