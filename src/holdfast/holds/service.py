"""What can be done with holds, by whoever may. Each act is in a module of its own; this only names them.

Every act raises HoldNotFoundError for what the actor's tenant does not have, and ForbiddenError for what the
actor may not do. What is refused is in the audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.holds import (
    asking_back,
    auditing,
    bulk,
    cancelling,
    claiming,
    history,
    listing,
    metrics,
    noting,
    placing,
    reassigning,
    resolving,
)
from holdfast.holds.answers import Submission, read_body
from holdfast.holds.changing import look
from holdfast.holds.office import Office
from holdfast.holds.resolving import Resolved, Terms
from holdfast.types.clock import instant
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow, Note
from holdfast.types.terms import Actor

if TYPE_CHECKING:
    from holdfast.holds.directory.base import Directory
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.store.base import Store

When = datetime | timedelta | int
"""A time with its zone, so long from now, or microseconds since the epoch."""

Body = Mapping[str, Any] | str
"""`{decision, response_data, comment, request_hash}` or `{resolution, comment}`; a text is the decision."""


class HoldService:
    """`actor` is who acts, by their credential; `terms.operator()` is whoever works on the store itself."""

    def __init__(
        self, store: Store, *, directory: Directory | None = None, guardrails: Guardrails | None = None
    ) -> None:
        self.store = store
        self.office = Office(store, directory=directory, guardrails=guardrails)

    # ------------------------------------------------------------------ looking
    async def get(self, actor: Actor, hold: str) -> HoldRow:
        return await look(self.office, actor, hold)

    async def list(
        self,
        actor: Actor,
        *,
        view: str = "mine",
        where: HoldFilter | None = None,
        order: HoldOrder | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> listing.Page:
        """Views: mine, groups, unrouted, watching, snoozed, done, breakpoints, all."""
        return await listing.list_holds(
            self.office, actor, view=view, where=where, order=order, cursor=cursor, limit=limit
        )

    async def count(self, actor: Actor, *, view: str = "mine", where: HoldFilter | None = None) -> int:
        """How many that list has, by the same rule."""
        return await listing.count_holds(self.office, actor, view=view, where=where)

    async def history(self, actor: Actor, hold: str) -> Sequence[history.Entry]:
        """What happened to it, oldest first."""
        return await history.history(self.office, actor, hold)

    async def metrics(
        self, actor: Actor, *, where: HoldFilter | None = None, lasting: metrics.Lasting | None = None
    ) -> metrics.Metrics:
        """Figures about what the actor may see; `lasting`: a calendar's `between`, for business hours."""
        return await metrics.metrics(self.office, actor, where=where, lasting=lasting)

    async def verify_audit(
        self, tenant: str, *, against: auditing.SignedHead | None = None
    ) -> auditing.Audited:
        """Whether a tenant's audit is whole, and which record is not."""
        return await auditing.verify_audit(self.store, tenant, against=against)

    async def sign_head(self, tenant: str, secret: bytes) -> auditing.SignedHead:
        """Where a tenant's audit stands, signed, to be kept elsewhere."""
        return await auditing.sign_head(self.store, tenant, secret)

    # ------------------------------------------------------------------ deciding
    async def resolve(
        self,
        actor: Actor,
        hold: str,
        body: Body | None = None,
        *,
        decision: str | None = None,
        response_data: Any = None,
        comment: str | None = None,
        request_hash: str | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
        link: str | None = None,
        reason: str | None = None,
    ) -> Resolved:
        """Decide it, once, or give one vote where several have to agree. As a body of the interface, or by
        name. `reason` uses the right to override.

        Raises AnswerInvalidError (it stays open, what was sent is a draft), HoldDecidedError (names the
        winner), HoldChangedError, ContentChangedError, DeadlinePassedError, HoldClaimedError,
        HoldReassignedError, AlreadyVotedError, KeyReusedError, LinkInvalidError, RunReadOnlyError."""
        named = Submission(
            decision=decision, response_data=response_data, comment=comment, request_hash=request_hash
        )
        terms = Terms(if_match=if_match, idempotency_key=idempotency_key, link=link, reason=reason)
        return await resolving.resolve(self.office, actor, hold, _said(body, named), terms)

    async def answer(
        self, hold: str, decision: str | None, *, data: Any = None, comment: str | None = None, by: str
    ) -> HoldRow:
        """`resolve`, by whoever works on the store itself, in whichever tenant the hold is."""
        said = Submission(decision=decision, response_data=data, comment=comment)
        return await resolving.answer(self.office, hold, said, by=by)

    async def vote(self, actor: Actor, hold: str, body: Body, **conditions: Any) -> Resolved:
        """`resolve`, by the name that it has where several have to agree."""
        return await self.resolve(actor, hold, body, **conditions)

    async def place(
        self,
        actor: Actor,
        hold: str,
        body: Body,
        *,
        seconds: float | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
        reason: str | None = None,
    ) -> Resolved:
        """Decide it in a few seconds, unless `undo` comes first."""
        terms = Terms(if_match=if_match, idempotency_key=idempotency_key, reason=reason)
        return await placing.place(self.office, actor, hold, _said(body), terms, seconds=seconds)

    async def undo(self, actor: Actor, hold: str) -> HoldRow:
        """Take one's own placed decision back."""
        return await placing.undo(self.office, actor, hold)

    async def bulk(
        self,
        actor: Actor,
        holds: Sequence[str],
        body: Body,
        *,
        preview: bool = True,
        versions: Mapping[str, int] | None = None,
    ) -> bulk.Bulk:
        """One decision on many, each by itself; a preview says what would be and writes nothing."""
        return await bulk.bulk(self.office, actor, holds, _said(body), preview=preview, versions=versions)

    async def cancel(
        self, actor: Actor, hold: str, *, reason: str = "cancelled", if_match: int | None = None
    ) -> HoldRow:
        """Withdraw it: the run ends as cancelled, or sees an error where its terms say so."""
        return await cancelling.cancel(self.office, actor, hold, reason=reason, if_match=if_match)

    # ------------------------------------------------------------------ whose it is, and until when
    async def reassign(
        self,
        actor: Actor,
        hold: str,
        to: str | None,
        *,
        expires_at: When | None = None,
        reason: str | None = None,
        if_match: int | None = None,
    ) -> HoldRow:
        """Give it to somebody else, who is told."""
        until = None if expires_at is None else self._instant(expires_at)
        return await reassigning.reassign(
            self.office, actor, hold, to, expires_at=until, reason=reason, if_match=if_match
        )

    async def extend(
        self,
        actor: Actor,
        hold: str,
        until: When,
        *,
        reason: str | None = None,
        if_match: int | None = None,
    ) -> HoldRow:
        """Give it a later deadline."""
        return await reassigning.extend(
            self.office, actor, hold, self._instant(until), reason=reason, if_match=if_match
        )

    async def claim(
        self,
        actor: Actor,
        hold: str,
        *,
        seconds: float = claiming.CLAIM_SECONDS,
        reason: str | None = None,
    ) -> HoldRow:
        """Take it for a while; an unrouted one becomes one's own."""
        return await claiming.claim(self.office, actor, hold, seconds=seconds, reason=reason)

    async def release(self, actor: Actor, hold: str) -> HoldRow:
        return await claiming.release(self.office, actor, hold)

    # ------------------------------------------------------------------ talking about it
    async def ask_back(
        self, actor: Actor, hold: str, text: str, *, to: str = asking_back.REQUESTER
    ) -> HoldRow:
        """Ask the `requester`, the `agent` or a colleague; the deadline stands still until they reply."""
        return await asking_back.ask_back(self.office, actor, hold, text, to=to)

    async def reply(self, actor: Actor, hold: str, text: str, *, question: str | None = None) -> HoldRow:
        """Answer what was asked back; `question`: which, where several are open."""
        return await asking_back.reply(self.office, actor, hold, text, question=question)

    async def comment(self, actor: Actor, hold: str, text: str) -> Note:
        return await noting.comment(self.office, actor, hold, text)

    async def comments(self, actor: Actor, hold: str) -> Sequence[Note]:
        """Comments, questions back and their answers, oldest first."""
        return await noting.comments(self.office, actor, hold)

    # ------------------------------------------------------------------ what is one's own
    async def save_draft(self, actor: Actor, hold: str, draft: Submission) -> None:
        await noting.save_draft(self.office, actor, hold, draft)

    async def draft(self, actor: Actor, hold: str) -> Submission | None:
        return await noting.draft(self.office, actor, hold)

    async def drop_draft(self, actor: Actor, hold: str) -> None:
        await noting.drop_draft(self.office, actor, hold)

    async def watch(self, actor: Actor, hold: str) -> None:
        await noting.watch(self.office, actor, hold)

    async def unwatch(self, actor: Actor, hold: str) -> None:
        await noting.unwatch(self.office, actor, hold)

    async def snooze(self, actor: Actor, hold: str, until: When) -> None:
        """Out of one's own sight until then."""
        await noting.snooze(self.office, actor, hold, self._instant(until))

    async def unsnooze(self, actor: Actor, hold: str) -> None:
        await noting.unsnooze(self.office, actor, hold)

    async def seen(self, actor: Actor, hold: str) -> None:
        """That this person has looked at it."""
        await noting.seen(self.office, actor, hold)

    def _instant(self, when: When) -> int:
        try:
            return instant(when, self.office.now())
        except ValueError as error:
            raise InputError(f"{error}.") from None


def _said(body: Body | None, named: Submission | None = None) -> Submission:
    if body is None:
        return named or Submission()
    return Submission(decision=body) if isinstance(body, str) else read_body(body)
