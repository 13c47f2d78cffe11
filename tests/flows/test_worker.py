"""Workers: who gets which run, what happens when one dies or stops."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import StoreFullError, StoreUnavailableError
from holdfast.runs.worker.reaper import Reaper
from holdfast.runs.worker.timer_sweep import TimerSweep
from holdfast.runs.worker.worker import RunWorker
from holdfast.store.rows import ClaimRequest
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio
SECOND = 1_000_000


class Seen:
    """What handlers did, seen from outside."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.now = 0
        self.most = 0


def counting(seen: Seen, pause: float = 0.0) -> Flow:
    flow = Flow("counting", effect="pure")

    @flow.node
    async def count(s: dict) -> dict:
        seen.now += 1
        seen.most = max(seen.most, seen.now)
        seen.order.append(s["name"])
        await asyncio.sleep(pause)
        seen.now -= 1
        return {"done": True}

    return flow


def asking() -> Flow:
    flow = Flow("asking", effect="pure")
    flow.hold("approve", prompt="Go on?", options=["yes", "no"])
    after = flow.node(id="after")(_nothing)
    flow.edge("approve", after)
    return flow


async def _nothing(s: dict) -> dict:
    return {"after": True}


async def _something_else(s: dict) -> dict:
    return {"after": False}


async def put(hf: Holdfast, flow: Flow, name: str = "", **options: object) -> RunId:
    service = await hf.service()
    row, _ = await service.create(flow.program(), {"name": name}, **options)
    return row.id


async def status(hf: Holdfast, run: RunId) -> RunStatus:
    return (await (await hf.service()).get(run)).status


async def until(hf: Holdfast, run: RunId, wanted: RunStatus, *, patience: float = HANG) -> None:
    async with asyncio.timeout(patience):
        while await status(hf, run) is not wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def dead_worker_has(hf: Holdfast, run: RunId, ttl: int = SECOND) -> None:
    """A worker that took the run and will never be heard of again."""
    store = await hf.open()
    assert await store.claim(ClaimRequest(worker="dead", ttl=ttl, run=run))


@pytest.mark.covers("CORE-WORK-02")
async def test_worker_completes_every_run_when_many_are_ready(hf: Holdfast) -> None:
    seen = Seen()
    flow = counting(seen)
    runs = [await put(hf, flow, str(i)) for i in range(20)]

    await Worker(flow, on=hf, concurrency=3).run_until_idle()

    assert {await status(hf, run) for run in runs} == {RunStatus.completed}
    assert Counter(seen.order) == Counter(str(i) for i in range(20))


async def test_worker_stays_within_its_concurrency_when_more_is_ready(hf: Holdfast) -> None:
    now, most, full = 0, 0, asyncio.Event()
    flow = Flow("crowd", effect="pure")

    @flow.node
    async def meet(s: dict) -> dict:
        """The first three wait for each other, however slow the machine is."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        now -= 1
        return {"done": True}

    for i in range(9):
        await put(hf, flow, str(i))

    await Worker(flow, on=hf, concurrency=3).run_until_idle()

    assert most == 3


@pytest.mark.covers("R-35", "RF-10", "RS-MORE-1")
async def test_workers_never_both_advance_a_run_when_they_compete(hf: Holdfast) -> None:
    seen = Seen()
    flow = counting(seen, pause=0.002)
    runs = [await put(hf, flow, str(i)) for i in range(30)]

    await asyncio.gather(*(Worker(flow, on=hf, concurrency=4).run_until_idle() for _ in range(3)))

    assert {await status(hf, run) for run in runs} == {RunStatus.completed}
    assert Counter(seen.order) == Counter(str(i) for i in range(30))


@pytest.mark.covers("CORE-WORK-09")
async def test_worker_leaves_other_lanes_alone_when_it_has_lanes(hf: Holdfast) -> None:
    flow = counting(Seen())
    slow, fast = await put(hf, flow, lane="slow"), await put(hf, flow, lane="fast")

    await Worker(flow, on=hf, lanes=["fast"]).run_until_idle()

    assert (await status(hf, slow), await status(hf, fast)) == (RunStatus.pending, RunStatus.completed)


async def test_worker_leaves_runs_of_flows_that_it_does_not_carry(hf: Holdfast) -> None:
    other, mine = asking(), counting(Seen())
    theirs = await put(hf, other)
    worker = Worker(mine, on=hf)

    await worker.run_until_idle()

    assert await status(hf, theirs) is RunStatus.pending


@pytest.mark.covers("CORE-WORK-10")
async def test_worker_takes_the_higher_priority_first_when_both_are_ready(hf: Holdfast) -> None:
    seen = Seen()
    flow = counting(seen)
    for name, priority in (("low", 1), ("high", 9), ("middle", 5)):
        await put(hf, flow, name, priority=priority)

    await Worker(flow, on=hf, concurrency=1).run_until_idle()

    assert seen.order == ["high", "middle", "low"]


@pytest.mark.covers("CORE-WORK-11")
async def test_worker_serves_tenants_in_turn_when_one_has_many_runs(hf: Holdfast) -> None:
    seen = Seen()
    flow = counting(seen)
    for i in range(5):
        await put(hf, flow, f"big{i}", tenant="big")
    await put(hf, flow, "small", tenant="small")

    await Worker(flow, on=hf, concurrency=1).run_until_idle()

    assert seen.order.index("small") <= 1


@pytest.mark.covers("R-34", "CORE-WORK-05")
async def test_reaper_makes_a_run_resumable_when_its_worker_died() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        flow = counting(Seen())
        run = await put(hf, flow)
        await dead_worker_has(hf, run)
        reaper = Reaper(await hf.open(), clock)

        assert await reaper.sweep() == []
        clock.advance(seconds=2)
        assert [row.id for row in await reaper.sweep()] == [run]
        assert await status(hf, run) is RunStatus.resumable

        await Worker(flow, on=hf).run_until_idle()
        assert await status(hf, run) is RunStatus.completed


@pytest.mark.covers("R-61")
async def test_reaper_fails_a_run_with_the_evidence_when_it_keeps_killing_workers() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        run = await put(hf, counting(Seen()))
        reaper = Reaper(await hf.open(), clock, max_recoveries=2)
        for _ in range(3):
            await dead_worker_has(hf, run)
            clock.advance(seconds=2)
            await reaper.sweep()

        row = await (await hf.service()).get(run)
        assert row.status is RunStatus.failed
        assert "dead" in (row.error or "")
        assert row.recoveries == 3


@pytest.mark.covers("CORE-WORK-05")
async def test_worker_takes_over_when_another_died_while_it_serves(hf: Holdfast) -> None:
    flow = counting(Seen())
    run = await put(hf, flow)
    await dead_worker_has(hf, run, ttl=SECOND // 20)
    hf._settings = RunSettings(lease_ttl=0.3, lease_margin=0.05)

    async with Worker(flow, on=hf, poll=0.02):
        await until(hf, run, RunStatus.completed)


async def test_worker_goes_on_when_the_answer_comes_while_the_run_is_in_memory(hf: Holdfast) -> None:
    flow = asking()
    run = await put(hf, flow)
    service = await hf.service()

    async with Worker(flow, on=hf, poll=0.02) as worker:
        holds = []
        async with asyncio.timeout(HANG):
            while not holds:
                holds = await service.holds(run)
                await asyncio.sleep(0.01)
            assert worker._worker is not None
            # The hold was opened with the run.
            while run not in worker._worker.runtime.drivers:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await service.answer(holds[0].id, "yes")
        await until(hf, run, RunStatus.completed)


@pytest.mark.covers("CORE-HOLD-01", "CORE-HOLD-03", "R-62")
async def test_worker_parks_a_waiting_run_when_the_hot_time_is_over(hf: Holdfast) -> None:
    flow = asking()
    run = await put(hf, flow)
    service = await hf.service()

    async with Worker(flow, on=hf, poll=0.02, hot_hold=0.05) as worker:
        await until(hf, run, RunStatus.pending_input)
        assert worker._worker is not None
        # Its status says so while it is in memory, too; parked means that nobody has it any more.
        async with asyncio.timeout(HANG):
            held = True
            while held:
                await asyncio.sleep(0.01)
                held = (await service.get(run)).worker is not None or run in worker._worker.runtime.drivers
        (hold,) = await service.holds(run)
        await service.answer(hold.id, "yes")
        await until(hf, run, RunStatus.completed)


async def test_waiting_runs_leave_their_slot_to_others_while_they_are_in_memory(hf: Holdfast) -> None:
    asks, counts = asking(), counting(Seen())
    waiting = [await put(hf, asks) for _ in range(3)]
    async with Worker(asks, counts, on=hf, concurrency=1, poll=0.02):
        run = await put(hf, counts)
        await until(hf, run, RunStatus.completed)
        for each in waiting:
            await until(hf, each, RunStatus.pending_input)


async def test_memory_that_is_full_of_waiting_runs_keeps_no_other_from_beginning(hf: Holdfast) -> None:
    flow, service = asking(), await hf.service()
    async with Worker(flow, on=hf, concurrency=1, hot_limit=2, hot_hold=3600.0, poll=0.02) as worker:
        runs = [await put(hf, flow) for _ in range(8)]
        for run in runs:
            await until(hf, run, RunStatus.pending_input)
        assert worker._worker is not None
        assert worker._worker.slots.hot <= 3
        # Those that left memory are taken up again by their answer, like those that stayed.
        for run in runs:
            (hold,) = await service.holds(run)
            await service.answer(hold.id, "yes")
        for run in runs:
            await until(hf, run, RunStatus.completed)


async def until_told_to_stop(worker: Worker, run: str) -> None:
    made = worker._worker
    assert made is not None
    async with asyncio.timeout(HANG):
        while not made.runtime.drivers[RunId(run)].session.draining:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.covers("CORE-WORK-08")
async def test_stopping_worker_lets_the_step_finish_and_gives_the_run_back(hf: Holdfast) -> None:
    flow = Flow("two", effect="pure")
    began, may_end = asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    @flow.node
    async def one(s: dict) -> dict:
        calls.append("one")
        began.set()
        await may_end.wait()
        return {"one": True}

    @flow.node
    async def two(s: dict) -> dict:
        calls.append("two")
        return {"two": True}

    flow.edge(one, two)
    run = await put(hf, flow)
    async with Worker(flow, on=hf, poll=0.02) as worker:
        await began.wait()
        stopping = asyncio.create_task(worker.stop())
        await until_told_to_stop(worker, run)
        may_end.set()
        await stopping
        assert await status(hf, run) is RunStatus.resumable
    assert calls == ["one"]

    await Worker(flow, on=hf).run_until_idle()
    assert calls == ["one", "two"]
    assert await status(hf, run) is RunStatus.completed


@pytest.mark.covers("CORE-WORK-08")
async def test_stopping_worker_gives_the_run_back_when_the_step_outlasts_the_grace(hf: Holdfast) -> None:
    flow = Flow("endless", effect="pure")
    began = asyncio.Event()

    @flow.node
    async def endless(s: dict) -> dict:
        began.set()
        await asyncio.sleep(3600)
        return {}

    run = await put(hf, flow)
    async with Worker(flow, on=hf, grace=0.05, poll=0.02):
        await began.wait()

    row = await (await hf.service()).get(run)
    assert (row.status, row.worker) == (RunStatus.resumable, None)


@pytest.mark.covers("CORE-WORK-03")
async def test_worker_ends_a_driver_quietly_when_its_lease_was_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flow = Flow("slow", effect="pure")
    began, may_end = asyncio.Event(), asyncio.Event()

    @flow.node
    async def slow(s: dict) -> dict:
        began.set()
        await may_end.wait()
        return {}

    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        run = await put(hf, flow)
        store = await hf.open()
        async with Worker(flow, on=hf, poll=0.02) as worker:
            await began.wait()
            clock.advance(minutes=5)
            assert await store.claim(ClaimRequest(worker="other", ttl=600 * SECOND, run=run))
            may_end.set()
            async with asyncio.timeout(HANG):
                while worker._worker._runs:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        assert (await (await hf.service()).get(run)).worker == "other"
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


async def test_worker_goes_on_when_the_store_comes_back(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = counting(Seen())
    store = await hf.open()
    real, failures = store.claim, []

    async def flaky(want: ClaimRequest) -> object:
        if len(failures) < 2:
            failures.append(want)
            raise StoreUnavailableError("the disk is away")
        return await real(want)

    monkeypatch.setattr(store, "claim", flaky)
    service = await hf.service()
    row, _ = await service.create(flow.program(), {"name": "x"})
    async with Worker(flow, on=hf, poll=0.02):
        await until(hf, row.id, RunStatus.completed)
    assert len(failures) == 2


async def test_run_goes_on_without_a_mark_against_it_when_the_disk_was_full_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.runs.recorder.recorder.RETRY_DELAYS", ())
    async with Holdfast("memory:") as hf:
        flow = counting(Seen())
        run = await put(hf, flow)
        store = await hf.open()
        real, failures = store.settle_now, []

        def full(batches: object) -> object:
            if len(failures) < 4:
                failures.append(batches)
                raise StoreFullError("no room on the disk")
            return real(batches)

        monkeypatch.setattr(store, "settle_now", full)
        async with Worker(flow, on=hf, poll=0.02):
            await until(hf, run, RunStatus.completed)

        assert failures
        assert (await (await hf.service()).get(run)).recoveries == 0


async def test_worker_lets_others_go_first_when_its_code_is_refused(hf: Holdfast) -> None:
    def with_code(fn: object) -> Flow:
        flow = Flow("pinned", effect="pure", code_change="refuse")
        flow.hold("approve", prompt="?", options=["yes"])
        flow.edge("approve", flow.node(id="after")(fn))
        return flow

    old = with_code(_nothing)
    run = await put(hf, old)
    await Worker(old, on=hf).run_until_idle()
    service = await hf.service()
    await service.answer((await service.holds(run))[0].id, "yes")

    async with asyncio.timeout(HANG):
        await Worker(with_code(_something_else), on=Holdfast(await hf.open())).run_until_idle()

    row = await service.get(run)
    assert (row.status, row.worker) == (RunStatus.pending_input, None)
    assert row.ready_at is not None
    assert row.ready_at > service.store.now()


@pytest.mark.covers("CORE-FLOW-18", "CORE-WORK-06")
async def test_timer_sweep_wakes_a_parked_run_when_its_time_has_come() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock, settings=RunSettings(hot_timer=0)) as hf:
        flow = Flow("sleepy", effect="pure")
        rest = flow.timer("rest", "1h")
        after = flow.node(id="after")(_nothing)
        flow.edge(rest, after)
        run = await put(hf, flow)
        worker = Worker(flow, on=hf)
        await worker.run_until_idle()
        assert await status(hf, run) is RunStatus.waiting

        sweep = TimerSweep(await hf.open(), clock)
        assert await sweep.sweep() == 0
        clock.advance(hours=1)
        assert await sweep.sweep() == 1
        await worker.run_until_idle()
        assert await status(hf, run) is RunStatus.completed


async def test_worker_leaves_when_it_is_stopped_before_it_began(hf: Holdfast) -> None:
    worker = Worker(on=hf)
    async with asyncio.timeout(HANG):
        async with worker:
            pass  # stopped before its first turn
        async with worker:
            await asyncio.sleep(0)


@pytest.mark.covers("CORE-WORK-02")
async def test_a_worker_goes_on_with_a_duty_when_a_slip_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runs.worker.worker.RESTART_PAUSE", 0.001)
    async with Holdfast("memory:") as hf:
        worker = RunWorker(await hf.new_service())
        swept, slips = asyncio.Event(), iter([TypeError("a slip"), None])

        async def slip() -> None:
            error = next(slips, None)
            if error is not None:
                raise error
            swept.set()
            await asyncio.sleep(60)

        monkeypatch.setattr(worker.reaper, "serve", slip)
        async with worker, asyncio.timeout(HANG):
            await swept.wait()


@pytest.mark.covers("CORE-WORK-02")
async def test_a_worker_says_so_when_it_cannot_claim_for_a_slip(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Holdfast("memory:") as hf:
        worker = RunWorker(await hf.new_service())

        async def slip() -> int:
            raise TypeError("a slip")

        monkeypatch.setattr(worker, "_claim", slip)
        with pytest.raises(TypeError, match="a slip"):
            await asyncio.wait_for(worker.serve(), HANG)


@pytest.mark.covers("CORE-WORK-08")
async def test_a_worker_that_works_until_idle_stops_when_it_is_asked_to() -> None:
    async with Holdfast("memory:") as hf:
        flow = Flow("endless", effect="pure")
        flow.loop(flow.node(id="turn")(_turn), "turn", when="true", max=1_000_000)
        worker = Worker(flow, on=hf, grace=1.0)
        run = await put(hf, flow)
        working = asyncio.create_task(worker.run_until_idle())
        while await status(hf, run) is not RunStatus.running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await worker.stop()
        await asyncio.wait_for(working, HANG)
        assert await status(hf, run) is RunStatus.resumable


async def _turn() -> None:
    await asyncio.sleep(0.001)
