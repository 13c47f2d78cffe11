"""Workers and server are killed: no effect is doubled in silence, none is lost."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from holdfast import Holdfast
from holdfast.testing.crashpoints import EXIT_CODE, environment
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, RunStatus
from tests.deadlines import HANG
from tests.services import temporal
from tests.temporal.runs import assert_same
from tests.temporal.shop import TURNS, flow, turns

pytestmark = pytest.mark.anyio

EFFECTS = ("pay", "ship", "thank")
# Of the worker that is killed: the place, and which time it is reached.
POINTS = (("after_intent", 1), ("after_substep", 1))
MORE_POINTS = (
    ("inside_project", 1),
    ("after_project", 2),
    ("after_handler", 2),
    ("after_note", 1),
    ("lease_lost_mid_handler", 2),
)


class Place:
    """A store, a ledger, and workers in processes of their own: the command line."""

    def __init__(self, folder: Path, engine: str) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.engine = engine
        self.store = f"sqlite:{folder / 'h.db'}"
        self.ledger = folder / "ledger"

    def start(self, crash: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "holdfast", "worker", str(Path(__file__).parent / "shop.py")]
        command += ["--store", self.store, "--engine", self.engine]
        env = {**os.environ, "SHOP_LEDGER": str(self.ledger), **(crash or {})}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, env=env, stdout=log, stderr=log)

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        process = self.start()
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def happened(self, run: str) -> Counter[str]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return Counter(line.split()[0] for line in lines if line.endswith(run))


async def exited(process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(HANG):
        return await asyncio.to_thread(process.wait)


async def answered(place: Place, hf: Holdfast, run: RunId, deadline: float = HANG) -> None:
    """A person answers until the run has ended: about effects, what the ledger says."""
    service = await hf.service()
    async with asyncio.timeout(deadline):
        while (await service.get(run)).status not in ENDED:
            for hold in await service.holds(run):
                if "happened" not in [option.id for option in hold.options or ()]:
                    await service.answer(hold.id, "yes")
                    continue
                # About an effect whose outcome is unknown: the question names its step.
                step = "thank" if "'thank'" in hold.prompt else "ship"
                what = "pay" if hold.node == "pay" else step
                known = place.happened(run)[what] > 0
                data = {"value": what} if hold.node != "pay" else {"update": {"paid": "pay"}}
                await service.answer(
                    hold.id, "happened" if known else "not_happened", data=data if known else None
                )
            await service.store.wait_change(0.1)


async def crashed(place: Place, point: str, nth: int) -> None:
    async with Holdfast(place.store, engine=place.engine) as hf:
        run = await flow.submit({}, on=hf)
        assert await exited(place.start(environment(point, nth))) == EXIT_CODE, point
        with place.worker():
            await answered(place, hf, run)
            result = await flow.result(run, on=hf)
            log = (place.folder / "log").read_text()[-3000:]
            assert result.status is RunStatus.completed, (point, result, log)
            assert place.happened(run) == dict.fromkeys(EFFECTS, 1), point
            await assert_same(hf, run)


@pytest.mark.covers("TD-46", "TD-19", "TD-20", "TD-15", "TD-13")
@pytest.mark.parametrize(
    "points", [POINTS, pytest.param(MORE_POINTS, marks=pytest.mark.soak)], ids=["some", "more"]
)
async def test_worker_that_is_killed_at_a_point_doubles_and_loses_nothing(
    points: tuple[tuple[str, int], ...], tmp_path: Path
) -> None:
    engine = temporal.own().address("1s")
    places = [(Place(tmp_path / point, engine), point, nth) for point, nth in points]
    await asyncio.gather(*(crashed(*each) for each in places))


@pytest.mark.soak
@pytest.mark.covers("TD-46")
async def test_server_that_is_killed_and_restarted_loses_no_run(tmp_path: Path) -> None:
    server = temporal.TemporalServer(tmp_path / "server")
    server.start()
    try:
        place = Place(tmp_path / "place", server.address("2s"))
        async with Holdfast(place.store, engine=place.engine) as hf:
            runs = [await flow.submit({}, on=hf) for _ in range(4)]
            with place.worker():
                service = await hf.service()
                async with asyncio.timeout(HANG):
                    while not place.ledger.exists():
                        await service.store.wait_change(0.05)
                server.kill()
                server.start()
                await asyncio.gather(*(answered(place, hf, run) for run in runs))
                for run in runs:
                    assert (await flow.result(run, on=hf)).status is RunStatus.completed
                    assert place.happened(run) == dict.fromkeys(EFFECTS, 1)
                    await assert_same(hf, run)
    finally:
        server.kill()


@pytest.mark.covers("TD-46", "TD-28")
async def test_worker_that_is_killed_before_a_new_history_doubles_and_loses_nothing(tmp_path: Path) -> None:
    # The server suggests a new history after some three steps.
    server = temporal.TemporalServer(tmp_path / "server", limit__historyCount__suggestContinueAsNew=20)
    server.start()
    try:
        place = Place(tmp_path / "place", server.address("1s"))
        async with Holdfast(place.store, engine=place.engine) as hf:
            run = await turns.submit({"n": 0}, on=hf)
            assert await exited(place.start(environment("before_continue", 2))) == EXIT_CODE
            with place.worker():
                async with asyncio.timeout(HANG):
                    result = await turns.result(run, wait=None, on=hf)
                assert result.state["n"] == TURNS, result
                assert place.happened(run) == {f"turn{n}": 1 for n in range(TURNS)}
                await assert_same(hf, run)
    finally:
        server.kill()


@pytest.mark.covers("TD-46")
@pytest.mark.parametrize(
    ("runs", "kills"), [(2, 3), pytest.param(20, 40, marks=pytest.mark.soak)], ids=["some", "many"]
)
async def test_workers_and_server_that_are_killed_at_random_double_and_lose_nothing(
    runs: int, kills: int, tmp_path: Path
) -> None:
    chance = random.Random(20)
    server = temporal.TemporalServer(tmp_path / "server")
    server.start()
    place = Place(tmp_path / "place", server.address("1s"))
    workers = [place.start() for _ in range(2)]
    try:
        async with Holdfast(place.store, engine=place.engine) as hf, asyncio.timeout(10 * HANG):
            created = [await flow.submit({}, on=hf) for _ in range(runs)]
            people = [asyncio.create_task(answered(place, hf, run, deadline=10 * HANG)) for run in created]
            for number in range(kills):
                # So that each of them meets another place of some run.
                await asyncio.sleep(chance.uniform(0.2, 3.0))
                if number % 5 == 2:
                    server.kill()
                    await asyncio.to_thread(server.start)
                    continue
                which = chance.randrange(len(workers))
                workers[which].kill()
                workers[which].wait()
                workers[which] = place.start()
            await asyncio.gather(*people)
            for run in created:
                assert (await flow.result(run, on=hf)).status is RunStatus.completed
                assert place.happened(run) == dict.fromkeys(EFFECTS, 1)
                await assert_same(hf, run)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        server.kill()
