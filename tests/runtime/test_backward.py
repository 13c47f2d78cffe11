"""A store that loses what it had acknowledged while a worker has the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import HistoryLostError, LeaseLostError
from holdfast.store.memory import MemoryStore
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus

pytestmark = pytest.mark.anyio


def put_back(store: MemoryStore, run: RunId) -> int:
    """The store as it was one record earlier. Answers the head that it has then."""
    kept = store._ids[run]  # pyright: ignore[reportPrivateUsage]
    kept.records.pop()
    kept.head -= 1
    return kept.head


def sending(sent: list[str], wait: asyncio.Event) -> Flow:
    flow = Flow("sending", effect="pure")

    async def send(s: Any) -> dict[str, Any]:
        sent.append("send")
        return {"sent": True}

    async def confirm(s: Any) -> dict[str, Any]:
        sent.append("confirm")
        await wait.wait()
        return {"confirmed": True}

    flow.node(id="send", effect="external", idempotency_key="{{order}}")(send)
    flow.node(id="confirm", effect="external", idempotency_key="{{order}}")(confirm)
    flow.edge("send", "confirm")
    return flow


@pytest.mark.covers("FLEET-PG-08")
async def test_run_stops_when_its_worker_finds_the_head_lower_than_it_knows() -> None:
    sent: list[str] = []
    wait = asyncio.Event()
    flow = sending(sent, wait)
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        store = service.store
        assert isinstance(store, MemoryStore)
        running = asyncio.create_task(flow.run({"order": "o-1"}, on=hf))
        while sent != ["send", "confirm"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        (run,) = store._ids  # pyright: ignore[reportPrivateUsage]
        left = put_back(store, run)
        wait.set()
        with pytest.raises(LeaseLostError):
            await running
        row = await service.get(run)
        assert (row.status, row.head) == (RunStatus.failed, left)
        with pytest.raises(HistoryLostError, match="record") as output:
            await flow.resume(run, on=hf)
        assert "--accept-loss" in (output.value.hint or "")
        assert sent == ["send", "confirm"]
        done = await flow.resume(run, on=hf, accept_loss=True)
        assert done.completed
