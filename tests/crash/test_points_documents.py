"""Crash points that a document passes, in a process that really dies there; on other databases some."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.crashpoints import EXIT_CODE, environment
from tests.crash.document_flow import NAME
from tests.crash.judge import Victim

PLACES = [
    ("after_claim", 1),
    ("after_intent", 1),
    ("after_handler", 1),
    ("after_handler", 3),
    ("inside_settle", 3),
    ("after_settle", 4),
    ("before_park", 1),
    ("after_park", 1),
    ("after_answer", 1),
    ("after_timer_fired", 1),
]


@pytest.mark.covers("PLATFORM-PROOF-01")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize(("point", "nth"), PLACES)
def test_document_ends_as_in_peace_when_its_process_dies_at_a_crash_point(
    store: str, point: str, nth: int, tmp_path: Path
) -> None:
    victim = Victim(tmp_path, NAME, store)
    assert victim.live(**environment(point, nth)) == EXIT_CODE, "the point was not reached"
    assert victim.live() == 0
    victim.judge()
