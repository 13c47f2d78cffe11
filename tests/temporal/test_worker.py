"""What a worker of a cluster does with the store and its task queues; no server answers here."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

pytest.importorskip("temporalio")

from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from holdfast import Flow, Holdfast
from holdfast.checkpoint.compress import library
from holdfast.drivers.temporal.activities import Activities
from holdfast.drivers.temporal.worker import QUEUED, EngineWorker
from holdfast.errors import EngineError, FlowNotFoundError
from holdfast.types.outbox import ENGINE_START, OutboxState
from holdfast.types.record import InboxRow
from tests.deadlines import HANG
from tests.temporal.runs import engine_of

pytestmark = pytest.mark.anyio

NOWHERE = "temporal://127.0.0.1:1/default"


def flow_of(name: str) -> Flow:
    flow = Flow(name)

    @flow.node(effect="pure")
    async def work() -> None: ...

    return flow


async def nothing(*_: Any, **__: Any) -> None: ...


class Polls:
    """Stands for what polls a task queue."""

    made: list[Polls]
    error: Exception | None = None

    def __init__(self, _client: object, **_: Any) -> None:
        self.asked = asyncio.Event()
        self.together = False
        self.made.append(self)

    async def run(self) -> None:
        if self.error is not None:
            raise self.error
        await self.asked.wait()

    async def shutdown(self) -> None:
        self.asked.set()
        for _ in range(len(self.made)):
            await asyncio.sleep(0)
        self.together = all(each.asked.is_set() for each in self.made)

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()


@pytest.fixture(autouse=True)
def polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Polls, "made", [], raising=False)
    monkeypatch.setattr("holdfast.drivers.temporal.worker.Worker", Polls)


@pytest.mark.parametrize("error", [None, RuntimeError("Namespace shop is not found")])
async def test_worker_leaves_all_its_task_queues_at_once(
    error: Exception | None, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it drains it takes no new work; and it says so when it is given none any more."""
    monkeypatch.setattr(Polls, "error", error)
    async with Holdfast(sqlite, engine=NOWHERE) as hf:
        for name in ("one", "two", "three"):
            hf.register(flow_of(name).program())
        engine = await engine_of(hf)
        monkeypatch.setattr(engine, "check", nothing)
        monkeypatch.setattr(engine, "client", nothing)
        worker = EngineWorker(engine)
        library.cache_clear()
        async with asyncio.timeout(HANG):
            serving = asyncio.ensure_future(worker.serve())
            if error is None:
                while len(Polls.made) < 4:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                worker.stop()
                await serving
            else:
                with pytest.raises(EngineError, match=r"refused task queue .*Namespace shop is not found"):
                    await serving
    assert all(each.together for each in Polls.made)
    # The sandbox of workflows cannot import what large values are read with.
    assert library.cache_info().currsize == 1


async def test_run_that_cannot_be_told_or_started_keeps_no_other_waiting(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, seen = flow_of("waiting"), list[str]()
    async with Holdfast(sqlite, engine=NOWHERE) as hf:
        engine = await engine_of(hf)
        runs = {await flow.submit({}, on=hf) for _ in range(3)}
        for run in runs:
            await (await hf.service()).cancel(run)

        async def start(row: Any, **_: Any) -> None:
            seen.append(row.id)
            if len(seen) == 1:
                raise FlowNotFoundError("its graph is damaged", flow=row.flow)

        async def tell(run: str, _: int, *, cancels: bool) -> bool:
            seen.append(run)
            if len(seen) == 1:
                raise RPCError("too many signals", RPCStatusCode.INVALID_ARGUMENT, b"")
            return True

        monkeypatch.setattr(engine, "client", nothing)
        monkeypatch.setattr(engine, "start", start)
        monkeypatch.setattr(engine, "tell", tell)
        worker = EngineWorker(engine)
        await worker._start_new()
        assert set(seen) == runs
        seen.clear()
        await worker.deliver()
        assert set(seen) == runs


async def test_order_to_another_cluster_is_not_kept_from_its_workers(sqlite: str) -> None:
    async with Holdfast(sqlite, engine=NOWHERE) as hf, Holdfast(sqlite, engine=NOWHERE + "2") as other:
        await flow_of("theirs").submit({}, on=other)
        store = (await hf.service()).store
        await EngineWorker(await engine_of(hf))._start_new()
        (order,) = await store.list_outbox(tenant="default", topic=ENGINE_START, state=OutboxState.waiting)
        assert order.due_at <= store.now() + QUEUED
        assert order.claimed_until is None


@pytest.mark.covers("TD-19")
async def test_node_sends_heartbeats_in_the_time_of_its_run_where_that_of_its_worker_is_longer(
    sqlite: str,
) -> None:
    alive, environment = asyncio.Event(), ActivityEnvironment()
    environment.on_heartbeat = lambda *_: alive.set()
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(milliseconds=30))
    async with Holdfast(sqlite, engine=f"{NOWHERE}?heartbeat=3000s") as hf:
        activities = Activities((await hf.service()).runtime, (await engine_of(hf)).cluster.address.heartbeat)

        async def until_heard() -> None:
            async with asyncio.timeout(HANG), activities._beating():
                await alive.wait()

        await environment.run(until_heard)


@pytest.mark.covers("TD-24")
async def test_run_that_has_taken_in_its_messages_is_not_asked_at_each_look(sqlite: str) -> None:
    asked, unread = 0, list[InboxRow]()
    async with Holdfast(sqlite, engine=NOWHERE) as hf:
        engine = await engine_of(hf)
        engine.created = nothing  # type: ignore[method-assign]
        engine.tell = nothing  # type: ignore[method-assign,assignment]
        row = await (await hf.service()).get(await flow_of("told").submit({}, on=hf))
        worker = EngineWorker(engine)

        async def pending(run: Any) -> tuple[int, list[InboxRow]]:
            nonlocal asked
            asked += 1
            return row.inbox_seq, unread

        worker.store.pending = pending  # type: ignore[method-assign]
        worker._attend = nothing  # type: ignore[method-assign]
        looks = []
        for number, rows in ((0, 0), (1, 1), (1, 1), (1, 0), (1, 0), (1, 0), (2, 1), (2, 0), (2, 0)):
            row = msgspec.structs.replace(row, inbox_seq=number)
            unread = [InboxRow(number, "steer", 0, b"")] * rows
            looks.append((await worker._serve_run(row), asked))
    assert looks == [(0, 0), (1, 1), (1, 2), (0, 3), (0, 3), (0, 3), (1, 4), (0, 5), (0, 5)]
