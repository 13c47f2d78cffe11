"""What waits, and what no worker serves, is said by `top`, `doctor`, the metrics and the server alike."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.cli.top.figures import FleetSnapshot, as_json, take_snapshot
from holdfast.cli.top.screen import lines
from holdfast.integrations.prometheus.fleet_metrics import FleetCollector
from holdfast.runs.schedules.service import ScheduleService
from holdfast.runs.unserved import find_unserved
from holdfast.types.clock import MICROS
from holdfast.types.fleet import FleetFigures, ScheduledFlow, VersionBacklog, WorkerRow
from tests.fleet.test_doctor_fleet import findings

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-FLEET-03")]
NOW = 1_000 * MICROS


def backlog(lane: str, version: str) -> VersionBacklog:
    return VersionBacklog(lane=lane, flow="pay", version=version, ready=1, oldest=0)


def worker(**given: Any) -> WorkerRow:
    fields: dict[str, Any] = {"until": NOW + 1, "versions": {"g1-a": "pay"}}
    basic: dict[str, Any] = {"name": "w", "incarnation": "w", "host": "h", "pid": 1, "release": "1"}
    return WorkerRow(**basic, started_at=1, **{**fields, **given})


def figures(*versions: VersionBacklog, **given: Any) -> FleetFigures:
    zero: dict[str, Any] = dict.fromkeys(
        ("dead", "oldest_hold", "timer_lag", "hold_lag", "schedule_lag", "outbox_waiting", "outbox_dead"), 0
    )
    lists: dict[str, Any] = {"lanes": [], "statuses": {}, "holds": [(1, 0), (2, 0), (3, 0), (0, 0)]}
    return FleetFigures(at=NOW, versions=list(versions), **zero, **{**lists, **given})


@pytest.mark.parametrize(
    ("workers", "lanes", "versions"),
    [
        ([worker()], [], ["g1-b"]),
        ([worker(lanes=("fast",))], ["slow"], ["g1-b"]),
        ([worker(lanes=("fast",), versions={}), worker(lanes=("slow",))], [], ["g1-a", "g1-b"]),
        ([worker(until=NOW)], ["fast", "fast", "fast", "slow"], []),
        ([worker(draining=True)], ["fast", "fast", "fast", "slow"], []),
        ([], ["fast", "fast", "fast", "slow"], []),
        ([worker(versions={"g1-a": "pay", "g1-b": "pay"})], [], []),
    ],
)
async def test_work_is_unserved_where_no_live_worker_has_its_lane_and_its_code(
    workers: list[WorkerRow], lanes: list[str], versions: list[str]
) -> None:
    ready = [
        backlog("fast", "g1-a"),
        backlog("fast", "g1-b"),
        backlog("fast", "dot-1"),
        backlog("slow", "g1-a"),
    ]
    found = find_unserved(figures(*ready), workers)
    assert [each.lane for each in found.lanes] == lanes
    assert [each.version for each in found.versions] == versions


async def test_schedule_is_unserved_where_no_live_worker_has_its_flow() -> None:
    scheduled = [ScheduledFlow(flow=flow, schedules=1, next_at=1) for flow in ("pay", "report")]
    found = find_unserved(figures(scheduled=scheduled), [worker()])
    assert [each.flow for each in found.schedules] == ["report"]


async def test_top_names_what_waits_and_what_no_worker_serves() -> None:
    ready = [backlog(f"lane-{n}", "g1-a") for n in range(5)] + [backlog("fast", "g1-b")]
    result = figures(
        *ready,
        scheduled=[ScheduledFlow(flow="report", schedules=2, next_at=1)],
        statuses={"waiting": 7, "pending_input": 2},
        timers=8,
        next_timer=90 * MICROS,
        suspects=3,
    )
    text = "\n".join(lines(FleetSnapshot(figures=result, workers=[worker(lanes=("fast",), hot=4)]), 200))
    assert "3 suspect" in text
    assert "7 sleeping · 2 waiting for input · 4 in memory · 8 timers, the next ends in 1 min 30 s" in text
    assert "Unserved  1 ready in lane lane-0" in text
    assert "1 of pay g1-b · schedules of report · and 2 more" in text
    quiet = "\n".join(lines(FleetSnapshot(figures=figures(), workers=[worker()]), 200))
    assert "Unserved" not in quiet
    assert "Waits     none" in quiet


async def test_every_view_says_what_waits_and_what_is_unserved(tmp_path: Any) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    served, other, nap = (
        Flow("served", effect="pure"),
        Flow("other", effect="pure"),
        Flow("nap", effect="pure"),
    )
    for flow in (served, other):
        flow.node(id="work")(_nothing)
    nap.timer("rest", "1h")
    async with Holdfast(address) as hf:
        service = await hf.service()
        await Worker(nap, on=hf).run_until_idle()
        await service.create(nap.program(), {})
        await Worker(nap, on=hf).run_until_idle()
        async with Worker(served, nap, on=hf, lanes=["default"], poll=5.0):
            await service.create(served.program(), {}, lane="night")
            await service.create(other.program(), {})
            await ScheduleService(service.store).put("nightly", "other", cron="0 3 * * *")
            seen = as_json(await take_snapshot(service.store))
            found = await findings(address)
            samples = await _samples(service.store)
    assert (seen["waits"]["sleeping"], seen["waits"]["timers"]) == (1, 1)
    assert 3500 < seen["waits"]["next_timer_seconds"] <= 3600
    assert [(each["lane"], each["flow"]) for each in seen["unserved"]["lanes"]] == [("night", "served")]
    assert [each["flow"] for each in seen["unserved"]["versions"]] == ["other"]
    assert seen["unserved"]["schedules"] == [{"flow": "other", "schedules": 1}]
    assert found["waiting"]["said"].startswith("1 runs sleep, 0 wait for input")
    assert (found["lanes"]["state"], found["lanes"]["about"]) == ("warn", ["1 in lane night"])
    assert (found["flow versions"]["state"], found["schedules"]["state"]) == ("warn", "warn")
    assert samples["holdfast_timers", ""] == 1
    assert samples["holdfast_unserved_runs", "served"] == 1
    assert samples["holdfast_unserved_runs", "other"] == 1
    assert samples["holdfast_unserved_schedules", "other"] == 1


async def _samples(store: Any) -> dict[tuple[str, str], float]:
    """By name and flow."""
    collector = FleetCollector()
    collector.figures, collector.workers = await store.fleet_figures(ages=(1, 2, 3)), await store.workers()
    return {
        (sample.name, sample.labels.get("flow", "")): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }


async def _nothing(s: dict[str, Any]) -> dict[str, Any]:
    return {}
