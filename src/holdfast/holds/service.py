"""The hold service: one method for each action and query. The work is in the modules of `actions` and
`queries`.

Every method raises HoldNotFoundError if the actor's tenant has no such hold, and ForbiddenError if the actor
lacks the right. Refused actions are audited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import AnswerInvalidError
from holdfast.holds.actions import decide
from holdfast.holds.actions.change import load_visible, record_refusal
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveConditions, ResolveResult
from holdfast.holds.actions.submission import Submission, read_body
from holdfast.holds.comment_methods import CommentMethods, When
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.terms import Actor

if TYPE_CHECKING:
    from holdfast.holds.actions.bulk import BulkResult
    from holdfast.holds.actions.rate_limit import Pace
    from holdfast.holds.directory.base import Directory
    from holdfast.holds.forms.attachments import Scan
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.holds.policies.shadow import ShadowAnswer
    from holdfast.holds.queries.audit import AuditCheck, SignedHead
    from holdfast.holds.queries.history import Entry
    from holdfast.holds.queries.list import HoldPage
    from holdfast.holds.queries.metrics import HoldMetrics, Lasting
    from holdfast.store.protocols import Store

Body = Mapping[str, Any] | str
"""`{decision, response_data, comment, request_hash}` or `{resolution, comment}`; a text is the decision."""


class HoldService(CommentMethods):
    """`actor` is the user with their rights; `terms.operator()` stands for an operator with access to the
    store."""

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
        self.ctx = HoldContext(store, directory=directory, guardrails=guardrails, scan=scan, pace=pace)

    # ------------------------------------------------------------------ reading
    async def get(self, actor: Actor, hold: str) -> HoldRow:
        return await load_visible(self.ctx, actor, hold)

    async def why(self, actor: Actor, hold: str) -> str:
        """Why the actor has it: why it has its assignee, and whom they substitute."""
        from holdfast.holds.permissions.check import viewer_verdict
        from holdfast.holds.queries.summary import why_of

        row = await load_visible(self.ctx, actor, hold)
        verdict = viewer_verdict(await self.ctx.standing(actor, self.ctx.now()), row)
        absent = None if verdict is None else verdict.on_behalf_of
        return why_of(row) if absent is None else f"{why_of(row)}; you are the substitute of {absent}"

    async def shadow(self, actor: Actor, hold: str) -> ShadowAnswer | None:
        """What a judge answered before people saw the question; sealed until they have decided."""
        row = await load_visible(self.ctx, actor, hold)
        if row.terms.shadow is None:
            return None
        from holdfast.holds.policies.shadow import shadow_of

        return await shadow_of(self.ctx.store, row)

    async def visible(self, actor: Actor, rows: Sequence[HoldRow]) -> Sequence[HoldRow]:
        """Those that the actor may see. Not an attempt to read the others: nothing is audited."""
        now = self.ctx.now()
        standing = await self.ctx.standing(actor, now)
        return [row for row in rows if await self.ctx.may(standing, "view", row, now)]

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
        """Views: mine, groups, asked, unassigned, watching, snoozed, done, breakpoints, all."""
        from holdfast.holds.queries.list import list_holds

        return await list_holds(
            self.ctx, actor, view=view, where=where, order=order, cursor=cursor, limit=limit
        )

    async def count(self, actor: Actor, *, view: str = "mine", where: HoldFilter | None = None) -> int:
        """The number of holds in that list."""
        from holdfast.holds.queries.list import count_holds

        return await count_holds(self.ctx, actor, view=view, where=where)

    async def history(self, actor: Actor, hold: str) -> Sequence[Entry]:
        """What happened to it, oldest first."""
        from holdfast.holds.queries import history

        return await history.history(self.ctx, actor, hold)

    async def metrics(
        self, actor: Actor, *, where: HoldFilter | None = None, lasting: Lasting | None = None
    ) -> HoldMetrics:
        """Metrics of the holds that the actor may see; `lasting`: a calendar's `between`, for business
        hours."""
        from holdfast.holds.queries import metrics

        return await metrics.metrics(self.ctx, actor, where=where, lasting=lasting)

    async def verify_audit(self, tenant: str, *, against: SignedHead | None = None) -> AuditCheck:
        """Verify a tenant's audit; reports the first broken record."""
        from holdfast.holds.queries import audit

        return await audit.verify_audit(self.store, tenant, against=against)

    async def sign_head(self, tenant: str, secret: bytes) -> SignedHead:
        """The signed head of a tenant's audit, to be stored elsewhere."""
        from holdfast.holds.queries import audit

        return await audit.sign_head(self.store, tenant, secret)

    async def evidence(
        self, actor: Actor, hold: str, *, key: bytes | None = None, to_head: bool = True
    ) -> bytes:
        """One decision as a file that can be verified offline; signed if there is a key."""
        from holdfast.holds.queries import evidence

        return await evidence.export_evidence(self.ctx, actor, hold, key=key, to_head=to_head)

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
        """Decide it, or cast one vote if several people have to agree. Pass a request body, or the decision
        by keywords. `reason` uses the right to override.

        Raises AnswerInvalidError (it stays open, and the input is saved as a draft), HoldDecidedError (names
        who decided), HoldChangedError, ContentChangedError, DeadlinePassedError, HoldClaimedError,
        HoldReassignedError, AlreadyVotedError, KeyReusedError, LinkInvalidError, RunReadOnlyError."""
        named = Submission(
            decision=decision, response_data=response_data, comment=comment, request_hash=request_hash
        )
        if isinstance(body, str) and decision is None:
            submission = msgspec.structs.replace(named, decision=body)
        elif body is not None and named != Submission():
            raise AnswerInvalidError("pass the answer as a body or as keywords, not as both.")
        else:
            submission = named if body is None else await self._read(actor, hold, body)
        terms = ResolveConditions(
            if_match=if_match, idempotency_key=idempotency_key, link=link, reason=reason
        )
        return await decide.resolve(self.ctx, actor, hold, submission, terms)

    async def require_resolvable(
        self, actor: Actor, hold: str, body: Body, *, idempotency_key: str | None = None
    ) -> None:
        """Raises as `resolve` would for this body; nothing is decided."""
        submission = await self._read(actor, hold, body)
        terms = ResolveConditions(idempotency_key=idempotency_key)
        await decide.require_resolvable(self.ctx, actor, hold, submission, terms)

    async def answer(
        self,
        hold: str,
        decision: str | None,
        *,
        data: Any = None,
        comment: str | None = None,
        by: str,
        channel: str = "api",
    ) -> HoldRow:
        """`resolve` for operators with access to the store, in any tenant."""
        submission = Submission(decision=decision, response_data=data, comment=comment)
        return await decide.answer(self.ctx, hold, submission, by=by, channel=channel)

    async def vote(self, actor: Actor, hold: str, body: Body, **conditions: Any) -> ResolveResult:
        """The same as `resolve`, for holds that need several votes."""
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
        """Decide it after the undo window of a few seconds, unless `undo` is called."""
        from holdfast.holds.actions import undo_window

        terms = ResolveConditions(if_match=if_match, idempotency_key=idempotency_key, reason=reason)
        submission = await self._read(actor, hold, body)
        return await undo_window.place(self.ctx, actor, hold, submission, terms, seconds=seconds)

    async def undo(self, actor: Actor, hold: str) -> HoldRow:
        """Undo the actor's decision within its undo window."""
        from holdfast.holds.actions import undo_window

        return await undo_window.undo(self.ctx, actor, hold)

    async def bulk(
        self,
        actor: Actor,
        holds: Sequence[str],
        body: Body,
        *,
        preview: bool = True,
        undo: bool = False,
        versions: Mapping[str, int] | None = None,
    ) -> BulkResult:
        """The same decision on many holds, each decided separately; a preview writes nothing. `undo`: each
        after its undo window, as `place` does."""
        from holdfast.holds.actions import bulk

        return await bulk.bulk(
            self.ctx, actor, holds, read_submission(body), preview=preview, undo=undo, versions=versions
        )

    async def cancel(
        self, actor: Actor, hold: str, *, reason: str = "cancelled", if_match: int | None = None
    ) -> HoldRow:
        """Cancel it: the run is cancelled, or gets an error if its terms say so (`on_cancel="raise"`)."""
        from holdfast.holds.actions import cancel

        return await cancel.cancel(self.ctx, actor, hold, reason=reason, if_match=if_match)

    # ------------------------------------------------------------------ assignee and deadline
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
        """Assign it to another person, group or role, who is notified."""
        from holdfast.holds.actions import reassign

        until = None if expires_at is None else self._instant(expires_at)
        return await reassign.reassign(
            self.ctx, actor, hold, to, expires_at=until, reason=reason, if_match=if_match
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
        """Set a later deadline."""
        from holdfast.holds.actions import reassign

        return await reassign.extend(
            self.ctx, actor, hold, self._instant(until), reason=reason, if_match=if_match
        )

    async def claim(
        self,
        actor: Actor,
        hold: str,
        *,
        seconds: float | None = None,
        reason: str | None = None,
    ) -> HoldRow:
        """Claim it for a while; an unassigned hold is assigned to the actor."""
        from holdfast.holds.actions import claim

        return await claim.claim(self.ctx, actor, hold, seconds=seconds, reason=reason)

    async def release(self, actor: Actor, hold: str) -> HoldRow:
        from holdfast.holds.actions import claim

        return await claim.release(self.ctx, actor, hold)

    # ------------------------------------------------------------------ questions
    async def ask_back(self, actor: Actor, hold: str, text: str, *, to: str = "requester") -> HoldRow:
        """Ask the `requester`, the `agent` or a colleague; the deadline is paused until they reply."""
        from holdfast.holds.actions import ask_back

        return await ask_back.ask_back(self.ctx, actor, hold, text, to=to)

    async def reply(self, actor: Actor, hold: str, text: str, *, question: str | None = None) -> HoldRow:
        """Answer a question that was asked back; `question`: its id, if several are open."""
        from holdfast.holds.actions import ask_back

        return await ask_back.reply(self.ctx, actor, hold, text, question=question)

    async def withdraw_question(self, actor: Actor, hold: str, *, question: str | None = None) -> HoldRow:
        """Withdraw a question that was asked back; the deadline continues."""
        from holdfast.holds.actions import ask_back

        return await ask_back.withdraw_question(self.ctx, actor, hold, question=question)

    async def _read(self, actor: Actor, hold: str, body: Body) -> Submission:
        """The permission is checked first, so that errors about the body reveal nothing."""
        try:
            return read_submission(body)
        except AnswerInvalidError as error:
            row = await load_visible(self.ctx, actor, hold)
            await record_refusal(self.ctx, actor, row, "resolve", error)
            raise


def read_submission(body: Body) -> Submission:
    """Raises AnswerInvalidError."""
    return Submission(decision=body) if isinstance(body, str) else read_body(body)
