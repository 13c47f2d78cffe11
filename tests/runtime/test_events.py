"""What is announced, and in which order: R-15 to R-19, R-50."""

from __future__ import annotations

import pytest

from holdfast import Context, Flow, Holdfast
from tests.flows.places import Place, answer, kinds, told
from tests.runtime.people import Seen, State, approval, breaking, line, listed, step

pytestmark = pytest.mark.anyio


@pytest.mark.covers("R-15", "RS-CHAIN-2")
async def test_each_checkpoint_is_announced_with_its_place_in_the_run(hf: Holdfast) -> None:
    flow, seen = Flow("announced", effect="pure"), Seen()
    first, turn = step(flow, "first", seen), Seen()

    @flow.node
    async def again(s: State) -> State:
        turn.calls.append("again")
        return {"turns": s.get("turns", 0) + 1}

    last = step(flow, "last", seen)
    flow.edge(first, again)
    flow.loop(again, again, when="turns < 3", max=5)
    flow.edge(again, last, otherwise=True)
    result = await flow.run({}, on=hf)

    announced = [event.data for event in await told(hf, result, "checkpoint.created")]
    stored = list(reversed(await listed(hf, result.run_id)))
    assert [d["checkpoint_id"] for d in announced] == [c.id for c in stored]
    assert [d["status"] for d in announced] == [c.status for c in stored]
    story = [(d["node_id"], d["loop_num"], d["completed_nodes"], d["total_nodes"]) for d in announced]
    assert story == [
        ("", 0, 0, 3),
        ("first", 1, 1, 3),
        ("again", 1, 2, 3),
        ("again", 2, 2, 3),
        ("again", 3, 2, 3),
        ("last", 1, 3, 3),
        ("", 0, 3, 3),
    ]
    service = await hf.service()
    paged = [
        await service.events(result.run_id, after=n, limit=1) for n in range(await _events(hf, result.run_id))
    ]
    assert [event.data for (event,) in paged if event.type == "checkpoint.created"] == announced


async def _events(hf: Holdfast, run: str) -> int:
    return (await (await hf.service()).get(run)).event_seq


@pytest.mark.covers("R-15")
async def test_a_checkpoint_is_announced_only_when_it_is_durable(hf: Holdfast) -> None:
    flow = line("durable", Seen(), "one", "two")
    service = await hf.service()
    async for event in flow.stream({}, on=hf):
        if event.type == "checkpoint.created":
            assert (await service.checkpoint(event.data["checkpoint_id"])).seq == event.data["seq"]


@pytest.mark.covers("R-16")
async def test_a_resume_is_announced_before_anything_else(place: Place) -> None:
    seen = Seen()
    flow = approval("resumed", seen)
    waiting = await flow.run({"amount": 3}, on=await place.hf())
    hf = await place.hf()
    await answer(hf, waiting, "approve")
    before = len(await told(hf, waiting))

    await flow.resume(waiting.run_id, on=hf)

    first = (await told(hf, waiting))[before]
    assert first.type == "run.resumed"
    assert first.data["checkpoint_id"] == waiting.holds[0].id
    assert first.data["skipped_nodes"] == ["before"]
    assert "run.resumed" not in (await kinds(hf, waiting))[:before]


@pytest.mark.covers("R-16")
async def test_a_resume_after_a_crash_names_what_it_skips(place: Place) -> None:
    seen = Seen()
    flow = breaking("crashed", seen, mode="strict")
    run = await place.crash(flow, {}, "after_settle", nth=2)
    hf = await place.hf()

    await flow.resume(run, on=hf)

    (resumed,) = await told(hf, run, "run.resumed")
    done = resumed.data["skipped_nodes"]
    assert done
    assert done == ["one", "two", "three"][: len(done)]
    assert seen.calls.count("one") == 1


@pytest.mark.covers("R-17")
async def test_an_open_question_is_reported_again_and_otherwise_equal_when_its_run_is_resumed(
    place: Place,
) -> None:
    flow = approval("again", Seen(), assignee="group:finance")
    waiting = await flow.run({"amount": 3}, on=await place.hf())
    hf = await place.hf()

    again = await flow.resume(waiting.run_id, on=hf)

    assert again.status == "pending_input"
    (opened,) = await told(hf, waiting, "hold.opened")
    (repeated,) = await told(hf, waiting, "hold.asked_again")
    assert (opened.data["entity_id"], opened.data["prompt"]) == ("gate", "Pay 3?")
    assert opened.data["hold_id"] == waiting.holds[0].id
    assert opened.data["is_resumed"] is False
    assert repeated.data == {**opened.data, "is_resumed": True}


@pytest.mark.covers("R-17", "R-24")
async def test_an_answered_question_is_not_reported_again(place: Place) -> None:
    flow = approval("answered", Seen())
    hf = await place.hf()
    waiting = await flow.run({"amount": 3}, on=hf)
    await answer(hf, waiting, "approve")
    await flow.resume(waiting.run_id, on=hf)
    assert await told(hf, waiting, "hold.asked_again") == []


@pytest.mark.covers("R-18")
async def test_events_keep_their_order_around_tools_questions_and_the_end(hf: Holdfast) -> None:
    flow = Flow("order", effect="pure")

    @flow.script
    async def tool(ctx: Context) -> State:
        return {"found": await ctx.step("search", _search, effect="read")}

    gate = flow.hold("gate", prompt="Go?", options=["yes"])
    flow.edge(tool, gate)
    waiting = await flow.run({}, on=hf)
    await answer(hf, waiting, "yes")
    await flow.resume(waiting.run_id, on=hf)

    order = [
        (e.type, e.node, e.data.get("status", ""))
        for e in await told(hf, waiting)
        if e.type not in ("edge.taken", "run.resumed")
    ]
    assert order == [
        ("run.created", "", ""),
        ("node.started", "tool", ""),
        ("checkpoint.created", "", "active"),
        ("node.step_done", "tool", ""),
        ("node.completed", "tool", ""),
        ("node.started", "gate", ""),
        ("checkpoint.created", "tool", "active"),
        ("hold.opened", "gate", ""),
        ("checkpoint.created", "gate", "pending_input"),
        ("hold.resolved", "", ""),
        ("node.completed", "gate", ""),
        ("checkpoint.created", "gate", "active"),
        ("run.completed", "", "completed"),
        ("checkpoint.created", "", "completed"),
    ]


async def _search() -> str:
    return "found"


@pytest.mark.covers("R-19")
async def test_a_stream_goes_on_after_a_number_and_closes_with_the_last_event(hf: Holdfast) -> None:
    flow = line("stream", Seen(), "one", "two")
    result = await flow.run({}, on=hf)
    service = await hf.service()
    every = await service.events(result.run_id)
    for after in (0, 3, every[-1].number - 1, every[-1].number):
        heard = [event async for event in service.stream(result.run_id, after=after)]
        assert heard == [event for event in every if event.number > after]


@pytest.mark.covers("R-50")
async def test_tokens_make_no_checkpoints(hf: Holdfast) -> None:
    flow = Flow("tokens", effect="pure")

    @flow.node
    async def talk(ctx: Context) -> State:
        for word in range(500):
            ctx.emit(f"word {word} ")
        return {"said": 500}

    result = await flow.run({}, on=hf)

    assert len(await told(hf, result, "node.emitted")) == 500
    assert [c.node for c in await listed(hf, result.run_id)] == ["", "talk", ""]
    records = await (await hf.service()).store.read(result.run_id)
    assert len(records) < 20
