"""A provider that asks to wait for minutes: the run waits on a timer of its own, which survives the process.

The call that was refused is no answer and leaves no record of its own; why, and for how long, is recorded
before the timer.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.reservation import CallBounds
from holdfast.errors import ModelError
from holdfast.model.budget_ledger import NANOS
from holdfast.model.user_code.boundary import ControlFlow

MOST: Final = 5
"""Such waits before one answer."""


class LongWait(ControlFlow):
    """Leaves the step of a model's call without a record of it: an error would be the step's result, and an
    answer after the wait could not replace it."""

    def __init__(self, error: ModelError, bounds: CallBounds) -> None:
        super().__init__(error.message)
        self.why = error.message
        self.seconds = float(str(error.facts["retry_after"]))
        self.may_be_paid = bool(error.facts.get("may_be_paid"))
        self.bounds = bounds


class ModelWaits:
    """Those of one conversation, numbered in each turn."""

    def __init__(self, at: AgentScope) -> None:
        self.at = at
        self._turn = 0
        self._taken = 0

    def has_room(self, turn: int) -> bool:
        return self._turn != turn or self._taken < MOST

    async def repeat(self, turn: int) -> None:
        """Those that are recorded: after a crash the rest of the last one."""
        if self._turn != turn:
            self._turn, self._taken = turn, 0
        while self.at.has(self._key("busy", self._taken + 1)):
            await self._wait(None)

    async def take(self, asked: LongWait) -> None:
        await self._wait(asked)

    async def _wait(self, asked: LongWait | None) -> None:
        self._taken += 1
        ctx = self.at.ctx

        async def note() -> dict[str, Any]:
            assert asked is not None  # it is recorded, or asked for now
            amounts = asked.bounds.amounts
            if asked.may_be_paid and amounts is not None:
                # An earlier attempt of the call broke off.
                ctx.spent(tokens=amounts.tokens, cost=amounts.nanos / NANOS, micros=amounts.micros)
            return {"seconds": asked.seconds, "why": asked.why}

        kept = await self.at.step(self._key("busy", self._taken), "busy", note, effect="pure")
        await ctx.sleep(kept["seconds"], key=self.at.key(self._key("wait", self._taken)))

    def _key(self, what: str, number: int) -> str:
        return f"{self._turn}/{what}{number}"
