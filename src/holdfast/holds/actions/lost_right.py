"""Whether the author of an answer that is not applied yet may still decide: a placed decision before its
window has passed, or a vote before the last one.

The author is judged as they are now: by the directory, with the rights of the credential that they used, if
that was not revoked since.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import ForbiddenError, HoldClaimedError
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.hold import HoldRow, Note
from holdfast.types.terms import AT_THE_STORE, Actor, ChainLink

TOKEN: Final = "token"
SERVER: Final = "_server"
SESSION_END: Final = "session_end"
"""Sessions that were ended before their time: the text says how."""
SIGNED_OUT: Final = "signed_out"
ENDED: Final = "ended"
SESSION_ENDED: Final = "the session that was used was ended"
_DRAFTED: Final = ("decision", "response_data", "comment")


async def lost_right(
    ctx: HoldContext, row: HoldRow, author: str, answer: dict[str, Any], credential: str, now: int
) -> str | None:
    """Why the author has lost the right; None: they have it. `answer`: as it was checked when they gave it.
    `credential`: the token that they used, if any. Raises DirectoryUnavailableError."""
    actor = _author(row, author, answer, credential)
    if actor.is_system:
        return None
    if actor.credential and await is_revoked(ctx, actor.credential):
        return "the token that was used is revoked"
    if ctx.directory is not None:
        # Without this no membership would count while it is unavailable, and the answer would lapse.
        await ctx.directory.person(row.tenant, person_key(actor.id))
    free = msgspec.structs.replace(row, claimed_by=None, claim_until=None)
    reason, decision = answer.get("override_reason"), answer.get("decision")
    try:
        await ctx.permit(actor, "resolve", free, now, reason=reason, decision=decision)
    except (ForbiddenError, HoldClaimedError) as error:
        return error.message.rstrip(".")
    return None


def _author(row: HoldRow, author: str, answer: dict[str, Any], credential: str) -> Actor:
    """As they were when they answered. Groups and roles of the credential count where there is no directory;
    a recent sign-in was required then."""
    known: dict[str, Any] = answer.get("members") or {}
    return Actor(
        id=author,
        tenant=row.tenant,
        rights=frozenset(known.get("rights") or ()),
        groups=frozenset(known.get("groups") or ()),
        roles=frozenset(known.get("roles") or ()),
        channel=answer.get("channel") or "api",
        auth_method=answer.get("auth_method") or "local",
        chain=msgspec.convert(answer.get("chain") or [], tuple[ChainLink, ...]),
        credential=credential,
        signed_in_at=AT_THE_STORE,
    )


async def is_revoked(ctx: HoldContext, token: str) -> bool:
    kept = await ctx.store.document(SERVER, TOKEN, token)
    return kept is None or msgspec.json.decode(kept.body).get("revoked_at") is not None


class SessionEnd(msgspec.Struct, frozen=True):
    """How a session was ended, by the person or for them, and when."""

    how: str
    at: int


async def session_end(ctx: HoldContext, session: str) -> SessionEnd | None:
    """None: it was not ended, it is open or has expired."""
    kept = await ctx.store.document(SERVER, SESSION_END, session)
    return None if kept is None else msgspec.json.decode(kept.body, type=SessionEnd)


def draft_of_answer(row: HoldRow, author: str, answer: dict[str, Any], now: int) -> Note:
    """What was filled in is the author's draft again."""
    body = msgspec.json.encode({name: answer[name] for name in _DRAFTED if answer.get(name) is not None})
    return Note(hold=row.id, kind="draft", slot=person_key(author), person=author, at=now, body=body)
