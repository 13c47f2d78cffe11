"""At the threshold of a budget: a person decides whether the agent continues."""

from __future__ import annotations

from holdfast.agents.budget import GRANT, MICROS, BudgetMeter
from holdfast.agents.node_scope import AgentScope
from holdfast.errors import BudgetError
from holdfast.runs.context.questions import HoldExpiredError
from holdfast.types.hold import Option

OPTIONS = (
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
            options=OPTIONS,
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
        return False
    if reply.decision == "continue":
        purse.grant(reply.data)
    return reply.decision == "continue"
