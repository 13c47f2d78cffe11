"""A placed decision whose undo window has passed: made final, unless its author may not decide any more.

The author is judged as they are now: by the directory, with the rights of the credential that they used, if
that was not revoked since.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import DirectoryUnavailableError, ForbiddenError, HoldClaimedError
from holdfast.holds.actions.audit_entries import TAKEN_BACK, entry, event
from holdfast.holds.actions.close import placed_decision_change
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.terms import AT_THE_STORE, Actor, ChainLink

TOKEN: Final = "token"
SERVER: Final = "_server"
EMPTY: Final[dict[str, Any]] = {"placed": None, "placed_by": None, "placed_until": None}


async def due_change(ctx: HoldContext, row: HoldRow, now: int) -> HoldChange | None:
    """The decision, or its lapse; None while the directory cannot say whether the author may still decide."""
    placed: dict[str, Any] = msgspec.json.decode(row.placed or b"{}")
    why = await _lost(ctx, row, placed, now)
    if why is None:
        return placed_decision_change(row, now)
    return None if why == "" else _lapsed(row, placed, why, now)


async def _lost(ctx: HoldContext, row: HoldRow, placed: dict[str, Any], now: int) -> str | None:
    """Why the author has lost the right; None: they have it, empty: not known."""
    actor = _author(row, placed)
    if actor.is_system:
        return None
    if actor.credential and await _is_revoked(ctx, actor.credential):
        return "the token that was used is revoked"
    try:
        if ctx.directory is not None:
            await ctx.directory.person(row.tenant, person_key(actor.id))
    except DirectoryUnavailableError:
        return ""
    free = msgspec.structs.replace(row, claimed_by=None, claim_until=None)
    reason, decision = placed.get("override_reason"), placed.get("decision")
    try:
        await ctx.permit(actor, "resolve", free, now, reason=reason, decision=decision)
    except (ForbiddenError, HoldClaimedError) as error:
        return error.message.rstrip(".")
    return None


def _author(row: HoldRow, placed: dict[str, Any]) -> Actor:
    """As they were when they placed it. Groups and roles of the credential count where there is no directory;
    a recent sign-in was required then."""
    known: dict[str, Any] = placed.get("members") or {}
    return Actor(
        id=row.placed_by or "",
        tenant=row.tenant,
        rights=frozenset(known.get("rights") or ()),
        groups=frozenset(known.get("groups") or ()),
        roles=frozenset(known.get("roles") or ()),
        channel=placed.get("channel") or "api",
        auth_method=placed.get("auth_method") or "local",
        chain=msgspec.convert(placed.get("chain") or [], tuple[ChainLink, ...]),
        credential=placed.get("credential") or "",
        signed_in_at=AT_THE_STORE,
    )


async def _is_revoked(ctx: HoldContext, token: str) -> bool:
    kept = await ctx.store.document(SERVER, TOKEN, token)
    return kept is None or msgspec.json.decode(kept.body).get("revoked_at") is not None


def _lapsed(row: HoldRow, placed: dict[str, Any], why: str, now: int) -> HoldChange:
    """The hold is open again; what was filled in is the author's draft."""
    author = row.placed_by or ""
    names = ("decision", "response_data", "comment")
    body = msgspec.json.encode({name: placed[name] for name in names if placed.get(name) is not None})
    draft = Note(hold=row.id, kind="draft", slot=person_key(author), person=author, at=now, body=body)
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=now,
        fields=EMPTY,
        audit=(entry(row, author, "placed_lapsed", now, why=why),),
        notes=(draft,),
        event=event(row, TAKEN_BACK, now, by=author, why=why),
    )
