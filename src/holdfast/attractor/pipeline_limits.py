"""Limits that stop a pipeline: repeated identical failures, and budgets.

The counts are in the context and in the run's ledger, so that they survive a resume.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final, cast

from holdfast.agents.budget import MICROS, UNITS, Budget, BudgetMeter, BudgetState
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.errors import BudgetError
from holdfast.frontends.dot.document import Attributes, Pipeline
from holdfast.frontends.dot.values import as_text
from holdfast.model.budget_ledger import NANOS, RUN, RUN_QUESTION, Amounts
from holdfast.types.hold import Option

SAME_FAILURES: Final = 3
_SAME_KEY: Final = "internal.same_failures."
TOOL: Final = "tool"
_CHECKED: Final = "budget"
GO_ON, STOP = "go on", "stop"
_COMPARED: Final = 65_536
"""Characters of a command's output: its end."""
# Parts that differ between equal failures: hexadecimal ids, durations, and numbers. Not a number of
# something: where 5 tests failed and now 3 do, a repair made progress.
_VARIES = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)? ?(?:[mun]?s|sec|seconds?|min|minutes?)\b"
    r"|\d+(?![\d.]| (?!(?:at|in|on|of|to|from|for|by|after|and|or)\b)[a-z])",
    re.IGNORECASE,
)


def signature(*texts: str) -> str:
    """The same for failures that differ only in ids, durations, positions, spaces and the order of lines."""
    lines = [" ".join(_VARIES.sub("#", line).split()) for text in texts for line in text.lower().split("\n")]
    return sha256("\n".join(sorted(lines)).encode("utf-8", "replace")).hexdigest()[:16]


def count_failure(visit: StageVisit, outcome: StageOutcome, kind: str) -> str:
    """Count the stage's failure. Returns why the run stops, if it failed in this way too often. `kind`: of
    its handler."""
    key = _SAME_KEY + visit.stage.id
    found: Any = visit.context.get(key)
    known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if outcome.status != StageStatus.FAIL:
        if known:
            visit.context.set(key, None)
        return ""
    # Attempts that the engine retries do not count, only failures of the whole stage.
    if not (outcome.terminal or visit.ctx.last_try):
        return ""
    mark = signature(*_evidence(visit, outcome, kind))
    count = int(known["count"]) + 1 if known.get("signature") == mark else 1
    visit.context.set(key, {"signature": mark, "count": count})
    most = _limit(visit.stage, visit.pipeline)
    if not most or count < most:
        return ""
    reason = outcome.failure_reason or "it gave no reason"
    return f"stage {visit.stage.id!r} failed {count} times in the same way: {reason}"


def _evidence(visit: StageVisit, outcome: StageOutcome, kind: str) -> list[str]:
    """What tells one failure of a stage from another. The reason of a command is its last line, which is
    often only a summary; a model that gives no reason has said it in its answer."""
    found, outputs = [outcome.failure_reason], visit.outputs
    if kind == TOOL:
        found += [outputs.stdout[-_COMPARED:], outputs.stderr[-_COMPARED:]]
    elif not outcome.failure_reason:
        found.append(outputs.response[-_COMPARED:])
    return found


def _limit(stage: Attributes, pipeline: Attributes) -> int:
    """0 means no limit."""
    return stage.integer("max_same_failures", pipeline.integer("max_same_failures", SAME_FAILURES))


BUILT_IN: Final = frozenset(
    {"start", "exit", "codergen", "wait.human", "conditional", "parallel", "parallel.fan_in", "tool",
     "stack.manager_loop"}
)  # fmt: skip
"""Handlers that spend nothing themselves, or by a backend. What others spend has no bound."""


class PipelineBudget(Budget):
    """The budget of a run, as its graph declares it: `budget_tokens`, `budget_usd`, `budget_time`."""

    options = tuple(Option(word, word) for word in (GO_ON, STOP))
    more = GO_ON
    halts = True

    def __init__(self, limits: Mapping[str, int], ask_at: float | None) -> None:
        super().__init__(at_limit="fail" if ask_at is None else "ask")
        self._limits = dict(limits)
        self._ask_at = 1.0 if ask_at is None else ask_at

    def limits(self) -> dict[str, int]:
        return dict(self._limits)

    def threshold(self, unit: str, limit: int) -> Decimal:
        """The threshold applies to each allowance: a grant adds the same amount again."""
        return limit - (1 - Decimal(str(self._ask_at))) * self._limits[unit]

    def grant(self, data: Mapping[str, Any] | None, reached: Sequence[BudgetState] = ()) -> Amounts:
        """Only of what was asked about."""
        return Amounts(**{UNITS[each.unit]: self._limits[each.unit] for each in reached[:1]})

    def answer_schema(self) -> None:
        """The same amount again, always."""
        return

    def run_words(self, node: str) -> str:
        return f" in stage {node!r}"

    def question(self, who: str, reached: Sequence[BudgetState]) -> str:
        first = reached[0]
        used, limit = shown(first.unit, first.used), shown(first.unit, first.limit)
        more = shown(first.unit, self._limits[first.unit])
        return f"{used} of {limit} are used up{who}. Go on with {more} more?"

    def limit_error(self, who: str, reached: Sequence[BudgetState]) -> str:
        first = reached[0]
        text = f"the budget of {shown(first.unit, first.limit)} is used up: {shown(first.unit, first.used)}"
        needed = f", and the next call needs up to {shown(first.unit, first.needed)}" if first.needed else ""
        return text + needed

    def stop_error(self, who: str, reached: Sequence[BudgetState]) -> str:
        at = f" at {shown(reached[0].unit, reached[0].used)}" if reached else ""
        return f"the budget was not raised{at}"


def shown(unit: str, value: float) -> str:
    if unit == "money":
        return f"${value / NANOS:,.2f}"
    return f"{value / MICROS:,.0f} seconds of work" if unit == "micros" else f"{value:,.0f} tokens"


def budget_of(pipeline: Pipeline) -> PipelineBudget | None:
    """The budget that the graph declares, if any."""
    tokens, usd = _number(pipeline, "budget_tokens"), _number(pipeline, "budget_usd")
    found = {
        "tokens": None if tokens is None else int(tokens),
        "money": None if usd is None else round(usd * NANOS),
        "micros": pipeline.microseconds("budget_time"),
    }
    limits = {unit: limit for unit, limit in found.items() if limit is not None}
    return PipelineBudget(limits, _number(pipeline, "budget_ask_at")) if limits else None


def _number(pipeline: Attributes, key: str) -> float | None:
    value = pipeline.attrs.get(key)
    try:
        return None if value is None else float(as_text(value))
    except ValueError:
        return None


def spends_alone(visit: StageVisit) -> AbstractAsyncContextManager[None]:
    """Around a call whose tokens and money have no bound: a command, a function. Beside it no other call of
    the run is made, so that a budget is passed by one such call at most."""
    ledger = visit.ctx.ledger
    limited: PipelineBudget | None = ledger.budget
    if limited is None or not limited.limits().keys() & {"tokens", "money"}:
        return nullcontext()
    return ledger.alone()


async def check_budgets(visit: StageVisit) -> None:
    """Before a stage starts: ask a person at a threshold. Raises BudgetError if the run stops."""
    ledger = visit.ctx.ledger
    budget: PipelineBudget | None = ledger.budget
    if budget is None:
        return
    meter = BudgetMeter(budget, ledger, RUN, f" before stage {visit.stage.id!r}")
    # The calls of a stage that was started by an older version have numbers instead of keys.
    numbered = visit.ctx.recorded(0) == _CHECKED
    if numbered:
        over = await visit.ctx.step(_CHECKED, _no_effect, effect="read")
        for number, each in enumerate(over):
            await _ask(visit, meter, _old_state(each), number, keyed=False)
        return
    asked = 0
    passed = visit.ctx.recorded(_CHECKED) is not None
    while True:
        known = visit.ctx.recorded(f"{RUN_QUESTION}{asked}") is not None
        reached = meter.reached(Amounts())
        if not known and (passed or not (reached or ledger.refused(RUN))):
            break
        if known or not ledger.is_asked(RUN):
            await _ask(visit, meter, reached, asked, keyed=True)
            asked += 1
        else:
            await ledger.wait()
    # Recorded, so that a stage that is entered again is not checked again in the middle of its work.
    await visit.ctx.step(_CHECKED, _no_effect, effect="read", key=_CHECKED)


async def _no_effect() -> None:
    pass


def _old_state(each: Mapping[str, Any]) -> list[BudgetState]:
    unit = {"usd": "money", "time": "micros"}.get(each["name"], "tokens")
    factor = {"money": NANOS, "micros": MICROS}.get(unit, 1)
    return [BudgetState(unit=unit, used=round(each["used"] * factor), limit=round(each["allowed"] * factor))]


async def _ask(
    visit: StageVisit, meter: BudgetMeter, reached: list[BudgetState], number: int, *, keyed: bool
) -> None:
    """Raises BudgetError unless more was granted."""
    ledger, budget, key = visit.ctx.ledger, meter.budget, f"{RUN_QUESTION}{number}"
    known = visit.ctx.recorded(key) if keyed else None
    if budget.at_limit == "fail" and known is None:
        raise BudgetError(budget.limit_error("", reached), halts=True)
    if known is None and ledger.refused(RUN):
        raise BudgetError(budget.stop_error("", reached), halts=True)
    reply = await visit.ctx.ask(
        # The text is compared with the recorded one: a changed text would stop runs that wait here.
        known or budget.question(meter.who, reached),
        options=[GO_ON, STOP],
        context=_facts(reached),
        key=key if keyed else None,
    )
    if reply.decision == GO_ON:
        await ledger.note_answer(key, RUN, budget.grant(None, reached))
        return
    await ledger.note_answer(key, RUN, Amounts(), "a person stopped it")
    raise BudgetError(budget.stop_error("", reached), halts=True)


def _facts(reached: Sequence[BudgetState]) -> dict[str, Any]:
    if not reached:
        return {}
    first = reached[0]
    factor = {"money": NANOS, "micros": MICROS}.get(first.unit, 1)
    name = {"money": "usd", "micros": "time"}.get(first.unit, "tokens")
    return {"budget": name, "used": first.used / factor, "allowed": first.limit / factor}
