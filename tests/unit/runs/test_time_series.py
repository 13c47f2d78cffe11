"""Series over time: what is counted in which step."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InputError, NotFoundError
from holdfast.runs.time_series import MOST_POINTS, Series, SeriesWindow, series_of, window_of
from holdfast.types.clock import MICROS
from holdfast.types.fleet import EndedRun, HoldTimes, RecentRows

HOUR = 3600 * MICROS
START = 1_000_000 * HOUR
FOUR_HOURS = SeriesWindow(START, START + 4 * HOUR, HOUR)


def hold(created: float, ended: float | None = None, **given: Any) -> HoldTimes:
    """In hours from the start of the window."""
    fields: dict[str, Any] = {
        "status": "pending" if ended is None else "resolved",
        "created_at": START + int(created * HOUR),
        "ended_at": None if ended is None else START + int(ended * HOUR),
        "ended_by": None if ended is None else "user:ada",
        "expires_at": None,
        "original_timeout": None,
        "escalations": 0,
    }
    return HoldTimes(**{**fields, **given})


class Rows:
    """What the series read of a store."""

    def __init__(self, *holds: HoldTimes, runs: tuple[EndedRun, ...] = (), now: float = 4) -> None:
        self._holds = holds
        self._runs = runs
        self._now = START + int(now * HOUR)

    def now(self) -> int:
        return self._now

    async def hold_times(self, _tenant: str, *, since: int, limit: int) -> RecentRows[HoldTimes]:
        return RecentRows(list(self._holds), START + limit)

    async def ended_runs(self, _tenant: str, *, since: int, limit: int) -> RecentRows[EndedRun]:
        return RecentRows(list(self._runs))


async def series(name: str, rows: Rows, window: SeriesWindow = FOUR_HOURS) -> Series:
    return await series_of(rows, name, "default", window)  # pyright: ignore[reportArgumentType]


@pytest.mark.anyio
@pytest.mark.covers("WB-45-series")
async def test_times_to_decision_are_those_of_people_in_their_step() -> None:
    slow = [hold(0, 1 + minutes / 60) for minutes in range(20)]
    rows = Rows(*slow, hold(3, 3.5), hold(3, 3.5, ended_by="policy:small"), hold(0, 9), hold(1))
    found = await series("time_to_decision", rows)
    assert found.columns == ("p50", "p95", "count")
    none, second, third, last = found.values
    assert none == third == [None, None, 0]
    assert second == pytest.approx([4200.0, 4740.0, 20])
    assert last == [1800.0, 1800.0, 1]
    assert found.since is not None


@pytest.mark.anyio
@pytest.mark.covers("WB-45-series")
async def test_backlog_is_what_was_open_at_the_end_of_each_step_by_age() -> None:
    rows = Rows(hold(-0.5), hold(-23.5, 2.5), hold(-200), hold(0.5, 0.9), hold(3.2), now=4)
    found = await series("backlog", rows)
    assert found.columns == ("under_1h", "under_1d", "under_7d", "older")
    assert found.values == [[0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1]]


@pytest.mark.anyio
@pytest.mark.covers("WB-45-series")
async def test_backlog_of_the_step_that_has_begun_has_the_ages_of_now() -> None:
    """Not those of its end, when each of them would be an hour older."""
    rows = Rows(hold(2.05), hold(2.1, 2.15), hold(1.1), now=2.2)
    found = await series("backlog", rows)
    assert found.values == [[0] * 4, [1, 0, 0, 0], [1, 1, 0, 0], [None] * 4]
    early = await series("backlog", Rows(hold(-2), now=-1))
    assert early.values == [[None] * 4] * 4


@pytest.mark.anyio
@pytest.mark.covers("WB-45-series")
async def test_backlog_of_the_future_is_unknown() -> None:
    found = await series("backlog", Rows(hold(0.5), now=1.5))
    assert found.values == [[1, 0, 0, 0], [0, 1, 0, 0], [None] * 4, [None] * 4]


@pytest.mark.anyio
@pytest.mark.covers("WB-45-series")
async def test_breaches_are_deadlines_that_passed_before_the_decision() -> None:
    def at(hours: float) -> int:
        return START + int(hours * HOUR)

    rows = Rows(
        hold(0, 3, expires_at=at(0.5)),
        hold(0, 0.4, expires_at=at(0.5)),
        hold(0, expires_at=at(1.5)),
        hold(0, expires_at=at(9)),
        hold(0, 2.5, expires_at=at(2.5), status="expired", ended_by="system:expiry"),
        hold(0, 3.5, expires_at=at(30), original_timeout=int(3.2 * HOUR), escalations=1),
        hold(0),
    )
    assert (await series("breaches", rows)).values == [[1], [1], [1], [1]]


@pytest.mark.anyio
@pytest.mark.covers("WB-45-series")
async def test_runs_are_counted_by_how_they_ended() -> None:
    ends = (EndedRun(START, "completed"), EndedRun(START + HOUR, "failed"), EndedRun(START + HOUR, "failed"),
            EndedRun(START + 4 * HOUR, "completed"), EndedRun(START - 1, "cancelled"))  # fmt: skip
    found = await series("runs", Rows(runs=ends))
    assert (found.columns, found.since) == (("completed", "failed", "cancelled"), None)
    assert found.values == [[1, 0, 0], [0, 2, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.anyio
async def test_an_unknown_metric_is_named_with_those_that_exist() -> None:
    with pytest.raises(NotFoundError, match="no metric 'nosuch'"):
        await series("nosuch", Rows())


def test_a_window_has_points_and_not_too_many() -> None:
    assert window_of(0, 5, 2).points == 3
    for start, end, step in ((5, 5, 1), (5, 4, 1), (0, 5, 0), (0, MOST_POINTS + 1, 1)):
        with pytest.raises(InputError):
            window_of(start, end, step)
