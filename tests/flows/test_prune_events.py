"""Every reader of a pruned run's events is told exactly which ones are gone."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast
from holdfast.attractor.event_mapper import EventMapper
from holdfast.runs.service import RunService
from holdfast.types.event import Event
from tests.deadlines import HANG
from tests.flows.refunds import GIVEN, refund_flow
from tests.flows.test_prune import counting

pytestmark = pytest.mark.anyio


async def decided_refund(hf: Holdfast) -> str:
    """Its log mixes events of records with stored ones, which pruning keeps."""
    flow = refund_flow()
    run = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    await service.answer(run.holds[0].id, "approve")
    (await flow.resume(run.run_id, on=hf)).expect()
    return run.run_id


def covered(events: list[Event]) -> list[int]:
    """The numbers that a reader of these events knows about: seen, or said to be gone."""
    found: list[int] = []
    for event in events:
        if event.type == "events.pruned":
            assert event.data["last"] == event.number, "the cursor continues after what is gone"
            found += range(event.data["first"], event.data["last"] + 1)
        else:
            found.append(event.number)
    return found


async def all_pages(service: RunService, run: str, after: int, limit: int) -> list[Event]:
    found: list[Event] = []
    while page := await service.events(run, after=after, limit=limit):
        assert len(page) <= limit
        found += page
        after = page[-1].number
    return found


@pytest.mark.covers("SAFE-READ-01")
@pytest.mark.parametrize("keep", [1, 2, 3])
async def test_events_of_a_pruned_run_say_what_is_gone_from_any_cursor_and_page(
    bare_hf: Holdfast, keep: int
) -> None:
    run = await decided_refund(bare_hf)
    service = await bare_hf.service()
    whole = {event.number: event for event in await service.events(run)}
    assert await service.prune(run, keep=keep) > 0
    row = await service.get(run)
    for after in range(row.event_seq + 1):
        for limit in (1, 2, 1000):
            found = await all_pages(service, run, after, limit)
            assert covered(found) == list(range(after + 1, row.event_seq + 1)), (after, limit)
            kept = [event for event in found if event.type != "events.pruned"]
            assert [e.type for e in kept] == [whole[e.number].type for e in kept]
    (gone, *_) = await service.events(run)
    assert (gone.type, gone.data["first"], gone.data["horizon"]) == ("events.pruned", 1, row.horizon)
    assert [e.type for e in await service.events(run)][-2:] == ["run.completed", "checkpoint.created"]


@pytest.mark.covers("SAFE-READ-01")
@pytest.mark.parametrize("keep", [1, 5])
async def test_stream_of_a_pruned_run_ends(bare_hf: Holdfast, keep: int) -> None:
    run = (await counting().run({"n": 0}, on=bare_hf)).expect().run_id
    service = await bare_hf.service()
    assert await service.prune(run, keep=keep) > 0
    async with asyncio.timeout(HANG):
        found = [event async for event in service.stream(run)]
    assert covered(found) == list(range(1, (await service.get(run)).event_seq + 1))


@pytest.mark.covers("SAFE-READ-01")
async def test_run_that_was_not_pruned_says_nothing_of_it(bare_hf: Holdfast) -> None:
    run = await decided_refund(bare_hf)
    service = await bare_hf.service()
    found = await all_pages(service, run, 0, 2)
    assert [event.number for event in found] == list(range(1, (await service.get(run)).event_seq + 1))
    assert not [event for event in found if event.type == "events.pruned"]


@pytest.mark.covers("SAFE-READ-01")
async def test_pipeline_events_of_a_pruned_run_say_what_is_gone(bare_hf: Holdfast) -> None:
    run = await decided_refund(bare_hf)
    service = await bare_hf.service()
    await service.prune(run, keep=2)
    stored = await service.events(run)
    mapped = list(EventMapper(refund_flow().program().graph).map_all(stored))
    gone = [event for event in mapped if type(event).__name__ == "EventsPruned"]
    assert [(e.fields["first"], e.fields["last"]) for e in gone] == [
        (e.data["first"], e.data["last"]) for e in stored if e.type == "events.pruned"
    ]
    assert gone
    assert "pruned" in gone[0].description
