"""The run's ledger as a handler sees it: what is left, reservations for its calls, and answers about budgets.

A path is the beginning of the keys of sub-steps in this execution; the empty path is the whole run.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from holdfast.model.budget_ledger import RUN, Amounts, question_id
from holdfast.model.record_bodies import Usage
from holdfast.runs.context.driver_protocols import Attempt
from holdfast.runs.driver.budget_ledger import RunLedger, Waiting


class ContextLedger:
    def __init__(self, ledger: RunLedger, attempt: Attempt, waiting: Waiting) -> None:
        self._ledger = ledger
        self._attempt = attempt
        self._exec = attempt.execution
        self._waiting = waiting

    @property
    def budget(self) -> Any:
        """The budget of the whole run, or None."""
        return self._ledger.budget

    def account(self, path: str) -> str:
        """The name under which an answer about this path's budget counts."""
        return question_id(self._exec, path) if path else RUN

    def used(self, path: str) -> Amounts:
        """Including calls whose outcome is unknown."""
        return self._ledger.used(self._exec, path)

    def unknown(self, path: str) -> Amounts:
        return self._ledger.unknown(self._exec, path)

    def running(self, path: str) -> Amounts | None:
        """Reserved for calls that run now; None: there are none."""
        return self._ledger.running(self._exec, path)

    def granted(self, path: str) -> Amounts:
        return self._ledger.session.pos.ledger.granted(self.account(path))

    def refused(self, path: str) -> str:
        """Why the account gets no more; empty if it may ask."""
        return self._ledger.session.pos.ledger.refused(self.account(path))

    def is_asked(self, path: str) -> bool:
        """Whether a question about this budget is open."""
        return self._ledger.is_asked(self._exec, self.account(path), path)

    def is_taken(self) -> bool:
        """Whether a call without a bound runs elsewhere in the run."""
        return self._ledger.is_taken(self._exec)

    def reserve(self, key: str, amounts: Amounts) -> AbstractAsyncContextManager[None]:
        """Around the sub-step with this key. Its record gives back what it did not use."""
        self._attempt.check_open()
        return self._ledger.reserve(self._exec, self._attempt.node, f"={key}", amounts)

    async def note_spent(
        self, key: str, name: str, *, tokens: int = 0, cost: float = 0.0, micros: int = 0
    ) -> None:
        """What a call outside the node's handler has used. Its reservation under this key is given back."""
        usage = Usage(tokens, cost, micros)
        await self._ledger.note_spent(self._exec, self._attempt.node, f"={key}", name, usage)

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Around a call whose cost has no bound."""
        return self._ledger.alone(self._exec, self._waiting)

    async def note_answer(self, key: str, path: str, granted: Amounts, refused: str = "") -> None:
        await self._ledger.note_answer(
            self._exec, self._attempt.node, f"={key}", self.account(path), granted, refused
        )

    async def wait(self) -> None:
        """Until something has changed here. No timeout of the node runs meanwhile."""
        with self._waiting():
            await self._ledger.wait(self._exec)
