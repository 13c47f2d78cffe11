"""No effect begins on a lease that is over: it counts from when it was asked for, not from the answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import KeyMissingError
from holdfast.runs.driver.release import ReleaseAfterOutage, release_unserved
from holdfast.types.ids import RunId
from tests.deadlines import HANG
from tests.fleet.workers import until

pytestmark = pytest.mark.anyio

LEASE, MARGIN = 1.0, 0.2


def flow(began: asyncio.Event, may_end: asyncio.Event) -> Flow:
    made = Flow("kept")

    @made.node(effect="pure")
    async def act(_s: dict[str, Any]) -> None:
        began.set()
        await may_end.wait()

    return made


@pytest.mark.covers("D-17")
@pytest.mark.parametrize("taken", [False, True], ids=["ours", "taken"])
async def test_lease_counts_from_when_it_was_asked_for(
    address: str, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    """The answer comes when the lease is over: the process was stopped between, or the net was slow."""
    settings = RunSettings(lease_ttl=LEASE, lease_margin=MARGIN)
    async with Holdfast(address, settings=settings) as hf:
        service = await hf.service()
        store, runtime = service.store, service.runtime
        row, _ = await service.create(flow(asyncio.Event(), asyncio.Event()).program(), {})
        lease = (await runtime.claim(row.id)).lease
        extend, asked = store.extend, list[None]()

        async def late(*given: Any) -> list[bool]:
            asked.append(None)
            answer = await extend(*given)
            if len(asked) == 1:
                await asyncio.sleep(LEASE + 0.1)
                if taken:
                    assert await store.reclaim(limit=10, max_recoveries=9)
            return answer

        monkeypatch.setattr(store, "extend", late)
        assert await runtime.leases.ensure_margin(lease) is not taken
        # Once more: the first answer says nothing. Where that one is late too, again.
        assert len(asked) == 2 if taken else len(asked) >= 2


@pytest.mark.covers("FLEET-WORK-06")
async def test_heart_goes_on_after_an_error_that_nobody_foresaw(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()
    made = flow(began, may_end)
    async with Holdfast(address, settings=RunSettings(lease_ttl=LEASE, lease_margin=MARGIN)) as hf:
        store = await hf.open()
        extend_now, beats = store.extend_now, list[bool]()

        def slips(*given: Any) -> list[bool]:
            if not beats:
                beats.append(False)
                raise RuntimeError("a slip of the driver library")
            beats.append(all(answer := extend_now(*given)))
            return answer

        monkeypatch.setattr(store, "extend_now", slips)
        async with Worker(made, on=hf) as worker:
            row, _ = await (await hf.service()).create(made.program(), {})
            await began.wait()
            await until(lambda: len(beats) > 2, "it beats again")
            assert worker._worker is not None
            assert worker._worker.runtime.leases.is_heartbeating
            may_end.set()
        after = await (await hf.service()).get(row.id)
    assert beats[:3] == [False, True, True]
    assert (after.recoveries, str(after.status)) == (0, "completed")
    assert "heartbeat failed" in caplog.text


@pytest.mark.covers("D-17", "FLEET-DEGR-04")
async def test_what_is_known_of_other_runs_is_reported_when_one_cannot_be(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = flow(asyncio.Event(), asyncio.Event())
    async with Holdfast(address) as hf:
        service = await hf.service()
        store, outbox = service.store, service.runtime.evidence_outbox
        first, second = [(await service.create(made.program(), {}))[0].id for _ in range(2)]
        report_late = store.report_late

        async def without_its_key(run: RunId, *given: Any) -> None:
            if run == first:
                raise KeyMissingError("the key of this tenant is gone.")
            await report_late(run, *given)

        monkeypatch.setattr(store, "report_late", without_its_key)
        outbox.keep(first, [(1, b"{}")])
        outbox.keep(second, [(1, b"{}")])
        async with asyncio.timeout(HANG):
            while not await store.late_reports(second):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert f"run {first}: could not report how its effects ended" in caplog.text


@pytest.mark.covers("D-29", "FLEET-DEGR-01")
@pytest.mark.parametrize("who", ["stopped", "cannot serve it", "drains"])
async def test_run_is_given_back_when_mail_comes_at_that_moment(
    address: str, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """Otherwise its lease would lapse later, and count as a death of its worker."""
    async with Holdfast(address) as hf:
        service = await hf.service()
        store, runtime = service.store, service.runtime
        began = asyncio.Event()
        program = flow(began, asyncio.Event()).program()
        runtime.register(program)
        row, _ = await service.create(program, {})
        claim = await runtime.claim(row.id)
        driving = asyncio.create_task(runtime.drive(claim)) if who == "drains" else None
        if driving is not None:
            await began.wait()
        get_run, looks = store.get_run, list[None]()

        async def and_mail_comes(run: RunId) -> Any:
            found = await get_run(run)
            looks.append(None)
            if len(looks) == 1:
                assert await store.send(run, "signal", b"{}")
            return found

        monkeypatch.setattr(store, "get_run", and_mail_comes)
        async with asyncio.timeout(HANG):
            if driving is not None:
                driving.cancel()
                await asyncio.gather(driving, return_exceptions=True)
            else:
                await (
                    ReleaseAfterOutage(runtime).release(claim)
                    if who == "stopped"
                    else release_unserved(store, claim.lease, 0)
                )
        after = await get_run(row.id)
    assert after is not None
    assert (after.worker, after.inbox_seq, len(looks)) == (None, 1, 2)
