"""Statistics of built-in questions, from their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.holds.interactions import question
from holdfast.types.decision_words import approves
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """`approval_rate`: of the approvals that people decided; None if there are none. `response_ms`: the mean
    time to an answer. `timed_out`: not answered in time."""

    total: dict[str, int]
    pending: dict[str, int]
    decided: dict[str, int]
    cancelled: int
    timed_out: int
    approval_rate: float | None
    response_ms: float | None
    escalations_by_reason: dict[str, int]


def statistics_of(rows: Iterable[HoldRow]) -> Statistics:
    """Only holds of the six built-in kinds count."""
    asked = [row for row in rows if row.terms.interaction in question.KINDS]
    decided = [row for row in asked if row.status is HoldStatus.resolved and not _timed_out(row)]
    decisions = [_effective(row) for row in decided if row.terms.interaction == question.APPROVAL]
    times = [(row.resolved_at or row.created_at) - row.created_at for row in decided]
    return Statistics(
        total=_by_kind(asked),
        pending=_by_kind(row for row in asked if row.status is HoldStatus.pending),
        decided=_by_kind(decided),
        cancelled=sum(row.status is HoldStatus.cancelled for row in asked),
        timed_out=sum(_timed_out(row) for row in asked),
        approval_rate=sum(map(approves, decisions)) / len(decisions) if decisions else None,
        response_ms=sum(times) / len(times) / 1000 if times else None,
        escalations_by_reason=dict(
            Counter(
                str(_context(row).get("reason"))
                for row in asked
                if row.terms.interaction == question.ESCALATION
            )
        ),
    )


def _by_kind(rows: Iterable[HoldRow]) -> dict[str, int]:
    return dict(Counter(row.terms.interaction or "" for row in rows))


def _timed_out(row: HoldRow) -> bool:
    return row.status is HoldStatus.expired or bool(_resolution(row).get("auto_expired"))


def _effective(row: HoldRow) -> str:
    resolution = _resolution(row)
    return str(resolution.get("effective_decision") or resolution.get("decision"))


def _resolution(row: HoldRow) -> dict[str, Any]:
    return msgspec.json.decode(row.resolution) if row.resolution else {}


def _context(row: HoldRow) -> dict[str, Any]:
    return msgspec.json.decode(row.context)
