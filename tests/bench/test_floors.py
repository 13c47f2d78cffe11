"""The benchmark tells ratios to a floor that it measured in the same run, round by round."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import __main__ as bench_main
from bench import waits
from bench.measure import against, ratios


@pytest.mark.covers("CORE-SPEED-14")
def test_bench_reports_ratios_to_the_floor_of_the_same_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    floors, values = recorded(monkeypatch, "sketched_person"), recorded(monkeypatch, "answered")
    monkeypatch.setattr(waits, "TIMES", 1)
    monkeypatch.setattr(bench_main, "RESULTS", tmp_path / "results" / "latest.json")
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--only", "F", "--json"])
    assert bench_main.main() == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    floor, value, ratio = report["lines"]
    assert (floor["unit"], value["unit"], ratio["unit"]) == ("ms", "ms", "x sketch")
    assert ratio["most"] == 2.0
    assert min(floors) <= floor["value"] / 1000 <= max(floors)
    assert min(values) <= value["value"] / 1000 <= max(values)
    # Of every round, and so of the median: neither side comes from elsewhere.
    assert min(values) / max(floors) <= ratio["value"] <= max(values) / min(floors)
    assert report == msgspec.json.decode((tmp_path / "results" / "latest.json").read_bytes())


def recorded(monkeypatch: pytest.MonkeyPatch, name: str) -> list[float]:
    seen: list[float] = []
    measure = getattr(waits, name)

    async def remember(*given: Any) -> float:
        seen.append(await measure(*given))
        return seen[-1]

    monkeypatch.setattr(waits, name, remember)
    return seen


@pytest.mark.anyio
@pytest.mark.covers("CORE-SPEED-14")
async def test_ratio_stays_when_the_machine_gets_slower_between_rounds() -> None:
    slow = iter([1, 1, 1, 2, 2, 8, 8])
    pace = 1.0

    async def floor() -> float:
        nonlocal pace
        pace = float(next(slow))
        return pace

    async def measure() -> float:
        return 3 * pace

    assert ratios(*await against(floor, measure, 3)) == [3, 3, 3]


@pytest.mark.anyio
@pytest.mark.covers("CORE-SPEED-14")
async def test_round_is_measured_again_when_its_floor_moved() -> None:
    floors = iter([1, 1, 9, 1, 1])
    values = iter([7, 70, 7])

    async def floor() -> float:
        return float(next(floors))

    async def measure() -> float:
        return float(next(values))

    assert await against(floor, measure, 1) == ([7], [1])
