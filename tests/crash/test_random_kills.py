"""kill -9 at moments that nobody chose."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.kill import FLOWS, kill_until_done


@pytest.mark.covers("CORE-PROOF-01", "CORE-PROOF-02", "CORE-PROOF-03", "D-13", "RS-MORE-2", "FLEET-PG-15")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("flow", FLOWS)
def test_run_ends_as_in_peace_when_its_process_is_killed_at_random_moments(
    flow: str, store: str, tmp_path: Path
) -> None:
    dice = random.Random(flow)
    kills = 0
    for i in range(10):
        # On a busy machine a run may be over before the kill comes: then another one is tried.
        (tmp_path / str(i)).mkdir()
        kills += kill_until_done(tmp_path / str(i), dice, kills=3, flow=flow, store=store).kills
        if kills >= 2:
            return
    pytest.fail(f"only {kills} kills hit")
