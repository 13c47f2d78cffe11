"""Outages that last longer than a run waits, or than its lease: others go on, and know what happened."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import StoreError
from holdfast.runs.recorder import queue, recorder
from holdfast.runs.worker.health_server import ready
from holdfast.store.rows import RunFilter
from holdfast.testing.crashpoints import armed
from holdfast.types.ids import RunId
from tests.deadlines import HANG
from tests.fleet.faults import FAULTS
from tests.fleet.long_outage import (
    SETTINGS,
    Ledger,
    answered,
    asked,
    created,
    ended,
    judge,
    paying,
    until,
)
from tests.fleet.test_outages import MOMENTS

pytestmark = pytest.mark.anyio


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.05,))


@pytest.mark.covers("FLEET-DEGR-01", "FLEET-DEGR-04", "D-17")
@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("cut", "after the handler"),
        ("locked", "after the handler"),
        pytest.param("locked", "before the intent", marks=pytest.mark.soak),
        pytest.param("cut", "before the intent", marks=pytest.mark.soak),
        pytest.param("cut", "at the park", marks=pytest.mark.soak),
        pytest.param("locked", "at the park", marks=pytest.mark.soak),
    ],
)
async def test_nobody_is_asked_when_the_store_was_away_for_longer_than_the_run_waited(
    kind: str, moment: str, impatient: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run stops, the process lives on: when the store is back it tells how the effect ended."""
    ledger = Ledger(tmp_path)
    flow = paying(ledger)
    async with FAULTS[kind](tmp_path) as fault, Holdfast(fault.address, settings=SETTINGS) as hf:
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0, patience=0.0):
            with armed(MOMENTS[moment], hit=lambda: fault.strike(1.5)):
                run = await created(service, flow)
                hold = await asked(service, run)
            await answered(service, hold)
            await ended(service, run)
        await judge(hf, run, ledger)
        assert (await service.get(run)).recoveries == 0
    errors = [each for each in caplog.records if each.levelname == "ERROR"]
    stopped = [each for each in errors if each.name != "asyncio"]  # tasks that earlier tests left behind
    assert [" stops: " in each.getMessage() for each in stopped] == [True]


@pytest.mark.covers("FLEET-DEGR-01", "D-33", "FLEET-WORK-06")
async def test_outage_is_no_death_of_a_worker_when_it_lasts_longer_than_the_lease(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two workers: each may say first that it lives, then the lapsed leases are looked at."""
    ledger = Ledger(tmp_path)
    flow = paying(ledger)
    settings = msgspec.structs.replace(SETTINGS, lease_ttl=0.9, lease_margin=0.1)
    async with FAULTS["cut"](tmp_path) as fault, Holdfast(fault.address, settings=settings) as hf:
        service = await hf.service()
        async with (
            Worker(flow, on=hf, poll=0.1, hot_hold=0.0),
            Worker(flow, on=hf, poll=0.1, hot_hold=0.0),
        ):
            with armed(MOMENTS["after the handler"], hit=lambda: fault.strike(2.0)):
                run = await created(service, flow)
                hold = await asked(service, run)
            await answered(service, hold)
            await ended(service, run)
        await judge(hf, run, ledger)
        assert (await service.get(run)).recoveries == 0
    assert "stopped heartbeating" not in caplog.text


@pytest.mark.covers("FLEET-DEGR-01", "R-43", "R-13")
@pytest.mark.parametrize("kind", ["cut", "locked"])
async def test_pause_that_could_not_be_stored_is_an_error_and_no_pause(
    kind: str, impatient: None, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path)
    flow = paying(ledger, allow_uncheckpointed=True)
    settings = msgspec.structs.replace(SETTINGS, lease_ttl=0.5, lease_margin=0.1)
    async with FAULTS[kind](tmp_path) as fault, Holdfast(fault.address, settings=settings) as hf:
        service = await hf.service()
        with armed("before_park", hit=fault.strike), pytest.raises(StoreError):
            await flow.run({}, on=hf)
        fault.mend()
        (run,) = [row.id for row in await service.list(RunFilter())]

        async def again() -> bool:
            return (await flow.resume(run, on=hf)).waiting

        await until(again)
        await answered(service, (await service.holds(run))[0].id)
        assert (await flow.resume(run, on=hf)).completed
        await judge(hf, run, ledger)


def counting(ledger: Ledger, steps: int, seconds: float) -> Flow:
    """Steps that touch nothing, then an effect."""
    flow = Flow("counting", effect="pure", allow_uncheckpointed=True)

    def step(i: int) -> Any:
        async def add(_s: Any) -> dict[str, Any]:
            await asyncio.sleep(seconds)
            return {f"n{i}": i}

        return add

    async def pay(_s: Any, ctx: Any) -> dict[str, Any]:
        ledger.happens(ctx.run_id, "pay")
        return {"paid": True}

    names = [flow.node(id=f"n{i}")(step(i)) for i in range(steps)]
    flow.chain(*names, flow.node(id="pay", effect="external")(pay))
    return flow


@pytest.mark.covers("FLEET-DEGR-01", "FLEET-DEGR-04", "R-41", "R-63", "D-33")
@pytest.mark.parametrize(
    ("kind", "steps", "seconds"),
    # The last does more at once than may be unwritten where a flow does not allow it.
    [("cut", 12, 0.05), ("locked", 12, 0.05), ("locked", 150, 0.001)],
)
async def test_run_goes_on_without_checkpoints_up_to_its_next_effect_when_its_flow_allows_it(
    kind: str, steps: int, seconds: float, impatient: None, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path)
    flow = counting(ledger, steps, seconds)
    settings = msgspec.structs.replace(SETTINGS, lease_ttl=30.0)
    async with FAULTS[kind](tmp_path) as fault, Holdfast(fault.address, settings=settings) as hf:
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1) as worker:
            with armed("after_handler", nth=2, hit=fault.strike):
                run = await created(service, flow)
                runtime = (await worker._made()).runtime

                async def stands_before_the_effect() -> bool:
                    driver = runtime.drivers.get(RunId(run))
                    if driver is None:
                        return False
                    session = driver.session
                    return "pay" in [session.node(e).id for e in session.pos.execs.values()]

                await until(stands_before_the_effect)
                assert ledger.of(run) == {}
            fault.mend()
            await ended(service, run)
        row = await service.get(run)
        assert (row.status, ledger.of(run)) == ("completed", {"pay": 1})
        lines = [event.type for event in await service.events(run, limit=1000)]
        assert lines.count("run.uncheckpointed") == 1
        assert lines.index("run.uncheckpointed") < lines.index("run.completed")


@pytest.mark.covers("FLEET-DEGR-01", "D-9")
@pytest.mark.parametrize("allowed", [False, True], ids=["waits", "goes on"])
async def test_what_waits_in_memory_for_a_store_that_is_away_is_bounded_in_bytes(
    allowed: bool, impatient: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_BYTES", 4096, raising=False)
    monkeypatch.setattr(queue, "HELD_BYTES", 4096, raising=False)
    monkeypatch.setattr(queue, "MAX_RECORDS", 10_000, raising=False)
    began = list[str]()
    flow = Flow("growing", effect="pure", allow_uncheckpointed=allowed)

    def step(i: int) -> Any:
        async def grow(_s: Any) -> dict[str, Any]:
            began.append(f"n{i}")
            await asyncio.sleep(0.02)
            return {f"n{i}": secrets.token_hex(100)}

        return grow

    flow.chain(*[flow.node(id=f"n{i}")(step(i)) for i in range(100)])
    async with FAULTS["locked"](tmp_path) as fault, Holdfast(fault.address, settings=SETTINGS) as hf:
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1):
            with armed("after_handler", nth=2, hit=fault.strike):
                run = await created(service, flow)
                await until(lambda: _is(bool(fault.struck)))
                reached = await stands_still(began)
            fault.mend()
            await ended(service, run)
        assert len(began) == 100
        assert reached < 50


async def stands_still(began: list[str]) -> int:
    """How far it came when no step has begun for as long as many steps take."""
    reached, since = -1, 0
    while since < 25:
        since = since + 1 if reached == len(began) else 0
        reached = len(began)
        await asyncio.sleep(0.05)
    return reached


async def _is(fact: bool) -> bool:
    return fact


@pytest.mark.covers("FLEET-DEGR-02", "R-42", "FLEET-OPS-02")
@pytest.mark.parametrize("kind", ["locked", "grown"])
async def test_worker_is_not_ready_while_checkpoints_cannot_be_written(kind: str, tmp_path: Path) -> None:
    """Its store answers who only reads; who would be given work now would stand still with it."""
    ledger = Ledger(tmp_path)
    flow = paying(ledger)
    async with FAULTS[kind](tmp_path) as fault, Holdfast(fault.address, settings=SETTINGS) as hf:
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0) as worker:
            made = await worker._made()

            async def is_not_ready() -> bytes | None:
                answer = await ready(made)
                return answer.body if answer.status == 503 else None

            with armed(MOMENTS["after the handler"], hit=fault.strike):
                run = await created(service, flow)
                said = await until(is_not_ready)
            assert b"checkpoints cannot be written" in said
            fault.mend()
            await answered(service, await asked(service, run))
            await ended(service, run)
            assert await is_not_ready() is None
        await judge(hf, run, ledger)


@pytest.mark.covers("FLEET-DEGR-01", "FLEET-WORK-07")
@pytest.mark.parametrize("kind", ["locked", pytest.param("cut", marks=pytest.mark.soak)])
async def test_worker_that_is_asked_to_stop_does_not_wait_for_a_store_that_is_away(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(tmp_path)
    flow = paying(ledger)
    settings = msgspec.structs.replace(SETTINGS, lease_ttl=0.9, lease_margin=0.1, grace=0.3)
    async with FAULTS[kind](tmp_path) as fault:
        async with Holdfast(fault.address, settings=settings) as hf:
            service = await hf.service()
            with armed(MOMENTS["after the handler"], hit=fault.strike):
                worker = Worker(flow, on=hf, poll=0.1, hot_hold=0.0)
                async with asyncio.timeout(HANG), worker:
                    run = await created(service, flow)
                    await until(lambda: _is_logged(caplog, "checkpoint not written"))
                    began = asyncio.get_running_loop().time()
                assert asyncio.get_running_loop().time() - began < 12
            fault.mend()
        # It left without a word: somebody is asked about the effect, which nobody else knows of.
        async with Holdfast(fault.address, settings=settings) as hf:
            service = await hf.service()
            async with Worker(flow, on=hf, poll=0.1, hot_hold=0.0):

                async def doubted() -> str | None:
                    return next(
                        (hold.id for hold in await service.holds(run) if hold.type == "in_doubt"), None
                    )

                await service.answer(
                    await until(doubted), "happened", data={"update": {"receipt": b"1".hex()}}
                )
                await answered(service, await asked(service, run))
                await ended(service, run)
        assert ledger.of(run) == {"pay": 1, "ship": 1}


async def _is_logged(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    return words in caplog.text
