"""The ledger of a run that is advanced here: reservations before calls, and handlers that wait for them.

A reservation is live while its call runs in this process. One that is neither live nor settled belongs to a
call whose process died, or that was cut off: it counts as used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from holdfast.model.budget_ledger import (
    LEDGER,
    QUESTION,
    RUN,
    RUN_QUESTION,
    Amounts,
    budget_question,
    question_id,
    used_below,
    used_by_run,
)
from holdfast.model.graph import Node
from holdfast.model.position import Exec
from holdfast.model.record_bodies import IntentBody, Usage
from holdfast.runs.context.driver_protocols import ContextCalls
from holdfast.types.record import Kind
from holdfast.types.value import FrozenDict

Waiting = Callable[[], AbstractContextManager[None]]
"""Around a wait of a handler: no timeout of its node runs meanwhile."""


class RunLedger:
    def __init__(self, calls: ContextCalls) -> None:
        self.calls = calls
        self.session = calls.session
        self._live: set[int] = set()
        # Executions whose calls have no bound: beside one of them nothing else may spend.
        self._unbounded: dict[tuple[str, int], Exec] = {}
        self._waits = 0
        self.waiting = 0

    @property
    def budget(self) -> Any:
        """Of the whole run, if there is one."""
        return self.session.program.budget

    # ------------------------------------------------------------------ what is left
    def used(self, execution: Exec, path: str) -> Amounts:
        """By ended calls, and by those whose outcome is unknown."""
        ended = used_below(execution, path) if path else used_by_run(self.session.pos)
        return ended + self.unknown(execution, path)

    def unknown(self, execution: Exec, path: str) -> Amounts:
        return sum(self._reserved(execution, path, live=False), Amounts())

    def running(self, execution: Exec, path: str) -> Amounts | None:
        """Reserved for calls that run now; None: there are none."""
        found = list(self._reserved(execution, path, live=True))
        return sum(found, Amounts()) if found else None

    def _reserved(self, execution: Exec, path: str, *, live: bool) -> Iterator[Amounts]:
        mine = (execution.scope, execution.node, execution.visit)
        for seq, each in self.session.pos.ledger.reserved.items():
            inside = not path or (
                (each.scope, each.node, each.visit) == mine and each.ordinal.startswith(f"={path}/")
            )
            if inside and (seq in self._live) == live:
                yield each.amounts

    # ------------------------------------------------------------------ calls
    @asynccontextmanager
    async def reserve(
        self, execution: Exec, node: Node, ordinal: str, amounts: Amounts
    ) -> AsyncGenerator[None]:
        """Durable before the call begins: after a crash it is known that the call may have been made."""
        facts = FrozenDict({"reserve": (amounts.tokens, amounts.nanos, amounts.micros)})
        body = IntentBody(LEDGER, ordinal, "", facts)
        seq = self.calls.note(Kind.intent, body, execution, node, effect="read")
        self._live.add(seq)
        try:
            await self.calls.reserved(seq)
            yield
        finally:
            self._live.discard(seq)
            self.wake()

    def is_calling(self, execution: Exec) -> bool:
        place = (execution.scope, execution.node, execution.visit)
        reserved = self.session.pos.ledger.reserved
        found = (reserved[seq] for seq in self._live if seq in reserved)
        return any((each.scope, each.node, each.visit) == place for each in found)

    @asynccontextmanager
    async def alone(self, execution: Exec, waiting: Waiting) -> AsyncGenerator[None]:
        """For a call whose cost has no bound: it begins when no other call runs, and until its node has
        settled no other begins. (What it cost is recorded with the node.)"""
        here = (execution.scope, execution.node)
        while self._live or self.is_taken(execution):
            with waiting():
                await self.wait(execution)
        self._unbounded[here] = execution
        try:
            yield
        except BaseException:
            self._unbounded.pop(here, None)
            self.wake()
            raise

    def is_taken(self, by_other_than: Exec) -> bool:
        """Whether a call without a bound runs. One that waits for a person spends nothing."""
        execs = self.session.pos.execs
        self._unbounded = {at: each for at, each in self._unbounded.items() if execs.get(at) is each}
        waiting = {place[:2] for place in self.session.answers}
        return any(at not in waiting for at, each in self._unbounded.items() if each is not by_other_than)

    async def note_spent(self, execution: Exec, node: Node, ordinal: str, name: str, usage: Usage) -> None:
        """What a call outside the node's handler has used: that of a judge."""
        facts = FrozenDict({"spent": (usage.tokens, usage.cost, usage.micros)})
        body = IntentBody(LEDGER, ordinal, name, facts)
        seq = self.calls.note(Kind.intent, body, execution, node, effect="read")
        await self.calls.reserved(seq)

    # ------------------------------------------------------------------ questions
    def answered(self, execution: Exec, ordinal: str) -> bool:
        return question_id(execution, ordinal) in self.session.pos.ledger.answers

    async def note_answer(
        self, execution: Exec, node: Node, ordinal: str, account: str, granted: Amounts, refused: str
    ) -> None:
        """What was answered counts for the whole account, from now on and after a resume."""
        if self.answered(execution, ordinal):
            return
        amounts = (granted.tokens, granted.nanos, granted.micros)
        facts = FrozenDict({"answer": (account, amounts, refused)})
        body = IntentBody(LEDGER, ordinal, "", facts)
        seq = self.calls.note(Kind.intent, body, execution, node, effect="read")
        await self.calls.reserved(seq)
        self.wake()

    def is_asked(self, execution: Exec, account: str, path: str) -> bool:
        """Whether the account waits for an answer, or for the handler that asked to note it."""
        kind = RUN_QUESTION if account == RUN else QUESTION
        here = self.session.pos.execs.values() if account == RUN else (execution,)
        for each in here:
            for ordinal in each.subs:
                if budget_question(ordinal) != kind or self.answered(each, ordinal):
                    continue
                if account == RUN or ordinal.startswith(f"={path}/"):
                    return True
        return False

    # ------------------------------------------------------------------ waits
    async def wait(self, execution: Exec) -> None:
        """Until a call ends, a question is answered or a handler ends. A run in which all handlers wait here
        or for a person parks."""
        session = self.session
        self._waits += 1
        where = (execution.scope, execution.node, f"~{self._waits}")
        changed: asyncio.Future[Any] = session.loop.create_future()
        session.answers[where] = changed
        session.wake.set()
        self.waiting += 1
        try:
            await changed
        finally:
            self.waiting -= 1
            session.answers.pop(where, None)

    def wake(self) -> None:
        for where, changed in list(self.session.answers.items()):
            if where[2].startswith("~") and not changed.done():
                changed.set_result(None)  # type: ignore[arg-type]
