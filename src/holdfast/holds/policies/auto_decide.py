"""Decides without a person: by a rule, or by a judge with enough confidence. Otherwise people decide.

Every failure leaves the hold as it was: open, for its assignee.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from holdfast.errors import ConflictError, HoldfastError, StoreError
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveConditions, resolve
from holdfast.holds.actions.submission import Submission
from holdfast.holds.policies.apply import PolicyStep, is_for_people
from holdfast.holds.policies.facts import as_asked, facts_of_row
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.policies.judge import Judgement, ask_judge, judge_digests, judged_hold
from holdfast.holds.policies.load import PolicyLoader
from holdfast.holds.policies.policy import RuleMatch, rule_named
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.clock import MICROS, Clock
from holdfast.types.decision_words import NO, YES, approves, approving_answer, refusing_answer
from holdfast.types.duration import parse_duration
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import JUDGE, OutboxRow, OutboxState
from holdfast.types.redaction import redactor, tenant_scope
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, ChainLink
from holdfast.types.text import clean_text

LEASE: Final = 5 * 60 * MICROS
TRIES: Final = 5
LEFT: Final = "left_to_people"


class AutomaticDecision(msgspec.Struct, frozen=True):
    """The answer that is given. `decided_by`: auto-accept, auto-reject, llm-judge, ..."""

    decision: str
    decided_by: str
    reason: str = ""
    confidence: float | None = None
    usage: dict[str, float] | None = None
    digests: dict[str, str] | None = None


def policy_actor(rule: str) -> str:
    return f"policy:{rule}"


class UnsureError(Exception):
    """Why people have to decide."""


class Arbiter:
    """Decides holds for which a rule allows it, through the same actions as people."""

    def __init__(self, ctx: HoldContext, book: PolicyLoader) -> None:
        self.ctx = ctx
        self.store = ctx.store
        self.book = book

    async def judge_now(self, hold: str) -> HoldRow | None:
        """The hold after a decision; None if people have to decide, or it is decided already."""
        row = await self.store.hold(HoldId(hold))
        if row is None or row.terms.auto is None or row.status is not HoldStatus.pending:
            return None
        # Asking again until the judge says yes would be no judgement.
        if await self._was_left(row):
            return None
        with tenant_scope(row.tenant):
            return await self._judge(row, row.terms.auto)

    async def _judge(self, row: HoldRow, auto: str) -> HoldRow | None:
        try:
            # Read again and not taken from the hold: a rule
            # that was withdrawn since must not decide any more.
            chosen = rule_named(await self.book.policies(row.tenant), auto, facts_of_row(row))
            ruling = await rule_on(row, chosen)
            makers = () if chosen is None else chosen.policy.made_by
            return await self._resolve(row, auto, ruling, makers)
        except ConflictError:
            return None  # another decision was first
        except StoreError:
            raise
        except (UnsureError, HoldfastError) as error:
            await self._leave(row, auto, str(error))
            return None

    async def judge_here(self, hold: str) -> bool:
        """Judge it in the process that drives its run, so that no worker has to. Returns whether it is
        decided."""
        row = await self.judge_now(hold)
        # The message for workers is finished too, or a worker would judge the hold again.
        for message in await self.store.list_outbox(hold=hold, state=OutboxState.waiting):
            if message.topic == JUDGE:
                await self._finish(message, row)
        return row is not None

    async def serve(self, clock: Clock, every: float = 1.0) -> None:
        """Until cancelled."""
        while True:
            try:
                worked = await self.work()
            except StoreError as error:
                log.warning("holds could not be judged: %s", error)
                worked = 0
            if not worked:
                await clock.sleep(every)

    async def work(self, *, limit: int = 20) -> int:
        """Judge the waiting holds once. Returns the number of messages that it claimed."""
        messages = await self.store.claim_outbox(limit=limit, lease=LEASE, topics=(JUDGE,))
        # Concurrently: a slow judge delays only its own hold.
        await asyncio.gather(*(self._handle(message) for message in messages))
        return len(messages)

    async def _handle(self, message: OutboxRow) -> None:
        with tenant_scope(message.tenant):
            await self._judge_message(message)

    async def _judge_message(self, message: OutboxRow) -> None:
        try:
            done = await self.judge_now(message.hold or "")
        except Exception as error:
            # Given up after some tries: the hold stays open for people in any case.
            state = OutboxState.dead if message.attempts >= TRIES else OutboxState.waiting
            due = self.store.now() + MICROS * 2**message.attempts
            await self.store.finish_outbox(
                message.id,
                attempt=message.attempts,
                state=state,
                error=clean_text(redactor.redact_operator(str(error)), 500),
                due_at=due,
            )
            log.warning("hold %s could not be judged: %s", message.hold, error)
            return
        await self._finish(message, done)

    async def _finish(self, message: OutboxRow, decided: HoldRow | None) -> None:
        state = OutboxState.skipped if decided is None else OutboxState.done
        await self.store.finish_outbox(message.id, attempt=message.attempts, state=state)

    async def _resolve(
        self, row: HoldRow, rule: str, ruling: AutomaticDecision, makers: tuple[str, ...]
    ) -> HoldRow:
        name = policy_actor(rule)
        chain = tuple(ChainLink(kind="policy", by=each, to=name) for each in makers)
        actor = Actor(id=name, tenant=row.tenant, channel="system", auth_method="policy", chain=chain)
        recorded: dict[str, Any] = {"decided_by": ruling.decided_by}
        if ruling.confidence is not None:
            recorded["confidence"] = ruling.confidence
        if ruling.usage is not None:
            # No worker advances the run here: it counts the usage when it gets the answer.
            recorded["usage"] = ruling.usage
        if ruling.digests is not None:
            recorded["digests"] = ruling.digests
        submission = Submission(decision=ruling.decision, comment=ruling.reason or None)
        return (await resolve(self.ctx, actor, row.id, submission, ResolveConditions(recorded=recorded))).row

    async def _was_left(self, row: HoldRow) -> bool:
        """A judge that was not sure is not asked again."""
        return any(each.action == LEFT for each in await self.store.audit(row.tenant, hold=row.id))

    async def _leave(self, row: HoldRow, rule: str, why: str) -> None:
        log.info("hold %s stays with people: %s", row.id, why)
        # Redacted, because the text of an error may repeat what the judge was shown.
        data = canonical({"rule": rule, "why": clean_text(redactor.redact_operator(why), 500)})
        note = NewAudit(
            at=self.store.now(), actor=f"policy:{rule}", action=LEFT, hold=row.id, run=row.run, data=data
        )
        await self.store.append_audit(row.tenant, [note])


AskJudge = Callable[[RuleMatch, dict[str, Any]], Awaitable[Judgement]]


async def rule_on(row: HoldRow, chosen: RuleMatch | None, ask: AskJudge | None = None) -> AutomaticDecision:
    """The decision by the present version of the rule. Raises UnsureError if people have to decide. `ask`:
    gives the judgement, instead of the judge."""
    if chosen is None or not chosen.rule.is_automatic:
        raise UnsureError("the rule does not exist any more or does not decide")
    rule, facts = chosen.rule, facts_of_row(row)
    # Checked on the question as it was asked: a rule may have changed the terms when the hold was opened.
    if is_for_people(as_asked(row).terms, rule):
        raise UnsureError("certain people have to decide it")
    if not rule.matches(facts):
        raise UnsureError(f"rule {chosen.name} no longer matches it")
    if rule.decide is not None:
        return _by_rule(row, rule.decide, rule.reason)
    judgement = await (ask or _judged)(chosen, {**facts, "rule": chosen.name})
    usage = await _note_usage(judgement)
    if judgement.confidence < rule.threshold:
        raise UnsureError(f"the judge's confidence of {judgement.confidence:g} is below {rule.threshold:g}")
    decision = answer_for(row, judgement.decision)
    judge = chosen.policy.judges.get(rule.judge or "")
    return AutomaticDecision(
        decision,
        judgement.decided_by,
        judgement.reasoning,
        judgement.confidence,
        usage,
        None if judge is None else judge_digests(judge),
    )


async def _note_usage(judgement: Judgement) -> dict[str, float] | None:
    """In the ledger of the run that is advanced here; else returned, to be stored with the decision."""
    if not (judgement.tokens or judgement.cost):
        return None
    here = judged_hold.get()
    if here is None:
        return {"tokens": judgement.tokens, "cost": judgement.cost}
    await here.ledger.note_spent(here.key, "judge", tokens=judgement.tokens, cost=judgement.cost)
    return None


def _by_rule(row: HoldRow, decide: str, reason: str) -> AutomaticDecision:
    decision = answer_for(row, decide)
    if approves(decision, row.options):
        return AutomaticDecision(decision, "auto-accept", reason)
    return AutomaticDecision(decision, "auto-reject", reason or "Auto-rejected")


async def _judged(chosen: RuleMatch, facts: dict[str, Any]) -> Judgement:
    judge = chosen.policy.judges.get(chosen.rule.judge or "")
    if judge is None:
        raise UnsureError(f"the judge {chosen.rule.judge!r} is not registered here")
    seconds = parse_duration(chosen.rule.judge_timeout).total_seconds()
    try:
        async with asyncio.timeout(seconds):
            return await ask_judge(judge, facts)
    except TimeoutError:
        # Every failure leaves the hold to people: a judge that hangs or raises has not approved anything.
        raise UnsureError(f"the judge took longer than {seconds:g} s") from None
    except Exception as error:
        raise UnsureError(f"the judge failed: {type(error).__name__}: {error}") from error


def answer_for(row: HoldRow, word: str) -> str:
    """The hold's option for the answer of a rule or judge. Raises UnsureError if there is none."""
    if not row.options or any(option.id == word for option in row.options):
        return word
    meant = None
    if word.casefold() in YES:
        meant = approving_answer(row.options)
    elif word.casefold() in NO:
        meant = refusing_answer(row.options)
    if meant is None:
        raise UnsureError(f"{clean_text(word, 80)!r} is not one of its answers")
    return meant


class PolicyRuntime:
    def __init__(self, store: Store, book: PolicyLoader, guardrails: Guardrails | None = None) -> None:
        self.book = book
        self.guardrails = guardrails or Guardrails()
        self.step = PolicyStep(book, store)

    def arbiter(self, ctx: HoldContext) -> Arbiter:
        return Arbiter(ctx, self.book)
