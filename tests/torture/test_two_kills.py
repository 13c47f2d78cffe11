"""The explorer kills the process that recovers, too; and where there is too much to try, it chooses well."""

from __future__ import annotations

import pytest

from holdfast import InputError
from holdfast.testing import torture
from holdfast.torture.boundaries import Point
from holdfast.torture.explorer import spread
from tests.torture import flows


@pytest.mark.covers("TOOL-TORTURE-01")
def test_explorer_finds_what_only_a_second_crash_shows_when_it_kills_twice() -> None:
    torture(flows.impatient, points=["after_call"]).assert_safe()
    report = torture(flows.impatient, points=["after_call"], kills=2)
    smallest = report.smallest
    assert smallest is not None
    assert (str(smallest.point), str(smallest.again)) == ("after_call:1", "after_call:1")
    assert "and then after_call:1" in report.story()
    assert [verdict["again"] and verdict["again"]["id"] for verdict in report.as_json()["verdicts"]] == [
        None,
        "after_call:1",
    ]


@pytest.mark.covers("TOOL-TORTURE-01", "TOOL-TORTURE-05")
def test_a_safe_flow_is_safe_when_it_is_killed_twice() -> None:
    report = torture(flows.asking, kills=2, max=12)
    report.assert_safe()
    pairs = [verdict for verdict in report.verdicts if verdict.again is not None]
    assert len(pairs) == 12
    assert all(verdict.reached for verdict in pairs)
    assert "and 12 times again during recovery" in report.story()
    with pytest.raises(InputError, match="neither 1 nor 2"):
        torture(flows.asking, kills=3)


def _retried(times: int) -> list[Point]:
    """As a node leaves them that is tried again so often, between two that are not."""
    cycle = [
        ("before_call", "work"),
        ("after_call", "work"),
        ("after_settle", "work"),
        ("during_backoff", "work"),
    ]
    names = [("after_claim", ""), *cycle * times, ("before_call", "send"), ("after_call", "send")]
    return [Point(i, name, i, where) for i, (name, where) in enumerate(names)]


def _chosen(points: list[Point], most: int) -> list[Point]:
    return spread(points, most, lambda point: point.name, lambda point: point.where)


def test_every_kind_and_place_is_tried_when_an_attempt_is_repeated_hundreds_of_times() -> None:
    points = _retried(400)
    chosen = _chosen(points, 14)
    assert {(p.name, p.where) for p in chosen} == {(p.name, p.where) for p in points}
    assert chosen == sorted(chosen, key=lambda point: point.index)
    assert len(chosen) == 14
    backoffs = [p.index for p in chosen if p.name == "during_backoff"]
    assert (backoffs[0], backoffs[-1]) == (4, 1600), "from the first to the last"


@pytest.mark.parametrize("most", [1, 3, 7, 100, 1603, 5000])
def test_as_many_are_tried_as_there_are_or_as_are_wanted(most: int) -> None:
    points = _retried(400)
    assert len({p.index for p in _chosen(points, most)}) == min(most, len(points))
