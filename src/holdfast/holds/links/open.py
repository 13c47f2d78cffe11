"""What a link to a hold can do: show it, and decide it once. Showing never decides (GET is only looking)."""

from __future__ import annotations

import msgspec

from holdfast.errors import ForbiddenError, HoldfastError, LinkInvalidError
from holdfast.holds.actions.answers import Submission
from holdfast.holds.actions.audit_entries import entry, message
from holdfast.holds.actions.change import change, record_refusal
from holdfast.holds.actions.conflicts import require_open
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.resolve import ResolveConditions, ResolveResult, resolve
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.tokens import Claims, LinkGrant, claimed_tenant, mint, read, strength_of
from holdfast.holds.timing.reminders import NOTICES
from holdfast.types.hold import HoldChange, HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import ASSIGNED, OutboxState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor


class OpenedLink(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as its link shows it. `way`: what can be done from here: `decide`, `login` (sign in first),
    `view`, or `over`: it is decided, and shown with its outcome."""

    row: HoldRow
    claims: Claims
    way: str


class Links:
    def __init__(self, office: HoldContext, keys: LinkKeys | None = None) -> None:
        self.office = office
        self.keys = keys or LinkKeys(office.store)

    async def make(self, row: HoldRow, grant: LinkGrant) -> str:
        """A token; the caller has seen to it that this person may have it."""
        return mint(row, grant, await self.keys.signing(row.tenant), self.office.now())

    async def look(self, token: str) -> OpenedLink:
        """What the page behind the link shows. Writes nothing but the audit's `link_opened`.

        Raises LinkInvalidError for what is forged, too old or void."""
        claims, row = await self._read(token)
        opened = entry(row, "system:link", "link_opened", self.office.now(), to=claims.to, jti=claims.jti)
        await self.office.store.append_audit(row.tenant, [opened])
        return OpenedLink(row=row, claims=claims, way=_way(row, claims))

    async def find(self, token: str) -> tuple[Claims, HoldRow]:
        """Whose link it is and to which hold, without noting that it was opened. Raises LinkInvalidError."""
        return await self._read(token)

    async def decide(self, token: str, said: Submission, *, actor: Actor | None = None) -> ResolveResult:
        """Once: the link is used up in the same transaction. `actor`: who is signed in, if somebody is.

        Raises LinkInvalidError, ForbiddenError where this link may not decide, and what `resolve` raises; a
        link that was used names the outcome (HoldDecidedError)."""
        claims, row = await self._read(token)
        who = actor or link_actor(claims)
        if row.status is HoldStatus.pending:
            try:
                await self._require_audience(claims, actor)
                _require(row, claims, said, actor)
            except HoldfastError as error:
                await record_refusal(self.office, who, row, "resolve", error)
                raise
        shown = msgspec.structs.replace(said, request_hash=said.request_hash or claims.request_hash)
        terms = ResolveConditions(link=claims.jti, epoch=claims.epoch)
        try:
            return await resolve(self.office, who, row.id, shown, terms)
        except LinkInvalidError:
            # The same link was posted twice: the second one hears what came of the first.
            require_open(await self.office.store.hold(row.id) or row)
            raise

    async def _require_audience(self, claims: Claims, actor: Actor | None) -> None:
        """A link goes to an address; whoever has that may sign in under another of their names."""
        if actor is not None and not await self.office.is_called(actor, claims.to):
            raise LinkInvalidError("this link is for somebody else.", hint="Use your own.", reason="audience")

    async def revoke(self, actor: Actor, hold: str) -> HoldRow:
        """Void every link of a hold that there is. A notice that was on its way is told anew, with a link
        that is good. Raises as other acts do."""

        async def decide(row: HoldRow, now: int) -> HoldChange:
            await self.office.permit(actor, "reassign", row, now)
            require_open(row)
            epoch = row.epoch + 1
            waiting = await self.office.store.list_outbox(hold=row.id, state=OutboxState.waiting)
            untold = any(each.topic in NOTICES for each in waiting)
            return HoldChange(
                hold=row.id,
                version=row.version,
                at=now,
                fields={"epoch": epoch},
                audit=(entry(row, actor.id, "links_revoked", now, epoch=epoch),),
                outbox=(message(row, ASSIGNED, epoch=epoch, by=actor.id),) if untold else (),
            )

        return await change(self.office, actor, hold, "revoke_links", decide)

    async def _read(self, token: str) -> tuple[Claims, HoldRow]:
        """The keys are the tenant's; which tenant is believed only once the signature fits."""
        named = claimed_tenant(token)
        claims = read(token, await self.keys.all(named), self.office.now())
        row = await self.office.store.hold(HoldId(claims.hold))
        if row is None or row.tenant != claims.tenant or named != claims.tenant:
            raise _invalid_link("the question is gone")
        if row.epoch != claims.epoch:
            error = _invalid_link("the question went to somebody else meanwhile, or its links were withdrawn")
            await record_refusal(self.office, link_actor(claims), row, "open_link", error)
            raise error
        return claims, row


def _invalid_link(why: str) -> LinkInvalidError:
    return LinkInvalidError(
        f"this link is void: {why}.", hint="Sign in to see what waits for you.", reason="void"
    )


def link_actor(claims: Claims) -> Actor:
    """Whoever has the link, as the person it was made for, with no rights but theirs."""
    method = "mail_reply" if claims.purpose == "reply" else "link"
    channel = "mail" if claims.purpose == "reply" else "link"
    return Actor(id=claims.to, tenant=claims.tenant, channel=channel, auth_method=method)


def _way(row: HoldRow, claims: Claims) -> str:
    if row.status is not HoldStatus.pending:
        return "over"
    if claims.purpose == "view" or strength_of(row) == "view_only":
        return "view"
    return "login" if strength_of(row) == "login_required" else "decide"


def _require(row: HoldRow, claims: Claims, said: Submission, actor: Actor | None) -> None:
    """Raises ForbiddenError and LinkInvalidError."""
    way = _way(row, claims)
    if way == "view":
        raise LinkInvalidError(
            "this link only shows the question.", hint="Sign in to decide.", reason="purpose"
        )
    if way == "login" and actor is None:
        raise ForbiddenError("this question is too important for a link alone.", hint="Sign in to decide.")
    if claims.decisions is not None and said.decision not in claims.decisions:
        raise LinkInvalidError(
            f"this link is for: {', '.join(claims.decisions)}.",
            hint="Sign in to decide otherwise.",
            reason="decision",
        )
