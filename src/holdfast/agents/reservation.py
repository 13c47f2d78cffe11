"""Reserves what a call of a model can cost: its input is counted, its output and its time are bounded.

Before each call all budgets that it draws on are checked: the agent's, those of the agents that it works
for, and the run's. At a threshold one person is asked once; whatever else draws on that budget waits for the
answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.budget import MICROS, BudgetMeter, BudgetState, usage_of
from holdfast.agents.messages import ModelRequest
from holdfast.agents.model import Model
from holdfast.agents.prices import MILLION, Prices
from holdfast.errors import BudgetError
from holdfast.model.budget_ledger import NANOS, Amounts
from holdfast.runs.context.budget_ledger import ContextLedger
from holdfast.runs.context.questions import HoldExpiredError

OUTPUT: Final = 16_384
"""Tokens of an answer whose length neither the agent nor the model limits."""
ENOUGH: Final = 4096
"""With fewer tokens for its answer a call waits while others run: they may leave more."""
LONGEST: Final = 600 * MICROS
SHORTEST: Final = 60 * MICROS
_BYTES_PER_TOKEN: Final = 3
_PER_MESSAGE: Final = 8


class CallBounds(msgspec.Struct, frozen=True):
    """What is reserved for one call. None: nothing limits it."""

    amounts: Amounts | None = None
    output: int | None = None
    seconds: float | None = None


class BudgetStop(msgspec.Struct, frozen=True):
    """Why an agent has to stop. `error`: the run has to stop with it."""

    reasons: tuple[str, ...]
    error: str = ""


def count_input(model: Model, request: ModelRequest) -> int:
    """By the model itself where it can count; else an estimate that is rather too high for most texts."""
    count: Any = getattr(model, "count_tokens", None)
    return int(count(request)) if count is not None else _estimate(request)


def _estimate(request: ModelRequest) -> int:
    size = sum(len(msgspec.json.encode(message)) for message in request.messages)
    size += sum(len(msgspec.json.encode(tool)) for tool in request.tools)
    return math.ceil(size / _BYTES_PER_TOKEN) + _PER_MESSAGE * len(request.messages)


class PlannedModelCall(msgspec.Struct, frozen=True):
    """`output`: the longest answer that the agent or the model allows."""

    input: int
    output: int
    prices: Prices | None

    def amounts(self, output: int, micros: int) -> Amounts:
        """The most that it can use. Input is priced as if all of it were written to the provider's cache."""
        nanos = 0
        if self.prices is not None:
            prices = self.prices.of(self.input)
            dearest = max(prices.input, prices.written)
            cost = (dearest * self.input + prices.output * output) / MILLION
            nanos = math.ceil(cost * NANOS)
        return Amounts(self.input + output, nanos, micros)

    def least(self) -> Amounts:
        return self.amounts(1, 1)

    def enough(self) -> Amounts:
        return self.amounts(min(self.output, ENOUGH), SHORTEST)

    def bounds(self, meters: Sequence[BudgetMeter]) -> CallBounds:
        """As much as all of the budgets have free."""
        output, micros, timed = self.output, LONGEST, False
        for meter in meters:
            free = meter.free()
            if "tokens" in free:
                output = min(output, free["tokens"] - self.input)
            if "money" in free:
                output = min(output, self._affordable(free["money"]))
            if "micros" in free:
                micros, timed = min(micros, free["micros"]), True
        output, micros = max(1, output), max(1, micros) if timed else 0
        return CallBounds(self.amounts(output, micros), output, micros / MICROS if timed else None)

    def _affordable(self, nanos: int) -> int:
        """How many tokens of output that pays for."""
        price = None if self.prices is None else self.prices.of(self.input).output
        if not price:
            return self.output
        left = nanos - self.amounts(0, 0).nanos
        return int(Decimal(left) / NANOS * MILLION / price)


def plan_call(model: Model, request: ModelRequest, max_tokens: int | None, ratio: float) -> PlannedModelCall:
    """`ratio`: how much more input the model counted in the last call than was estimated here."""
    limits = (max_tokens, getattr(model, "max_tokens", None))
    output = min((limit for limit in limits if limit is not None), default=OUTPUT)
    return PlannedModelCall(math.ceil(count_input(model, request) * ratio), output, model.prices)


def limits_any(meters: Sequence[BudgetMeter], *units: str) -> bool:
    return any(unit in meter.budget.limits() for meter in meters for unit in units)


def require_prices(model: Model, meters: Sequence[BudgetMeter]) -> None:
    """Raises BudgetError: a cost that is not known cannot be kept within a budget."""
    if model.prices is None and limits_any(meters, "money"):
        raise BudgetError(
            f"the run has a budget in money, but the prices of {model.name!r} are not known.",
            hint="Give the model prices, or the run a budget in tokens.",
        )


class CallBudgets:
    """The budgets that one conversation draws on, its own first."""

    def __init__(self, meters: Sequence[BudgetMeter], at: AgentScope, agent: str) -> None:
        self.meters = tuple(meters)
        self.at = at
        self.agent = agent

    def limits(self, *units: str) -> bool:
        return limits_any(self.meters, *units)

    async def admit(self, call: PlannedModelCall, turn: int) -> CallBounds | BudgetStop:
        """What the call may use; or why it is not made. Raises BudgetError."""
        asked = [0] * len(self.meters)
        for depth, meter in enumerate(self.meters):
            # A question that was asked stays, by its record, even if the budget has changed since.
            while self.at.has(key := self._key(turn, depth, asked[depth])):
                asked[depth] += 1
                reached = meter.reached(call.least())
                if not await self._ask(meter, key, turn, reached):
                    return _stop(meter, reached)
        if not self.meters or self.at.has(f"{turn + 1}/model"):
            return CallBounds()
        while True:
            at_limit = next(
                (each for each in enumerate(self.meters) if self._is_reached(each[1], call)), None
            )
            if at_limit is not None:
                depth, meter = at_limit
                reached = meter.reached(call.least())
                if meter.ledger.refused(meter.path) or not await self._pass(
                    meter, depth, asked, turn, reached
                ):
                    return _stop(meter, reached)
            elif all(meter.has_room(call.enough()) for meter in self.meters):
                return call.bounds(self.meters)
            else:
                await self.at.ctx.ledger.wait()

    def _is_reached(self, meter: BudgetMeter, call: PlannedModelCall) -> bool:
        return bool(meter.ledger.refused(meter.path) or meter.reached(call.least()))

    async def _pass(
        self, meter: BudgetMeter, depth: int, asked: list[int], turn: int, reached: list[BudgetState]
    ) -> bool:
        """Whether the agent may look again; False: it has to stop."""
        if meter.ledger.is_asked(meter.path):
            await self.at.ctx.ledger.wait()
            return True
        policy = meter.budget.at_limit
        if policy == "fail":
            text = meter.budget.limit_error(meter.who, reached)
            raise BudgetError(text, hint="Raise its budget, and resume the run.", halts=meter.budget.halts)
        if policy == "stop":
            return False
        key = self._key(turn, depth, asked[depth])
        asked[depth] += 1
        return await self._ask(meter, key, turn, reached)

    def _key(self, turn: int, depth: int, asked: int) -> str:
        meter = self.meters[depth]
        outer = f"outer{depth}/" if depth and meter.path else ""
        return f"{turn + 1}/{outer}{meter.question_key}{asked}"

    async def _ask(self, meter: BudgetMeter, key: str, turn: int, reached: Sequence[BudgetState]) -> bool:
        at, budget = self.at, meter.budget
        used = usage_of(meter.used())
        whole = at.key(key)
        try:
            reply = await at.ask(
                key,
                at.asked(key) or budget.question(meter.who, reached),
                options=budget.options,
                type="approval",
                assignee=budget.assignee,
                schema=budget.answer_schema(),
                context={
                    "agent": self.agent,
                    "turn": turn,
                    "tokens": used.tokens,
                    "money": str(used.money),
                    "seconds": used.micros / MICROS,
                },
            )
        except HoldExpiredError:
            # Silence never grants more.
            await at.ctx.ledger.note_answer(whole, meter.path, Amounts(), "not answered in time")
            return False
        if reply.decision == budget.more:
            await at.ctx.ledger.note_answer(whole, meter.path, budget.grant(reply.data, reached))
            return True
        await at.ctx.ledger.note_answer(whole, meter.path, Amounts(), "a person stopped it")
        return False


class JudgeBudget:
    """A judge draws on the budget of the run. It asks for no more: without it, a person decides."""

    def __init__(self, ledger: ContextLedger) -> None:
        budget = ledger.budget
        self.meters = [] if budget is None else [BudgetMeter(budget, ledger, "", "The run")]

    def admit(self, model: Model, request: ModelRequest, max_tokens: int) -> CallBounds:
        """Raises BudgetError."""
        if not self.meters:
            return CallBounds()
        require_prices(model, self.meters)
        call = plan_call(model, request, max_tokens, 1.0)
        for meter in self.meters:
            reached = meter.reached(call.least())
            if reached:
                raise BudgetError(meter.budget.limit_error(meter.who, reached))
            if not meter.has_room(call.enough()):
                raise BudgetError("other calls of the run have reserved what is left of its budget.")
        return call.bounds(self.meters)


def _stop(meter: BudgetMeter, reached: Sequence[BudgetState]) -> BudgetStop:
    words = tuple(each.words for each in reached) or ("the amount that a person allowed",)
    budget = meter.budget
    return BudgetStop(words, budget.stop_error(meter.who, reached) if budget.halts else "")
