"""Killed at every point of a decision, a sweep, a delivery and a resume: everything happens once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.holds.races.actions import DEEDS
from tests.services import prefork

ROOT = Path(__file__).parents[3]
# How many points there are at the least: else the deed was not done.
POINTS = {"resolve": 5, "expire": 5, "escalate": 5, "deliver": 9, "remind": 14, "go on": 12, "withdraw": 5,
          "stop": 6}  # fmt: skip


@pytest.mark.covers("RC-4", "RC-10", "RC-11", "RM-1", "CP-17", "NO-8", "HOLD-PROOF-01")
@pytest.mark.parametrize("deed", DEEDS)
def test_everything_happens_once_when_the_process_dies_at_any_point(deed: str, tmp_path: Path) -> None:
    program = "tests.holds.races.killed_process"
    done = prefork.run(program, [deed, tmp_path], cwd=ROOT, env=os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    peace, *deaths = [json.loads(line) for line in done.stdout.splitlines()]
    assert (peace["died"], peace["trouble"]) == (0, None), peace["trouble"]
    assert len(deaths) >= POINTS[deed]
    for death in deaths:
        assert death["died"] == 9, death
        assert death["trouble"] is None, f"{death['point']}: {death['trouble']['trouble']}"
