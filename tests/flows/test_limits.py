"""Flows with limits: runs wait in line for their place, and give it back when they only wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from holdfast import Flow, Holdfast, InputError, LimitReachedError, Limits, RunStatus, Worker
from holdfast.errors import FlowInvalidError, StateError
from holdfast.types.redaction import Secret
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


class Counted:
    """A flow whose node tells how many of it go on at once; the first `enough` wait for each other."""

    def __init__(self, limits: Limits | None, seconds: float = 0.02, enough: int = 1) -> None:
        self.inside = self.most = 0
        self.enough, self.full = enough, asyncio.Event()
        self.seconds = seconds
        self.flow = Flow("counted", effect="pure", limits=limits)
        self.flow.node(id="work", effect="pure")(self.work)

    async def work(self, s: Any) -> dict[str, Any]:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside >= self.enough:
            self.full.set()
        await self.full.wait()
        await asyncio.sleep(self.seconds)
        self.inside -= 1
        return {"done": True}


@pytest.mark.covers("FLEET-WORK-03")
async def test_runs_wait_in_line_and_all_come_to_their_end(hf: Holdfast) -> None:
    counted = Counted(Limits(concurrency=2), enough=2)
    results = await asyncio.gather(*(counted.flow.run({}, on=hf) for _ in range(6)))
    assert {result.status for result in results} == {RunStatus.completed}
    assert counted.most == 2


async def test_without_limits_nobody_waits(hf: Holdfast) -> None:
    counted = Counted(None, enough=4)
    await asyncio.gather(*(counted.flow.run({}, on=hf) for _ in range(4)))
    assert counted.most == 4


@pytest.mark.covers("FLEET-WORK-03")
async def test_key_is_made_of_the_input_or_of_the_runs_own_names(hf: Holdfast) -> None:
    counted = Counted(Limits(key="{{order.customer}}@{{tenant}}", per_key=1))
    service = await hf.service()
    program = counted.flow.program()
    rows = [
        (await service.create(program, {"order": {"customer": who}}, tenant=tenant))[0]
        for who, tenant in (("ann", "default"), ("ann", "acme"), ("a/b", "acme"))
    ]
    assert [row.limit for row in rows] == [
        "flow:counted/ann@default",
        "flow:counted/ann@acme",
        "flow:counted/a%2Fb@acme",
    ]
    with pytest.raises(StateError, match=r"the input has no order\.customer"):
        await service.create(program, {"order": {}})


@pytest.mark.covers("FLEET-WORK-03")
async def test_run_that_waits_for_a_person_gives_its_place_back(hf: Holdfast) -> None:
    flow = Flow("asking", effect="pure", limits=Limits(concurrency=1))
    flow.hold("ask", prompt="Go on?", options=["yes"])
    first = await flow.run({}, on=hf)
    second = await flow.run({}, on=hf)
    assert {first.status, second.status} == {RunStatus.pending_input}
    service = await hf.service()
    await service.answer(first.holds[0].id, "yes")
    assert (await flow.resume(first.run_id, on=hf)).status is RunStatus.completed


@pytest.mark.covers("FLEET-WORK-03")
async def test_run_that_goes_on_waits_in_line_like_a_new_one(hf: Holdfast) -> None:
    counted = Counted(Limits(concurrency=1), 0.3)
    flow = Flow("counted", effect="pure", limits=Limits(concurrency=1))
    flow.hold("ask", prompt="Go on?", options=["yes"])
    asked = await flow.run({}, on=hf)
    await (await hf.service()).answer(asked.holds[0].id, "yes")
    busy = asyncio.create_task(counted.flow.run({}, on=hf))
    while not counted.inside:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert (await flow.resume(asked.run_id, on=hf)).status is RunStatus.completed
    assert busy.done()


@pytest.mark.covers("FLEET-WORK-03")
@pytest.mark.parametrize("in_a_thread", [False, True])
async def test_run_that_waits_for_its_own_place_is_reported(bare_hf: Holdfast, in_a_thread: bool) -> None:
    flow = Flow("nest", effect="pure", limits=Limits(concurrency=1))

    async def nested(s: Any) -> dict[str, Any]:
        await flow.run({}, on=bare_hf)
        return {}

    def nested_in_a_thread(s: Any) -> dict[str, Any]:
        # A store and a loop of its own: nobody here knows what the run is started from but the thread.
        flow.run_sync({}, on=bare_hf)
        return {}

    flow.node(id="work", effect="pure")(nested_in_a_thread if in_a_thread else nested)
    result = await asyncio.wait_for(flow.run({}, on=bare_hf), HANG)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert result.error.code == "gate_shut"
    assert "Make it a sub-flow" in result.error.message
    # The one that would have waited is not left behind.
    service = await bare_hf.service()
    assert len(await service.list(_all())) == 1


def _all() -> Any:
    from holdfast.store.rows import RunFilter

    return RunFilter()


@pytest.mark.covers("FLEET-WORK-03")
async def test_run_in_line_is_cancelled_without_a_place(hf: Holdfast) -> None:
    counted = Counted(Limits(concurrency=1), 0.5)
    service = await hf.service()
    busy = asyncio.create_task(counted.flow.run({}, on=hf))
    while not counted.inside:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    row, _ = await service.create(counted.flow.program(), {})
    with pytest.raises(LimitReachedError, match=r"flow:counted allows 1 at once, and 1 are running"):
        await service.runtime.claim(row.id)
    await service.cancel(row.id)
    assert (await counted.flow.resume(row.id, on=hf)).status is RunStatus.cancelled
    assert not busy.done()
    await busy


async def test_fork_stands_at_the_gate_of_its_source(hf: Holdfast) -> None:
    counted = Counted(Limits(key="{{who}}", per_key=1))
    done = await counted.flow.run({"who": "ann"}, on=hf)
    service = await hf.service()
    fork = await service.fork(done.run_id, 0)
    assert fork.limit == "flow:counted/ann"


@pytest.mark.covers("FLEET-WORK-03")
async def test_worker_and_program_share_the_places(hf: Holdfast) -> None:
    counted = Counted(Limits(concurrency=2), 0.05)
    service = await hf.service()
    async with Worker(counted.flow, on=hf, poll=0.2):
        for _ in range(4):
            await service.create(counted.flow.program(), {})
        results = await asyncio.gather(*(counted.flow.run({}, on=hf) for _ in range(4)))
    assert {result.status for result in results} == {RunStatus.completed}
    assert counted.most == 2


@pytest.mark.covers("FLEET-WORK-04")
async def test_rate_lets_runs_start_one_after_the_other(hf: Holdfast) -> None:
    counted = Counted(Limits(rate="2/400ms"), 0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(counted.flow.run({}, on=hf) for _ in range(5)))
    assert 0.8 <= loop.time() - began < 5


async def test_limits_are_no_part_of_a_version() -> None:
    assert Counted(None).flow.program().version == Counted(Limits(concurrency=2)).flow.program().version


@dataclass
class Order:
    customer: str
    card: Annotated[str, Secret] = ""


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(key="{{custmer}}", per_key=1), "names 'custmer', which the input does not have"),
        (Limits(key="{{card}}", per_key=1), "names 'card', which is secret"),
        (Limits(key="{{customer", per_key=1), "is never closed"),
        (Limits(key="all", per_key=1), "is the same for every run"),
        ({"concurrency": 2}, "is not Limits"),
    ],
)
def test_limits_are_checked_when_the_flow_is_compiled(limits: Any, said: str) -> None:
    flow = Flow("orders", Order, limits=limits)
    flow.node(id="work", effect="pure")(dict)
    with pytest.raises(FlowInvalidError, match=said):
        flow.compile()
    assert issubclass(FlowInvalidError, InputError)


def test_limits_of_a_part_are_said_to_count_nothing() -> None:
    part = Flow("part", effect="pure", limits=Limits(concurrency=1))
    part.node(id="work", effect="pure")(dict)
    flow = Flow("whole", effect="pure")
    flow.subflow("part", part)
    assert ["have no effect here" in problem.message for problem in flow.problems()] == [True]
