"""A process that calls an effect dies at each boundary; the next call finds out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.crashpoints import EXIT_CODE, environment
from tests.crash.judge import ROOT
from tests.crash.stores import address_on
from tests.crash.world import World
from tests.deadlines import HANG
from tests.services import prefork

# (function, point, the how-manieth pass, effects when it dies, whether the next call has to ask).
PLACES = [
    ("sync", "after_claim", 1, 0, False),  # before the intent
    ("sync", "after_intent", 1, 0, True),
    ("sync", "after_handler", 1, 1, True),  # after the effect
    ("sync", "after_publish", 2, 1, False),  # after the commit
    ("async", "after_intent", 1, 0, True),
    ("async", "after_handler", 1, 1, True),
    ("async", "inside_settle", 2, 1, True),
    ("held", "after_park", 1, 0, False),
    ("held", "after_answer", 1, 0, False),
    ("held", "after_intent", 1, 0, True),
    ("held", "after_handler", 1, 1, True),
    ("probed", "after_intent", 1, 0, False),
    ("probed", "after_handler", 1, 1, False),
]


# With the soak only: the same boundaries as those of the plain function.
LONG = ("async",)


def _case(place: tuple[str, str, int, int, bool], long: tuple[str, ...]) -> object:
    marks = pytest.mark.soak if place[0] in long else ()
    return pytest.param(place, marks=marks, id="-".join(map(str, place[:3])))


def live(address: str, world: World, name: str, **more: str) -> tuple[int, list[list[Any]]]:
    what = [address, world.file, name]
    child = prefork.Child("tests.crash.effect_victim", what, cwd=ROOT, env={**os.environ, **more})
    out, err = child.communicate(timeout=HANG)
    assert child.returncode in (0, EXIT_CODE, -9), err
    return child.returncode, [json.loads(line) for line in out.splitlines()]


def die_and_call_again(store: str, place: tuple[str, str, int, int, bool], folder: Path) -> None:
    name, point, nth, effects, asks = place
    address, world = address_on(store, folder), World(folder / "world.jsonl")
    code, said = live(address, world, name, **environment(point, nth))
    assert code == EXIT_CODE, f"the point was not reached: {said}"
    assert len(world.lines("effect")) == effects
    code, said = live(address, world, name)
    assert (code, said[-1]) == (0, ["result", {"order": "A17", "paid": 250}])
    assert (["doubt"] in said) is asks
    # Once more: the recorded result, and no second effect.
    assert live(address, world, name) == (0, [["result", {"order": "A17", "paid": 250}]])
    assert len(world.lines("effect")) == 1


@pytest.mark.covers("USERS-EFFECT")
@pytest.mark.parametrize("place", [_case(place, LONG) for place in PLACES])
def test_an_effect_happens_once_when_its_process_dies_at_a_boundary(
    place: tuple[str, str, int, int, bool], tmp_path: Path
) -> None:
    die_and_call_again("sqlite", place, tmp_path)


@pytest.mark.covers("USERS-EFFECT")
@pytest.mark.parametrize("place", [_case(place, (*LONG, "held", "probed")) for place in PLACES])
def test_an_effect_happens_once_when_its_process_dies_at_a_boundary_on_postgres(
    place: tuple[str, str, int, int, bool], tmp_path: Path
) -> None:
    die_and_call_again("postgres", place, tmp_path)


@pytest.mark.covers("USERS-EFFECT")
def test_of_two_processes_with_one_key_one_runs_the_effect(tmp_path: Path) -> None:
    address, world = address_on("sqlite", tmp_path), World(tmp_path / "world.jsonl")
    what, env = [address, world.file, "sync"], {**os.environ, "VICTIM_LINGER": "0.05"}
    children = [prefork.Child("tests.crash.effect_victim", what, cwd=ROOT, env=env) for _ in range(3)]
    said = [child.communicate(timeout=HANG)[0] for child in children]
    assert [json.loads(each) for each in said] == [["result", {"order": "A17", "paid": 250}]] * 3
    assert len(world.lines("effect")) == 1
