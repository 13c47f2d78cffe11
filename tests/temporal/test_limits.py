"""Limits, priorities and budgets of runs on a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Budget, Flow, Holdfast, Limits, Scripted
from holdfast.agents.messages import TokenUsage
from holdfast.drivers.temporal.client import priority_of
from holdfast.runs.engine_moves import move_from_engine, move_to_engine
from holdfast.runs.fork.fork import fork_once
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.temporal.runs import assert_same, engine_of, run, settled, workers

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TD-37")
async def test_runs_over_the_limit_of_their_flow_start_when_others_have_ended(
    sqlite: str, engine: str
) -> None:
    running = most = 0
    flow = Flow("limited", effect="pure", limits=Limits(concurrency=2))

    @flow.node
    async def work(state: Any) -> dict[str, Any]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return {"n": state["n"] * 2}

    async with Holdfast(sqlite, engine=engine) as hf:
        runs = [await flow.submit({"n": n}, on=hf) for n in range(6)]
        service = await hf.service()
        rows = [await service.get(each) for each in runs]
        assert [row.worker is not None for row in rows] == [True] * 2 + [False] * 4
        async with workers(hf, flow):
            done = [await settled(flow, hf, each) for each in runs]
            assert [each.state["n"] for each in done] == [0, 2, 4, 6, 8, 10]
            assert most <= 2
            for each in runs:
                await assert_same(hf, each)


@pytest.mark.covers("TD-37")
async def test_run_that_an_operator_stopped_before_it_started_can_be_cancelled(
    sqlite: str, engine: str
) -> None:
    flow = Flow("stopped", effect="pure")

    @flow.node
    async def work(state: Any) -> None: ...

    async with Holdfast(sqlite, engine=engine) as hf:
        await (await hf.limits()).set("flow:stopped", concurrency=0)
        service = await hf.service()
        first, second = [await flow.submit({}, on=hf) for _ in range(2)]
        assert [(await service.get(each)).worker for each in (first, second)] == [None, None]
        await service.cancel(first, by="user:dana")
        async with workers(hf, flow):
            await (await hf.limits()).clear("flow:stopped")
            assert (await settled(flow, hf, first)).status is RunStatus.cancelled
            assert (await settled(flow, hf, second)).completed


@pytest.mark.covers("TD-37")
async def test_priority_and_tenant_of_a_run_are_those_of_its_workflow(sqlite: str, engine: str) -> None:
    def row(priority: int) -> Any:
        return type("Row", (), {"priority": priority, "tenant": "ä" * 40})()

    keys = {n: priority_of(row(n)).priority_key for n in (-100, -9, -1, 0, 1, 9, 10, 5000)}
    assert keys == {-100: 5, -9: 4, -1: 4, 0: 3, 1: 2, 9: 2, 10: 1, 5000: 1}
    assert priority_of(row(0)).fairness_key == "ä" * 32
    flow = Flow("urgent", effect="pure")

    @flow.node
    async def work(state: Any) -> None: ...

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        done = await run(flow, hf, priority=20, tenant="acme")
        client = await (await engine_of(hf)).client()
        found = await client.get_workflow_handle(done.run_id).describe()
        given = found.raw_description.workflow_execution_info.priority
        assert (given.priority_key, given.fairness_key) == (1, "acme")


@pytest.mark.covers("TD-37")
async def test_nodes_of_a_run_draw_on_one_budget_and_a_person_is_asked_for_more(
    sqlite: str, engine: str
) -> None:
    model = Scripted("Done.", tokens=TokenUsage(30, 10))
    flow = Flow("costs", budget=Budget(tokens=100, at_limit="ask"))

    @flow.node(effect="pure")
    async def start(state: Any) -> None: ...

    for n in range(5):
        flow.edge(start, flow.agent(f"bot{n}", model=model, prompt="Go", output=f"said{n}"))
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        assert waiting.status is RunStatus.pending_input, waiting
        assert waiting.totals["tokens"] <= 100
        (hold,) = waiting.holds
        await assert_same(hf, waiting.run_id)
        service = await hf.service()
        await service.answer(hold.id, "continue")
        done = await settled(flow, hf, waiting.run_id)
        while done.holds:
            await service.answer(done.holds[0].id, "continue")
            done = await settled(flow, hf, waiting.run_id)
        assert done.completed, done
        assert done.totals["tokens"] == 200
        assert all(done.state[f"said{n}"] == "Done." for n in range(5))
        await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-37")
async def test_items_of_a_map_share_a_limit_by_key_and_start_at_a_rate(sqlite: str, engine: str) -> None:
    running = most = 0
    flow, paced = Flow("keyed", effect="pure"), Flow("paced", effect="pure")

    async def work(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return item

    flow.map("each", over="items", body=work, into="done", limit_key="shop", concurrency=2)
    paced.map("each", over="items", body=work, into="done", rate="20/s")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, paced):
        done = await run(flow, hf, {"items": list(range(6))})
        assert list(done.state["done"]) == list(range(6)), done
        assert most <= 2
        service = await hf.service()
        done = await run(paced, hf, {"items": list(range(4))})
        assert list(done.state["done"]) == list(range(4)), done
        starts = [e for e in await service.events(done.run_id) if "item start" in str(e)]
        assert len(starts) >= 4


def waits_under_limit() -> Flow:
    flow = Flow("place", limits=Limits(per_key=1, key="{{shop}}"))

    @flow.node(effect="pure")
    async def begin(state: Any) -> dict[str, Any]:
        return {"begun": True}

    flow.hold("ok", prompt="Go on?", options=["yes", "no"])

    @flow.node(effect="pure")
    async def finish(state: Any) -> dict[str, Any]:
        if "gate" in state:
            await GATES[state["gate"]].wait()
        return {"finished": True}

    flow.chain("begin", "ok", "finish")
    return flow


GATES: dict[str, asyncio.Event] = {}


async def inside(hf: Holdfast) -> int:
    return sum(count for _, count, _ in await (await hf.service()).store.limits(prefix="flow:place/a"))


@pytest.mark.covers("TD-37")
async def test_run_that_waits_for_a_person_leaves_its_limit_and_is_admitted_after_the_answer(
    sqlite: str, engine: str
) -> None:
    flow, gate = waits_under_limit(), GATES.setdefault("answered", asyncio.Event())
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        service = await hf.service()
        first = await run(flow, hf, {"shop": "a", "gate": "answered"})
        assert (await service.get(first.run_id)).limit == ""
        assert await inside(hf) == 0
        # With the limit of its flow taken by one that waits, no other would start.
        second = await run(flow, hf, {"shop": "a"})
        assert second.status is RunStatus.pending_input
        # A fork of one that waits has its limit.
        forked, _ = await fork_once(service, await service.get(second.run_id), None)
        assert forked.limit == "flow:place/a"
        await settled(flow, hf, forked.id)

        client = await (await engine_of(hf)).client()
        await service.answer(first.holds[0].id, "yes")
        async with asyncio.timeout(HANG):
            while await inside(hf) == 0:
                await service.store.wait_change(0.05)
            await service.answer(second.holds[0].id, "yes")
            while not await tries(client, second.run_id):
                await service.store.wait_change(0.05)
        # One runs, the other has its answer and waits for its place.
        assert await inside(hf) == 1
        rows = [await service.get(each.run_id) for each in (first, second)]
        assert [row.limit for row in rows] == ["flow:place/a", ""]
        gate.set()
        for each in (first, second):
            assert (await settled(flow, hf, each.run_id)).state["finished"]
            await assert_same(hf, each.run_id)
        assert await inside(hf) == 0
        left = await service.store.documents("default", "engine_run")
        assert [document.name for document in left] == [forked.id]


async def tries(client: Any, run_id: str) -> bool:
    """Whether the cluster tries to have the run admitted."""
    found = await client.get_workflow_handle(run_id).describe()
    pending = found.raw_description.pending_activities
    return any(each.activity_type.name == "holdfast.admit" and each.attempt > 1 for each in pending)


@pytest.mark.covers("TD-37")
async def test_run_that_is_not_admitted_after_its_answer_can_be_cancelled(sqlite: str, engine: str) -> None:
    flow = waits_under_limit()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        service = await hf.service()
        waiting = await run(flow, hf, {"shop": "a"})
        await (await hf.limits()).set("flow:place/a", concurrency=0)
        await service.answer(waiting.holds[0].id, "yes")
        client = await (await engine_of(hf)).client()
        async with asyncio.timeout(HANG):
            while not await tries(client, waiting.run_id):
                await service.store.wait_change(0.05)
        await service.cancel(waiting.run_id, by="user:dana")
        done = await settled(flow, hf, waiting.run_id)
        assert done.status is RunStatus.cancelled
        assert "finished" not in done.state
        await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-37", "TD-38")
async def test_run_with_a_limit_that_is_moved_in_counts_only_while_it_advances(
    sqlite: str, engine: str
) -> None:
    flow = waits_under_limit()
    async with Holdfast(sqlite, engine="") as plain, Holdfast(sqlite, engine=engine) as hf:
        service, name = await hf.service(), (await engine_of(hf)).name
        waiting = [await run(flow, plain, {"shop": "a"}) for _ in range(2)]
        rows = [await service.get(each.run_id) for each in waiting]
        moved = [await move_to_engine(service, row, name) for row in rows]
        assert await inside(hf) == 0
        back = await move_from_engine(service, moved[1])
        assert back.limit == "flow:place/a"
        assert (await move_to_engine(service, back, name)).limit == ""
        async with workers(hf, flow):
            for each in waiting:
                await service.answer(each.holds[0].id, "yes")
                assert (await settled(flow, hf, each.run_id)).state["finished"]
                await assert_same(hf, each.run_id)
        assert await inside(hf) == 0
