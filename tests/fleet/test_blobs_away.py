"""Large values live elsewhere, and that may be away: only who needs them waits, and nobody fails for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.schemas.admin import worker_wire
from holdfast.api.schemas.runs import run_detail
from holdfast.errors import BlobMissingError, StoreUnavailableError
from holdfast.runs.driver import release
from holdfast.runs.recorder import recorder
from holdfast.runs.service import RunService
from holdfast.store.blob.local import LocalBlobs
from tests.crash.stores import address_on
from tests.deadlines import HANG
from tests.fleet.faults import noise
from tests.fleet.long_outage import SETTINGS, Ledger, answered, asked, created, ended, judge, paying, until
from tests.services import postgres

pytestmark = pytest.mark.anyio

LARGE = 2_000_000  # more than a row takes


class Elsewhere(LocalBlobs):
    """As it would be on another machine, which can be unplugged."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.away = False
        self.lost = False
        self.asked = 0

    async def put(self, digest: bytes, data: bytes) -> None:
        self._reach()
        await super().put(digest, data)

    async def get(self, digest: bytes) -> bytes:
        self._reach()
        if self.lost:
            raise BlobMissingError("no such object")
        return await super().get(digest)

    def _reach(self) -> None:
        self.asked += 1
        if self.away:
            raise ConnectionResetError("s3://key:geheim@nowhere")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    address = address_on(request.param, tmp_path)
    return address if request.param == "sqlite" else postgres.with_setting(address, pool="4")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path / "elsewhere")


@pytest.fixture
async def hf(address: str, elsewhere: Elsewhere, anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast(address, settings=SETTINGS, objects=elsewhere) as hf:
        yield hf


def quick(ledger: Ledger) -> Flow:
    flow = Flow("quick", effect="pure")

    async def pay(_s: Any, ctx: Any) -> dict[str, Any]:
        ledger.happens(ctx.run_id, "pay")
        return {"paid": True}

    flow.node(id="pay", effect="external")(pay)
    return flow


async def completed(service: RunService, run: str) -> bool:
    return (await service.get(run)).status == "completed"


async def _is_told(service: RunService, run: str, why: str) -> bool:
    """By the heartbeat of the worker."""
    told = [worker_wire(row, service.store.now()).unstored for row in await service.store.workers()]
    if not any(each.get(run, "").startswith(why) for each in told):
        return False
    return ((await run_detail(service, await service.get(run))).unstored or "").startswith(why)


@pytest.mark.covers("FLEET-DEGR-03", "FLEET-DEGR-04")
@pytest.mark.parametrize("patience", [300.0, pytest.param(0.0, marks=pytest.mark.soak)])
async def test_only_who_has_large_values_waits_when_the_blob_store_is_away(
    hf: Holdfast, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, patience: float,
) -> None:  # fmt: skip
    """With no patience the run stops, and is tried again later: its effect is not."""
    if not patience:
        monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.05,))
    ledger = Ledger(tmp_path)
    large, small = paying(ledger, value=LARGE), quick(ledger)
    service = await hf.service()
    elsewhere.away = True
    async with Worker(large, small, on=hf, poll=0.1, hot_hold=0.0, patience=patience) as worker:
        run = await created(service, large)
        await until(lambda: _true(elsewhere.asked > 3))
        beside = await created(service, small)
        await until(lambda: completed(service, beside), within=3)
        assert (await service.get(run)).status in ("running", "resumable")
        if patience:
            await until(lambda: _is_told(service, run, "a large value cannot be kept now"))
        elsewhere.away = False
        await answered(service, await asked(service, run))
        await ended(service, run)
        assert (await run_detail(service, await service.get(run))).unstored is None
        assert (await worker._made()).runtime.recorder.unstored == {}  # pyright: ignore[reportPrivateUsage]
    await judge(hf, run, ledger)
    assert ledger.of(beside) == {"pay": 1}
    assert caplog.text.count("checkpoint not written") == 1, "one line a minute, however often it is tried"
    assert "a large value cannot be kept now" in caplog.text
    assert "geheim" not in caplog.text


@pytest.mark.covers("FLEET-DEGR-03")
async def test_run_rests_longer_each_time_and_never_fails_when_its_values_cannot_be_read(
    hf: Holdfast, elsewhere: Elsewhere, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ledger = Ledger(tmp_path)
    flow = paying(ledger, value=LARGE)
    service = await hf.service()
    rests: list[int] = []
    as_usual = release.release_run

    async def noted(store: Any, lease: Any, status: Any, rest: int = 0) -> None:
        # As it was decided: who looks at the row sees some of them, and what writing it took.
        rests.append(rest)
        await as_usual(store, lease, status, rest)

    monkeypatch.setattr(release, "release_run", noted)
    async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0):
        run = await created(service, flow)
        hold = await asked(service, run)
        elsewhere.away = True
        await answered(service, hold)
        await until(lambda: _true(len(rests) >= 4))
        assert rests[:4] == [0, 500_000, 1_000_000, 2_000_000], "microseconds: not as fast as it can"
        assert ledger.of(run) == {"pay": 1}
        elsewhere.away = False
        await ended(service, run)
    await judge(hf, run, ledger)
    assert "a large value cannot be read now" in caplog.text


@pytest.mark.covers("FLEET-DEGR-03", "CORE-BAD-15")
async def test_run_fails_with_a_typed_error_when_a_value_is_really_gone(
    hf: Holdfast, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path)
    flow = paying(ledger, value=LARGE)
    service = await hf.service()
    async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0):
        run = await created(service, flow)
        hold = await asked(service, run)
        elsewhere.lost = True
        await answered(service, hold)
        await ended(service, run)
    row = await service.get(run)
    assert row.status == "failed"
    assert "BlobMissingError" in (row.error or "")
    # Mended from a backup, it goes on from where it stood.
    elsewhere.lost = False
    assert (await flow.resume(run, on=hf)).completed
    await judge(hf, run, ledger)


def _moved_away(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def _not_mounted(folder: Path) -> None:
    _moved_away(folder)
    folder.mkdir()


def _no_folder(folder: Path) -> None:
    _moved_away(folder)
    folder.write_text("something else")


@pytest.mark.covers("FLEET-DEGR-03")
@pytest.mark.parametrize(
    "breaks",
    [
        _not_mounted,
        pytest.param(_moved_away, marks=pytest.mark.soak),
        pytest.param(_no_folder, marks=pytest.mark.soak),
    ],
)
async def test_run_waits_for_the_folder_of_its_values_when_that_is_away(breaks: Any, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    flow = paying(ledger, value=LARGE)
    folder = tmp_path / "h.db-blobs"
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}", settings=SETTINGS) as hf:
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0):
            run = await created(service, flow)
            hold = await asked(service, run)
            breaks(folder)
            with pytest.raises(StoreUnavailableError):
                await flow.resume(run, on=hf)
            await answered(service, hold)
            await asyncio.sleep(0.3)
            assert (await service.get(run)).status in ("resumable", "running")
            _put_back(folder)
            await ended(service, run)
        await judge(hf, run, ledger)


def _put_back(folder: Path) -> None:
    if folder.is_file():
        folder.unlink()
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()
    folder.with_name("moved").rename(folder)


@pytest.mark.covers("FLEET-DEGR-03")
async def test_doctor_tells_an_absent_folder_from_an_absent_value(tmp_path: Path) -> None:
    flow = Flow("large", effect="pure")

    @flow.node
    async def grow(_s: Any) -> dict[str, Any]:
        return {"data": noise(LARGE)}

    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}", settings=SETTINGS) as hf:
        assert (await flow.run({}, on=hf)).completed
    _moved_away(tmp_path / "h.db-blobs")
    command = [sys.executable, "-m", "holdfast", "doctor", "--deep", "--json", "--store", "sqlite:h.db"]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False
    )
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["check"] == "blobs"]
    assert found["state"] == "fail"
    assert "cannot be used" in found["said"]


async def _true(what: bool) -> bool:
    return what
