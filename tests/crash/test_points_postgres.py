"""Each named crash point, in a process that really dies there, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.crashpoints import CRASH_POINTS, EXIT_CODE, environment
from tests.crash import test_recorded_effects
from tests.crash.judge import Victim
from tests.crash.test_points_sqlite import PLACES

# One flow for each point with all tests, the others with the soak: a server takes its time.
FIRST = {point: (name, nth) for point, name, nth in reversed(PLACES)}

# Each worth a proof with all tests too.
KEPT = {("after_substep", "branches"), ("after_substep", "paced")}


def _place(point: str, name: str, nth: int) -> object:
    first = FIRST[point] == (name, nth) or (point, name) in KEPT
    return pytest.param(point, name, nth, marks=() if first else pytest.mark.soak)


@pytest.mark.covers(
    "USERS-STEP-KILL", "USERS-GATHER", "USERS-MAP-RATE", "CRASH-*-postgres", "FLEET-PG-15", "D-39", "D-13"
)
@pytest.mark.parametrize(("point", "name", "nth"), [_place(*place) for place in PLACES])
def test_run_ends_as_in_peace_when_its_process_dies_at_a_crash_point_on_postgres(
    point: str, name: str, nth: int, tmp_path: Path
) -> None:
    victim = Victim(tmp_path, name, "postgres")
    assert victim.live(**environment(point, nth)) == EXIT_CODE, "the point was not reached"
    assert victim.live() == 0
    victim.judge()


@pytest.mark.covers("FLEET-PG-15", "CRASH-inside_fork-postgres", "CRASH-inside_prune-postgres", "D-39")
@pytest.mark.parametrize(("deed", "point", "nth"), test_recorded_effects.PLACES)
def test_deed_is_done_wholly_or_not_at_all_when_the_process_dies_in_it_on_postgres(
    deed: str, point: str, nth: int, tmp_path: Path
) -> None:
    case = test_recorded_effects.InProcess(deed, tmp_path, "postgres")
    assert case.die(point, nth), "the point was not reached"
    before = len(case.facts)
    assert case.go_on()
    test_recorded_effects.check(case, case.facts[before:])


@pytest.mark.covers("FLEET-PG-15")
def test_every_point_is_tried_with_all_tests() -> None:
    assert set(FIRST) | {point for _, point, _ in test_recorded_effects.PLACES} == set(CRASH_POINTS)
