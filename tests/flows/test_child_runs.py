"""Child runs of scripts: started once for each place, waited for without a process, cancelled with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, RunStatus, Worker
from holdfast.errors import ChildFailedError, WaitTimeoutError
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId
from tests.flows.places import RUN, Place, answer, open_holds

pytestmark = pytest.mark.anyio


@dataclass
class Sum:
    n: int = 0
    doubled: int = 0


double = Flow("double", state=Sum, effect="read")


@double.node
async def work(s: Sum) -> dict[str, Any]:
    if s.n < 0:
        raise ValueError("negative")
    return {"doubled": s.n * 2}


asking = Flow("asking", effect="read")
asking.hold("ask", prompt="How many?", type="freeform", bind="many")

PARENT = Flow("parent", effect="read")


@PARENT.script
async def parent(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if "ask" in s:
        found = await ctx.call(asking, {})
        return {"many": found["many"]}
    try:
        found = await ctx.call(double, {"n": s["n"]})
    except ChildFailedError as error:
        return {"error": str(error), "status": error.facts["status"]}
    return {"doubled": found.doubled}


@pytest.mark.covers("USERS-CHILD-CALL")
async def test_a_script_calls_a_flow_and_gets_its_state(place: Place) -> None:
    hf = await instance(place)
    result = await PARENT.run({"n": 21}, on=hf)
    assert result.expect().state["doubled"] == 42


@pytest.mark.covers("USERS-CHILD-FAIL")
async def test_the_failure_of_a_child_is_an_error_that_the_script_handles(place: Place) -> None:
    result = await PARENT.run({"n": -1}, on=await instance(place))
    assert result.expect().state["status"] == "failed"
    assert "negative" in result.state["error"]


@pytest.mark.covers("USERS-CHILD-CALL", "USERS-CHILD-PLACE")
async def test_a_parent_waits_for_its_child_without_a_process(place: Place) -> None:
    hf = await instance(place)
    result = await PARENT.run({"ask": True}, on=hf)
    assert result.status is RunStatus.pending_input
    child = await only_child(hf, result.run_id)
    # Entered again, it starts no second one.
    assert (await PARENT.resume(result.run_id, on=await instance(place))).status is RunStatus.pending_input
    await answer(hf, child, "seven")
    assert (await asking.resume(child, on=await instance(place))).completed
    result = await PARENT.resume(result.run_id, on=await instance(place))
    assert result.expect().state["many"] == "seven"
    assert await only_child(hf, result.run_id) == child


async def instance(place: Place) -> Holdfast:
    """It has the code of the children, as a worker would."""
    hf = await place.hf()
    for flow in (double, asking):
        hf.register(flow.compile())
    return hf


async def only_child(hf: Any, run: str) -> str:
    (child,) = await (await hf.service()).children(run)
    return child.id


@pytest.mark.covers("USERS-CHILD-START")
async def test_children_run_beside_each_other_and_give_their_results_later(place: Place) -> None:
    flow = Flow("several", effect="read")

    @flow.script
    async def several(ctx: Context) -> dict[str, Any]:
        started = await asyncio.gather(*(ctx.start(double, {"n": n}, key=str(n)) for n in range(3)))
        ends = [await child.result() for child in started]
        return {"sum": sum(end.doubled for end in ends), "runs": [child.run_id for child in started]}

    hf = await instance(place)
    result = await flow.run(on=hf)
    assert result.expect().state["sum"] == 6
    children = await (await hf.service()).children(result.run_id)
    assert sorted(child.id for child in children) == sorted(result.state["runs"])


@pytest.mark.covers("USERS-CHILD-CALL", "USERS-CHILD-CANCEL", "D-35")
@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_child_that_is_rewound_is_the_child_that_its_parent_waits_for(
    place: Place, cancelled: bool
) -> None:
    hf = await instance(place)
    result = await PARENT.run({"ask": True}, on=hf)
    service = await hf.service()
    rewound = await service.rewind(await only_child(hf, result.run_id), 0)
    result = await PARENT.resume(result.run_id, on=hf)
    assert result.status is RunStatus.pending_input
    child = await asking.resume(rewound.id, on=await instance(place))
    if cancelled:
        await service.cancel(result.run_id)
        assert (await asking.resume(rewound.id, on=await instance(place))).status is RunStatus.cancelled
        return
    await answer(hf, child, "seven")
    child = await asking.resume(rewound.id, on=await instance(place))
    assert child.completed
    assert (await PARENT.resume(result.run_id, on=hf)).expect().state["many"] == child.state["many"]


@pytest.mark.covers("USERS-CHILD-CANCEL")
async def test_a_cancelled_run_cancels_its_children_but_not_detached_ones(place: Place) -> None:
    flow = Flow("cancelled", effect="read")

    @flow.script
    async def start_two(ctx: Context) -> dict[str, Any]:
        own = await ctx.start(asking, {})
        other = await ctx.start(asking, {}, detached=True)
        await ctx.ask(f"{own.run_id} {other.run_id}?", options=["yes"])
        return {}

    hf = await instance(place)
    result = await flow.run(on=hf)
    (hold,) = await open_holds(hf, result)
    own, other = hold.prompt.rstrip("?").split()
    service = await hf.service()
    await service.cancel(result.run_id)
    for run, status in ((own, RunStatus.cancelled), (other, RunStatus.pending_input)):
        assert (await asking.resume(run, on=await instance(place))).status is status, run


@pytest.mark.covers("USERS-CHILD-CANCEL")
@pytest.mark.parametrize("point", ["after_claim", "inside_settle", "after_settle"])
async def test_no_child_runs_on_when_those_who_cancel_its_parent_die(place: Place, point: str) -> None:
    flow = Flow("abandoned", effect="read")

    @flow.script
    async def start_two(ctx: Context) -> None:
        await ctx.start(asking, {})
        await ctx.start(asking, {}, detached=True)
        await ctx.ask("On?", options=["yes"])

    hf = await instance(place)
    result = await flow.run(on=hf)
    child = await only_child(hf, result.run_id)
    store = await hf.open()
    # All that a process had done that died while it cancelled the run.
    assert await store.send(RunId(result.run_id), "cancel", b'{"reason": "enough", "by": "ada"}')
    await place.die_at(point, 1, Worker(flow, asking, on=hf).run_until_idle)
    later = await (await place.finish(flow, asking)).service()
    statuses = Counter([row.status for row in await later.list(RunFilter())])
    assert statuses == {RunStatus.cancelled: 2, RunStatus.pending_input: 1}
    assert "its parent run" in str((await later.get(child)).error)


@pytest.mark.covers("USERS-CHILD-CALL", "USERS-BAD-CHILD")
async def test_a_wait_for_a_child_that_never_ends_is_over_in_time(place: Place) -> None:
    flow = Flow("patient", effect="read")

    @flow.script
    async def wait(ctx: Context) -> dict[str, Any]:
        try:
            return await ctx.call(asking, {}, timeout="1h")
        except WaitTimeoutError as error:
            return {"error": str(error)}

    hf = await instance(place)
    result = await flow.run(on=hf)
    place.clock.advance(hours=2)
    await (await hf.service()).runtime.sweep_holds()
    result = await flow.resume(result.run_id, on=await instance(place))
    assert "did not come in time" in result.expect().state["error"]


@pytest.mark.covers("USERS-CHILD-DEPTH")
async def test_recursion_without_end_stops_with_a_typed_error(place: Place) -> None:
    flow = Flow("again", effect="read")

    @flow.script
    async def again(ctx: Context) -> Any:
        return await ctx.call("again", {})

    hf = await instance(place)
    result = await flow.run(on=hf)
    assert result.status is RunStatus.failed
    service = await hf.service()
    run, depth = RunId(result.run_id), 0
    while found := await service.children(run):
        run, depth = found[0].id, depth + 1
    assert (depth, "ChildDepthError" in str((await service.get(run)).error)) == (32, True)


@pytest.mark.covers("USERS-CHILD-CALL")
async def test_a_script_in_a_thread_calls_a_flow(place: Place) -> None:
    flow = Flow("threaded_parent", effect="read")

    @flow.script
    def call(ctx: Context) -> dict[str, Any]:
        child = ctx.start(double, {"n": 1})
        return {"sum": child.result().doubled + ctx.call(double, {"n": 2}).doubled}  # type: ignore[attr-defined]

    assert (await flow.run(on=await instance(place))).expect().state["sum"] == 6


@pytest.mark.covers("USERS-CHILD-KILL", "USERS-CHILD-PLACE")
@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("after_intent", 1),  # before the child is created
        ("after_substep", 1),  # it is created, its parent has not recorded it
        ("after_settle", 4),
        ("inside_settle", 2),  # in the thread that writes, on SQLite
        ("after_handler", 1),  # inside the child
        ("after_answer", 1),  # the parent was told, and has not read it
        ("after_substep", 2),  # its state was read
    ],
)
async def test_each_child_runs_once_when_workers_die_around_it(place: Place, point: str, nth: int) -> None:
    await kill_around_a_child(place, point, nth)


@pytest.mark.soak
@pytest.mark.covers("USERS-CHILD-KILL")
@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("point", ["after_settle", "after_substep", "after_answer", "inside_settle"])
async def test_each_child_runs_once_when_workers_die_at_any_commit(
    place: Place, point: str, nth: int
) -> None:
    await kill_around_a_child(place, point, nth, may_miss=True)


async def kill_around_a_child(place: Place, point: str, nth: int, *, may_miss: bool = False) -> None:
    log: list[str] = []
    child, parent = Flow("charged", effect="read"), Flow("charges", effect="read")

    @child.node(effect="external", idempotency_key="charge-{{n}}")
    async def charge(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        log.append(ctx.run_id)
        return {"charged": s["n"]}

    @parent.script
    async def charges(ctx: Context) -> dict[str, Any]:
        paid = [(await ctx.call(child, {"n": n}))["charged"] for n in range(2)]
        return {"paid": paid}

    async def work() -> None:
        hf = await place.hf()
        await (await hf.service()).create(parent.compile(), {}, run_id=RUN)
        await Worker(parent, child, on=hf).run_until_idle()

    await place.die_at(point, nth, work, may_miss=may_miss)
    later = await place.finish(parent, child)
    result = await parent.result(RUN, on=later)
    assert result.expect().state["paid"] == [0, 1]
    children = await (await later.service()).children(RunId(RUN))
    assert [child.status for child in children] == [RunStatus.completed] * 2
    assert len(set(log)) == 2
