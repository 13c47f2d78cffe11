"""Runs on a cluster: questions, timers, effects, cancels, and what the rest of Holdfast shows of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from holdfast import Context, Flow, Holdfast, Worker
from holdfast.drivers.temporal.reconcile import end_closed_runs
from holdfast.drivers.temporal.task_queues import queue_of
from holdfast.errors import EngineError, RunBusyError
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId
from holdfast.types.outbox import ENGINE_START
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.services import temporal
from tests.temporal.runs import assert_same, engine_of, run, settled, workers

pytestmark = pytest.mark.anyio


def asks() -> Flow:
    flow = Flow("asks")

    @flow.script
    async def script(state: Any, ctx: Context) -> dict[str, Any]:
        fetched = await ctx.step("fetch", lambda: 5, effect="external")
        reply = await ctx.ask("Refund it?", options=["yes", "no"])
        await ctx.sleep(0.2)
        seen = await ctx.step("read", lambda: 1, effect="read")
        return {"answer": reply.decision, "fetched": fetched, "sees": seen}

    return flow


@pytest.mark.covers("TD-16", "TD-23", "TD-24", "TD-25", "TD-12", "TD-15", "TD-9")
async def test_script_asks_sleeps_and_continues_with_what_it_recorded(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        assert waiting.status is RunStatus.pending_input
        (hold,) = waiting.holds
        await assert_same(hf, waiting.run_id)
        service = await hf.service()
        await service.answer(hold.id, "yes", by="user:dana")
        done = await settled(flow, hf, waiting.run_id)
        assert dict(done.state) == {"answer": "yes", "fetched": 5, "sees": 1}
        await assert_same(hf, waiting.run_id)
        # A signal that was sent past the store says nothing.
        assert [e.type for e in await service.events(waiting.run_id) if e.type == "hold.resolved"] != []


@pytest.mark.covers("TD-24")
async def test_signals_past_the_store_and_repeated_ones_change_nothing(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        client = await (await engine_of(hf)).client()
        for number in (99, 99, 12345):
            await client.get_workflow_handle(waiting.run_id).signal("holdfast.mail", number)
        service = await hf.service()
        await service.answer(waiting.holds[0].id, "no")
        for number in range(3):
            await (await engine_of(hf)).tell(RunId(waiting.run_id), number, cancels=False)
        done = await settled(flow, hf, waiting.run_id)
        assert done.state["answer"] == "no"
        await assert_same(hf, waiting.run_id)


@dataclass(frozen=True)
class Order:
    amount: int


@dataclass
class Shop:
    order: Order | None = None
    decision: int = 0
    names: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


def typed() -> Flow:
    flow: Flow = Flow("typed", state=Shop, effect="pure", reducers={"log": "append"})

    @flow.node
    async def begin(_state: Shop) -> dict[str, Any]:
        return {"order": Order(30)}

    @flow.node
    async def large(_state: Shop) -> dict[str, Any]:
        return {"log": "large"}

    @flow.node
    async def small(_state: Shop) -> dict[str, Any]:
        return {"log": "small"}

    flow.edge("begin", "large", when="order.amount > 20")
    flow.edge("begin", "small", when="order.amount <= 20")
    flow.hold("pick", prompt="How many?")
    flow.edge("large", "pick")
    return flow


@pytest.mark.covers("TD-6", "TD-7")
async def test_types_of_the_flow_are_known_to_its_activities_alone(sqlite: str, engine: str) -> None:
    flow = typed()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        assert waiting.state.order == Order(30)
        assert list(waiting.state.log) == ["large"]
        service = await hf.service()
        await service.answer(waiting.holds[0].id, "many")
        done = await settled(flow, hf, waiting.run_id)
        assert done.error is not None
        assert "the answer to 'pick' does not fit the state" in done.error.message
        client = await (await engine_of(hf)).client()
        history = await client.get_workflow_handle(waiting.run_id).fetch_history()
        scheduled = [e.activity_task_scheduled_event_attributes.activity_type.name for e in history.events]
        # The activity that reads the answer fits it.
        assert (scheduled.count("holdfast.mail"), scheduled.count("holdfast.fit")) == (1, 0)
        await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-26")
async def test_cancel_of_either_side_ends_run_and_workflow(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        service, client = await hf.service(), await (await engine_of(hf)).client()
        first, second = await asyncio.gather(run(flow, hf), run(flow, hf))
        await service.cancel(first.run_id, reason="too late", by="user:dana")
        await client.get_workflow_handle(second.run_id).cancel()
        for waiting in (first, second):
            done = await settled(flow, hf, waiting.run_id)
            assert done.status is RunStatus.cancelled
            assert await service.holds(RunId(waiting.run_id)) == []
            handle = client.get_workflow_handle(waiting.run_id)
            with pytest.raises(WorkflowFailureError) as ended:
                await handle.result()
            assert isinstance(ended.value.cause, CancelledError)


@pytest.mark.covers("TD-27")
async def test_run_of_a_terminated_workflow_fails_and_withdraws_its_questions(sqlite: str) -> None:
    flow, server = asks(), temporal.own()
    async with Holdfast(sqlite, engine=server.address()) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        engine = await engine_of(hf)
        assert await end_closed_runs(engine, young=0) == []
        assert waiting.run_id in server.cli("workflow", "list")
        server.cli("workflow", "terminate", "-w", waiting.run_id, "--reason", "by hand")
        (ended,) = await end_closed_runs(engine, young=0)
        assert ended.id == waiting.run_id
        done = await settled(flow, hf, waiting.run_id)
        assert (done.status, done.error.code) == (RunStatus.failed, "engine_closed")
        assert await (await hf.service()).holds(RunId(waiting.run_id)) == []


@pytest.mark.covers("TD-4")
async def test_run_that_was_created_without_a_server_starts_once_when_there_is_one(
    sqlite: str, engine: str
) -> None:
    flow = Flow("later", effect="pure")

    @flow.node
    async def count(state: Any) -> dict[str, Any]:
        return {"n": state.get("n", 0) + 1}

    async with Holdfast(sqlite, engine=engine) as hf:
        service = await hf.service()
        found = await engine_of(hf)
        connect = found.cluster.connect

        async def refuse() -> Any:
            from holdfast.errors import EngineError

            raise EngineError("no server")

        found.cluster.connect = refuse  # type: ignore[method-assign]
        created = await flow.submit({}, on=hf)
        (message,) = await service.store.list_outbox(topic=ENGINE_START)
        assert message.run == created
        found.cluster.connect = connect  # type: ignore[method-assign]
        async with workers(hf, flow, count=3):
            done = await settled(flow, hf, created)
            assert dict(done.state) == {"n": 1}


@pytest.mark.covers("TD-5")
async def test_built_in_workers_leave_runs_of_an_engine_alone(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, Holdfast(sqlite) as plain:
        created = await flow.submit({}, on=hf)
        await Worker(flow, on=plain).run_until_idle()
        service = await plain.service()
        row = await service.get(created)
        assert (row.status, row.head) == (RunStatus.running, 0)
        with pytest.raises(RunBusyError):
            await service.runtime.claim(row.id)
        assert await service.store.reclaim(limit=10, max_recoveries=5) == []
        async with Worker(flow, on=hf):
            waiting = await settled(flow, hf, created)
            assert waiting.status is RunStatus.pending_input
            beside = await flow.run(on=plain)
            assert beside.status is RunStatus.pending_input


@pytest.mark.covers("TD-28")
async def test_long_run_continues_in_new_histories(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("long", effect="pure", reducers={"seen": "append"})

    @flow.node
    async def turn(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1, "seen": state["n"]}

    flow.loop("turn", "turn", when="n < 41", max=100)
    # Every history is long here after some forty events.
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.MAX_EVENTS", 40)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        done = await run(flow, hf, {"n": 0})
        assert done.completed, done
        assert (done.state["n"], list(done.state["seen"])) == (41, list(range(41)))
        client = await (await engine_of(hf)).client()
        found = await client.get_workflow_handle(done.run_id).describe()
        assert found.history_length < 80
        assert found.raw_description.workflow_execution_info.first_run_id != found.run_id
        await assert_same(hf, done.run_id)


def test_queue_names_lane_flow_version_and_store() -> None:
    found = queue_of("0a1b2c3d4e5f", "fast", "refund", "g1-0123456789abcdef")
    assert found == "holdfast/fast/refund@0123456789ab/0a1b2c3d"


async def wide(hf: Holdfast, flow: Flow, count: int) -> Any:
    async with workers(hf, flow):
        done = await run(flow, hf, {"items": list(range(count)), "noise": "x" * 20_000})
        assert done.completed, done
        assert list(done.state["doubled"]) == [2 * n for n in range(count)]
        await assert_same(hf, done.run_id)
        return done


async def test_map_has_a_bounded_number_of_activities_and_queued_effects_have_not_begun(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.MAX_ACTIVITIES", 4)
    # Every history is long here: what waits is started by the next one.
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.MAX_EVENTS", 60)
    running = most = calls = 0
    flow = Flow("wide")

    async def double(item: int) -> int:
        nonlocal running, most, calls
        running += 1
        calls += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return item * 2

    flow.map("each", over="items", body=double, into="doubled", effect="external")
    async with Holdfast(sqlite, engine=engine) as hf:
        done = await wide(hf, flow, 40)
        assert most <= 4
        assert calls == 40
        client = await (await engine_of(hf)).client()
        found = await client.get_workflow_handle(done.run_id).describe()
        assert found.raw_description.workflow_execution_info.first_run_id != found.run_id


@pytest.mark.covers("TD-42")
async def test_map_that_starts_more_items_than_a_cluster_can_take_fails_before_any_begins(
    sqlite: str, engine: str
) -> None:
    flow, narrow, calls = Flow("too_wide", effect="pure"), Flow("narrow", effect="pure"), list[int]()

    async def double(item: int) -> int:
        calls.append(item)
        return item * 2

    flow.map("each", over="items", body=double, into="doubled")
    narrow.map("each", over="items", body=double, into="doubled", concurrency=2)
    later = Flow("later", effect="pure")

    @later.node
    async def read(state: Any) -> dict[str, Any]:
        return {"items": list(range(1001))}

    later.edge(read, later.map("each", over="items", body=double, into="doubled"))
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow, narrow, later):
        with pytest.raises(EngineError, match=r"begins with 1,002 nodes and items.*concurrency="):
            await run(flow, hf, {"items": list(range(1001))})
        assert (await (await hf.service()).store.list_runs(RunFilter(), after=None, limit=9)) == []
        failed = await run(later, hf)
        assert (failed.status, failed.error.code) == (RunStatus.failed, "engine")
        assert "starts 1,001 items together" in failed.error.message
        assert calls == []
        assert (await run(narrow, hf, {"items": [1, 2, 3]})).completed


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_map_of_many_more_items_than_activities_completes(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.temporal.runs.HANG", 1700)
    flow = Flow("widest", effect="pure")

    async def double(item: int) -> int:
        return item * 2

    flow.map("each", over="items", body=double, into="doubled")
    async with Holdfast(sqlite, engine=engine) as hf:
        await wide(hf, flow, 999)  # with the node of the map, as many as may begin together


# ---------------------------------------------------------------------- other runs and machines
async def test_child_runs_events_and_callbacks_work_as_with_the_built_in_workers(
    sqlite: str, engine: str
) -> None:
    child, parent, tokens, paid = Flow("child"), Flow("parent"), list[str](), list[int]()

    @child.script
    async def pay(state: Any, ctx: Context) -> dict[str, Any]:
        await ctx.step("pay", lambda: paid.append(1), effect="external")
        return {"paid": 7}

    @parent.script
    async def script(state: Any, ctx: Context) -> dict[str, Any]:
        of_child = await ctx.call(child, {})
        event = await ctx.wait_for("received", key="k")
        callback = await ctx.callback("shop")
        tokens[:] = [callback.token]
        return {"child": of_child["paid"], "event": event["n"], "shop": (await callback.result())["ok"]}

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, parent, child):
        waiting = await run(parent, hf)
        assert waiting.status is RunStatus.pending_input
        await (await hf.queues()).send_event("received", {"n": 3}, key="k")
        async with asyncio.timeout(HANG):
            while not tokens:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await settled(parent, hf, waiting.run_id)
        await (await hf.callbacks()).complete(tokens[0], {"ok": True})
        done = await settled(parent, hf, waiting.run_id)
        assert dict(done.state) == {"child": 7, "event": 3, "shop": True}
        assert paid == [1]
        await assert_same(hf, waiting.run_id)
