"""What a link to a hold allows: to show it, and to decide it once. Opening a link never decides (GET is
safe)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import ForbiddenError, HoldfastError, LinkInvalidError
from holdfast.holds.actions.audit_entries import entry, message
from holdfast.holds.actions.change import change, record_refusal
from holdfast.holds.actions.conflicts import require_open
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveConditions, ResolveResult, resolve
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.tokens import Claims, LinkGrant, claimed_tenant, mint, read, strength_of
from holdfast.holds.timing.reminders import NOTICES
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.ids import HoldId, new_id
from holdfast.types.outbox import ASSIGNED, LINK, OutboxState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, ChainLink

SENDER = "system:notify"
"""Who makes the links that the server sends itself."""


class OpenedLink(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as its link shows it. `way`: what the link allows: `decide`, `login` (sign in first), `view`, or
    `over`: it has ended and is shown with its outcome."""

    row: HoldRow
    claims: Claims
    way: str


class Links:
    def __init__(self, ctx: HoldContext, keys: LinkKeys | None = None) -> None:
        self.ctx = ctx
        self.keys = keys or LinkKeys(ctx.store)

    async def make(self, row: HoldRow, grant: LinkGrant, *, by: str = SENDER) -> str:
        """A token; the caller has checked that this person may have it. Audited before it exists."""
        facts = {"to": grant.to, "purpose": grant.purpose, "seen_by": list(grant.by)}
        made = entry(row, by, "link_made", self.ctx.now(), **facts)
        await self.ctx.store.append_audit(row.tenant, [made])
        return mint(row, grant, await self.keys.signing(row.tenant), self.ctx.now())

    async def send(self, actor: Actor, hold: str, grant: LinkGrant) -> HoldRow:
        """Have a link sent to the address of its recipient; the caller never sees it. Raises as other actions
        do."""

        async def decide(row: HoldRow, now: int) -> HoldChange:
            await self.ctx.permit(actor, "view", row, now)
            require_open(row)
            facts: dict[str, Any] = {
                "to": grant.to,
                "purpose": grant.purpose,
                "lifetime": grant.lifetime,
            }
            return HoldChange(
                hold=row.id,
                version=row.version,
                at=now,
                audit=(entry(row, actor.id, "link_made", now, **facts, took_part=actor.people),),
                outbox=(message(row, LINK, number=new_id(), **facts),),
            )

        return await change(self.ctx, actor, hold, "make_link", decide)

    async def look(self, token: str) -> OpenedLink:
        """What the page of the link shows. Writes nothing but the audit entry `link_opened`.

        Raises LinkInvalidError if it is forged, expired or void."""
        claims, row = await self._read(token)
        opened = entry(row, "system:link", "link_opened", self.ctx.now(), to=claims.to, jti=claims.jti)
        # Only an audit entry: mail scanners and previews open
        # links too, so opening must not change the hold.
        await self.ctx.store.append_audit(row.tenant, [opened])
        return OpenedLink(row=row, claims=claims, way=_way(row, claims))

    async def find(self, token: str) -> tuple[Claims, HoldRow]:
        """The link's claims and hold, without an audit entry. Raises LinkInvalidError."""
        return await self._read(token)

    async def decide(
        self, token: str, submission: Submission, *, actor: Actor | None = None
    ) -> ResolveResult:
        """Decide once: the link is used up in the same transaction. `actor`: the signed-in user, if any.

        Raises LinkInvalidError, ForbiddenError if this link may not decide, and what `resolve` raises; for a
        used link HoldDecidedError names the outcome."""
        claims, row = await self._read(token)
        who = link_actor(claims)
        if actor is not None:
            who = msgspec.structs.replace(actor, chain=(*actor.chain, *who.chain))
        # For a decided hold `resolve` raises the more useful
        # error, which names the decision and who made it.
        if row.status is HoldStatus.pending:
            try:
                await self._require_audience(claims, actor)
                _require(row, claims, submission, actor)
            except HoldfastError as error:
                await record_refusal(self.ctx, who, row, "resolve", error)
                raise
        shown = msgspec.structs.replace(
            # The token has the hash of the content at the time of
            # the message: a link never decides changed content.
            submission,
            request_hash=submission.request_hash or claims.request_hash,
        )
        # `_read` has checked the epoch already; it is checked again in the write, where a reassignment in
        # between would otherwise be missed.
        terms = ResolveConditions(link=claims.jti, epoch=claims.epoch)
        try:
            return await resolve(self.ctx, who, row.id, shown, terms)
        except LinkInvalidError:
            # The same link was posted twice: the second request gets the result of the first.
            require_open(await self.ctx.store.hold(row.id) or row)
            raise

    async def _require_audience(self, claims: Claims, actor: Actor | None) -> None:
        """A link is sent to an address; its owner may sign in under another of their names."""
        if actor is not None and not await self.ctx.is_called(actor, claims.to):
            raise LinkInvalidError(
                "this link was sent to another person.",
                hint="Use the link that was sent to you.",
                reason="audience",
            )

    async def revoke(self, actor: Actor, hold: str) -> HoldRow:
        """Make all links of a hold void. Notices that are not sent yet get a new link. Raises as other
        actions do."""

        async def decide(row: HoldRow, now: int) -> HoldChange:
            await self.ctx.permit(actor, "reassign", row, now)
            require_open(row)
            epoch = row.epoch + 1
            waiting = await self.ctx.store.list_outbox(hold=row.id, state=OutboxState.waiting)
            untold = any(each.topic in NOTICES for each in waiting)
            return HoldChange(
                hold=row.id,
                version=row.version,
                at=now,
                fields={"epoch": epoch},
                audit=(entry(row, actor.id, "links_revoked", now, epoch=epoch),),
                # Messages that wait carry the old epoch and are skipped,
                # so their recipients would never get a valid link.
                outbox=(message(row, ASSIGNED, epoch=epoch, by=actor.id),) if untold else (),
            )

        return await change(self.ctx, actor, hold, "revoke_links", decide)

    async def _read(self, token: str) -> tuple[Claims, HoldRow]:
        """The keys belong to the tenant that the token names; the name is trusted only if the signature
        fits."""
        named = claimed_tenant(token)
        claims = read(token, await self.keys.all(named), self.ctx.now())
        row = await self.ctx.store.hold(HoldId(claims.hold))
        if row is None or row.tenant != claims.tenant or named != claims.tenant:
            raise _invalid_link("the question does not exist any more")
        if row.epoch != claims.epoch:
            error = _invalid_link("the question was reassigned, or its links were revoked")
            # The signature is valid here, so the holder is known and the attempt can be audited by name.
            await record_refusal(self.ctx, link_actor(claims), row, "open_link", error)
            raise error
        return claims, row


def _invalid_link(why: str) -> LinkInvalidError:
    return LinkInvalidError(
        f"this link is no longer valid: {why}.", hint="Sign in to see your questions.", reason="void"
    )


def link_actor(claims: Claims) -> Actor:
    """The holder of the link, with the name of the person it was made for and no further rights."""
    method = "mail_reply" if claims.purpose == "reply" else "link"
    channel = "mail" if claims.purpose == "reply" else "link"
    # No groups and no rights: the link proves access to a mailbox, not who reads it.
    chain = tuple(ChainLink(kind="link", by=name, to=claims.to) for name in claims.by or (SENDER,))
    return Actor(id=claims.to, tenant=claims.tenant, channel=channel, auth_method=method, chain=chain)


def _way(row: HoldRow, claims: Claims) -> str:
    if row.status is not HoldStatus.pending:
        return "over"
    if claims.purpose == "view" or strength_of(row) == "view_only":
        return "view"
    return "login" if strength_of(row) == "login_required" else "decide"


def _require(row: HoldRow, claims: Claims, submission: Submission, actor: Actor | None) -> None:
    """Raises ForbiddenError and LinkInvalidError."""
    way = _way(row, claims)
    if way == "view":
        raise LinkInvalidError(
            "this link only shows the question.", hint="Sign in to decide.", reason="purpose"
        )
    if way == "login" and actor is None:
        raise ForbiddenError("this question requires you to sign in.", hint="Sign in to decide.")
    if claims.decisions is not None and submission.decision not in claims.decisions:
        raise LinkInvalidError(
            f"this link allows only: {', '.join(claims.decisions)}.",
            hint="Sign in for other answers.",
            reason="decision",
        )
