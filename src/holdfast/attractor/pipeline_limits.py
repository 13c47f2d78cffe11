"""Limits that stop a pipeline: repeated identical failures, and budgets.

The counts are in the context and in the run's totals, so that they survive a resume.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.frontends.dot.document import Attributes
from holdfast.frontends.dot.values import as_text

SAME_FAILURES: Final = 3
_SAME_KEY: Final = "internal.same_failures."
_LIMIT_KEY: Final = "internal.budget."
GO_ON, STOP = "go on", "stop"
# Parts that differ between equal failures: numbers, hexadecimal ids.
_VARIES = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)


def signature(reason: str) -> str:
    """The same for failures that differ only in numbers, ids and spaces."""
    plain = " ".join(_VARIES.sub("#", reason.lower()).split())
    return sha256(plain.encode()).hexdigest()[:16]


def count_failure(visit: StageVisit, outcome: StageOutcome) -> str:
    """Count the stage's failure. Returns why the run stops, if it failed in this way too often."""
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
    mark = signature(outcome.failure_reason)
    count = int(known["count"]) + 1 if known.get("signature") == mark else 1
    visit.context.set(key, {"signature": mark, "count": count})
    most = _limit(visit.stage, visit.pipeline)
    if not most or count < most:
        return ""
    return f"stage {visit.stage.id!r} failed {count} times in the same way: {outcome.failure_reason}"


def _limit(stage: Attributes, pipeline: Attributes) -> int:
    """0 means no limit."""
    return stage.integer("max_same_failures", pipeline.integer("max_same_failures", SAME_FAILURES))


class PipelineBudget(NamedTuple):
    name: str
    allowed: float
    used: float
    unit: str

    def shown(self, amount: float) -> str:
        return f"${amount:,.2f}" if self.unit == "$" else f"{amount:,.0f} {self.unit}"


def budgets_of(visit: StageVisit) -> list[PipelineBudget]:
    """The budgets that the graph declares, with what is used so far."""
    pipeline, totals = visit.pipeline, visit.ctx.totals
    time = pipeline.microseconds("budget_time")
    declared: list[tuple[str, float | None, float, str]] = [
        ("tokens", _number(pipeline, "budget_tokens"), totals.get("tokens", 0), "tokens"),
        ("usd", _number(pipeline, "budget_usd"), totals.get("cost", 0), "$"),
        ("time", None if time is None else time / 1e6, totals.get("duration", 0) / 1e6, "seconds of work"),
    ]
    return [PipelineBudget(name, most, used, unit) for name, most, used, unit in declared if most is not None]


def _number(pipeline: Attributes, key: str) -> float | None:
    value = pipeline.attrs.get(key)
    try:
        return None if value is None else float(as_text(value))
    except ValueError:
        return None


async def check_budgets(visit: StageVisit) -> str:
    """Before a stage starts: ask a person at a threshold. Returns why the run stops, if it does."""
    declared = ("budget_tokens", "budget_usd", "budget_time")
    if not any(key in visit.pipeline.attrs for key in declared):
        return ""
    ask_at = _number(visit.pipeline, "budget_ask_at")
    # Recorded, so that a stage that is entered again sees the same numbers and asks the same question.
    over = await visit.ctx.step("budget", _over, visit, ask_at, effect="read")
    for each in over:
        budget = PipelineBudget(each["name"], each["allowed"], each["used"], each["unit"])
        if ask_at is None:
            return f"the budget of {budget.shown(budget.allowed)} is used up: {budget.shown(budget.used)}"
        if not await _granted(visit, budget, each["step"]):
            return f"the budget was not raised at {budget.shown(budget.used)}"
    return ""


def _over(visit: StageVisit, ask_at: float | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for budget in budgets_of(visit):
        raised: Any = visit.context.get(_LIMIT_KEY + budget.name)
        allowed = float(raised) if isinstance(raised, (int, float)) else budget.allowed
        # The threshold applies to each allowance: a grant adds the same amount again.
        start = allowed - (1 - (ask_at if ask_at is not None else 1.0)) * budget.allowed
        if budget.used >= start:
            found.append(
                {"name": budget.name, "allowed": allowed, "used": budget.used, "unit": budget.unit,
                 "step": budget.allowed}
            )  # fmt: skip
    return found


async def _granted(visit: StageVisit, budget: PipelineBudget, more: float) -> bool:
    reply = await visit.ctx.ask(
        # The text is compared with the recorded one: a changed text would stop runs that wait here.
        f"{budget.shown(budget.used)} of {budget.shown(budget.allowed)} are used up before stage "
        f"{visit.stage.id!r}. Go on with {budget.shown(more)} more?",
        options=[GO_ON, STOP],
        context={"budget": budget.name, "used": budget.used, "allowed": budget.allowed},
    )
    if reply.decision != GO_ON:
        return False
    visit.context.set(_LIMIT_KEY + budget.name, budget.allowed + more)
    return True
