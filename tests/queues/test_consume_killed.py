"""A worker is killed while it gives a message to a run: the message is neither lost nor delivered twice."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.queues import consume
from holdfast.testing.clock import FakeClock
from holdfast.types.queue_message import MessageState
from tests.deadlines import HANG
from tests.services.prefork import started

TASKS = ("support", "tasks")


def taking() -> Flow:
    flow = Flow("taking", effect="pure")
    take = flow.hold("take", prompt="", type="queue_wait", queue="support/tasks")

    async def work(s: Any) -> dict[str, Any]:
        return {"done": [*s.get("done", []), s["decision_result"]["response_data"]["id"]]}

    flow.edge(take, flow.node()(work))
    return flow


def killed_worker(store: str, moment: str) -> None:
    asyncio.run(_killed_worker(store, moment))


async def _killed_worker(store: str, moment: str) -> None:
    resolve = consume.decide.resolve

    async def die(*given: Any) -> Any:
        if moment == "after":
            await resolve(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    consume.decide.resolve = die
    flow = taking()
    async with Holdfast(store) as hf:
        await flow.run({}, on=hf, run_id=RUN)
        await (await hf.queues()).publish(*TASKS, {}, id="t1")
        await Worker(flow, on=hf).run_until_idle()


RUN = "5f0c1f9e-6a43-4f6b-9d5c-7a3f6f0f0c11"


@pytest.mark.anyio
@pytest.mark.covers("QU-30")
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_message_is_neither_lost_nor_taken_twice_when_its_worker_is_killed(
    tmp_path: Path, moment: str
) -> None:
    store = f"sqlite:{tmp_path / 'q.db'}"
    process = started(killed_worker, (store, moment))
    await asyncio.to_thread(process.join, HANG)
    assert process.exitcode == -signal.SIGKILL
    # Leases of the killed process have ended; its claim on the message has not, but it is the run's own.
    clock = FakeClock(datetime.now(UTC) + timedelta(seconds=90))
    flow = taking()
    async with Holdfast(store, clock=clock) as hf:
        queues = await hf.queues()
        left = await queues.get(*TASKS, "t1")
        assert left.state == ("claimed" if moment == "before" else "completed")
        other = await flow.run({}, on=hf)
        worker = Worker(flow, on=hf)
        for _ in range(3):
            await worker.run_until_idle()
            clock.advance(seconds=30)
        await worker.close()
        got = [await flow.result(run, on=hf) for run in (RUN, other.run_id)]
        assert [each.state.get("done", []) for each in got if each.completed] == [["t1"]]
        row = await queues.get(*TASKS, "t1")
        assert (row.state, row.attempts) == (MessageState.completed, 0)
