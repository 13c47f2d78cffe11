"""Breakpoints of one run: `breaks=`, kept with it, whatever its flow says."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from holdfast import (
    AnswerInvalidError,
    Flow,
    Holdfast,
    InputError,
    RunStatus,
)
from holdfast.store.rows import RunFilter
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.ids import RunId
from tests.deadlines import HANG
from tests.flows.conftest import node
from tests.flows.places import HOT, RUN, Place, answer, open_holds
from tests.flows.stops import inner, plain, the_stop, with_stop

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TOOL-CLI-22")
async def test_break_of_a_run_changes_no_version_and_stops_this_run_only(hf: Holdfast) -> None:
    log: list[str] = []
    flow = plain(log)
    free = await flow.run({}, on=hf)
    stopped = await flow.run({}, on=hf, breaks=["two"])
    service = await hf.service()
    assert (await service.get(free.run_id)).version == (await service.get(stopped.run_id)).version
    assert (free.status, stopped.status) == (RunStatus.completed, RunStatus.pending_input)
    assert log == ["one", "two", "three", "one"]
    assert (await the_stop(hf, stopped.run_id)).node == "two__breakpoint"
    await answer(hf, stopped, "continue")
    assert (await flow.resume(stopped.run_id, on=hf)).completed


@pytest.mark.covers("TOOL-CLI-22")
@pytest.mark.parametrize("point", ["inside_settle", "after_settle", "before_park", "after_park"])
async def test_break_of_a_run_survives_the_death_of_its_worker(place: Place, point: str) -> None:
    log: list[str] = []
    flow, hf = plain(log), await place.hf()
    with armed(point) as reached, suppress(Crash):
        await flow.run({}, on=hf, run_id=RUN, breaks=["two", "three"])
    assert reached.reached
    place.lapse()
    hf = await place.hf()
    for name in ("two", "three"):
        result = await flow.resume(RUN, on=hf)
        assert result.status is RunStatus.pending_input
        assert (await the_stop(hf, RUN)).node == f"{name}__breakpoint"
        assert name not in log
        await answer(hf, RUN, "continue")
    assert (await flow.resume(RUN, on=hf)).completed
    assert log[-2:] == ["two", "three"]


async def test_node_runs_when_its_worker_died_after_the_continue_was_recorded(place: Place) -> None:
    log: list[str] = []
    flow = plain(log)
    hf = await place.hf()
    waiting = await flow.run({}, on=hf, run_id=RUN, breaks=["two"])
    await answer(hf, waiting, "continue")
    with armed("after_claim"), suppress(Crash):
        await flow.resume(RUN, on=hf)
    place.lapse()
    assert (await flow.resume(RUN, on=await place.hf())).completed
    assert log == ["one", "two", "three"]


@pytest.mark.covers("TOOL-CLI-22")
@pytest.mark.parametrize("name", ["send/deep", "child/deep"])
async def test_break_inside_a_map_stops_each_item(hf: Holdfast, name: str) -> None:
    log: list[str] = []
    flow = Flow("outer", effect="pure")
    flow.map("send", over="items", body=inner(log), into="out")
    waiting = await flow.run({"items": [{"n": 1}, {"n": 2}]}, on=hf, breaks=[name])
    holds = await open_holds(hf, waiting)
    assert [(h.node, h.scope) for h in holds] == [
        ("deep__breakpoint", "send.1[0]/"),
        ("deep__breakpoint", "send.1[1]/"),
    ]
    assert log == []
    service = await hf.service()
    for hold in holds:
        await service.answer(hold.id, "continue")
    assert (await flow.resume(waiting.run_id, on=hf)).completed
    assert log == ["x", "x"]


@pytest.mark.covers("TOOL-CLI-22")
@pytest.mark.parametrize(
    ("name", "said"),
    [("tow", "Did you mean two"), ("nothing-like-it", "It has: one, two, three"), ("two/deep", "two")],
)
async def test_break_at_a_node_that_is_not_there_starts_nothing(hf: Holdfast, name: str, said: str) -> None:
    flow = plain([])
    with pytest.raises(InputError) as caught:
        await flow.run({}, on=hf, breaks=[name])
    assert name in caught.value.message
    assert said in str(caught.value)
    service = await hf.service()
    assert await service.list(RunFilter()) == []


@pytest.mark.parametrize("breaks", ["two", 7, [7]])
async def test_breaks_that_are_no_list_of_names_are_refused(hf: Holdfast, breaks: Any) -> None:
    with pytest.raises(InputError):
        await plain([]).run({}, on=hf, breaks=breaks)


async def test_breakpoint_takes_only_continue_or_abort(hf: Holdfast) -> None:
    waiting = await plain([]).run({}, on=hf, breaks=["one"])
    with pytest.raises(AnswerInvalidError, match="continue, abort"):
        await answer(hf, waiting, "approve")


async def test_run_ends_as_cancelled_when_it_is_aborted_at_a_breakpoint(hf: Holdfast) -> None:
    log: list[str] = []
    flow = plain(log)
    waiting = await flow.run({}, on=hf, breaks=["two"])
    await answer(hf, waiting, "abort")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.status is RunStatus.cancelled
    assert log == ["one"]
    row = await (await hf.service()).get(result.run_id)
    assert "aborted at the breakpoint before 'two'" in (row.error or "")


@pytest.mark.covers("TOOL-CLI-22")
async def test_failed_node_is_stopped_at_again_when_it_is_resumed_with_a_break(hf: Holdfast) -> None:
    flow, calls = Flow("mends", effect="pure"), []

    @flow.node
    async def x() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("first")

    failed = await flow.run({}, on=hf)
    assert failed.failed
    stopped = await flow.resume(failed.run_id, on=hf, breaks=["x"])
    assert stopped.status is RunStatus.pending_input
    assert len(calls) == 1
    await answer(hf, stopped, "continue")
    assert (await flow.resume(failed.run_id, on=hf)).completed
    assert len(calls) == 2


async def test_what_a_dead_worker_had_under_way_is_stopped_at_when_resumed_with_a_break(
    place: Place,
) -> None:
    log: list[str] = []
    flow = plain(log)
    run = await place.crash(flow, {}, "after_handler", nth=2)
    assert log == ["one", "two"]
    hf = await place.hf()
    stopped = await flow.resume(run, on=hf, breaks=["one", "two"])
    assert stopped.status is RunStatus.pending_input
    before = list(log)
    while stopped.waiting:
        await answer(hf, run, "continue")
        stopped = await flow.resume(run, on=hf)
    assert before == ["one", "two"]
    assert stopped.completed


async def test_breaks_are_off_for_the_rest_of_the_run_when_somebody_says_so(hf: Holdfast) -> None:
    flow = Flow("off", effect="pure")
    for name in ("one", "two", "three"):
        node(flow, name, breakpoint=True)
    flow.chain("one", "two", "three")
    waiting = await flow.run({}, on=hf)
    service = await hf.service()
    await service.request_resume(waiting.run_id, no_breaks=True)
    assert (await flow.resume(waiting.run_id, on=hf)).waiting, "what stands stays until it is continued"
    await answer(hf, waiting, "continue")
    assert (await flow.resume(waiting.run_id, on=hf)).completed


async def test_fork_from_before_a_breakpoint_stops_at_it(hf: Holdfast) -> None:
    log: list[str] = []
    flow = plain(log)
    waiting = await flow.run({}, on=hf, breaks=["two"])
    service = await hf.service()
    for record in await service.store.read((await service.get(waiting.run_id)).id):
        forked = await flow.fork(waiting.run_id, record.seq, on=hf)
        assert (await the_stop(hf, forked.run_id)).node == "two__breakpoint"
    assert "two" not in log


async def test_walk_stops_before_a_node_however_it_gets_there(hf: Holdfast) -> None:
    flow = Flow("walks", effect="pure", traversal="walk")
    node(flow, "a")
    node(flow, "x")
    flow.edge("a", "x")
    waiting = await flow.run({}, on=hf, breaks=["x"])
    assert (await the_stop(hf, waiting.run_id)).node == "x__breakpoint"
    await answer(hf, waiting, "continue")
    assert (await flow.resume(waiting.run_id, on=hf)).completed


async def test_break_whose_name_is_taken_is_refused(hf: Holdfast) -> None:
    flow = Flow("clash", effect="pure")
    node(flow, "x")
    node(flow, "x__breakpoint")
    with pytest.raises(InputError, match="Rename that node"):
        await flow.run({}, on=hf, breaks=["x"])


async def test_breaks_follow_their_nodes_when_the_run_goes_over_to_another_version(
    bare_hf: Holdfast,
) -> None:
    old, new = (Flow("order", effect="pure", version=version) for version in "12")
    for flow, names in ((old, ("pay", "send", "gone")), (new, ("charge", "ship"))):
        for name in names:
            node(flow, name)
        flow.chain(*names)
    new.migrate("1", rename={"pay": "charge", "send": "ship"})
    waiting = await old.run({}, on=bare_hf, breaks=["pay", "send", "gone"])
    (verdict,) = await new.migrate_runs(on=bare_hf)
    assert verdict.migrated, verdict
    for name in ("charge", "ship"):
        assert (await the_stop(bare_hf, waiting.run_id)).node == f"{name}__breakpoint"
        await answer(bare_hf, waiting, "continue")
        result = await new.resume(waiting.run_id, on=bare_hf)
    assert result.completed


@pytest.mark.covers("TOOL-CLI-22")
async def test_run_that_somebody_drives_takes_a_break_at_once(place: Place) -> None:
    flow = with_stop("hold", [], False)
    hf = await place.hf(HOT)
    driving = asyncio.create_task(flow.run({}, on=hf, run_id=RUN))
    service = await (await place.hf()).service()
    async with asyncio.timeout(HANG):
        while not await service.holds(RunId(RUN)):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    await service.request_resume(RUN, breaks=["z"])
    await service.answer((await service.holds(RunId(RUN)))[0].id, "yes")
    async with asyncio.timeout(HANG):
        while not await service.breakpoints(run=RUN):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    assert (await the_stop(hf, RUN)).node == "z__breakpoint"
    await answer(hf, RUN, "continue")
    assert (await driving).completed
