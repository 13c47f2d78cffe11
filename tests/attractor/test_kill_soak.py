"""Every pipeline that is to be killed, at every point that its process comes by, and at any moment."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attractor.kill import CRASHED, Place, finished, in_peace, place, until
from tests.attractor.victims import BACKOFF, BRANCHES, FLEET, LINE, MANAGER, RESTART, STAGES

__all__ = ["place"]
pytestmark = [pytest.mark.soak, pytest.mark.timeout(900), pytest.mark.covers("ATTRACTOR-PROOF-07")]

ALL = {"line": LINE, "branches": BRANCHES, "backoff": BACKOFF, "anew": RESTART, "manager": MANAGER}
GO = ("b.go", "b2.go", "work.go", "late.go")
POINTS = ("after_intent", "after_substep", "after_handler", "inside_settle", "after_settle", "during_backoff")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("point", POINTS)
def test_wherever_a_process_dies_the_end_is_the_same(
    place: Callable[[str], Place], tmp_path: Path, name: str, point: str
) -> None:
    calm = in_peace(tmp_path / "peace", ALL[name], *GO)
    for nth in range(1, 60):
        here = place(ALL[name])
        for file in GO:
            here.touch(file)
        if here.start(f"{point}:{nth}").end() != CRASHED:
            return
        assert finished(here) == calm, (point, nth)
    pytest.fail("it never ends")


@pytest.mark.parametrize("seed", range(30))
def test_killed_again_and_again_at_any_moment(
    place: Callable[[str], Place], tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    name = dice.choice(list(ALL))
    calm = in_peace(tmp_path / "peace", ALL[name], *GO)
    here = place(ALL[name])
    for file in GO:
        here.touch(file)
    called = here.start()
    for _ in range(dice.randint(1, 6)):
        called.process.join(dice.uniform(0.02, 0.6))
        called.process.kill()
        called.process.join()
        time.sleep(0.05)
        if not here.has(".holdfast/holdfast.db") or here.call("show", here.run_id, "--json").end() != 0:
            called = here.start()
        else:
            called = here.resume()
    called.end()
    ended = finished(here)
    assert ended == calm, name


@pytest.mark.covers("ATTRACTOR-PROOF-08")
@pytest.mark.parametrize("seed", range(5))
def test_a_fleet_whose_workers_are_killed_runs_each_stage_once(
    place: Callable[[str], Place], seed: int
) -> None:
    dice = random.Random(seed)
    here = place(FLEET)
    for _ in range(10):
        assert here.call("run", "x.dot", "--simulate", "--detach").end() == 0, here.calls[-1].told
    workers = [here.call("worker") for _ in range(2)]
    for _ in range(8):
        time.sleep(dice.uniform(0.3, 1.0))
        fallen = dice.randrange(2)
        workers[fallen].process.kill()
        workers[fallen].process.join()
        workers[fallen] = here.call("worker")
    until(lambda: here.statuses() == {"completed"}, "all runs have ended")
    counts = Counter(here.trace)
    assert (len(counts), set(counts.values())) == (10 * len(STAGES), {1})
