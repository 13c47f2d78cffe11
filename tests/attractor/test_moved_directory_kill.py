"""A process is killed anywhere, and its directory continues on another store, again and again: each effect
happens once, and only what nobody can know is asked."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attractor.kill import CRASHED, End, Place, in_peace, place
from tests.attractor.victims import BACKOFF, BRANCHES, LINE, MANAGER, RESTART
from tests.services import postgres

__all__ = ["place"]
pytestmark = [pytest.mark.timeout(900), pytest.mark.covers("CP2-D3")]

ALL = {"line": LINE, "branches": BRANCHES, "manager": MANAGER, "backoff": BACKOFF, "anew": RESTART}
GO = ("b.go", "b2.go", "work.go", "late.go")
POINTS = ("after_intent", "after_substep", "after_handler", "inside_settle", "after_settle")


def moved(here: Place, number: int, crash: str = "", store: str = "") -> int:
    """Continue the directory on a store that knows nothing of it."""
    address = store or f"sqlite:other-{number}.db"
    if not (here.folder / "D/checkpoint.json").exists():
        return here.start(crash, "--json").end()
    return here.call("run", "--resume", "D", "--simulate", "--json", "--store", address, crash=crash).end()


def answered(here: Place, number: int, store: str = "") -> int:
    """A person looks at what happened, and says it."""
    address = store or f"sqlite:other-{number}.db"
    for _ in range(20):
        reply = json.loads([each for each in here.calls[-1].told.splitlines() if each.startswith("{")][-1])
        for hold in reply.get("holds", []):
            stage = hold["context"]["stage"]
            known = [each for each in here.trace if each.split(".")[0] == stage]
            assert here.call(
                "answer", hold["id"], "it succeeded" if known else "run again", "--store", address
            ).end() == 0, here.calls[-1].told  # fmt: skip
        code = moved(here, number, store=store)
        if code != 3:
            return code
    pytest.fail(f"it asks without end: {here.calls[-1].told}")


def finished_elsewhere(here: Place, number: int, store: str = "") -> End:
    code = moved(here, number, store=store)
    if code == 3:
        code = answered(here, number, store)
    assert code in (0, 1), here.calls[-1].told
    reply = json.loads([each for each in here.calls[-1].told.splitlines() if each.startswith("{")][-1])
    return End(reply["status"], reply["completed_nodes"], Counter(here.trace))


def killed_and_moved(make: Callable[[str], Place], name: str, seed: int, calm: End, store: str = "") -> None:
    dice = random.Random(seed)
    here = make(ALL[name])
    for file in GO:
        here.touch(file)
    here.start(f"{dice.choice(POINTS)}:{dice.randint(1, 12)}").end()
    moves = dice.randint(1, 3)
    for number in range(moves):
        code = moved(here, number, f"{dice.choice(POINTS)}:{dice.randint(1, 9)}")
        assert code in (0, 1, 3, CRASHED), here.calls[-1].told
        if code == 3:
            answered(here, number)
    ended = finished_elsewhere(here, moves, store)
    # A run that continues a walk that began anew does not list the walk before.
    completed = calm.completed[-len(ended.completed) :] if name == "anew" else calm.completed
    assert ended == calm._replace(completed=completed), (name, seed)


@pytest.mark.parametrize("name", ALL)
def test_directory_of_a_killed_process_continues_on_other_stores(
    place: Callable[[str], Place], tmp_path: Path, name: str
) -> None:
    calm = in_peace(tmp_path / "peace", ALL[name], *GO)
    for seed in range(3):
        killed_and_moved(place, name, seed, calm)


def test_directory_of_a_killed_process_continues_on_postgresql(
    place: Callable[[str], Place], tmp_path: Path
) -> None:
    calm = in_peace(tmp_path / "peace", BRANCHES, *GO)
    killed_and_moved(place, "branches", 7, calm, postgres.database())


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_directory_continues_on_other_stores_wherever_its_process_dies(
    place: Callable[[str], Place], tmp_path: Path, seed: int
) -> None:
    name = sorted(ALL)[seed % len(ALL)]
    calm = in_peace(tmp_path / "peace", ALL[name], *GO)
    killed_and_moved(place, name, 100 + seed, calm)
