from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Event, Flow, Holdfast
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


async def told(hf: Holdfast, run: str) -> list[Event]:
    return await (await hf.service()).events(run)


@pytest.mark.covers("G-49", "D-3")
async def test_log_is_read_again_from_any_cursor_when_it_lies_inside_a_record(hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    await service.answer(result.holds[0].id, "approve")
    run = (await flow.resume(result.run_id, on=hf)).expect().run_id
    events = await told(hf, run)
    assert [e.number for e in events] == list(range(1, (await service.get(run)).event_seq + 1))
    assert all(e.run == run and e.at for e in events)
    for cursor in range(len(events) + 1):
        assert await service.events(run, after=cursor) == events[cursor:]
        assert await service.events(run, after=cursor, limit=2) == events[cursor : cursor + 2]


async def test_events_come_in_the_promised_order_when_a_run_completes(hf: Holdfast) -> None:
    run = (await refund_flow().run({**GIVEN, "amount": 50}, on=hf)).expect().run_id
    events = await told(hf, run)
    assert events[0].type == "run.created"
    assert events[0].data["flow"] == "refund"
    assert [e.type for e in events[-2:]] == ["run.completed", "checkpoint.created"]
    for node in ("assess", "pay"):
        started = next(e.number for e in events if e.type == "node.started" and e.node == node)
        done = next(e.number for e in events if e.type == "node.completed" and e.node == node)
        assert started < done
    taken = next(e for e in events if e.type == "edge.taken")
    assert (taken.data["from"], taken.data["to"]) == ("assess", "pay")
    saved = [e.data["checkpoint_id"] for e in events if e.type == "checkpoint.created"]
    assert saved == [m.id for m in reversed(await (await hf.service()).checkpoints(run))]


@pytest.mark.covers("G-49")
async def test_pause_is_reported_once_when_it_is_looked_at_often(hf: Holdfast) -> None:
    flow = refund_flow()
    result = await flow.run(GIVEN, on=hf)
    for _ in range(3):
        assert (await flow.resume(result.run_id, on=hf)).waiting
    events = await told(hf, result.run_id)
    (opened,) = [e for e in events if e.type == "hold.opened"]
    assert opened.data["hold_id"] == result.holds[0].id
    assert opened.data["prompt"] == "Refund 250 to c-9?"


@pytest.mark.covers("G-49", "CORE-RUN-03")
async def test_emitted_data_is_reported_between_start_and_end_when_a_node_streams(hf: Holdfast) -> None:
    flow = Flow("talk", effect="pure")

    async def speak(s: Any, ctx: Context) -> None:
        for word in ("one", "two"):
            ctx.emit(word)

    flow.node()(speak)
    events = [event async for event in flow.stream({}, on=hf)]
    order = [(e.type, e.data.get("data")) for e in events if e.node == "speak" and e.type.startswith("node.")]
    assert order == [
        ("node.started", None),
        ("node.emitted", "one"),
        ("node.emitted", "two"),
        ("node.completed", None),
    ]
    assert [e.number for e in events] == list(range(1, len(events) + 1))


async def test_last_events_tell_output_and_duration_when_a_run_ends(hf: Holdfast) -> None:
    flow = Flow("ends", effect="pure")

    @flow.node(output_as="answer")
    async def think() -> dict[str, Any]:
        return {"is": 42}

    result = await flow.run({}, on=hf)
    text = await (await hf.service()).events(result.run_id)
    assert text[0].type == "run.created"
    (end,) = [event for event in text if event.type == "run.completed"]
    assert end.data["output"] == {"answer": {"is": 42}}
    assert end.data["duration_us"] == end.at - text[0].at
    assert {event.type for event in text[text.index(end) + 1 :]} == {"checkpoint.created"}
