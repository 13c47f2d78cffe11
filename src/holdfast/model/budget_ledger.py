"""The ledger of a run: what is reserved for calls that have not ended, and what people granted.

What was used is in the run's totals and, by call, in the executions. All of it changes by records only, so
that a resumed run continues with what was spent. A reservation whose call never ended is never given back:
what that call cost is unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.model.record_bodies import Usage

if TYPE_CHECKING:
    from holdfast.model.position import Exec, Position
    from holdfast.model.record_bodies import IntentBody

NANOS: Final = 1_000_000_000
"""Money is counted in billionths, as whole numbers: sums of floats are not exact."""
RUN: Final = ""
"""The account of the whole run; the others are of agents with their own budgets."""
LEDGER: Final = -2
"""The ordinal of an intent that reserves, that notes the answer to a question about a budget, or what a call
outside the node's handler has used: that of a judge."""
QUESTION: Final = "budget"
RUN_QUESTION: Final = "run-budget"
"""The last part of the keys of questions about budgets, without their number."""


_QUESTIONS: Final = re.compile(rf"(?:^=|/)({QUESTION}|{RUN_QUESTION})\d+$")


class Amounts(msgspec.Struct, frozen=True, array_like=True):
    tokens: int = 0
    nanos: int = 0
    micros: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.tokens + other.tokens, self.nanos + other.nanos, self.micros + other.micros)


class Reservation(msgspec.Struct, frozen=True, array_like=True):
    """The call that it is for, and the most that the call can use."""

    scope: str
    node: int
    visit: int
    ordinal: str
    amounts: Amounts


class BudgetAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What a person granted to an account; `refused`: why it gets no more."""

    account: str
    granted: Amounts = Amounts()
    refused: str = ""


class Ledger(msgspec.Struct):
    # By the numbers of their records: a repeated call has a second one.
    reserved: dict[int, Reservation] = {}
    # By question.
    answers: dict[str, BudgetAnswer] = {}
    # Time of settled nodes beyond the duration of their last entry: of calls before a wait or a crash.
    micros: int = 0

    def granted(self, account: str) -> Amounts:
        return sum((a.granted for a in self.answers.values() if a.account == account), Amounts())

    def refused(self, account: str) -> str:
        return next((a.refused for a in self.answers.values() if a.account == account and a.refused), "")


def question_id(execution: Exec, ordinal: str) -> str:
    return f"{execution.scope}|{execution.node}|{execution.visit}|{ordinal}"


def budget_question(ordinal: str) -> str | None:
    """Which kind of question about a budget this is; None: another sub-step."""
    found = _QUESTIONS.search(ordinal)
    return None if found is None else found[1]


def spent_by(usage: Usage) -> Amounts:
    return Amounts(usage.tokens, round(usage.cost * NANOS), usage.micros)


def used_by_run(pos: Position) -> Amounts:
    """Of settled nodes and of the ended calls of running ones. Time of parallel nodes is summed."""
    totals = pos.totals
    running = sum(busy_time(execution) for execution in pos.execs.values())
    micros = int(totals.get("duration", 0)) + pos.ledger.micros + running
    return Amounts(int(totals.get("tokens", 0)), round(totals.get("cost", 0) * NANOS), micros)


def used_below(execution: Exec, path: str) -> Amounts:
    """Of the ended calls of one execution whose keys begin with this path."""
    found = (spent for key, spent in execution.spent.items() if key.startswith(f"={path}/"))
    return sum(found, Amounts())


def busy_time(execution: Exec) -> int:
    return sum(spent.micros for spent in execution.spent.values())


def usage_noted(body: IntentBody) -> Usage | None:
    """What a call outside the node's handler has used, if that is what the intent notes."""
    noted: Any = body.facts["spent"] if body.ordinal == LEDGER and "spent" in body.facts else None
    return None if noted is None else Usage(*noted)


def apply_ledger(pos: Position, execution: Exec, seq: int, body: IntentBody) -> None:
    facts: Any = body.facts
    usage = usage_noted(body)
    if usage is not None:
        spend(pos, usage)
        end_call(pos, execution, body.name, usage)
        return
    if "reserve" in facts:
        amounts = Amounts(*facts["reserve"])
        pos.ledger.reserved[seq] = Reservation(
            execution.scope, execution.node, execution.visit, body.name, amounts
        )
    else:
        account, granted, refused = facts["answer"]
        answer = BudgetAnswer(account, Amounts(*granted), refused)
        pos.ledger.answers[question_id(execution, body.name)] = answer


def spend(pos: Position, usage: Usage | None) -> None:
    """Add to the totals of the run."""
    if usage is not None:
        pos.totals["tokens"] = pos.totals.get("tokens", 0) + usage.tokens
        pos.totals["cost"] = pos.totals.get("cost", 0) + usage.cost


def end_call(pos: Position, execution: Exec, ordinal: str, usage: Usage | None) -> None:
    """A call has ended and its cost is known: its last reservation is given back."""
    reserved = pos.ledger.reserved
    if reserved:
        mine = (execution.scope, execution.node, execution.visit, ordinal)
        found = [seq for seq, r in reserved.items() if (r.scope, r.node, r.visit, r.ordinal) == mine]
        if found:
            del reserved[max(found)]
    if usage is not None:
        execution.spent[ordinal] = execution.spent.get(ordinal, Amounts()) + spent_by(usage)


def reopen(pos: Position) -> None:
    """A run that failed is resumed: what was refused may be asked again."""
    answers = pos.ledger.answers
    pos.ledger.answers = {key: answer for key, answer in answers.items() if not answer.refused}
