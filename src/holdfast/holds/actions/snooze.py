"""Personal marks of a hold, which change nothing for others: snoozed, watched, seen."""

from __future__ import annotations

from holdfast.errors import InputError
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.actions.change import change, load
from holdfast.holds.actions.comments import note_change
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.clock import iso
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.terms import Actor


async def watch(ctx: HoldContext, actor: Actor, hold: str) -> None:
    """Add it to the actor's watched holds."""
    await _mark(ctx, actor, hold, "watch", "watched")


async def unwatch(ctx: HoldContext, actor: Actor, hold: str) -> None:
    await _unmark(ctx, actor, hold, "watch", "unwatched")


async def snooze(ctx: HoldContext, actor: Actor, hold: str, until: int) -> None:
    """Hide it from the actor's lists, and send them no reminders, until then. The deadline does not change.

    Raises InputError for a time in the past."""
    now = ctx.now()
    if until <= now:
        raise InputError(f"{iso(until)} is in the past.", hint="Give a later time.", hold=hold)
    await _mark(ctx, actor, hold, "snooze", "snoozed", until=until)


async def unsnooze(ctx: HoldContext, actor: Actor, hold: str) -> None:
    await _unmark(ctx, actor, hold, "snooze", "unsnoozed")


async def snoozed_until(ctx: HoldContext, actor: Actor, hold: str) -> int | None:
    """None: the actor has not snoozed it."""
    row = await load(ctx, actor, hold)
    slot = person_key(actor.id)
    notes = await ctx.store.hold_notes(row.id, kinds=("snooze",))
    return next((note.until for note in notes if note.slot == slot), None)


async def mark_seen(ctx: HoldContext, actor: Actor, hold: str) -> None:
    """Record that the actor has seen it. The first time is in the audit."""
    row = await load(ctx, actor, hold)
    known = await ctx.store.hold_notes(row.id, kinds=("seen",))
    if all(note.slot != person_key(actor.id) for note in known):
        await _mark(ctx, actor, hold, "seen", "viewed")


async def _mark(
    ctx: HoldContext, actor: Actor, hold: str, kind: str, action: str, *, until: int | None = None
) -> None:
    async def decide(row: HoldRow, now: int) -> HoldChange:
        await ctx.permit(actor, kind, row, now)
        slot = person_key(actor.id)
        note = Note(hold=row.id, kind=kind, slot=slot, person=actor.id, at=now, until=until)
        submission = {"until": iso(until)} if until is not None else {}
        return note_change(row, now, notes=(note,), audit=(entry(row, actor.id, action, now, **submission),))

    await change(ctx, actor, hold, kind, decide)


async def _unmark(ctx: HoldContext, actor: Actor, hold: str, kind: str, action: str) -> None:
    """Also for a hold that the actor may no longer see. The history says that the mark has ended."""
    slot = person_key(actor.id)

    async def decide(row: HoldRow, now: int) -> HoldChange:
        known = await ctx.store.hold_notes(row.id, kinds=(kind,))
        audit = (entry(row, actor.id, action, now),) if any(note.slot == slot for note in known) else ()
        return note_change(row, now, drop_notes=((kind, slot),), audit=audit)

    await change(ctx, actor, hold, kind, decide)
