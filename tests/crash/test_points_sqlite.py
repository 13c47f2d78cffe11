"""Each named crash point, in a process that really dies there, on a SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.crashpoints import CRASH_POINTS, EXIT_CODE, environment
from tests.crash import test_recorded_effects
from tests.crash.judge import Victim

# (point, flow, the how-manieth pass). Where it matters a point is tried in several flows.
PLACES = [
    ("after_claim", "bare", 1),
    ("after_intent", "bare", 2),
    ("after_intent", "script", 2),
    ("after_handler", "bare", 2),
    ("after_handler", "keyed", 2),
    ("after_handler", "map", 3),
    ("after_substep", "script", 2),
    ("after_substep", "branches", 2),
    ("after_intent", "branches", 6),
    ("after_substep", "paced", 2),
    ("after_intent", "paced", 5),
    ("after_blob_put", "big", 2),
    ("inside_settle", "bare", 3),
    ("after_settle", "strict", 4),
    ("before_park", "sub", 1),
    ("after_park", "sub", 1),
    ("after_park", "script", 1),
    ("after_answer", "hold", 1),
    ("after_timer_fired", "timer", 1),
    ("after_timer_fired", "timer", 2),
    ("after_timer_fired", "branches", 2),
    ("after_lapse", "lapse", 1),
    ("after_lapse", "lapse", 2),
    ("after_publish", "emit", 2),
    ("during_backoff", "retry", 1),
    ("during_backoff", "steps", 2),
    ("inside_snapshot", "loop", 1),
    ("lease_lost_mid_handler", "bare", 2),
    ("lease_lost_before_commit", "bare", 3),
]


@pytest.mark.covers(
    "USERS-STEP-KILL",
    "USERS-GATHER",
    "USERS-MAP-NESTED",
    "USERS-MAP-RATE",
    "CRASH-*-sqlite",
    "D-39",
    "D-13",
    "CORE-PROOF-02",
    "CORE-PROOF-03",
)
@pytest.mark.parametrize(("point", "name", "nth"), PLACES)
def test_run_ends_as_in_peace_when_its_process_dies_at_a_crash_point(
    point: str, name: str, nth: int, tmp_path: Path
) -> None:
    victim = Victim(tmp_path, name)
    assert victim.live(**environment(point, nth)) == EXIT_CODE, "the point was not reached"
    assert victim.live() == 0
    victim.judge()


@pytest.mark.covers("D-39")
def test_no_point_is_without_a_process_that_died_there() -> None:
    tried = {point for point, _, _ in PLACES} | {point for _, point, _ in test_recorded_effects.PLACES}
    assert tried == set(CRASH_POINTS)


@pytest.mark.covers("RS-MORE-6")
def test_items_that_settled_are_not_done_again_when_a_map_dies_after_three_of_ten(tmp_path: Path) -> None:
    victim = Victim(tmp_path, "ten")
    assert victim.live(**environment("after_settle", 4)) == EXIT_CODE
    done = victim.world.count(victim.run)
    assert 0 < sum(done.values()) < 10
    assert victim.live() == 0
    victim.judge()
