"""Series over time, computed from the rows of holds and runs: decisions, backlog, breaches, ended runs.

They are for looking at the last hours and days. Long series belong to a system that collects them
(`--metrics`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from holdfast.errors import InputError, NotFoundError
from holdfast.holds.timing.escalate import SYSTEM as EXPIRY
from holdfast.store.protocols import Store
from holdfast.types.clock import MICROS
from holdfast.types.fleet import EndedRun, HoldTimes
from holdfast.types.own_threads import in_thread

MOST_POINTS: Final = 500
MOST_ROWS: Final = 20_000
"""Of runs, and of holds of each status: what one series costs at most."""
_AGES: Final = (0, 3600 * MICROS, 86_400 * MICROS, 7 * 86_400 * MICROS)
_AGE_COLUMNS: Final = ("under_1h", "under_1d", "under_7d", "older")
_ENDS: Final = ("completed", "failed", "cancelled")

Values = list[list[float | None]]


class SeriesWindow(msgspec.Struct, frozen=True):
    """Points at `start`, `start + step` and so on, before `end`. In microseconds."""

    start: int
    end: int
    step: int

    @property
    def points(self) -> int:
        return -(-(self.end - self.start) // self.step)

    def place(self, at: int) -> int | None:
        return (at - self.start) // self.step if self.start <= at < self.end else None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """`values`: for each point one number for each column. `since`: older rows were not read."""

    columns: tuple[str, ...]
    unit: str
    values: Values
    since: int | None


class _HoldSeries(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    unit: str
    values: Callable[[Sequence[HoldTimes], SeriesWindow, int], Values]


def window_of(start: int, end: int, step: int) -> SeriesWindow:
    """Raises InputError if it has no point or too many."""
    if end <= start or step <= 0:
        raise InputError("`to` must be after `from`, and `step` longer than nothing.")
    found = SeriesWindow(start, end, step)
    if found.points > MOST_POINTS:
        raise InputError(
            f"that is {found.points} points, and the most is {MOST_POINTS}.",
            hint="Make `step` longer, or the time between `from` and `to` shorter.",
        )
    return found


async def series_of(store: Store, name: str, tenant: str, window: SeriesWindow) -> Series:
    """Raises NotFoundError for another name than those of NAMES."""
    if name not in NAMES:
        raise NotFoundError(f"there is no metric {name!r}.", hint=f"One of: {', '.join(NAMES)}.")
    if name == "runs":
        ends = await store.ended_runs(tenant, since=window.start, limit=MOST_ROWS)
        return Series(columns=_ENDS, unit="runs", values=_run_ends(ends.rows, window), since=ends.since)
    made = _HOLD_SERIES[name]
    found = await store.hold_times(tenant, since=window.start, limit=MOST_ROWS)
    # In a thread: tens of thousands of rows take a tenth of a second.
    values = await in_thread(made.values, found.rows, window, store.now())
    return Series(columns=made.columns, unit=made.unit, values=values, since=found.since)


def _run_ends(rows: Iterable[EndedRun], window: SeriesWindow) -> Values:
    found: Values = [[0] * len(_ENDS) for _ in range(window.points)]
    for row in rows:
        place = window.place(row.at)
        if place is not None:
            found[place][_ENDS.index(row.status)] = (found[place][_ENDS.index(row.status)] or 0) + 1
    return found


def _decision_times(rows: Sequence[HoldTimes], window: SeriesWindow, _now: int) -> Values:
    """Of the decisions that people made in each step."""
    lengths: list[list[int]] = [[] for _ in range(window.points)]
    for row in rows:
        place = None if row.ended_at is None else window.place(row.ended_at)
        if place is not None and row.ended_at and row.status == "resolved" and not _is_automatic(row):
            lengths[place].append(row.ended_at - row.created_at)
    return [_percentiles(sorted(each)) for each in lengths]


def _is_automatic(row: HoldTimes) -> bool:
    return (row.ended_by or "").startswith(("policy:", "system:"))


def _percentiles(ordered: list[int]) -> list[float | None]:
    """By nearest rank, so that each is a measured value."""
    if not ordered:
        return [None, None, 0]
    last = len(ordered) - 1
    half, most = (ordered[min(last, int(share * len(ordered)))] / MICROS for share in (0.5, 0.95))
    return [half, most, len(ordered)]


def _backlog(rows: Sequence[HoldTimes], window: SeriesWindow, now: int) -> Values:
    """Open holds at the end of each step, by age then; in the step that has only begun, now. Each hold is
    counted in and out of each age."""
    moments = [min(window.start + (place + 1) * window.step, window.end) for place in range(window.points)]
    # Nothing is known of what comes after now.
    known = 0 if now < window.start else bisect_left(moments, now) + 1
    if 0 < known <= window.points:
        moments[known - 1] = now
    changes = [[0] * len(_AGES) for _ in range(window.points + 1)]
    for row in rows:
        for column, begin in enumerate(_AGES):
            older = row.created_at + _AGES[column + 1] if column + 1 < len(_AGES) else None
            ends = [at for at in (older, row.ended_at) if at is not None]
            first = bisect_left(moments, row.created_at + begin)
            last = bisect_left(moments, min(ends)) if ends else window.points
            if first < last:
                changes[first][column] += 1
                changes[last][column] -= 1
    return _summed(changes[: window.points], known)


def _summed(changes: list[list[int]], known: int) -> Values:
    found: Values = []
    total = [0] * len(_AGES)
    for place, change in enumerate(changes):
        total = [before + more for before, more in zip(total, change, strict=True)]
        found.append([*total] if place < known else [None] * len(_AGES))
    return found


def _breaches(rows: Sequence[HoldTimes], window: SeriesWindow, now: int) -> Values:
    """Deadlines that passed before the decision, by the time of the deadline."""
    found: Values = [[0] for _ in range(window.points)]
    for row in rows:
        deadline = _missed_deadline(row, now)
        place = None if deadline is None else window.place(deadline)
        if place is not None:
            found[place] = [(found[place][0] or 0) + 1]
    return found


def _missed_deadline(row: HoldTimes, now: int) -> int | None:
    if row.escalations > 0 and row.original_timeout is not None:
        return row.created_at + row.original_timeout
    if row.expires_at is None:
        return None
    missed = row.ended_by == EXPIRY or (now if row.ended_at is None else row.ended_at) > row.expires_at
    return row.expires_at if missed else None


_HOLD_SERIES: Final = {
    "time_to_decision": _HoldSeries(("p50", "p95", "count"), "seconds", _decision_times),
    "backlog": _HoldSeries(_AGE_COLUMNS, "holds", _backlog),
    "breaches": _HoldSeries(("breaches",), "holds", _breaches),
}
NAMES: Final = ("time_to_decision", "backlog", "breaches", "runs")
