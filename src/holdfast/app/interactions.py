"""Ready-made questions asked from outside a flow: each is a run, and outlives its caller."""

# ruff: noqa: A002  (`id` is what users call it)

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.app.flow import Flow
from holdfast.errors import (
    HoldCancelledError,
    HoldExpiredError,
    HoldNotFoundError,
    InputError,
    RequestExistsError,
    TooManyPendingError,
)
from holdfast.holds.interactions.answers import InteractionAnswer, answer_of
from holdfast.holds.interactions.question import KINDS, InteractionQuestion
from holdfast.holds.interactions.statistics import Statistics, statistics_of
from holdfast.holds.queries.feedback import Feedback, FeedbackLog
from holdfast.runs.claim_run import claim_in_turn
from holdfast.runs.concurrency_limits.run_limits import QueuedRun
from holdfast.runs.context.context import Context
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldFilter, HoldRow
from holdfast.types.ids import DEFAULT_TENANT, RunId, derived_id, new_id
from holdfast.types.status import ENDED, HoldStatus
from holdfast.types.terms import operator

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.runs.service import RunService

PAGE: Final = 500
REQUEST: Final = "request:"

asking = Flow("interaction")


@asking.script
async def ask(s: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
    """Returns the hold's resolution."""
    reply: Any = await ctx.ask(**dict(s["question"]))
    answer = {"decision": reply.decision, "response_data": reply.data, "resolved_by": reply.by}
    return {"answer": answer}


class InteractionRequest(msgspec.Struct, frozen=True):
    """A question that was asked. `id`: as the caller named it."""

    id: str
    kind: str
    hold: str
    run: str


class Interactions:
    """Questions to people in one tenant. `max_pending`: how many of a kind may be open at a time; further
    ones are refused. Requests at the same moment may be accepted together."""

    def __init__(
        self,
        hf: Holdfast,
        *,
        tenant: str = DEFAULT_TENANT,
        max_pending: int | Mapping[str, int] | None = None,
    ) -> None:
        self.hf = hf
        self.tenant = tenant
        self.max_pending = max_pending

    async def request(self, question: InteractionQuestion, *, id: str | None = None) -> InteractionRequest:
        """Ask the question; it is durable when this returns. Raises RequestExistsError,
        TooManyPendingError."""
        name = id or new_id()
        await self._require_room(question.kind)
        asked = question.for_ask()
        asked["tags"] = [*question.tags, f"{REQUEST}{name}"]
        service, program = await self._service(), asking.program()
        given = {"question": asked}
        started = await service.start(program, given, run_id=self._run(name), tenant=self.tenant)
        if isinstance(started, RunRow):
            raise RequestExistsError(
                f"something was asked under {name!r} already.",
                hint="Give each question a unique id.",
                request=name,
            )
        if isinstance(started, QueuedRun):
            # An operator may limit how many questions are open at once.
            taken = await claim_in_turn(service, started.row.id, created=True)
            pos = None if isinstance(taken, RunRow) else (await service.runtime.drive(taken))[1]
        else:
            _, pos = await service.runtime.drive(*started)
        hold = await self._hold(name)
        if hold is None:
            failing = None if pos is None else pos.failing
            why = "the run was stopped" if failing is None else failing.message
            raise InputError(f"{name!r} could not be asked: {why}", request=name)
        return InteractionRequest(name, question.kind, hold.id, hold.run)

    async def answer(self, id: str) -> InteractionAnswer | None:
        """The answer; None while there is none. Raises HoldExpiredError, HoldCancelledError,
        HoldNotFoundError for an id that was never asked."""
        hold = await self._known(id)
        if hold.status is HoldStatus.pending:
            await (await self.hf.service()).runtime.sweeper.sweep(hold.run)
            hold = await self._known(id)
        if hold.status is HoldStatus.pending:
            return None
        await self._settled(hold.run)
        if hold.status is HoldStatus.expired:
            raise HoldExpiredError(f"no answer to {id!r} came in time.", hold=hold.id)
        if hold.status is HoldStatus.cancelled:
            raise HoldCancelledError(f"{id!r} was withdrawn: {hold.closed_reason}.", hold=hold.id)
        kind = hold.terms.interaction or hold.type
        return answer_of(
            kind, msgspec.json.decode(hold.resolution or b"{}"), msgspec.json.decode(hold.context)
        )

    async def wait(self, id: str, *, poll: float = 1.0) -> InteractionAnswer:
        """Until it is answered. Raises as `answer` does."""
        store = await self.hf.open()
        while True:
            found = await self.answer(id)
            if found is not None:
                return found
            await store.wait_change(poll)

    async def cancel(
        self, id: str, reason: str = "not needed any more", *, by: str = "user:local"
    ) -> HoldRow:
        """Withdraw it: a caller that waits gets an error."""
        hold = await self._known(id)
        row = await (await self.hf.holds()).cancel(operator(by, tenant=self.tenant), hold.id, reason=reason)
        await self._settled(hold.run)
        return row

    async def pending(self, kind: str | None = None) -> list[HoldRow]:
        """Oldest first, including those of flows."""
        wanted = (kind,) if kind else KINDS
        where = HoldFilter(tenant=self.tenant, status=(HoldStatus.pending,), type=wanted)
        return [row async for row in self._rows(where) if row.terms.interaction in wanted]

    async def statistics(self, *, since: int | None = None) -> Statistics:
        """Of questions asked since then, including those of flows."""
        where = HoldFilter(tenant=self.tenant, type=KINDS, created_from=since)
        return statistics_of([row async for row in self._rows(where)])

    async def give_feedback(self, feedback: Feedback) -> Feedback:
        """Store it, with the time; the latest thousand of a tenant are kept. Raises InputError."""
        return await FeedbackLog(await self.hf.open(), self.tenant).give(feedback)

    async def feedback(self, **wanted: Any) -> list[Feedback]:
        """The latest first; by `agent`, `since`, `type`, `limit`."""
        return await FeedbackLog(await self.hf.open(), self.tenant).query(**wanted)

    # ------------------------------------------------------------------ within
    def _run(self, name: str) -> RunId:
        # Derived: two requests of the same name are one run, so the store itself refuses the second.
        return RunId(derived_id("interaction", self.tenant, name))

    async def _hold(self, name: str) -> HoldRow | None:
        found = await (await self.hf.open()).holds(run=self._run(name), limit=1)
        return found[0] if found else None

    async def _known(self, name: str) -> HoldRow:
        hold = await self._hold(name)
        if hold is None:
            raise HoldNotFoundError(f"nothing was asked under {name!r}.", request=name)
        return hold

    async def _service(self) -> RunService:
        self.hf.register(asking.program())
        return await self.hf.service()

    async def _settled(self, run: RunId) -> None:
        """Lets the run process the outcome of its question, if it has not yet."""
        service = await self._service()
        row = await service.store.get_run(run)
        if row is not None and row.status not in ENDED:
            await asking.resume(run, on=self.hf)

    async def _require_room(self, kind: str) -> None:
        limit = self.max_pending.get(kind) if isinstance(self.max_pending, Mapping) else self.max_pending
        if limit is None:
            return
        where = HoldFilter(tenant=self.tenant, status=(HoldStatus.pending,), type=(kind,))
        if await (await self.hf.open()).count_holds(where, limit=limit) >= limit:
            raise TooManyPendingError(
                f"{limit} questions of kind {kind!r} are open already.",
                hint="Wait until some are answered, or cancel those that are not needed.",
                kind=kind,
                limit=limit,
            )

    async def _rows(self, where: HoldFilter) -> AsyncIterator[HoldRow]:
        store = await self.hf.open()
        after: tuple[Any, ...] | None = None
        while True:
            page = await store.list_holds(where, after=after, limit=PAGE)
            for row, _ in page:
                yield row
            if len(page) < PAGE:
                return
            after = page[-1][1]
