from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from holdfast import Flow, RunSettings, RunStatus, all_of
from tests.deadlines import HANG
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


def nap(log: list[str], length: str | None = "1h", *, until: str | None = None) -> Flow:
    flow = Flow("nap", effect="read")

    @flow.node
    async def before() -> dict[str, Any]:
        log.append("before")
        return {"kept": (1, Decimal("1.10")), "table": {1: "one"}}

    flow.timer("sleep", length, until=until)

    @flow.node
    async def after(s: dict[str, Any]) -> dict[str, Any]:
        log.append("after")
        return {"same": s["kept"] == (1, Decimal("1.10")) and s["table"][1] == "one"}

    flow.edge(before, "sleep")
    flow.edge("sleep", after)
    return flow


@pytest.mark.covers(
    "CORE-FLOW-18", "D-30", "D-31", "RS-PAUSE-1", "RS-PAUSE-2", "RS-PAUSE-4", "RS-PAUSE-8", "RS-PAUSE-11"
)
async def test_a_timer_parks_the_run_and_every_step_runs_once_when_it_is_over(place: Place) -> None:
    log: list[str] = []
    flow = nap(log)
    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    assert log == ["before"]
    place.clock.advance(hours=1)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed
    assert result.state["same"] is True
    assert log == ["before", "after"]


@pytest.mark.covers("RS-PAUSE-3", "D-5")
async def test_the_wake_time_stays_when_the_run_is_resumed_early(place: Place) -> None:
    log: list[str] = []
    flow = nap(log)
    hf = await place.hf()
    result = await flow.run(on=hf)
    for _ in range(3):
        place.clock.advance(minutes=15)
        result = await flow.resume(result.run_id, on=await place.hf())
        assert result.status is RunStatus.waiting
    place.clock.advance(minutes=15)
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    (armed,) = await told(hf, result, "timer.started")
    assert armed.data["wake_at"] - armed.at == 3600 * 1_000_000


@pytest.mark.covers("CORE-FLOW-18")
async def test_a_timer_waits_as_long_as_its_expression_says(place: Place) -> None:
    log: list[str] = []
    flow = nap(log, None, until="pause")
    hf = await place.hf()
    result = await flow.run({"pause": 90}, on=hf)
    place.clock.advance(seconds=89)
    assert (await flow.resume(result.run_id, on=hf)).status is RunStatus.waiting
    place.clock.advance(seconds=1)
    assert (await flow.resume(result.run_id, on=hf)).completed


@pytest.mark.covers("RS-PAUSE-6")
async def test_runs_of_one_flow_keep_their_own_times(place: Place) -> None:
    flow = nap([])
    hf = await place.hf()
    first = await flow.run(on=hf)
    place.clock.advance(minutes=30)
    second = await flow.run(on=hf)
    place.clock.advance(minutes=30)
    assert (await flow.resume(first.run_id, on=hf)).completed
    assert (await flow.resume(second.run_id, on=hf)).status is RunStatus.waiting


@pytest.mark.covers("CORE-FLOW-18")
async def test_a_short_timer_is_waited_for_in_memory(place: Place) -> None:
    log: list[str] = []
    flow = nap(log, "5s")
    hf = await place.hf(RunSettings(hot_timer=30.0, lease_ttl=60.0, poll=0.02))
    driving = asyncio.create_task(flow.run(on=hf))
    while not place.clock.sleeping:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert log == ["before"]
    place.clock.advance(seconds=5)
    assert (await asyncio.wait_for(driving, HANG)).completed


@pytest.mark.covers("D-31", "RS-PAUSE-7")
async def test_a_run_needs_a_person_when_one_branch_asks_and_another_sleeps(place: Place) -> None:
    log: list[str] = []
    flow = nap(log)
    flow.hold("gate", prompt="Go?", options=["yes"])
    flow.edge("before", "gate")
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    place.clock.advance(hours=1)
    result = await flow.resume(result.run_id, on=hf)
    # The sleeping branch has gone on; the question is still open.
    assert log == ["before", "after"]
    assert result.status is RunStatus.pending_input
    assert len(await open_holds(hf, result)) == 1
    await answer(hf, result, "yes")
    assert (await flow.resume(result.run_id, on=hf)).completed


@pytest.mark.covers("D-31")
async def test_a_run_is_running_when_it_has_an_open_question_and_a_branch_at_work(place: Place) -> None:
    flow = Flow("works", effect="read")
    statuses: list[RunStatus] = []
    hf = await place.hf()

    @flow.node
    async def start() -> dict[str, Any]:
        return {}

    flow.hold("gate", prompt="Go?", options=["yes"])

    @flow.node
    async def works() -> dict[str, Any]:
        service = await hf.service()
        while not (holds := await service.holds()):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        statuses.append((await service.get(holds[0].run)).status)
        return {}

    flow.edge(start, "gate")
    flow.edge(start, works)
    result = await flow.run(on=hf)
    assert statuses == [RunStatus.running]
    assert result.status is RunStatus.pending_input


@pytest.mark.covers("D-30")
async def test_a_timer_is_gone_when_the_wait_that_it_belongs_to_is_over(place: Place) -> None:
    flow = Flow("gate", effect="pure")
    flow.hold("gate", prompt="Go?", options=["yes"], timeout="1h")

    @flow.node
    async def beside() -> None: ...

    @flow.node(join=all_of(timeout="2h"))
    async def end() -> None: ...

    flow.start("gate", beside)
    flow.edge("gate", end)
    flow.edge(beside, end)
    hf = await place.hf()
    result = await flow.run(on=hf)
    store = await hf.open()
    assert await store.next_timer() is not None
    assert await store.next_due_hold() is not None
    await answer(hf, result, "yes")
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert await store.next_timer() is None
    assert await store.next_due_hold() is None
