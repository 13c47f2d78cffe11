"""The benchmark tells ratios to a floor that it measured in the same run, round by round."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import __main__ as bench_main
from bench import growth, waits
from bench.floor import RawCommit, RawWrite
from bench.growth import row_b
from bench.measure import Plan, against, ratios

pytestmark = pytest.mark.usefixtures("small_heap")


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


@pytest.mark.anyio
@pytest.mark.covers("SAFE-SPEED-04")
async def test_floor_of_the_disk_writes_in_place_beside_the_raw_commit(tmp_path: Path) -> None:
    disk, raw = RawWrite(tmp_path), RawCommit(tmp_path)
    size = (tmp_path / "raw.bin").stat().st_size
    values, floors = await against(raw, disk, 2)
    assert len(values) == len(floors) == 2
    assert min(values) > 0
    # The file has its size from the beginning: a write that grew it would flush the file's length as well.
    assert (tmp_path / "raw.bin").stat().st_size == size
    disk.close()
    raw.close()


@pytest.mark.covers("SAFE-SPEED-03")
def test_row_b_counts_each_further_kb_and_names_the_size_of_an_empty_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = iter([500_000, *[530_000] * Plan(quick=True).some] * 2)
    monkeypatch.setattr(growth, "stored", lambda _place: next(sizes))
    monkeypatch.setattr(growth, "SHORT", 20)
    monkeypatch.setattr(growth, "LONG", 20)
    found = {line.name: line.value for line in row_b(Plan(quick=True))}
    assert found["stored for each further KB, 20 steps"] == 1.5
    assert found["an empty store beside it"] == 500
