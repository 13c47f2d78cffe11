"""Wide maps, many runs and long runs on a cluster: a small form of each, and the whole with the soak."""

from __future__ import annotations

import asyncio
import resource
from itertools import pairwise
from time import monotonic
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.client import Client, WorkflowHistory

from holdfast import Flow, Holdfast
from tests.services import temporal
from tests.temporal.runs import assert_same, engine_of, workers

pytestmark = pytest.mark.anyio
SOAK = 3_000
"""Seconds after which a soak hangs."""


@pytest.fixture(scope="package")
def engine() -> str:
    """With time for heartbeats: nothing is killed here."""
    return temporal.server().address("30s")


@pytest.mark.covers("TD-28", "TD-29")
@pytest.mark.parametrize(
    ("items", "together", "most", "events"),
    [(60, 15, 6, 100), pytest.param(10_000, 200, 500, 20_000, marks=pytest.mark.soak)],
    ids=["small", "10000"],
)
async def test_map_with_many_items_has_a_bounded_number_under_way_and_completes(
    items: int,
    together: int,
    most: int,
    events: int,
    sqlite: str,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.MAX_ACTIVITIES", most)
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.MAX_EVENTS", events)
    flow, begun = Flow("wide", effect="pure"), list[int]()

    async def double(item: int) -> int:
        begun.append(item)
        return item * 2

    flow.map("each", over="items", body=double, into="doubled", concurrency=together)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        began = monotonic()
        async with asyncio.timeout(SOAK):
            done = await flow.run({"items": list(range(items))}, on=hf)
        assert list(done.state["doubled"]) == [2 * item for item in range(items)], done
        # Those that waited begin before later ones.
        assert max(begun[:together]) < together + most
        # Items that wait for others are no reason to stay in a long history.
        lengths = await report(hf, done.run_id, began, items)
        assert len(lengths) > 1
        assert max(lengths) < min(events, 4_096) + 6 * min(together, most) + 60
        client = await (await engine_of(hf)).client()
        found = await client.get_workflow_handle(done.run_id).fetch_history()
        assert under_way(found) <= min(together, most)
        await assert_same(hf, done.run_id)


@pytest.mark.covers("TD-50")
@pytest.mark.parametrize("count", [20, pytest.param(1_000, marks=pytest.mark.soak)], ids=["small", "1000"])
async def test_many_runs_over_four_workers_all_end(count: int, sqlite: str, engine: str) -> None:
    flow = Flow("many", effect="pure")

    async def step(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    flow.chain(*(flow.node(id=f"n{number}")(step) for number in range(3)))
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, count=4):
        began = monotonic()
        runs = [await flow.submit({"n": number}, on=hf) for number in range(count)]
        async with asyncio.timeout(SOAK):
            done = [await flow.result(each, wait=None, on=hf) for each in runs]
        assert [each.state["n"] for each in done] == [number + 3 for number in range(count)]
        await report(hf, runs[-1], began, 3 * count)
        for each in runs[:: max(1, count // 20)]:
            await assert_same(hf, each)


@pytest.mark.covers("TD-28")
@pytest.mark.parametrize(
    ("steps", "events"),
    [(60, 60), pytest.param(20_000, 20_000, marks=pytest.mark.soak)],
    ids=["small", "20000"],
)
async def test_run_of_many_steps_has_no_long_history(
    steps: int, events: int, sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.MAX_EVENTS", events)
    flow = Flow("long", effect="pure")

    @flow.node
    async def turn(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    flow.loop("turn", "turn", when=f"n < {steps}", max=steps)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        began = monotonic()
        async with asyncio.timeout(SOAK):
            done = await flow.run({"n": 0}, on=hf)
        assert done.state["n"] == steps, done
        lengths = await report(hf, done.run_id, began, steps)
        # 4,096 events is where a server suggests a new history.
        assert len(lengths) > 1
        assert max(lengths) < min(events, 4_096) + 60
        assert not any(later < 4 for _, later in pairwise(lengths))
        await assert_same(hf, done.run_id)


def under_way(history: WorkflowHistory) -> int:
    """The most activities of nodes at one time."""
    open_now, most = set[int](), 0
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            if event.activity_task_scheduled_event_attributes.activity_type.name == "holdfast.node":
                open_now.add(event.event_id)
        elif event.HasField("activity_task_completed_event_attributes"):
            open_now.discard(event.activity_task_completed_event_attributes.scheduled_event_id)
        most = max(most, len(open_now))
    return most


async def report(hf: Holdfast, run: str, began: float, steps: int) -> list[int]:
    """Events of each history of a run; what it took is printed (`-s`)."""
    engine = await engine_of(hf)
    lengths = await histories(await engine.client(), run)
    took, memory = monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{steps:,} steps in {took:.0f} s, {steps / took:.0f} a second; at most {memory} MB; "
        f"{len(lengths)} histories of {min(lengths)} to {max(lengths)} events"
    )
    return lengths


async def histories(client: Client, run: str) -> list[int]:
    """From the last one back to the first: each names the one before it."""
    found, number = list[int](), ""
    while True:
        handle = client.get_workflow_handle(run, run_id=number or None)
        history = await handle.fetch_history()
        found.append(len(history.events))
        number = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not number:
            return found[::-1]
