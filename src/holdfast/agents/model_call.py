"""One call of a model inside an agent: what is recorded of it, and what it cost.

Errors of models, as they are recorded and raised again.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.digests import request_digests
from holdfast.agents.messages import ModelReply, ModelRequest, message_to_plain
from holdfast.agents.model import Model, StreamCallback
from holdfast.agents.model_wait import LongWait
from holdfast.agents.reservation import CallBounds, CallBudgets
from holdfast.errors import EgressError, ModelError, ModelRefusedError, ModelReplyError, ModelUnavailableError
from holdfast.model.budget_ledger import NANOS
from holdfast.model.record_bodies import ErrorInfo
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent

_ERRORS = {
    kind.code: kind
    for kind in (ModelError, ModelRefusedError, ModelReplyError, ModelUnavailableError, EgressError)
}


def model_error(info: ErrorInfo) -> ModelError | EgressError:
    """As it was raised in the sub-step; an error of another type becomes a ModelError that names it."""
    kind = _ERRORS.get(info.code)
    return ModelError(f"{info.type}: {info.message}") if kind is None else kind(info.message)


def provider_of(model: Model) -> str:
    """Who answers: the word of OpenTelemetry's conventions where a model names it, else that of its class."""
    return str(getattr(model, "provider", "")) or type(model).__name__.lower()


class ModelCall:
    def __init__(
        self,
        agent: Agent,
        at: AgentScope,
        budgets: CallBudgets,
        emit: StreamCallback,
        *,
        may_wait: bool = False,
    ) -> None:
        """`may_wait`: the caller waits when LongWait is raised."""
        self.agent = agent
        self.model = agent.model
        self.at = at
        self.budgets = budgets
        self.emit = emit
        self.may_wait = may_wait

    async def make(self, request: ModelRequest, bounds: CallBounds, turn: int) -> dict[str, Any]:
        """What is recorded of it."""
        ctx = self.at.ctx
        ctx.note_digests(**request_digests(self.model, request))
        started = ctx.now()
        reply = await self._reply(request, bounds, started)
        ctx.flush_chunks()
        self._require_usage(reply, bounds)
        for _ in range(reply.broken):
            self._spent_unknown(bounds)
        cost = Decimal(0) if self.model.prices is None else self.model.prices.cost(reply.tokens)
        micros = ctx.now() - started
        # Before the check: a refusal has been paid for too.
        ctx.spent(tokens=reply.tokens.total, cost=float(cost), micros=micros)
        self._require_answer(reply)
        return self._kept(reply, cost, micros, turn)

    async def _reply(self, request: ModelRequest, bounds: CallBounds, started: int) -> ModelReply:
        """A call that broke off may have been paid for: then all that was reserved for it counts. Raises
        LongWait if the endpoint asks to come back in some minutes."""
        timer = asyncio.timeout(bounds.seconds)
        try:
            async with timer:
                return await self.model.reply(request, self.emit)
        except ModelError as error:
            if self.may_wait and "retry_after" in error.facts:
                raise LongWait(error, bounds) from None
            if error.facts.get("may_be_paid"):
                self._spent_unknown(bounds)
            else:
                self.at.ctx.spent(micros=self.at.ctx.now() - started)
            raise
        except Exception as error:
            self._spent_unknown(bounds)
            if isinstance(error, TimeoutError) and timer.expired():
                raise ModelUnavailableError(
                    f"{self.model.name!r} did not answer within the {bounds.seconds:g} s that its budget "
                    "has left.",
                    hint="Raise the budget, and resume the run.",
                ) from None
            raise

    def _spent_unknown(self, bounds: CallBounds) -> None:
        if bounds.amounts is not None:
            amounts = bounds.amounts
            self.at.ctx.spent(tokens=amounts.tokens, cost=amounts.nanos / NANOS, micros=amounts.micros)

    def _kept(self, reply: ModelReply, cost: Decimal, micros: int, turn: int) -> dict[str, Any]:
        message = reply.message
        # Some providers send calls without ids. Derived from
        # the position, so that a replay gives the same ones.
        named = tuple(
            call if call.id else msgspec.structs.replace(call, id=f"call_{turn}_{index + 1}")
            for index, call in enumerate(message.calls)
        )
        return {
            "message": message_to_plain(msgspec.structs.replace(message, calls=named)),
            "tokens": reply.tokens.total,
            "usage": msgspec.to_builtins(reply.tokens),
            "cost": cost,
            **self._prices(reply),
            "finish": reply.finish,
            "micros": micros,
            "attempt": self.at.ctx.attempt,
            "model": self.model.name,
            "provider": provider_of(self.model),
            **({"response_model": reply.model} if reply.model else {}),
        }

    def _prices(self, reply: ModelReply) -> dict[str, Any]:
        """Those that the cost was computed with: later changes do not change what was paid."""
        prices = self.model.prices
        return {} if prices is None else {"prices": prices.of(reply.tokens.input).to_plain()}

    def _require_answer(self, reply: ModelReply) -> None:
        """A refusal is not an answer: it is recorded as an error, so that a resume asks again."""
        if reply.finish == "refused" and not reply.message.calls:
            reason = clean_text(reply.message.text, 500) or "it gave no reason"
            raise ModelRefusedError(f"{self.model.name!r} refused to answer: {reason}.")

    def _require_usage(self, reply: ModelReply, bounds: CallBounds) -> None:
        """Without a usage report a budget would be exceeded silently."""
        if not reply.tokens.total and self.budgets.limits("tokens", "money"):
            self._spent_unknown(bounds)
            raise ModelReplyError(
                f"{self.model.name!r} does not report its tokens, but agent "
                f"{self.agent.name!r} has a budget in tokens.",
                hint="Give the agent a budget in seconds, or an endpoint that reports usage.",
            )
