"""A run whose workers are all gone: every view says that it is interrupted, and a server without a worker
frees it."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

import holdfast as holdfast_package
from holdfast import Flow, Holdfast
from holdfast.api.schemas.runs import etag_of
from holdfast.runs.history.timeline import make_timeline
from holdfast.runs.run_view import run_wire, shown_run
from holdfast.store.rows import ClaimRequest, RunRow
from holdfast.testing.clock import FakeClock
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.api.conftest import serving
from tests.api.test_serve import served
from tests.deadlines import HANG
from tests.fleet.test_doctor_fleet import holdfast

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-STORE-05")]
SECOND = 1_000_000


def work() -> Flow:
    flow = Flow("work", effect="pure")

    @flow.node
    async def node(s: dict) -> dict:
        return {}

    return flow


async def abandoned(hf: Holdfast, ttl: int) -> RunRow:
    """A worker claimed it, and is not heard of again."""
    service = await hf.service()
    row, _ = await service.create(work().program(), {})
    (claim,) = await service.store.claim(ClaimRequest(worker="gone", ttl=ttl, run=row.id))
    return claim.run


async def test_run_is_running_until_its_lease_has_expired_and_interrupted_from_then_on() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        row, store = await abandoned(hf, 30 * SECOND), await hf.open()
        clock.advance(seconds=29)
        assert (await shown_run(store, row)).status is RunStatus.running
        clock.advance(seconds=1)
        shown = await shown_run(store, row)
        assert run_wire(shown).status is RunStatus.resumable
        assert (await store.get_run(row.id) or row).status is RunStatus.running, "reading changes nothing"
        for status in (RunStatus.pending_input, RunStatus.waiting):
            (lease,) = [
                claim.lease
                for claim in await store.claim(ClaimRequest(worker="other", ttl=SECOND, run=row.id))
            ]
            assert await store.set_idle(lease, status=status)
            clock.advance(seconds=2)
            idle = await store.get_run(row.id)
            assert idle is not None
            assert (await shown_run(store, idle)).status is status, "it waits all the same"


async def test_commands_show_it_as_interrupted_while_nothing_has_reclaimed_it(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        run = (await abandoned(hf, 1)).id
    store = ["--store", address]
    assert json.loads(await holdfast("runs", "--json", *store))["items"][0]["status"] == "resumable"
    assert "interrupted" in await holdfast("runs", *store)
    for status, count in (("resumable", 1), ("running", 0)):
        found = json.loads(await holdfast("runs", "--status", status, "--json", *store))["items"]
        assert len(found) == count
    assert json.loads(await holdfast("show", run, "--json", *store))["run"]["status"] == "resumable"
    assert "interrupted" in await holdfast("show", run, *store)
    assert json.loads(await holdfast("dead", "show", run, "--json", *store))["status"] == "resumable"
    async with Holdfast(address) as hf:
        assert (await (await hf.service()).get(run)).worker == "gone"


async def test_etag_changes_with_the_status_that_is_shown() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf, serving(hf) as server:
        path = f"/v1/runs/{(await abandoned(hf, 30 * SECOND)).id}"
        first = await server.client.get(path)
        seen = {"If-None-Match": first.headers["etag"]}
        clock.advance(seconds=29)
        assert (await server.client.get(path, headers=seen)).status_code == 304
        clock.advance(seconds=1)
        later = await server.client.get(path, headers=seen)
        assert (first.json()["status"], later.json()["status"]) == ("running", "resumable")
        stale = {"If-Match": first.headers["etag"]}
        assert (await server.client.post(f"{path}/cancel", json={}, headers=stale)).status_code == 412
        known = {"If-Match": later.headers["etag"]}
        assert (await server.client.post(f"{path}/cancel", json={}, headers=known)).status_code == 200


async def test_etag_changes_with_everything_that_is_shown() -> None:
    """Each field of the answer that can change without a record."""
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row, _ = await service.create(work().program(), {})
        other: dict[str, object] = {
            "status": RunStatus.failed, "superseded_by": RunId("other"), "dead": True, "error": "x",
            "read_only": True, "updated_at": row.updated_at + 1, "ended_at": 1, "event_seq": 9, "term": 9,
            "priority": 9, "head": 0,
        }  # fmt: skip
        tags = [await etag_of(service, replace(row, **{name: value})) for name, value in other.items()]
        assert len({await etag_of(service, row), *tags}) == len(other) + (row.head != 0)


async def test_top_counts_it_as_interrupted(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        await abandoned(hf, 1)
    seen = json.loads(await holdfast("top", "--json", "--store", address))
    assert seen["runs"] == {"resumable": 1}
    assert [lane["running"] for lane in seen["lanes"]] in ([], [0])
    assert "1 interrupted" in await holdfast("top", "--once", "--store", address)


async def test_timeline_of_it_says_that_it_is_interrupted() -> None:
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row = replace(await abandoned(hf, SECOND), lease_until=service.store.now())
        assert (await make_timeline(service, row)).interrupted
        held = replace(row, lease_until=service.store.now() + SECOND)
        assert not (await make_timeline(service, held)).interrupted


def test_views_ask_the_timeline_whether_a_run_is_interrupted() -> None:
    source = Path(holdfast_package.__file__).parent
    own = {"runs/run_view.py", "runs/history/timeline.py"}
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if re.search(r"interrupted\b[^=\n]*= .*\bworker is None", file.read_text())
    }
    assert found <= own


async def test_server_without_a_worker_frees_it(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as hf:
        run = (await abandoned(hf, SECOND)).id
        with served(folder, "--no-worker", "--lease", "1s", store=address):
            row, events = await asyncio.to_thread(asyncio.run, _until_free(address, run))
    assert (row.status, row.worker, row.suspect) == (RunStatus.resumable, None, False)
    assert events == ["run.recovered"]


async def _until_free(address: str, run: RunId) -> tuple[RunRow, list[str]]:
    async with Holdfast(address) as hf:
        store, deadline = await hf.open(), time.monotonic() + HANG
        while time.monotonic() < deadline:
            row = await store.get_run(run)
            assert row is not None
            if row.worker is None:
                found = await store.events(run, after=0, limit=99)
                return row, [event.type for event in found if isinstance(event, EventRow)]
            await asyncio.sleep(0.05)
    raise AssertionError("the server did not free it")
