"""Hundreds of kills at random moments, and each crash point at each pass, in processes that really die."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.telemetry import CRASH_POINTS
from holdfast.testing.crashpoints import environment
from tests.crash import flows
from tests.crash.judge import Victim
from tests.crash.kill import FLOWS, kill_until_done
from tests.crash.test_points_memory import ELSEWHERE, Case, passes, places
from tests.crash.world import World

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

Note = Callable[[str, int], None]


@pytest.mark.covers("CORE-PROOF-05", "CORE-PROOF-01", "FLEET-PG-15", "PLATFORM-MARIADB-01")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("round_", range(10))
@pytest.mark.parametrize("flow", FLOWS)
def test_run_ends_as_in_peace_when_its_process_is_killed_again_and_again(
    flow: str, round_: int, store: str, tmp_path: Path, record_property: Note
) -> None:
    toll = kill_until_done(tmp_path, random.Random(f"{flow} {round_}"), kills=6, flow=flow, store=store)
    record_property("soak:random kills", toll.kills)
    record_property("soak:in doubt", toll.doubts)
    record_property("soak:processes", toll.processes)


@pytest.mark.covers("CORE-PROOF-05", "CRASH-*-sqlite", "CRASH-*-postgres", "CRASH-*-mariadb", "FLEET-PG-15")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("point", [point for point in CRASH_POINTS if point not in ELSEWHERE])
def test_run_ends_as_in_peace_when_its_process_dies_at_any_pass_of_a_point(
    point: str, store: str, tmp_path: Path, record_property: Note
) -> None:
    # Of two branches that wait, both may wake at once: on a busy machine they pass this point once together.
    deaths, surely = 0, 1 if point == "during_backoff" else 2
    for i, (name, nth) in enumerate(places(point)):
        (tmp_path / str(i)).mkdir()
        victim = Victim(tmp_path / str(i), name, store)
        died = victim.live(**environment(point, nth)) != 0
        assert died or nth > surely, (name, nth)
        assert not died or victim.live() == 0
        victim.judge()
        deaths += died
    record_property("soak:crash points", deaths)


@pytest.mark.covers("CORE-PROOF-05", "CRASH-*-memory")
@pytest.mark.parametrize("name", flows.FLOWS)
def test_run_ends_as_in_peace_when_its_worker_dies_at_every_pass_of_every_point(
    name: str, tmp_path: Path, record_property: Note
) -> None:
    deaths = 0
    for i, (point, nth) in enumerate(_all_places(name)):
        case = Case(name, World(tmp_path / f"{i}.jsonl", sync=False))
        died = case.live(point, nth)
        case.clock.advance(seconds=1)
        assert not died or not case.live(point, 0), (point, nth)
        case.judge()
        deaths += died
    record_property("soak:crash points", deaths)


def _all_places(name: str) -> Iterator[tuple[str, int]]:
    for point, count in passes(name).items():
        step = max(1, count // 40)
        for nth in range(1, count + 1, step):
            yield point, nth
