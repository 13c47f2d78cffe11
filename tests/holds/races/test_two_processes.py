"""Two processes at the same holds of one store: as with threads, one wins and the other learns who."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.holds.queries.audit import verify_audit
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import SystemClock, to_datetime
from holdfast.types.status import HoldStatus, RunStatus
from tests.holds.races.acts import PEOPLE
from tests.holds.races.conftest import address_of
from tests.holds.races.race import Arena, said

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
TOGETHER = 20


class Rivals:
    def __init__(self, address: str, *deeds: str) -> None:
        command = [sys.executable, "-m", "tests.holds.races.rival", address]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "text": True,
            "cwd": ROOT,
        }
        self.processes = [subprocess.Popen([*command, deed], **pipes) for deed in deeds]
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

    def race(self, holds: list[tuple[str, str]]) -> list[tuple[dict[str, Any], ...]]:
        """What each came to, hold by hold. If one falls behind, they meet again after a few."""
        found: list[tuple[dict[str, Any], ...]] = []
        for at in range(0, len(holds), TOGETHER):
            part = holds[at : at + TOGETHER]
            start = json.dumps([time.time() + 0.02, part]) + "\n"
            for process in self.processes:
                assert process.stdin is not None
                process.stdin.write(start)
                process.stdin.flush()
            found += [tuple(self._line(process) for process in self.processes) for _ in part]
        for process in self.processes:
            process.communicate(timeout=600)
        assert [process.returncode for process in self.processes] == [0] * len(self.processes)
        return found

    def _line(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        return json.loads(process.stdout.readline())


async def raced(address: str, rounds: int, first: str, second: str, **asked: Any) -> set[str]:
    """Who won, over all rounds."""
    # An hour ago: what is due by the wall clock is due.
    clock = FakeClock(to_datetime(SystemClock().now() - 3600 * 10**6))
    async with Holdfast(address, clock=clock) as hf:
        arena = Arena(hf, await hf.open(), clock, _no_handles)
        arena.asking(**asked)
        rows = [await arena.asked() for _ in range(rounds)]
        found = Rivals(address, first, second).race([(row.id, row.run) for row in rows])
        clock.advance(hours=2)
        winners = set[str]()
        for row, outcome in zip(rows, found, strict=True):
            winners.add(await _judge(arena, row.id, outcome))
        assert (await verify_audit(arena.store, "default")).whole
    return winners


async def _no_handles() -> Any:
    raise NotImplementedError


async def _judge(arena: Arena, hold: str, outcome: tuple[dict[str, Any], ...]) -> str:
    row = await arena.row(hold)
    assert row.status is not HoldStatus.pending
    assert await arena.effective(row) == [str(row.status)]
    assert len(await arena.mail(row)) == (await arena.topics(row)).count("hold.closed") == 1
    winner = row.resolved_by or row.closed_by or ""
    # A sweep that comes second has nothing to say; people learn who was first.
    lost = [each for each in outcome if not each.get("done")]
    assert len(lost) == 1, outcome
    if "code" in lost[0]:
        assert lost[0]["code"] == "hold_decided", lost
        assert winner in (lost[0].get("resolved_by"), lost[0].get("closed_by"))
    result = await arena.goes_on(row)
    approved = said(row).get("decision") == "approve"
    assert (result.status is RunStatus.completed) is approved
    assert arena.payments(row) == approved
    return winner


RACES = {
    "resolve and resolve": ("0", "1", {}),
    "resolve and cancel": ("0", "cancel", {}),
    "resolve and expire": ("0", "sweep", {"timeout": "1m", "on_timeout": "cancel"}),
}


@pytest.mark.covers("RC-1", "RC-2", "RC-4", "HOLD-PROOF-01", "FLEET-PG-14", "MB-7", "PLATFORM-MARIADB-01")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("race", RACES)
async def test_one_of_two_processes_wins(race: str, store: str, tmp_path: Path) -> None:
    first, second, asked = RACES[race]
    winners = await raced(address_of(store, tmp_path), 60, first, second, **asked)
    assert winners <= {PEOPLE[0].id, PEOPLE[1].id, "user:ada@acme", "system:expiry"}


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.covers("RC-1", "RC-2", "RC-4", "HOLD-PROOF-01", "FLEET-PG-14")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("race", RACES)
async def test_one_of_two_processes_wins_over_thousands_of_rounds(
    race: str, store: str, tmp_path: Path
) -> None:
    first, second, asked = RACES[race]
    assert len(await raced(address_of(store, tmp_path), 2000, first, second, **asked)) == 2
