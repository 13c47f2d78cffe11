"""Breakpoints: a run stands still before a node until somebody says continue (BP-1 to BP-10)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdfast import (
    AnswerInvalidError,
    Flow,
    FlowInvalidError,
    Holdfast,
    InputError,
    Join,
    Retry,
    RunStatus,
    Scripted,
)
from holdfast.errors import HoldNotFoundError
from holdfast.runs.timeline import make_timeline
from holdfast.store.base import RunFilter
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from tests.flows.conftest import node
from tests.flows.places import RUN, Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


def inner(log: list[str]) -> Flow:
    child = Flow("child", effect="pure")

    @child.node
    async def deep() -> dict[str, Any]:
        log.append("x")
        return {"n": 2}

    return child


def with_stop(kind: str, log: list[str], stop: Any = True) -> Flow:
    """`a`, then `x` of this kind with a breakpoint, then `z`."""
    flow = Flow("stops", effect="pure")

    def work() -> None:
        log.append("x")

    node(flow, "a", {"n": 1, "items": [1, 2]})
    if kind in ("node", "script"):
        getattr(flow, kind)(id="x", breakpoint=stop)(work)
    elif kind == "guardrail":
        flow.guardrail("x", breakpoint=stop)(work)
    elif kind == "hold":
        flow.hold("x", prompt="Well?", options=["yes"], breakpoint=stop)
    elif kind == "timer":
        flow.timer("x", "1h", breakpoint=stop)
    elif kind == "map":
        flow.map("x", over="items", body=lambda item: log.append("x"), into="out", breakpoint=stop)
    else:
        flow.subflow("x", inner(log), inputs={"n": "n"}, breakpoint=stop)
    node(flow, "z")
    flow.chain("a", "x", "z")
    return flow


async def the_stop(house: Holdfast, run: str) -> HoldRow:
    (hold,) = await open_holds(house, run)
    assert hold.type == "debug_breakpoint"
    return hold


KINDS = ["node", "script", "guardrail", "hold", "timer", "map", "subflow"]


@pytest.mark.covers("TOOL-CLI-23")
@pytest.mark.parametrize("kind", KINDS)
async def test_run_stands_still_before_a_node_of_any_kind_until_somebody_continues(
    place: Place, kind: str
) -> None:
    log: list[str] = []
    flow, house = with_stop(kind, log), await place.house()
    waiting = await flow.run({}, on=house)
    assert waiting.status is RunStatus.pending_input
    hold = await the_stop(house, waiting.run_id)
    assert (hold.node, hold.visit, hold.prompt) == ("x__breakpoint", 1, "Breakpoint before x")
    assert (hold.expires_at, hold.assignee) == (None, None)
    assert [option.id for option in hold.options or ()] == ["continue", "abort"]
    assert log == []

    await answer(house, waiting, "continue")
    result = await flow.resume(waiting.run_id, on=house)
    if kind == "hold":
        (real,) = await open_holds(house, result)
        assert (real.node, real.type) == ("x", "approval")
        assert "decision" not in result.state
        await answer(house, result, "yes")
        result = await flow.resume(waiting.run_id, on=house)
    elif kind == "timer":
        assert result.status is RunStatus.waiting
        place.clock.advance(hours=2)
        result = await flow.resume(waiting.run_id, on=house)
    else:
        assert log == ["x"] * (2 if kind == "map" else 1)
        assert "decision" not in result.state
    assert result.completed, result.error
    types = [event.type for event in await told(house, result)]
    assert types.index("node.continued") > types.index("hold.opened")


@pytest.mark.covers("TOOL-CLI-23")
async def test_run_stops_at_each_turn_of_a_loop(house: Holdfast) -> None:
    flow = Flow("turns", effect="pure")
    flow.node(id="x", breakpoint=True)(lambda s: {"n": s.get("n", 0) + 1})
    node(flow, "z")
    flow.loop("x", "x", when="n < 3", max=5)
    flow.edge("x", "z", when="n >= 3")
    result = await flow.run({}, on=house)
    seen: list[tuple[int, str]] = []
    while result.waiting:
        hold = await the_stop(house, result.run_id)
        seen.append((hold.visit, hold.prompt))
        await answer(house, result, "continue")
        result = await flow.resume(result.run_id, on=house)
    assert result.state["n"] == 3
    assert seen == [
        (1, "Breakpoint before x"),
        (2, "Breakpoint before x (visit 2)"),
        (3, "Breakpoint before x (visit 3)"),
    ]


async def test_retries_of_a_node_do_not_stop_again(place: Place) -> None:
    flow, calls = Flow("tries", effect="pure"), []

    @flow.node(breakpoint=True, retry=Retry(3, delay="1s"))
    async def x() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise ValueError("not yet")

    house = await place.house()
    waiting = await flow.run({}, on=house)
    await answer(house, waiting, "continue")
    result = await flow.resume(waiting.run_id, on=house)
    while result.status is RunStatus.waiting:
        place.clock.advance(seconds=5)
        result = await flow.resume(waiting.run_id, on=house)
    assert result.completed
    assert len(calls) == 3


def plain(log: list[str]) -> Flow:
    flow = Flow("plain", effect="pure")

    def noting(name: str) -> Callable[[], None]:
        return lambda: log.append(name)

    for name in ("one", "two", "three"):
        flow.node(id=name)(noting(name))
    flow.chain("one", "two", "three")
    return flow


@pytest.mark.covers("TOOL-CLI-22")
async def test_break_of_a_run_changes_no_version_and_stops_this_run_only(house: Holdfast) -> None:
    log: list[str] = []
    flow = plain(log)
    free = await flow.run({}, on=house)
    stopped = await flow.run({}, on=house, breaks=["two"])
    service = await house.service()
    assert (await service.get(free.run_id)).version == (await service.get(stopped.run_id)).version
    assert (free.status, stopped.status) == (RunStatus.completed, RunStatus.pending_input)
    assert log == ["one", "two", "three", "one"]
    assert (await the_stop(house, stopped.run_id)).node == "two__breakpoint"
    await answer(house, stopped, "continue")
    assert (await flow.resume(stopped.run_id, on=house)).completed


@pytest.mark.covers("TOOL-CLI-22")
@pytest.mark.parametrize("point", ["inside_settle", "after_settle", "before_park", "after_park"])
async def test_break_of_a_run_survives_the_death_of_its_worker(place: Place, point: str) -> None:
    log: list[str] = []
    flow, house = plain(log), await place.house()
    with armed(point) as reached, suppress(Crash):
        await flow.run({}, on=house, run_id=RUN, breaks=["two", "three"])
    assert reached.reached
    place.lapse()
    house = await place.house()
    for name in ("two", "three"):
        result = await flow.resume(RUN, on=house)
        assert result.status is RunStatus.pending_input
        assert (await the_stop(house, RUN)).node == f"{name}__breakpoint"
        assert name not in log
        await answer(house, RUN, "continue")
    assert (await flow.resume(RUN, on=house)).completed
    assert log[-2:] == ["two", "three"]


async def test_node_runs_when_its_worker_died_after_the_continue_was_recorded(place: Place) -> None:
    log: list[str] = []
    flow = plain(log)
    house = await place.house()
    waiting = await flow.run({}, on=house, run_id=RUN, breaks=["two"])
    await answer(house, waiting, "continue")
    with armed("after_claim"), suppress(Crash):
        await flow.resume(RUN, on=house)
    place.lapse()
    assert (await flow.resume(RUN, on=await place.house())).completed
    assert log == ["one", "two", "three"]


@pytest.mark.covers("TOOL-CLI-22")
@pytest.mark.parametrize("name", ["send/deep", "child/deep"])
async def test_break_inside_a_map_stops_each_item(house: Holdfast, name: str) -> None:
    log: list[str] = []
    flow = Flow("outer", effect="pure")
    flow.map("send", over="items", body=inner(log), into="out")
    waiting = await flow.run({"items": [{"n": 1}, {"n": 2}]}, on=house, breaks=[name])
    holds = await open_holds(house, waiting)
    assert [(h.node, h.scope) for h in holds] == [
        ("deep__breakpoint", "send.1[0]/"),
        ("deep__breakpoint", "send.1[1]/"),
    ]
    assert log == []
    service = await house.service()
    for hold in holds:
        await service.answer(hold.id, "continue")
    assert (await flow.resume(waiting.run_id, on=house)).completed
    assert log == ["x", "x"]


@pytest.mark.covers("TOOL-CLI-22")
@pytest.mark.parametrize(
    ("name", "said"),
    [("tow", "Did you mean two"), ("nothing-like-it", "It has: one, two, three"), ("two/deep", "two")],
)
async def test_break_at_a_node_that_is_not_there_starts_nothing(
    house: Holdfast, name: str, said: str
) -> None:
    flow = plain([])
    with pytest.raises(InputError) as caught:
        await flow.run({}, on=house, breaks=[name])
    assert name in caught.value.message
    assert said in str(caught.value)
    service = await house.service()
    assert await service.list(RunFilter()) == []


@pytest.mark.parametrize("breaks", ["two", 7, [7]])
async def test_breaks_that_are_no_list_of_names_are_refused(house: Holdfast, breaks: Any) -> None:
    with pytest.raises(InputError):
        await plain([]).run({}, on=house, breaks=breaks)


async def test_breakpoint_takes_only_continue_or_abort(house: Holdfast) -> None:
    waiting = await plain([]).run({}, on=house, breaks=["one"])
    with pytest.raises(AnswerInvalidError, match="continue, abort"):
        await answer(house, waiting, "approve")


async def test_run_ends_as_cancelled_when_it_is_aborted_at_a_breakpoint(house: Holdfast) -> None:
    log: list[str] = []
    flow = plain(log)
    waiting = await flow.run({}, on=house, breaks=["two"])
    await answer(house, waiting, "abort")
    result = await flow.resume(waiting.run_id, on=house)
    assert result.status is RunStatus.cancelled
    assert log == ["one"]
    row = await (await house.service()).get(result.run_id)
    assert "aborted at the breakpoint before 'two'" in (row.error or "")


@pytest.mark.covers("TOOL-CLI-22")
async def test_failed_node_is_stopped_at_again_when_it_is_resumed_with_a_break(house: Holdfast) -> None:
    flow, calls = Flow("mends", effect="pure"), []

    @flow.node
    async def x() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("first")

    failed = await flow.run({}, on=house)
    assert failed.failed
    stopped = await flow.resume(failed.run_id, on=house, breaks=["x"])
    assert stopped.status is RunStatus.pending_input
    assert len(calls) == 1
    await answer(house, stopped, "continue")
    assert (await flow.resume(failed.run_id, on=house)).completed
    assert len(calls) == 2


async def test_what_a_dead_worker_had_under_way_is_stopped_at_when_resumed_with_a_break(
    place: Place,
) -> None:
    log: list[str] = []
    flow = plain(log)
    run = await place.crash(flow, {}, "after_handler", nth=2)
    assert log == ["one", "two"]
    house = await place.house()
    stopped = await flow.resume(run, on=house, breaks=["one", "two"])
    assert stopped.status is RunStatus.pending_input
    before = list(log)
    while stopped.waiting:
        await answer(house, run, "continue")
        stopped = await flow.resume(run, on=house)
    assert before == ["one", "two"]
    assert stopped.completed


async def test_breaks_are_off_for_the_rest_of_the_run_when_somebody_says_so(house: Holdfast) -> None:
    flow = Flow("off", effect="pure")
    for name in ("one", "two", "three"):
        node(flow, name, breakpoint=True)
    flow.chain("one", "two", "three")
    waiting = await flow.run({}, on=house)
    service = await house.service()
    await service.ask_resume(waiting.run_id, no_breaks=True)
    assert (await flow.resume(waiting.run_id, on=house)).waiting, "what stands stays until it is continued"
    await answer(house, waiting, "continue")
    assert (await flow.resume(waiting.run_id, on=house)).completed


async def test_fork_at_a_breakpoint_stands_there_too_and_goes_on_from_its_patch(house: Holdfast) -> None:
    log: list[Any] = []
    flow = Flow("forks", effect="pure")
    node(flow, "a", {"items": [1, 2]})
    flow.map("x", over="items", body=log.append, into="out", breakpoint=True)
    flow.edge("a", "x")
    waiting = await flow.run({}, on=house)
    hold = await the_stop(house, waiting.run_id)
    forked = await flow.fork(hold.id, patch={"scratch": {"items": [7]}}, on=house)
    assert forked.status is RunStatus.pending_input
    assert (await the_stop(house, forked.run_id)).id != hold.id
    await answer(house, forked, "continue")
    assert (await flow.resume(forked.run_id, on=house)).completed
    assert log == [7]


async def test_fork_from_before_a_breakpoint_stops_at_it(house: Holdfast) -> None:
    log: list[str] = []
    flow = plain(log)
    waiting = await flow.run({}, on=house, breaks=["two"])
    service = await house.service()
    for record in await service.store.read((await service.get(waiting.run_id)).id):
        forked = await flow.fork(waiting.run_id, record.seq, on=house)
        assert (await the_stop(house, forked.run_id)).node == "two__breakpoint"
    assert "two" not in log


async def test_hold_of_a_breakpoint_is_closed_when_its_branch_lost_the_join(house: Holdfast) -> None:
    flow = Flow("races", effect="pure")
    node(flow, "a")
    node(flow, "slow", breakpoint=True)
    node(flow, "fast")
    node(flow, "z", join=Join("any", cancel_losers=True))
    flow.edge("a", "slow")
    flow.edge("a", "fast")
    flow.edge("slow", "z")
    flow.edge("fast", "z")
    result = await flow.run({}, on=house)
    assert result.completed
    service = await house.service()
    (hold,) = await service.store.holds(run=result.run_id)
    assert (hold.node, hold.status) == ("slow__breakpoint", HoldStatus.cancelled)


async def test_walk_stops_before_a_node_however_it_gets_there(house: Holdfast) -> None:
    flow = Flow("walks", effect="pure", traversal="walk")
    node(flow, "a")
    node(flow, "x")
    flow.edge("a", "x")
    waiting = await flow.run({}, on=house, breaks=["x"])
    assert (await the_stop(house, waiting.run_id)).node == "x__breakpoint"
    await answer(house, waiting, "continue")
    assert (await flow.resume(waiting.run_id, on=house)).completed


async def test_breakpoints_are_no_questions_to_people(house: Holdfast) -> None:
    flow = with_stop("hold", [])
    waiting = await flow.run({}, on=house)
    service = await house.service()
    assert [hold.node for hold in await service.breakpoints()] == ["x__breakpoint"]
    assert await service.breakpoints(flow="other") == []
    assert await service.pending() == []
    with pytest.raises(HoldNotFoundError):
        await service.say(waiting.run_id, "continue")
    await answer(house, waiting, "continue")
    await flow.resume(waiting.run_id, on=house)
    assert [each.node for each in await service.pending()] == ["x"]
    assert await service.breakpoints(run=waiting.run_id) == []


@pytest.mark.covers("TOOL-CLI-23")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", ["true", 1, None])
def test_breakpoint_is_true_or_false(kind: str, stop: Any) -> None:
    with pytest.raises(FlowInvalidError, match="breakpoint"):
        with_stop(kind, [], stop).compile()


def test_breakpoint_whose_name_is_taken_is_refused() -> None:
    flow = Flow("clash", effect="pure")
    node(flow, "x", breakpoint=True)
    node(flow, "x__breakpoint")
    with pytest.raises(FlowInvalidError, match="x__breakpoint"):
        flow.compile()


async def test_break_whose_name_is_taken_is_refused(house: Holdfast) -> None:
    flow = Flow("clash", effect="pure")
    node(flow, "x")
    node(flow, "x__breakpoint")
    with pytest.raises(InputError, match="Rename that node"):
        await flow.run({}, on=house, breaks=["x"])


def test_breakpoint_is_part_of_the_graph() -> None:
    marks = {with_stop("node", [], stop).compile().version for stop in (True, False)}
    assert len(marks) == 2


async def test_timeline_shows_the_stop_as_a_wait_of_its_node(house: Holdfast) -> None:
    flow = with_stop("node", [])
    waiting = await flow.run({}, on=house)
    service = await house.service()
    stands = await make_timeline(service, await service.get(waiting.run_id))
    assert [(v.node, v.state) for v in stands.visits.all()] == [("a", "done"), ("x", "asking")]
    await answer(house, waiting, "continue")
    await flow.resume(waiting.run_id, on=house)
    over = await make_timeline(service, await service.get(waiting.run_id))
    assert [(v.node, v.state) for v in over.visits.all()] == [("a", "done"), ("x", "done"), ("z", "done")]
    (wait,) = over.visits.all()[1].waits
    assert (wait.kind, wait.decision, wait.until is not None) == ("person", "continue", True)


async def test_breaks_follow_their_nodes_when_the_run_goes_over_to_another_version(
    bare_house: Holdfast,
) -> None:
    old, new = (Flow("order", effect="pure", version=version) for version in "12")
    for flow, names in ((old, ("pay", "send", "gone")), (new, ("charge", "ship"))):
        for name in names:
            node(flow, name)
        flow.chain(*names)
    new.migrate("1", rename={"pay": "charge", "send": "ship"})
    waiting = await old.run({}, on=bare_house, breaks=["pay", "send", "gone"])
    (verdict,) = await new.migrate_runs(on=bare_house)
    assert verdict.migrated, verdict
    for name in ("charge", "ship"):
        assert (await the_stop(bare_house, waiting.run_id)).node == f"{name}__breakpoint"
        await answer(bare_house, waiting, "continue")
        result = await new.resume(waiting.run_id, on=bare_house)
    assert result.completed


@pytest.mark.covers("TOOL-CLI-23")
async def test_agent_asks_its_model_only_after_the_breakpoint(house: Holdfast) -> None:
    model = Scripted("Done.")
    flow = Flow("talks")
    flow.agent("bot", model=model, prompt="Hello", output="said", breakpoint=True)
    waiting = await flow.run({}, on=house)
    assert ((await the_stop(house, waiting.run_id)).node, model.requests) == ("bot__breakpoint", [])
    await answer(house, waiting, "continue")
    assert (await flow.resume(waiting.run_id, on=house)).expect().state["said"] == "Done."
    assert len(model.requests) == 1
