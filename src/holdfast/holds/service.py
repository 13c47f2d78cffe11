"""What can be done with holds, by whoever may. Each act is in a module of its own; this only names them.

Every act raises HoldNotFoundError for what the actor's tenant does not have, and ForbiddenError for what the
actor may not do. What is refused is in the audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import AnswerInvalidError
from holdfast.holds.actions import resolve
from holdfast.holds.actions.answers import Submission, read_body
from holdfast.holds.actions.change import load_visible, record_refusal
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.resolve import ResolveConditions, ResolveResult
from holdfast.holds.comment_methods import CommentMethods, When
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.terms import Actor

if TYPE_CHECKING:
    from holdfast.holds.actions.bulk import BulkResult
    from holdfast.holds.actions.rate_limit import Pace
    from holdfast.holds.directory.base import Directory
    from holdfast.holds.forms.attachments import Scan
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.holds.queries.audit import AuditCheck, SignedHead
    from holdfast.holds.queries.history import Entry
    from holdfast.holds.queries.list import HoldPage
    from holdfast.holds.queries.metrics import HoldMetrics, Lasting
    from holdfast.store.protocols import Store

Body = Mapping[str, Any] | str
"""`{decision, response_data, comment, request_hash}` or `{resolution, comment}`; a text is the decision."""


class HoldService(CommentMethods):
    """`actor` is who acts, by their credential; `terms.operator()` is whoever works on the store itself."""

    def __init__(
        self,
        store: Store,
        *,
        directory: Directory | None = None,
        guardrails: Guardrails | None = None,
        scan: Scan | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.store = store
        self.office = HoldContext(store, directory=directory, guardrails=guardrails, scan=scan, pace=pace)

    # ------------------------------------------------------------------ looking
    async def get(self, actor: Actor, hold: str) -> HoldRow:
        return await load_visible(self.office, actor, hold)

    async def list(
        self,
        actor: Actor,
        *,
        view: str = "mine",
        where: HoldFilter | None = None,
        order: HoldOrder | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> HoldPage:
        """Views: mine, groups, asked, unrouted, watching, snoozed, done, breakpoints, all."""
        from holdfast.holds.queries import list as listing

        return await listing.list_holds(
            self.office, actor, view=view, where=where, order=order, cursor=cursor, limit=limit
        )

    async def count(self, actor: Actor, *, view: str = "mine", where: HoldFilter | None = None) -> int:
        """How many that list has, by the same rule."""
        from holdfast.holds.queries import list as listing

        return await listing.count_holds(self.office, actor, view=view, where=where)

    async def history(self, actor: Actor, hold: str) -> Sequence[Entry]:
        """What happened to it, oldest first."""
        from holdfast.holds.queries import history

        return await history.history(self.office, actor, hold)

    async def metrics(
        self, actor: Actor, *, where: HoldFilter | None = None, lasting: Lasting | None = None
    ) -> HoldMetrics:
        """Figures about what the actor may see; `lasting`: a calendar's `between`, for business hours."""
        from holdfast.holds.queries import metrics

        return await metrics.metrics(self.office, actor, where=where, lasting=lasting)

    async def verify_audit(self, tenant: str, *, against: SignedHead | None = None) -> AuditCheck:
        """Whether a tenant's audit is whole, and which record is not."""
        from holdfast.holds.queries import audit

        return await audit.verify_audit(self.store, tenant, against=against)

    async def sign_head(self, tenant: str, secret: bytes) -> SignedHead:
        """Where a tenant's audit stands, signed, to be kept elsewhere."""
        from holdfast.holds.queries import audit

        return await audit.sign_head(self.store, tenant, secret)

    async def evidence(
        self, actor: Actor, hold: str, *, key: bytes | None = None, to_head: bool = True
    ) -> bytes:
        """One decision as a file that can be checked offline, signed where there is a key."""
        from holdfast.holds.queries import evidence

        return await evidence.export_evidence(self.office, actor, hold, key=key, to_head=to_head)

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
    ) -> ResolveResult:
        """Decide it, once, or give one vote where several have to agree. As a body of the interface, or by
        name. `reason` uses the right to override.

        Raises AnswerInvalidError (it stays open, what was sent is a draft), HoldDecidedError (names the
        winner), HoldChangedError, ContentChangedError, DeadlinePassedError, HoldClaimedError,
        HoldReassignedError, AlreadyVotedError, KeyReusedError, LinkInvalidError, RunReadOnlyError."""
        named = Submission(
            decision=decision, response_data=response_data, comment=comment, request_hash=request_hash
        )
        if isinstance(body, str) and decision is None:
            said = msgspec.structs.replace(named, decision=body)
        elif body is not None and named != Submission():
            raise AnswerInvalidError("an answer is given as a body or by name, not as both.")
        else:
            said = named if body is None else await self._read(actor, hold, body)
        terms = ResolveConditions(
            if_match=if_match, idempotency_key=idempotency_key, link=link, reason=reason
        )
        return await resolve.resolve(self.office, actor, hold, said, terms)

    async def answer(
        self, hold: str, decision: str | None, *, data: Any = None, comment: str | None = None, by: str
    ) -> HoldRow:
        """`resolve`, by whoever works on the store itself, in whichever tenant the hold is."""
        said = Submission(decision=decision, response_data=data, comment=comment)
        return await resolve.answer(self.office, hold, said, by=by)

    async def vote(self, actor: Actor, hold: str, body: Body, **conditions: Any) -> ResolveResult:
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
    ) -> ResolveResult:
        """Decide it in a few seconds, unless `undo` comes first."""
        from holdfast.holds.actions import undo_window

        terms = ResolveConditions(if_match=if_match, idempotency_key=idempotency_key, reason=reason)
        said = await self._read(actor, hold, body)
        return await undo_window.place(self.office, actor, hold, said, terms, seconds=seconds)

    async def undo(self, actor: Actor, hold: str) -> HoldRow:
        """Take one's own placed decision back."""
        from holdfast.holds.actions import undo_window

        return await undo_window.undo(self.office, actor, hold)

    async def bulk(
        self,
        actor: Actor,
        holds: Sequence[str],
        body: Body,
        *,
        preview: bool = True,
        versions: Mapping[str, int] | None = None,
    ) -> BulkResult:
        """One decision on many, each by itself; a preview says what would be and writes nothing."""
        from holdfast.holds.actions import bulk

        return await bulk.bulk(
            self.office, actor, holds, read_submission(body), preview=preview, versions=versions
        )

    async def cancel(
        self, actor: Actor, hold: str, *, reason: str = "cancelled", if_match: int | None = None
    ) -> HoldRow:
        """Withdraw it: the run ends as cancelled, or sees an error where its terms say so."""
        from holdfast.holds.actions import cancel

        return await cancel.cancel(self.office, actor, hold, reason=reason, if_match=if_match)

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
        from holdfast.holds.actions import reassign

        until = None if expires_at is None else self._instant(expires_at)
        return await reassign.reassign(
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
        from holdfast.holds.actions import reassign

        return await reassign.extend(
            self.office, actor, hold, self._instant(until), reason=reason, if_match=if_match
        )

    async def claim(
        self,
        actor: Actor,
        hold: str,
        *,
        seconds: float | None = None,
        reason: str | None = None,
    ) -> HoldRow:
        """Take it for a while; an unrouted one becomes one's own."""
        from holdfast.holds.actions import claim

        return await claim.claim(self.office, actor, hold, seconds=seconds, reason=reason)

    async def release(self, actor: Actor, hold: str) -> HoldRow:
        from holdfast.holds.actions import claim

        return await claim.release(self.office, actor, hold)

    # ------------------------------------------------------------------ talking about it
    async def ask_back(self, actor: Actor, hold: str, text: str, *, to: str = "requester") -> HoldRow:
        """Ask the `requester`, the `agent` or a colleague; the deadline stands still until they reply."""
        from holdfast.holds.actions import ask_back

        return await ask_back.ask_back(self.office, actor, hold, text, to=to)

    async def reply(self, actor: Actor, hold: str, text: str, *, question: str | None = None) -> HoldRow:
        """Answer what was asked back; `question`: which, where several are open."""
        from holdfast.holds.actions import ask_back

        return await ask_back.reply(self.office, actor, hold, text, question=question)

    async def drop_question(self, actor: Actor, hold: str, *, question: str | None = None) -> HoldRow:
        """Take back what was asked back: nobody has to reply, and the deadline goes on."""
        from holdfast.holds.actions import ask_back

        return await ask_back.drop_question(self.office, actor, hold, question=question)

    async def _read(self, actor: Actor, hold: str, body: Body) -> Submission:
        """Whoever may not see the hold learns that first."""
        try:
            return read_submission(body)
        except AnswerInvalidError as error:
            row = await load_visible(self.office, actor, hold)
            await record_refusal(self.office, actor, row, "resolve", error)
            raise


def read_submission(body: Body) -> Submission:
    """Raises AnswerInvalidError."""
    return Submission(decision=body) if isinstance(body, str) else read_body(body)
