"""Limits, priorities and budgets of runs on a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Budget, Flow, Holdfast, Limits, Scripted
from holdfast.agents.messages import TokenUsage
from holdfast.drivers.temporal.client import priority_of
from holdfast.types.status import RunStatus
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
