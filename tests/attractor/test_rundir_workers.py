"""Whoever advances a run keeps its directory; who has lost the run leaves it alone."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Worker
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.directory_sync import DIRECTORY_SYNCS, DirectorySync, JournalFollower
from holdfast.attractor.export import export_directory
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import Runner
from holdfast.errors import LeaseLostError
from holdfast.frontends.dot.document import Stage
from holdfast.types.lease import Lease
from tests.attractor.run import dot, line, until
from tests.attractor.test_rundir import checkpoint, same

pytestmark = pytest.mark.anyio

GATED = dot(
    'a; h [shape=hexagon, label="Ship?"]; p [shape=component]; b; c; j [shape=tripleoctagon];',
    'start -> a -> h; h -> p [label="yes"]; h -> done [label="no"]; p -> b -> j; p -> c -> j; j -> done',
)


@pytest.fixture
async def instances(tmp_path: Path, anyio_backend: str) -> AsyncIterator[tuple[Holdfast, Holdfast]]:
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as one, Holdfast(address) as other:
        yield one, other


@pytest.mark.covers("ATTRACTOR-DIR-01", "ATTRACTOR-DIR-05")
@pytest.mark.parametrize("there", [True, False])
async def test_another_worker_goes_on_with_the_directory_or_makes_it_anew(
    instances: tuple[Holdfast, Holdfast], tmp_path: Path, there: bool
) -> None:
    one, other = instances
    logs = tmp_path / "logs"
    waiting = await Runner(one, logs_root=logs).run(GATED)
    assert checkpoint(logs)["next_node"] == "h"
    (yes,) = [o.id for o in waiting.holds[0].options or () if o.label == "yes"]
    await (await one.service()).answer(waiting.holds[0].id, yes)
    if not there:
        shutil.rmtree(logs)
    await Worker(on=other).run_until_idle()
    saved = checkpoint(logs)
    assert saved["completed_nodes"] == ["start", "a", "h", "p", "j", "done"]
    assert saved["status"] == "completed"
    await export_directory(await one.service(), waiting.run_id, tmp_path / "again")
    assert same(logs, tmp_path / "again")


@pytest.mark.covers("ATTRACTOR-DIR-01")
async def test_a_worker_that_lost_the_run_writes_nothing_more(hf: Holdfast, tmp_path: Path) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def answer(node: Stage, prompt: str, context: PipelineContext) -> str:
        if node.id == "b":
            begun.set()
            await goes_on.wait()
        return "well"

    runner = Runner(hf, backend=answer, logs_root=tmp_path)
    running = asyncio.create_task(runner.run(line("a; b;", "a", "b")))
    await begun.wait()
    await until(lambda: (tmp_path / "checkpoint.json").exists() and checkpoint(tmp_path)["next_node"] == "b")
    service = await hf.service()
    (driver,) = service.runtime.drivers.values()
    driver.lost()
    (tmp_path / "checkpoint.json").write_text(json.dumps({"of": "somebody else"}))
    goes_on.set()
    with pytest.raises(LeaseLostError):
        await running
    assert checkpoint(tmp_path) == {"of": "somebody else"}
    assert DIRECTORY_SYNCS.of(driver.run) is None
    assert isinstance(driver.lease, Lease)


async def test_an_attendant_that_stumbles_is_informed_of_and_the_run_goes_on(
    hf: Holdfast, tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(*_: Any, **__: Any) -> str:
        raise RuntimeError("no such key")

    lines: list[str] = []
    monkeypatch.setattr("holdfast.attractor.run_directory.RunDirectory.checkpoint", stumble)
    runner = Runner(hf, logs_root=tmp_path, on_event=lambda event: lines.append(type(event).__name__))
    found = await runner.run(line("a;", "a"))
    assert found.succeeded
    assert lines[-1] == "PipelineCompleted"
    assert "could not be updated: no such key" in caplog.text


@pytest.mark.covers("TD-39")
async def test_another_process_leaves_the_files_of_a_stage_under_way_to_its_worker(
    hf: Holdfast, tmp_path: Path
) -> None:
    begun, goes_on, visits = asyncio.Event(), asyncio.Event(), count(1)

    async def answer(node: Stage, prompt: str, context: PipelineContext) -> StageOutcome:
        if next(visits) == 1:
            return StageOutcome(preferred_label="again")
        begun.set()
        await goes_on.wait()
        return StageOutcome(preferred_label="well")

    text = dot("a;", "start -> a; a -> a [label=again]; a -> done [label=well]")
    running = asyncio.create_task(Runner(hf, backend=answer, logs_root=tmp_path / "live").run(text))
    await begun.wait()
    service = await hf.service()
    (driver,) = service.runtime.drivers.values()
    program, row = driver.session.program, driver.session.row
    codec = service.runtime.codec_for(program)
    follower = JournalFollower(service.store, service.runtime.blobs, codec, program.graph, row, every=True)
    amid = (await follower.read_new()).take()
    # Of the first visit: its files have the number of the visit, but its status has not.
    assert Path("a/visits/1.verdict.json") in amid
    assert Path("a/status.json") not in amid
    goes_on.set()
    assert (await running).succeeded
    after = (await follower.read_new()).take()
    assert {Path("a/status.json"), Path("a/visits/2.verdict.json")} <= set(after)


@pytest.mark.covers("TD-39")
async def test_processes_of_one_machine_write_a_shared_directory_one_at_a_time(
    hf: Holdfast, tmp_path: Path
) -> None:
    done = await Runner(hf, logs_root=tmp_path / "live").run(line("a;", "a"))
    service, root = await hf.service(), tmp_path / "live"
    row = await service.get(done.run_id)
    program = await service.runtime.find_program(row.version, row.flow)
    codec = service.runtime.codec_for(program)
    follower = JournalFollower(service.store, service.runtime.blobs, codec, program.graph, row, every=True)
    (root / "checkpoint.json").unlink()
    handle = os.open(root, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    writing = asyncio.create_task(DirectorySync(follower, 1).write())
    await until(lambda: follower.head >= 0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not (root / "checkpoint.json").exists()
    os.close(handle)
    await writing
    assert checkpoint(root)["status"] == "completed"
