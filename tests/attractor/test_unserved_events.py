"""A run that no live worker can serve is told so, and told again when that changes: one event a change."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.program import PipelineDialect, PipelineSetup
from holdfast.cli.output.results import event_line
from holdfast.frontends.dot.lower import DIALECT
from holdfast.runs.unserved import UnservedSweep, how_to_get
from holdfast.runs.worker.worker import RunWorker
from holdfast.store.rows import RunRow
from holdfast.types.fleet import WorkerRow
from tests.api.conftest import serving
from tests.attractor.test_requirements import DEPLOYS, created, line
from tests.services import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-R6")]
TTL = 60_000_000
SOURCE = line("a [type=deploy];", "a")
WAITS = ("run.unserved", ["handler:deploy"])
SERVED = ("run.served", [])
GIVEN_BACK = ("run.unserved", ["program:no-such-agent"])
WITH_AGENT = line("a;", "a")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'h.db'}"
    return postgres.with_setting(postgres.database(), schema=f"t_{secrets.token_hex(4)}")


def worker(name: str, *offers: str) -> WorkerRow:
    return WorkerRow(
        name=name, incarnation=name, host="h", pid=1, release="1", started_at=1, versions={}, offers=offers
    )


async def told(hf: Holdfast, run: Any) -> list[tuple[str, list[str]]]:
    found = await (await hf.service()).events(run, limit=99)
    wanted = [each for each in found if each.type in ("run.unserved", "run.served")]
    return [(each.type, each.data.get("missing", [])) for each in wanted]


async def test_each_change_is_one_event_however_many_workers_look(address: str, tmp_path: Path) -> None:
    async with Holdfast(address) as hf, Holdfast(address) as other:
        row: RunRow = await created(hf, SOURCE, DEPLOYS, tmp_path / "logs")
        store = (await hf.service()).store
        sweeps = [
            UnservedSweep((await each.service()).store, (await hf.service()).runtime.clock)
            for each in (hf, other, hf)
        ]

        async def look() -> int:
            return sum([await sweep.sweep() for sweep in sweeps])

        assert await look() == 0  # no worker is alive: every run waits for one
        await store.put_worker(worker("bare"), TTL)
        assert [await look(), await look()] == [1, 0]
        assert await told(hf, row.id) == [WAITS]
        await store.put_worker(worker("able", "handler:deploy"), TTL)
        assert [await look(), await look()] == [1, 0]
        assert await told(hf, row.id) == [WAITS, SERVED]
        await store.drop_worker("able", "able")
        assert [await look(), await look()] == [1, 0]
        assert await told(hf, row.id) == [WAITS, SERVED, WAITS]
        kept = await (await hf.service()).get(row.id)
        assert (kept.status, kept.head, kept.term) == (row.status, row.head, row.term)


async def test_worker_tells_and_the_server_and_the_command_line_show_it(address: str, tmp_path: Path) -> None:
    async with Holdfast(address) as hf:
        row = await created(hf, SOURCE, DEPLOYS, tmp_path / "logs")
        bare = RunWorker(await hf.new_service())
        await bare.arrive()
        await bare.unserved.sweep()
        async with serving(hf) as server:
            page = await server.json("GET", f"/v1/runs/{row.id}/events")
            (event,) = [each for each in page["items"] if each["type"] == "run.unserved"]
            assert event["data"] == {"missing": ["handler:deploy"]}
        (event,) = [e for e in await (await hf.service()).events(row.id, limit=9) if e.type == "run.unserved"]
        shown = event_line(event) or ""
        assert shown.endswith("waits for a worker with handler:deploy")
        await bare.heartbeat.leave()

        hf.dialects = {**hf.dialects, DIALECT: PipelineDialect(DEPLOYS)}
        able = RunWorker(await hf.new_service())
        await able.arrive()
        await able.unserved.sweep()
        await able.run_until_idle()
        await able.heartbeat.leave()
        assert (await (await hf.service()).get(row.id)).status == "completed"
        assert await told(hf, row.id) == [WAITS, SERVED]


async def test_run_that_is_given_back_in_mid_run_is_told_so(address: str, tmp_path: Path) -> None:
    """Which program it needs is known at its stage only. Others of its version wait for a worker, or for
    nothing."""
    setup = PipelineSetup(backend=CommandBackend("./no-such-agent"))
    async with Holdfast(address) as hf:
        hf.dialects = {**hf.dialects, DIALECT: PipelineDialect(setup)}
        row = await created(hf, WITH_AGENT, setup, tmp_path / "logs")
        service = await hf.service()
        tried = RunWorker(await hf.new_service())
        await tried.arrive()
        await tried.run_until_idle()
        await tried.heartbeat._announce()
        other = await created(hf, WITH_AGENT, setup, tmp_path / "other")
        sweep = UnservedSweep(service.store, service.runtime.clock)
        assert [await sweep.sweep(), await sweep.sweep()] == [1, 0]
        assert await told(hf, row.id) == [GIVEN_BACK]
        assert await told(hf, other.id) == []
        fresh = RunWorker(await hf.new_service())
        await fresh.arrive()
        assert [await sweep.sweep(), await sweep.sweep()] == [1, 0]
        assert await told(hf, row.id) == [GIVEN_BACK, SERVED]
        await fresh.heartbeat.leave()
        await tried.heartbeat.leave()


async def test_a_sweep_asks_by_version_and_not_by_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf:
        for number in range(30):
            await created(hf, SOURCE, DEPLOYS, tmp_path / f"logs-{number}")
        store = (await hf.service()).store
        await store.put_worker(worker("bare"), TTL)
        sweep = UnservedSweep(store, (await hf.service()).runtime.clock)
        assert await sweep.sweep() == 30
        asked: list[str] = []
        for name in ("tell_missing", "tell_taken", "waiting_runs", "flows", "workers", "flow", "get_run"):
            real = getattr(store, name)

            def counted(*args: Any, name: str = name, real: Any = real, **given: Any) -> Any:
                asked.append(name)
                return real(*args, **given)

            monkeypatch.setattr(store, name, counted)
        assert await sweep.sweep() == 0
        assert sorted(asked) == ["flows", "tell_taken", "waiting_runs", "workers"]


def test_a_setting_is_named_by_what_gives_it() -> None:
    assert how_to_get(["setting:allow-code"]) == "`--allow-code`"
    assert how_to_get(["setting:region"]) == "the setting `region`"
