"""Metrics of holds: open holds, response times, escalations, conflicts (MX-1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from holdfast.holds.actions.conflicts import is_late, resolution_of
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.queries.audit import records_of
from holdfast.holds.queries.list import iterate_holds
from holdfast.holds.timing.escalate import SYSTEM as EXPIRY
from holdfast.store.protocols import Store
from holdfast.types.audit import AuditRow
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldFilter, HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import OutboxState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, Assignee

MOST: Final = 100_000
_PAGE: Final = 1000
FEW: Final = 1000
_DECIDING: Final = ("resolve", "place", "bulk")
_AGES: Final = (("under 1h", 3600), ("under 1d", 86_400), ("under 7d", 7 * 86_400))
_OLDEST: Final = "7d and more"

T = TypeVar("T")
Lasting = Callable[[int, int], int]
"""The time between two instants in microseconds; with a calendar: in open time."""


class Spread(msgspec.Struct, frozen=True):
    """Percentiles in seconds, and the number of values."""

    count: int
    p50: float | None = None
    p95: float | None = None


class HoldMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Rates are between 0 and 1; None without data. Breakpoints do not count."""

    holds: int
    pending_by_queue: dict[str, int]
    pending_by_priority: dict[str, int]
    pending_by_age: dict[str, int]
    time_to_view: Spread
    time_to_claim: Spread
    time_to_decision: Spread
    resume_lag: Spread
    breach_rate: float | None
    reminder_rate: float | None
    escalation_rate: float | None
    expiry_rate: float | None
    auto_rate: float | None
    late_rate: float | None
    conflict_rate: float | None
    notifier_failures: int


async def metrics(
    ctx: HoldContext, actor: Actor, *, where: HoldFilter | None = None, lasting: Lasting | None = None
) -> HoldMetrics:
    """Of the holds that the actor may see, restricted by `where` (for example by creation time).

    `lasting`: a calendar's `between`, for times in business hours."""
    now = ctx.now()
    rows = [row async for row in iterate_holds(ctx, actor, where or HoldFilter(), most=MOST)]
    records = await _audit_rows(ctx.store, actor.tenant, {row.id for row in rows})
    span = lasting or _plainly
    return HoldMetrics(
        holds=len(rows),
        **_pending([row for row in rows if row.status is HoldStatus.pending], now),
        time_to_view=_spread(_first(rows, records, "viewed", span)),
        time_to_claim=_spread(_first(rows, records, "claimed", span)),
        time_to_decision=_spread(
            span(row.created_at, row.resolved_at)
            for row in rows
            if row.resolved_at and not _is_automatic(row)
        ),
        resume_lag=_spread(
            row.resumed_at - row.resolved_at for row in rows if row.resumed_at and row.resolved_at
        ),
        **_rates(rows, records, now),
        notifier_failures=await _failures(ctx.store, actor.tenant, {row.id for row in rows}, records),
    )


async def _audit_rows(store: Store, tenant: str, holds: set[HoldId]) -> list[AuditRow]:
    """The audit records of these holds. A few holds are queried one by one, because a year's audit is
    long."""
    if len(holds) > FEW:
        return [each for each in await records_of(store, tenant) if each.hold in holds]
    found = [each for hold in holds for each in await records_of(store, tenant, hold=hold)]
    return sorted(found, key=lambda each: each.seq)


def _pending(rows: Sequence[HoldRow], now: int) -> dict[str, Any]:
    return {
        "pending_by_queue": dict(Counter(_queue(row) for row in rows)),
        "pending_by_priority": dict(Counter(row.priority for row in rows)),
        "pending_by_age": dict(Counter(_age(now - row.created_at) for row in rows)),
    }


def _queue(row: HoldRow) -> str:
    return str(Assignee(row.assignee_type, row.assignee_value))


def _age(micros: int) -> str:
    return next((name for name, seconds in _AGES if micros < seconds * MICROS), _OLDEST)


def _first(rows: Sequence[HoldRow], records: Sequence[AuditRow], action: str, span: Lasting) -> list[int]:
    """The time from the opening to the first such action."""
    opened = {str(row.id): row.created_at for row in rows}
    first: dict[str, int] = {}
    for each in records:
        if each.action == action and each.hold is not None:
            first.setdefault(each.hold, each.at)
    return [span(opened[hold], at) for hold, at in first.items()]


def _rates(rows: Sequence[HoldRow], records: Sequence[AuditRow], now: int) -> dict[str, Any]:
    closed = [row for row in rows if row.status is not HoldStatus.pending]
    resolved = [row for row in closed if row.status is HoldStatus.resolved]
    reminded = {each.hold for each in records if each.action == "reminded"}
    timed = [row for row in rows if row.expires_at is not None]
    return {
        "breach_rate": _share(timed, lambda row: _breached(row, now)),
        "reminder_rate": _share(rows, lambda row: row.id in reminded),
        "escalation_rate": _share(rows, lambda row: row.escalation_count > 0),
        "expiry_rate": _share(closed, lambda row: row.status is HoldStatus.expired),
        "auto_rate": _share(resolved, _is_automatic),
        "late_rate": _share(resolved, lambda row: bool(resolution_of(row).get("late"))),
        "conflict_rate": _conflicts(records),
    }


def _is_automatic(row: HoldRow) -> bool:
    return (row.resolved_by or "").startswith(("policy:", "system:"))


def _breached(row: HoldRow, now: int) -> bool:
    """Whether a deadline passed before the decision."""
    if row.status is HoldStatus.pending and is_late(row, now):
        return True
    resolution = resolution_of(row)
    missed = bool(resolution.get("late") or resolution.get("auto_expired"))
    return missed or row.escalation_count > 0 or row.closed_by == EXPIRY


def _conflicts(records: Sequence[AuditRow]) -> float | None:
    """The share of decisions that came too late because another was first."""
    tried = [
        each for each in records if each.action in ("resolved", "voted") or _refused_status(each) is not None
    ]
    return _share(tried, lambda each: _refused_status(each) in (409, 412))


def _refused_status(each: AuditRow) -> int | None:
    """The status of a refused decision."""
    if each.action != "refused":
        return None
    data: dict[str, Any] = msgspec.json.decode(each.data)
    return data.get("status") if data.get("action") in _DECIDING else None


async def _failures(store: Store, tenant: str, holds: set[HoldId], records: Sequence[AuditRow]) -> int:
    """Failed deliveries, and messages that were given up."""
    dead = await store.list_outbox(tenant=tenant, state=OutboxState.dead, limit=_PAGE)
    return sum(each.hold in holds for each in dead) + sum(
        each.action == "notification_failed" for each in records
    )


def _share(items: Sequence[T], counts: Callable[[T], bool]) -> float | None:
    return sum(counts(item) for item in items) / len(items) if items else None


def _spread(lengths: Iterable[int]) -> Spread:
    ordered = sorted(lengths)
    if not ordered:
        return Spread(0)
    return Spread(len(ordered), _at(ordered, 0.5) / MICROS, _at(ordered, 0.95) / MICROS)


def _at(ordered: Sequence[int], share: float) -> int:
    """By nearest rank, so that the result is a measured value."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _plainly(start: int, end: int) -> int:
    return end - start
