"""Exports of a hold: links for one person, and the evidence of a decision."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.routes.holds import CHANGING, LOOKING, hold_reply
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.api.schemas.holds import HoldWire, Name
from holdfast.errors import ConflictError, InputError
from holdfast.holds.actions import conflicts
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant, strength_of
from holdfast.holds.permissions.assignees import parse_assignee

routes = Routes("holds")

WEEK = 7 * 86_400


class NewLink(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`to`: one person, `user:NAME`. `decide`: whether it may decide, as far as the hold allows links to."""

    to: Name
    decide: bool = True
    seconds: Annotated[int, msgspec.Meta(ge=60, le=30 * 86_400)] = WEEK


class LinkWire(msgspec.Struct, kw_only=True):
    """`way`: what the link allows: decide, login (sign in first) or view. `sent_to`: the addresses to which
    it is sent. Only for a link of your own: `token`, the part of the link after `#`, and `path`, below the
    server's address."""

    way: str
    sent_to: list[str] = []
    token: str | None = None
    path: str | None = None


@routes.post("/holds/{hold}/links", needs=Right.manage, status=201, raises=CHANGING)
async def make_link(call: ApiCall, hold: str, body: NewLink) -> LinkWire:
    """Create a link for one person. It is valid until it is used, the hold is reassigned or decided, or its
    links are revoked.

    A link for another person is sent to their address and not returned: its holder decides in their name.
    409 if no channel has an address of theirs."""
    whom = parse_assignee(body.to)
    if whom.type != "user":
        raise InputError(f"{body.to!r} is not one person.", hint="Write user:NAME.")
    service = await call.holds()
    row = await service.get(call.actor, hold)
    conflicts.require_open(row)
    purpose = "decide" if body.decide else "view"
    grant = LinkGrant(to=str(whom), purpose=purpose, lifetime=body.seconds, by=call.actor.people)
    strength = {"view_only": "view", "login_required": "login"}.get(strength_of(row), "decide")
    made, links = LinkWire(way=strength if body.decide else "view"), Links(service.ctx)
    if await service.ctx.is_called(call.actor, grant.to):
        made.token = await links.make(row, grant, by=call.actor.id)
        made.path = f"/links#{made.token}"
        return made
    deliverer = (await call.runs()).runtime.deliverer
    made.sent_to = [] if deliverer is None else await deliverer.link_addresses(row, whom)
    if not made.sent_to:
        raise ConflictError(
            f"no channel can send a link to {whom}.",
            hint="Set up a mail channel with base_url, and give the person an address; or let them sign in.",
            hold=row.id,
        )
    await links.send(call.actor, row.id, grant)
    return made


@routes.delete("/holds/{hold}/links", needs=Right.holds_write, raises=CHANGING)
async def revoke_links(call: ApiCall, hold: str) -> ApiReply[HoldWire]:
    """Revoke all links to the hold."""
    service = await call.holds()
    return hold_reply(service, await Links(service.ctx).revoke(call.actor, hold))


@routes.get("/holds/{hold}/evidence", needs=Right.holds_read, raises=LOOKING, media=("application/json",))
async def hold_evidence(call: ApiCall, hold: str) -> Response:
    """One decision as a file that `tools/verify_evidence.py` verifies offline. The export is audited."""
    data = await (await call.holds()).evidence(call.actor, hold)
    return Response(
        data,
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{hold}.evidence.json"'},
    )
