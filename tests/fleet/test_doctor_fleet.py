"""`doctor` and `flows check` know who works."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Worker
from holdfast.cli.main import run
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.fleet import WorkerRow
from tests.fleet.workers import Crew

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-34")]

OTHER = """
from holdfast import Flow

jobs = Flow("jobs", effect="pure")

@jobs.node(effect="read")
async def think(s):
    return {"thought_by": 0}
"""


async def holdfast(*words: str) -> str:
    """What the command says, in this process but on a loop of its own."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        await asyncio.to_thread(run, list(words))
    return said.getvalue()


async def findings(address: str) -> dict[str, Any]:
    said = json.loads(await holdfast("doctor", "--json", "--store", address))
    return {each["check"]: each for each in said["findings"]}


def row(name: str, **given: Any) -> WorkerRow:
    fields: dict[str, Any] = {"host": "afar", "pid": 9, "release": "0.0.1", "started_at": 1, "place": "?"}
    return WorkerRow(name=name, incarnation=name, **{**fields, **given})


async def test_doctor_tells_of_silent_workers_wrong_clocks_and_versions_nobody_serves(
    tmp_path: Path, address: str
) -> None:
    crew = Crew(tmp_path, address)
    async with Holdfast(address) as hf:
        service = await hf.service()
        found = await findings(address)
        assert (found["workers"]["state"], found["workers"]["said"]) == ("ok", "no workers are alive")
        await service.create(crew.flow("jobs").program(), {"job": "j"})
        await service.store.put_worker(row("lost"), 1)
        await service.store.put_worker(
            row("wrong", skew=-3 * MICROS, versions={"other": "jobs"}), 60 * MICROS
        )
        found = await findings(address)
        assert {found[name]["state"] for name in ("workers", "clocks", "flow versions", "flow code")} == {
            "warn"
        }
        assert found["releases"]["state"] == "ok"
        assert found["workers"]["said"].startswith("1 worker is alive, 1 died without shutting down")
        assert found["workers"]["about"][0].startswith("lost: pid 9 on afar")
        assert found["clocks"]["about"] == ["wrong on afar: 3.0 s behind"]
        assert found["flow versions"]["about"][0].startswith("1 of jobs ")
        async with Worker(crew.flow("jobs"), on=hf, lanes=["nobody"]):
            found = await findings(address)
    assert {found[name]["state"] for name in ("flow versions", "flow code", "releases")} == {"ok"}
    assert "different releases" in found["releases"]["said"]


@pytest.mark.covers("SAFE-STORE-03")
async def test_doctor_says_that_the_clock_was_set_back(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    flow = Crew(tmp_path, address).flow("jobs").program()
    async with Holdfast(address) as hf:
        await (await hf.service()).create(flow, {"job": "j"})
    assert "time" not in await findings(address)
    an_hour_ahead = FakeClock(datetime.now(UTC) + timedelta(hours=1))
    async with Holdfast(address, clock=an_hour_ahead) as hf:
        await (await hf.service()).create(flow, {"job": "j"})
    found = (await findings(address))["time"]
    assert found["state"] == "warn"
    assert "later than now: the store's clock was set back" in found["said"]


async def test_flows_check_tells_of_runs_that_no_live_worker_carries(tmp_path: Path, address: str) -> None:
    crew = Crew(tmp_path, address)
    (tmp_path / "other.py").write_text(OTHER)
    async with Holdfast(address) as hf:
        service = await hf.service()
        await service.create(crew.flow("jobs").program(), {"job": "j"})
        words = ("flows", "check", str(tmp_path / "other.py"), "--store", address)
        text = "1 are on a version that no worker serves"
        assert text not in await holdfast(*words)
        await service.store.put_worker(row("new", versions={"other": "jobs"}), 60 * MICROS)
        assert text in await holdfast(*words)
        async with Worker(crew.flow("jobs"), on=hf, lanes=["nobody"]):
            said = await holdfast(*words)
    assert text not in said
    assert "they cannot be resumed here" not in said


async def test_worker_measures_how_far_its_clock_is_off(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Holdfast(address) as hf:
        store = await hf.open()
        true = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: true() + 5 * 10**9)
        async with Worker(on=hf):
            (text,) = await store.workers()
    assert 4 * MICROS < text.skew < 6 * MICROS
