"""A budget in tokens, money and time. Before it is spent, the agent pauses and a person is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.agents.node_scope import AgentScope
from holdfast.agents.prices import Amount, amount
from holdfast.errors import BudgetError, InputError
from holdfast.runs.context.questions import HoldExpiredError
from holdfast.types.hold import Option

MICROS = 1_000_000
AT_LIMIT = ("ask", "stop", "fail")


class BudgetUsage(msgspec.Struct, frozen=True):
    """Usage from the records of turns and tools: the same after any number of resumes. Only the time of
    models and tools counts, not the time that people take."""

    tokens: int = 0
    money: Decimal = Decimal(0)
    micros: int = 0

    def __add__(self, other: BudgetUsage) -> BudgetUsage:
        return BudgetUsage(self.tokens + other.tokens, self.money + other.money, self.micros + other.micros)


class Budget:
    """`Budget(tokens=50_000, money="0.50", seconds=120)`; any of them. At the share `ask_at` of one of them a
    person is asked: continue with the same amount again (or the amount in the answer), or stop."""

    def __init__(
        self,
        *,
        tokens: int | None = None,
        money: Amount | None = None,
        seconds: float | None = None,
        ask_at: float = 0.8,
        at_limit: str = "ask",
        assignee: str | None = None,
    ) -> None:
        self.tokens = tokens
        self.money = None if money is None else amount(money, "the money of a budget")
        self.micros = None if seconds is None else int(seconds * MICROS)
        self.ask_at = ask_at
        self.at_limit = at_limit
        self.assignee = assignee
        for name, value in (("tokens", tokens), ("money", self.money), ("seconds", seconds)):
            if value is not None and not value > 0:
                raise InputError(f"budget: {name}={value!r} is not above 0.", hint="Give more than 0.")
        if not 0 < ask_at <= 1:
            raise InputError(
                f"budget: ask_at={ask_at!r} is not a share.", hint="Give a number up to 1, such as 0.8."
            )
        if at_limit not in AT_LIMIT:
            raise InputError(
                f"budget: at_limit={at_limit!r} is not valid.", hint=f"Use one of: {', '.join(AT_LIMIT)}."
            )


class BudgetMeter:
    """A budget in use by one conversation."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.limits: dict[str, Any] = {
            name: limit
            for name, limit in (("tokens", budget.tokens), ("money", budget.money), ("micros", budget.micros))
            if limit is not None
        }
        self.spent = BudgetUsage()

    def spend(self, spent: BudgetUsage) -> None:
        self.spent = self.spent + spent

    def tokens_left(self) -> int | None:
        """The tokens for the next answer. At least 1, because the limit is checked before the call."""
        limit = self.limits.get("tokens")
        return None if limit is None else max(1, limit - self.spent.tokens)

    def reached(self) -> list[str]:
        """The amounts that reached the threshold, as texts; empty: the agent may continue."""
        # Through str: Decimal(0.8) would be slightly more than 0.8. Only a question comes before the limit,
        # so that the answer arrives while something is left.
        share = Decimal(str(self.budget.ask_at)) if self.budget.at_limit == "ask" else Decimal(1)
        return [
            _words(name, used, limit) for name, used, limit in self._used() if Decimal(used) >= limit * share
        ]

    def overrun(self) -> list[str]:
        return [_words(name, used, limit) for name, used, limit in self._used() if used > limit]

    def _used(self) -> Iterator[tuple[str, Any, Any]]:
        for name, limit in self.limits.items():
            yield name, getattr(self.spent, name), limit

    def share(self, parts: int) -> Budget | None:
        """The rest of the budget, divided among sub-agents without their own budget."""
        if not self.limits:
            return None
        left = {name: max(limit - used, 0) for name, used, limit in self._used()}
        return Budget(
            # Divided when the turn begins: which of two sub-agents
            # is quicker must not decide what the other may spend.
            tokens=max(1, left["tokens"] // parts) if "tokens" in left else None,
            money=max(left["money"] / parts, Decimal("1e-9")) if "money" in left else None,
            seconds=max(1, left["micros"] // parts) / MICROS if "micros" in left else None,
            ask_at=self.budget.ask_at,
            at_limit=self.budget.at_limit,
            assignee=self.budget.assignee,
        )

    def grant(self, data: Mapping[str, Any] | None) -> None:
        """Continue with the amount in the answer, else with the same amount again."""
        granted = {name: data[name] for name in ("tokens", "money", "seconds") if data and name in data}
        more = Budget(**granted) if granted else self.budget
        for name in self.limits:
            extra = getattr(more, name)
            if extra is not None:
                self.limits[name] += extra


_MORE_THAN_0 = r"^(?=.*[1-9])[0-9]+(\.[0-9]+)?$"
GRANT: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {
        "tokens": {"type": "integer", "minimum": 1},
        "money": {"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": _MORE_THAN_0},
        "seconds": {"type": "number", "exclusiveMinimum": 0},
    },
    "additionalProperties": False,
}
"""The schema of an answer that grants more."""


def _words(name: str, used: Any, limit: Any) -> str:
    if name == "micros":
        return f"{used / MICROS:g} of {limit / MICROS:g} seconds"
    return f"{used} of {limit} {name}"


_OPTIONS = (
    Option("continue", "Continue", "primary"),
    Option("stop", "Stop with the present answer", "danger"),
)


async def limits_reached(purse: BudgetMeter, at: AgentScope, agent: str, turn: int) -> list[str]:
    """Checked before each call of the model: the limits at which it has to stop; empty: it continues."""
    asked = 0
    while (reached := purse.reached()) or at.has(_key(turn, asked)):
        # A question that was asked stays, by its record, even if the budget has changed since.
        policy = "ask" if at.has(_key(turn, asked)) else purse.budget.at_limit
        if policy == "fail":
            raise BudgetError(
                f"agent {agent!r} has used {', '.join(reached)}.",
                hint="Raise its budget, and resume the run.",
            )
        if policy == "stop" or not await _ask_to_continue(purse, at, agent, turn, reached, asked):
            return reached or ["the amount that a person allowed"]
        asked += 1
    return []


def _key(turn: int, asked: int) -> str:
    return f"{turn + 1}/budget{asked}"


async def _ask_to_continue(
    purse: BudgetMeter, at: AgentScope, agent: str, turn: int, reached: list[str], asked: int
) -> bool:
    try:
        reply = await at.ask(
            _key(turn, asked),
            at.asked(_key(turn, asked)) or f"Agent {agent!r} has used {', '.join(reached)}. Continue?",
            options=_OPTIONS,
            type="approval",
            assignee=purse.budget.assignee,
            schema=GRANT,
            context={
                "agent": agent,
                "turn": turn,
                "tokens": purse.spent.tokens,
                "money": str(purse.spent.money),
                "seconds": purse.spent.micros / MICROS,
            },
        )
    except HoldExpiredError:
        # Silence never grants more.
        return False
    if reply.decision == "continue":
        purse.grant(reply.data)
    return reply.decision == "continue"
