"""The budget of a manager's child: what is left of its parent's, and of its own if that is less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from holdfast.agents.budget import MICROS, UNITS
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.pipeline_limits import PipelineBudget, budget_of
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.values import Value
from holdfast.model.budget_ledger import NANOS

_ASK: Final = "budget_ask_at"
_SHARES: Final = 20
"""What is left is rounded down to such a share of the limit: each amount makes a version of the child."""


def left_for_child(visit: StageVisit) -> dict[str, int]:
    """By unit, of each limit of the run; empty without a budget."""
    ledger = visit.ctx.ledger
    budget: PipelineBudget | None = ledger.budget
    if budget is None:
        return {}
    used, granted = ledger.used(""), ledger.granted("")
    found: dict[str, int] = {}
    for unit, limit in budget.limits().items():
        name = UNITS[unit]
        left = max(0, limit + getattr(granted, name) - getattr(used, name))
        share = limit // _SHARES
        found[unit] = left // share * share if 0 < share <= left else left
    return found


def with_budget(child: Pipeline, left: Mapping[str, int], parent: Pipeline | None) -> Pipeline:
    if not left or parent is None:
        return child
    budget = budget_of(child)
    own = {} if budget is None else budget.limits()
    least = {unit: min(amount, own.get(unit, amount)) for unit, amount in left.items()}
    written: dict[str, Value] = {
        "tokens": least.get("tokens", 0),
        "money": f"{least.get('money', 0) / NANOS:.9f}",
        "micros": f"{least.get('micros', 0) * 1000 // MICROS}ms",
    }
    keys = {"tokens": "budget_tokens", "money": "budget_usd", "micros": "budget_time"}
    attrs = {keys[unit]: written[unit] for unit in least}
    asks = {_ASK: parent.attrs[_ASK]} if budget is None and _ASK in parent.attrs else {}
    return replace(child, attrs={**child.attrs, **asks, **attrs})
