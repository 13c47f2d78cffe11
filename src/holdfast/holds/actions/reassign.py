"""Reassigning a hold, and extending its deadline (RA-1 to RA-6, EX-11)."""

from __future__ import annotations

from typing import Any

from holdfast.errors import InputError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.audit_entries import EXTENDED, REASSIGNED, entry, event, message
from holdfast.holds.actions.change import change
from holdfast.holds.actions.context import HoldContext, Permit
from holdfast.holds.actions.submission import require_comment
from holdfast.holds.permissions.assignees import UNROUTED
from holdfast.holds.permissions.check import excluded_target
from holdfast.holds.timing.reminders import next_reminder
from holdfast.types.clock import iso
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.outbox import ASSIGNED
from holdfast.types.terms import Actor, Assignee


async def reassign(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    to: str | None,
    *,
    expires_at: int | None = None,
    reason: str | None = None,
    if_match: int | None = None,
) -> HoldRow:
    """Resolve the new assignee, notify them, and start a new epoch: older links become void. The deadline
    does not change unless given.

    Raises InputError for a person who is excluded and for a name that the directory does not have; only
    admins may remove the assignee, by giving none."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        permit = await ctx.permit(actor, "reassign", row, now)
        conflicts.require_open(row)
        conflicts.require_undecided(row, actor.id, now)
        conflicts.require_version(row, if_match)
        target = await ctx.route(to, row)
        # Refused here although the target could not decide anyway:
        # the hold would wait for a person who may not answer it.
        await _require_target(ctx, row, to, target, permit, now)
        _require_no_earlier(row, expires_at)
        why = require_comment(reason) if reason else None
        return moved(
            row, to, target, by=actor.id, at=now, expires_at=expires_at, reason=why, behind=actor.people[1:]
        )

    return await change(ctx, actor, hold, "reassign", decide)


async def _require_target(
    ctx: HoldContext, row: HoldRow, to: str | None, target: Assignee, permit: Permit, now: int
) -> None:
    # A name that is not known is a slip, and the hold would leave the list of everybody but admins.
    is_removed = not (to or "").strip() and ctx.ask(permit, "unroute", row, now).allowed
    if target.type == UNROUTED and not is_removed:
        raise InputError(
            f"hold {row.id} would have no assignee: {target.reason or 'none is given'}.",
            hint="Name a person, group or role. Only admins can remove the assignee, by giving none.",
            hold=row.id,
        )
    known = await ctx.known(target, row.tenant) if target.type == "user" else None
    why = excluded_target(target, row, permit.past, known)
    if why is not None:
        raise InputError(
            f"hold {row.id} cannot be assigned to {target}: {why}.",
            hint="Name another assignee.",
            hold=row.id,
        )


def _require_no_earlier(row: HoldRow, expires_at: int | None) -> None:
    """A deadline that decides in place of certain people is not brought forward by one of them."""
    decides = row.expiry_action == "default_option" and row.terms.binds_everybody
    if decides and expires_at is not None and expires_at < (row.expires_at or 0):
        raise InputError(
            f"the deadline of hold {row.id} must not become earlier than {iso(row.expires_at or 0)}.",
            hint="Leave expires_at out, or give a later one.",
            hold=row.id,
        )


def moved(
    row: HoldRow,
    raw: str | None,
    target: Assignee,
    *,
    by: str,
    at: int,
    expires_at: int | None = None,
    claim_until: int | None = None,
    reason: str | None = None,
    behind: tuple[str, ...] = (),
) -> HoldChange:
    """The row with another assignee. `claim_until`: the new assignee has claimed it until then. `behind`:
    the chain of the credential with which it is done."""
    epoch = row.epoch + 1
    before, after = str(Assignee(row.assignee_type, row.assignee_value)), str(target)
    fields: dict[str, Any] = {
        "assignee": raw,
        "assignee_type": target.type,
        "assignee_value": target.value,
        "assignee_reason": target.reason,
        "epoch": epoch,
        "notification_sent": False,
        "reminder_count": 0,
        "remind_at": next_reminder(row, at),
        "claimed_by": by if claim_until is not None else None,
        "claim_until": claim_until,
        # A decision of the earlier assignee must not become final for the new one.
        "placed": None,
        "placed_by": None,
        "placed_until": None,
    }
    if expires_at is not None:
        fields["expires_at"] = expires_at
    facts: dict[str, Any] = {"reason": reason} if reason else {}
    if behind:
        facts["took_part"] = list(behind)
    known: dict[str, Any] = {"from": before, "to": after, "epoch": epoch}
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=at,
        fields=fields,
        audit=(entry(row, by, "reassigned", at, **known, **facts),),
        outbox=(message(row, ASSIGNED, **known, by=by),),
        event=event(row, REASSIGNED, at, **known, by=by),
    )


async def extend(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    expires_at: int,
    *,
    reason: str | None = None,
    if_match: int | None = None,
) -> HoldRow:
    """Set a later deadline. Raises InputError if it is in the past or not later, HoldDecidedError if the hold
    has expired."""

    async def decide(row: HoldRow, now: int) -> HoldChange:
        await ctx.permit(actor, "extend", row, now)
        conflicts.require_open(row)
        conflicts.require_version(row, if_match)
        if expires_at <= max(now, row.expires_at or 0):
            raise InputError(
                f"{iso(expires_at)} is not later than now and the deadline of hold {row.id}.",
                hint="Give a later deadline.",
                hold=row.id,
                expires_at=row.expires_at,
            )
        known: dict[str, Any] = {"from": row.expires_at and iso(row.expires_at), "to": iso(expires_at)}
        if reason:
            known["reason"] = require_comment(reason)
        return HoldChange(
            hold=row.id,
            version=row.version,
            at=now,
            fields={"expires_at": expires_at},
            audit=(entry(row, actor.id, "extended", now, **known),),
            event=event(row, EXTENDED, now, by=actor.id, expires_at=iso(expires_at)),
        )

    return await change(ctx, actor, hold, "extend", decide)
