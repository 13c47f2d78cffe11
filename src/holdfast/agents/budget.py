"""A budget in tokens, money and time. Before it is spent, the agent pauses and a person is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Final

import msgspec

from holdfast.agents.prices import Amount, amount
from holdfast.errors import InputError
from holdfast.model.budget_ledger import NANOS, QUESTION, RUN_QUESTION, Amounts
from holdfast.runs.context.budget_ledger import ContextLedger
from holdfast.types.hold import Option

MICROS = 1_000_000
AT_LIMIT = ("ask", "stop", "fail")
UNITS: Final = {"tokens": "tokens", "money": "nanos", "micros": "micros"}
"""The units of a budget, and their names in the ledger."""


class BudgetUsage(msgspec.Struct, frozen=True):
    """Usage from the records of turns and tools: the same after any number of resumes. Only the time of
    models and tools counts, not the time that people take."""

    tokens: int = 0
    money: Decimal = Decimal(0)
    micros: int = 0

    def __add__(self, other: BudgetUsage) -> BudgetUsage:
        return BudgetUsage(self.tokens + other.tokens, self.money + other.money, self.micros + other.micros)


def usage_of(amounts: Amounts) -> BudgetUsage:
    return BudgetUsage(amounts.tokens, Decimal(amounts.nanos) / NANOS, amounts.micros)


_OPTIONS = (
    Option("continue", "Continue", "primary"),
    Option("stop", "Stop with the present answer", "danger"),
)


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a budget that has reached a threshold, in the units of the ledger. `needed`: by the next
    call, if that does not fit."""

    unit: str
    used: int
    limit: int
    needed: int = 0
    unknown: int = 0

    @property
    def words(self) -> str:
        text = _words(self.unit, self.used, self.limit)
        if self.unknown:
            text += f" ({_amount(self.unit, self.unknown)} of them by calls whose outcome is unknown)"
        if self.needed:
            text += f" (the next call needs up to {_amount(self.unit, self.needed)})"
        return text


class Budget:
    """`Budget(tokens=50_000, money="0.50", seconds=120)`; any of them. At the share `ask_at` of one of them a
    person is asked: continue with the same amount again (or the amount in the answer), or stop.

    Of an agent, it is for one conversation with its sub-agents; of a flow (`Flow("x", budget=...)`), for a
    whole run: all agents, parallel branches and judges draw on it."""

    options: ClassVar[Sequence[Option]] = _OPTIONS
    more: ClassVar[str] = "continue"
    """The answer that grants more."""
    halts: ClassVar[bool] = False
    """Whether a run that has used it up fails, instead of continuing with the agent's present answer."""

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

    def limits(self) -> dict[str, int]:
        """By unit, as the ledger counts it."""
        money = None if self.money is None else int(self.money * NANOS)
        found = {"tokens": self.tokens, "money": money, "micros": self.micros}
        return {unit: limit for unit, limit in found.items() if limit is not None}

    def threshold(self, unit: str, limit: int) -> Decimal:
        """When a person is asked, so that the answer arrives while something is left."""
        # Through str: Decimal(0.8) would be slightly more than 0.8.
        return limit * (Decimal(str(self.ask_at)) if self.at_limit == "ask" else Decimal(1))

    def run_words(self, node: str) -> str:
        """The subject of messages about the budget of a run."""
        return "The run"

    def question(self, who: str, reached: Sequence[BudgetState]) -> str:
        return f"{who} has used {', '.join(each.words for each in reached)}. Continue?"

    def grant(self, data: Mapping[str, Any] | None, _reached: Sequence[BudgetState] = ()) -> Amounts:
        """The amount in the answer, else the same amount again."""
        granted = {name: data[name] for name in ("tokens", "money", "seconds") if data and name in data}
        more = (Budget(**granted) if granted else self).limits()
        return Amounts(**{UNITS[unit]: more.get(unit, 0) for unit in self.limits()})

    def answer_schema(self) -> dict[str, Any] | None:
        """The schema of an answer that grants more; None if the answer has no amount."""
        parts = {name: part for name, part in _GRANT.items() if _UNIT_OF.get(name, name) in self.limits()}
        hint = _SAME if len(parts) == 1 else _SAME_ALL
        parts = {name: {**part, "description": hint} for name, part in parts.items()}
        return {"type": ["object", "null"], "properties": parts, "additionalProperties": False}

    def limit_error(self, who: str, reached: Sequence[BudgetState]) -> str:
        return f"{who} has used {', '.join(each.words for each in reached)}."

    def stop_error(self, who: str, reached: Sequence[BudgetState]) -> str:
        text = ", ".join(each.words for each in reached) or "the amount that a person allowed"
        return f"{who} was stopped at {text}."


_MORE_THAN_0 = r"^(?=.*[1-9])[0-9]+(\.[0-9]+)?$"
_UNIT_OF: Final = {"seconds": "micros"}
_SAME: Final = "Leave empty to add the same amount again."
_SAME_ALL: Final = "Leave all empty to add the same amounts again."
_GRANT: dict[str, dict[str, Any]] = {
    "tokens": {"title": "More tokens", "type": "integer", "minimum": 1},
    "money": {
        "title": "More money",
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "pattern": _MORE_THAN_0,
    },
    "seconds": {"title": "More seconds", "type": "number", "exclusiveMinimum": 0},
}


class BudgetMeter:
    """A budget in use: of one conversation, or (with the empty path) of the whole run. What was used, granted
    and refused is in the run's ledger, so that all who draw on it see the same."""

    def __init__(self, budget: Budget, ledger: ContextLedger, path: str, who: str) -> None:
        self.budget = budget
        self.ledger = ledger
        self.path = path
        self.who = who

    @property
    def question_key(self) -> str:
        return QUESTION if self.path else RUN_QUESTION

    def limits(self) -> dict[str, int]:
        granted = self.ledger.granted(self.path)
        return {unit: limit + getattr(granted, UNITS[unit]) for unit, limit in self.budget.limits().items()}

    def used(self) -> Amounts:
        return self.ledger.used(self.path)

    def reached(self, least: Amounts) -> list[BudgetState]:
        """The units of which a threshold is reached, or of which a call that uses `least` needs more than is
        left; empty: the agent may continue."""
        return list(self._reached(least))

    def _reached(self, least: Amounts) -> Iterator[BudgetState]:
        used, unknown = self.used(), self.ledger.unknown(self.path)
        for unit, limit in self.limits().items():
            name = UNITS[unit]
            spent, need = getattr(used, name), getattr(least, name)
            state = BudgetState(unit=unit, used=spent, limit=limit, unknown=getattr(unknown, name))
            if spent >= self.budget.threshold(unit, limit):
                yield state
            elif spent + need > limit:
                yield msgspec.structs.replace(state, needed=need)

    def free(self) -> dict[str, int]:
        """What no call has used or reserved, by unit."""
        used, running = self.used(), self.ledger.running(self.path) or Amounts()
        taken = used + running
        return {unit: limit - getattr(taken, UNITS[unit]) for unit, limit in self.limits().items()}

    def has_room(self, enough: Amounts) -> bool:
        """Whether a call may start now: enough is left for it, or no other call is running."""
        if self.ledger.is_taken():
            return False
        if self.ledger.running(self.path) is None:
            return True
        return all(free >= getattr(enough, UNITS[unit]) for unit, free in self.free().items())

    def overrun(self) -> list[str]:
        used = self.used()
        return [
            _words(unit, getattr(used, UNITS[unit]), limit)
            for unit, limit in self.limits().items()
            if getattr(used, UNITS[unit]) > limit
        ]


def _words(unit: str, used: int, limit: int) -> str:
    return f"{_number(unit, used)} of {_amount(unit, limit)}"


def _amount(unit: str, value: int) -> str:
    return f"{_number(unit, value)} {'seconds' if unit == 'micros' else unit}"


def _number(unit: str, value: int) -> str:
    if unit == "money":
        return format((Decimal(value) / NANOS).normalize(), "f")
    return f"{value / MICROS:g}" if unit == "micros" else str(value)
