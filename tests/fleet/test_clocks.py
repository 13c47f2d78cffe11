"""A machine whose wall clock is wrong: what it reckons is by the server's time, as others reckon it."""

from __future__ import annotations

import time

import pytest

from holdfast import Flow, Holdfast, RunSettings, RunStatus, Worker
from tests.fleet.conftest import schema_of
from tests.services import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-09")]

WRONG = 600 * 1_000_000_000


@pytest.mark.parametrize("by", [WRONG, -WRONG], ids=["ahead", "behind"])
async def test_timer_and_deadline_are_by_the_servers_time_when_a_workers_clock_is_wrong(
    address: str, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + by)
    flow = Flow("late", effect="pure")
    asks = flow.hold("ask", prompt="?", options=["a", "b"], timeout="300ms", on_timeout="default",
                     default_option="a")  # fmt: skip
    flow.edge(asks, flow.timer("nap", "300ms"))
    settings = RunSettings(hot_timer=0.0, poll=0.1)
    async with Holdfast(address, settings=settings) as hf:
        result = await flow.run({}, on=hf)
        assert result.status is RunStatus.pending_input
        schema = schema_of(address)
        ((left,),) = postgres.execute(
            "SELECT expires_at - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint "
            f"FROM {schema}.holds"
        )
        assert -5_000_000 < int(str(left)) <= 350_000
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1):
            events = [event async for event in service.stream(result.run_id, poll=0.1)]
        assert "run.completed" in [event.type for event in events]
        assert abs(events[-1].at - real() // 1000) < 60_000_000
