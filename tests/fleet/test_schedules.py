"""Schedules under a clock that the test moves: what is started when, what was missed, what overlaps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Actor, Flow, Holdfast, Worker
from holdfast.attractor.prepare import input_of, prepare_pipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.errors import (
    ForbiddenError,
    InputError,
    KeyMissingError,
    ScheduleNotFoundError,
    SchemaTooNewError,
)
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.runs.schedules.scheduler import Scheduler, ScheduleTurn
from holdfast.store.open import open_store
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.schedule import ScheduleRow
from holdfast.types.status import RunStatus
from tests.fleet.schedule_service import NAME, Harness
from tests.storage.canary import ring, turned, without

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-WORK-10")]

BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ALL = {"missed": "all", "overlap": "allow"}


@dataclass
class Amount:
    amount: int = 0


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    clock = FakeClock(BEGIN)
    async with Holdfast("memory:", clock=clock) as hf:
        made = Harness(hf, clock)
        yield made
        await made.worker.close()


async def test_each_instant_starts_one_run_that_says_what_started_it(harness: Harness) -> None:
    await harness.put(cron="0 9,10 * * *", lane="slow", priority=3, tenant="default")
    assert await harness.after(minutes=59) == []
    assert await harness.after(minutes=1) == ["09:00"]
    assert await harness.after() == await harness.after(minutes=30) == ["09:00"]
    assert await harness.after(minutes=30) == ["09:00", "10:00"]
    rows = await harness.runs()
    assert {(row.started_by, row.lane, row.priority, row.status) for row in rows} == {
        ("schedule:daily (user:local)", "slow", 3, RunStatus.completed)
    }
    found = await harness.get()
    assert (found.last_run, found.next_at) == (rows[-1].id, harness.clock.now() + 23 * 3600 * MICROS)


async def test_a_pipeline_that_somebody_hands_in_takes_no_flows_place(
    harness: Harness, tmp_path: Path
) -> None:
    await harness.put(cron="0 9 * * *")
    await harness.after()
    ready = prepare_pipeline("digraph report { start; exit; start -> exit }", PipelineSetup())
    service = await harness.hf.service()
    await service.create(ready.program, input_of(ready.pipeline, logs=tmp_path), tenant="them")
    await harness.after()
    assert await harness.after(hours=1) == ["09:00"]
    assert [row.tenant for row in await harness.runs()] == ["them", "default"]


@pytest.mark.covers("HOLD-AUTH-08", "HOLD-SEC-12")
async def test_a_caller_who_set_the_schedule_is_the_initiator_of_its_runs(harness: Harness) -> None:
    flow = Flow("pay", effect="pure")
    terms = {"assignee": "user:sam@acme", "approval": {"exclude": ["initiator"]}}
    flow.hold("pay", prompt="Pay?", options=["yes", "no"], **terms)
    schedules, holds = await harness.schedules(), await harness.hf.holds()
    await schedules.put(NAME, flow, cron="0 9 * * *", by="user:dana@acme")
    await schedules.pause(NAME, by="user:eve")
    await schedules.resume(NAME, by="user:eve")
    harness.clock.advance(hours=1)
    await Worker(flow, on=harness.hf).run_until_idle()
    (row,) = await (await harness.hf.service()).holds()
    assert row.started_by == "schedule:daily (user:dana@acme)"
    with pytest.raises(ForbiddenError, match="the starter of the run cannot decide"):
        await holds.answer(row.id, "yes", by="user:dana@acme")
    await holds.ask_back(Actor(id="user:sam@acme", channel="inbox"), row.id, "For what?")
    await holds.reply(Actor(id="user:dana@acme", channel="inbox"), row.id, "For rent.")
    assert await holds.answer(row.id, "yes", by="user:sam@acme")


async def test_schedule_in_the_code_was_set_by_nobody(harness: Harness) -> None:
    await harness.put(cron="0 9 * * *", by="service:worker", declared=True)
    await harness.after(hours=1)
    assert [row.started_by for row in await harness.runs()] == ["schedule:daily"]


async def test_interval_is_anchored_in_time_and_not_at_its_making(harness: Harness) -> None:
    harness.clock.advance(minutes=7)
    await harness.put(every="15m")
    assert await harness.after(minutes=9) == ["08:15"]
    assert await harness.after(minutes=15) == ["08:15", "08:30"]
    await harness.put(every="15m", anchor="2026-01-01T00:05")
    assert await harness.after(minutes=15) == ["08:15", "08:30", "08:35"]


async def test_one_off_fires_once_and_is_over(harness: Harness) -> None:
    await harness.put(at="2026-03-02T08:30")
    assert await harness.after(days=2) == ["08:30"]
    found = await harness.get()
    assert (found.over, found.next_at) == (True, None)
    assert await harness.after(days=900) == ["08:30"]


async def test_nothing_fires_before_its_start_or_after_its_end(harness: Harness) -> None:
    await harness.put(every="1h", start="2026-03-02T10:00", end="2026-03-02T11:00", **ALL)
    assert await harness.after(hours=24) == ["10:00", "11:00"]
    assert (await harness.get()).over


async def test_worker_that_slept_while_another_moved_on_starts_nothing(harness: Harness) -> None:
    """It read the schedule, was stopped, and goes on when other instants are due."""
    await harness.put(every="10m", input={"slow": True})
    service = await harness.hf.service()
    service.runtime.register(harness.flow.program())
    harness.clock.advance(minutes=10)
    asleep = ScheduleTurn(Scheduler(service), await harness.get(), harness.flow.program())
    assert await harness.after() == ["08:10"]
    harness.clock.advance(minutes=10)
    await asleep.take()
    assert (asleep.started, len(await harness.runs())) == (0, 1)
    # The one that is awake sees that the run before is under way.
    await harness.after()
    assert ((await harness.get()).standing.passed, len(await harness.runs())) == (1, 1)


# ---------------------------------------------------------------------- what was missed


async def test_newest_missed_instant_is_caught_up_when_the_policy_is_last(harness: Harness) -> None:
    await harness.put(every="10m")
    assert await harness.after(hours=1, minutes=5) == ["09:00"]
    assert await harness.after(minutes=5) == ["09:00", "09:10"]


async def test_missed_instants_are_passed_over_when_the_policy_is_skip(harness: Harness) -> None:
    await harness.put(every="10m", missed="skip", grace="2m")
    assert await harness.after(hours=1, minutes=3) == []
    assert await harness.after(minutes=7) == ["09:10"]
    # Two minutes late still is on time.
    assert await harness.after(minutes=12) == ["09:10", "09:20"]


async def test_every_missed_instant_is_caught_up_in_order_when_the_policy_is_all(harness: Harness) -> None:
    await harness.put(every="10m", **ALL)
    assert await harness.after(minutes=45) == ["08:10", "08:20", "08:30", "08:40"]
    assert await harness.after(minutes=5) == ["08:10", "08:20", "08:30", "08:40", "08:50"]
    assert (await harness.get()).standing.trouble == ""


async def test_catching_up_is_bounded_and_that_is_reported(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runs.schedules.missed_instants.AT_MOST", 3)
    await harness.put(every="10m", **ALL)
    assert await harness.after(minutes=125) == ["09:40", "09:50", "10:00"]
    assert "those before 2026-03-02T09:40:00Z are skipped" in (await harness.get()).standing.trouble


# ---------------------------------------------------------------------- what overlaps


async def test_instant_is_passed_over_when_the_run_before_is_under_way(harness: Harness) -> None:
    await harness.put(every="10m", input={"slow": True})
    assert await harness.after(minutes=10) == ["08:10"]
    assert await harness.after(minutes=10) == ["08:10"]
    assert (await harness.get()).standing.passed == 1
    await harness.answer_all()
    assert await harness.after(minutes=10) == ["08:10", "08:30"]


async def test_instants_start_beside_each_other_when_they_may_overlap(harness: Harness) -> None:
    await harness.put(every="10m", input={"slow": True}, overlap="allow")
    await harness.after(minutes=10)
    assert await harness.after(minutes=10) == ["08:10", "08:20"]
    assert {row.status for row in await harness.runs()} == {RunStatus.pending_input}


async def test_instant_waits_for_the_run_before(harness: Harness) -> None:
    await harness.put(every="10m", input={"slow": True}, overlap="wait", missed="all")
    await harness.after(minutes=10)
    assert await harness.after(minutes=20) == ["08:10"]
    await harness.answer_all()
    assert await harness.after(minutes=1) == ["08:10", "08:20"]
    await harness.answer_all()
    assert await harness.after(seconds=5) == ["08:10", "08:20", "08:30"]


async def test_run_before_is_cancelled_when_the_next_instant_comes(harness: Harness) -> None:
    await harness.put(every="10m", input={"slow": True}, overlap="cancel")
    await harness.after(minutes=10)
    assert await harness.after(minutes=10) == ["08:10", "08:20"]
    assert [row.status for row in await harness.runs()] == [RunStatus.cancelled, RunStatus.pending_input]


# ---------------------------------------------------------------------- what does not fit


async def test_input_that_does_not_fit_is_refused_where_the_flow_is_known(harness: Harness) -> None:
    flow = typed()
    schedules = await harness.schedules()
    with pytest.raises(InputError, match="cannot start flow 'typed'"):
        await schedules.put("typed", flow, every="1h", input={"amount": "many"})
    with pytest.raises(ScheduleNotFoundError):
        await schedules.get("typed")


async def test_input_that_does_not_fit_is_reported_and_the_next_instant_comes(harness: Harness) -> None:
    """By its name only, nobody could try it."""
    schedules = await harness.schedules()
    flow = typed()
    await schedules.put("typed", "typed", every="1h", input={"amount": "many"})
    worker = Worker(flow, on=harness.hf)
    harness.clock.advance(hours=1)
    await worker.run_until_idle()
    found = await schedules.get("typed")
    assert "no run was started for 2026-03-02T09:00:00Z" in found.standing.trouble
    assert found.last_run is None
    await schedules.put("typed", flow, every="1h", input={"amount": 3})
    harness.clock.advance(hours=1)
    await worker.run_until_idle()
    found = await schedules.get("typed")
    assert (found.standing.trouble, found.last_run is None) == ("", False)
    await worker.close()


def typed() -> Flow:
    flow = Flow("typed", Amount, effect="pure")

    async def look(s: Any) -> dict[str, Any]:
        return {}

    flow.node(id="look")(look)
    return flow


async def test_schedule_of_a_flow_that_nobody_serves_stays_due(harness: Harness) -> None:
    schedules = await harness.schedules()
    await schedules.put("other", "unknown", every="1h")
    assert await harness.after(hours=3) == []
    assert ((await schedules.get("other")).next_at or 0) < harness.clock.now()


# ---------------------------------------------------------------------- operating


async def test_paused_schedule_fires_nothing_and_catches_nothing_up(harness: Harness) -> None:
    schedules = await harness.schedules()
    await harness.put(every="10m", missed="all")
    found = await schedules.pause(NAME, reason="stocktaking", by="user:dana")
    assert (found.paused, found.next_at, found.standing.reason) == (True, None, "stocktaking")
    assert await harness.after(hours=1) == []
    await harness.put(every="20m", missed="all")
    assert (await harness.get()).paused
    await schedules.resume(NAME)
    assert await harness.after(minutes=25) == ["09:20"]


async def test_run_by_hand_is_started_once_also_in_a_pause_and_is_of_who_asked(harness: Harness) -> None:
    schedules = await harness.schedules()
    await harness.put(cron="@daily", input={"slow": False})
    await schedules.pause(NAME)
    run = await schedules.trigger(NAME, by="user:dana", input={"slow": True})
    assert await harness.after() == ["08:00"]
    await harness.after(minutes=1)
    (row,) = await harness.runs()
    assert (row.id, row.started_by, row.status) == (run, "user:dana", RunStatus.pending_input)
    found = await harness.get()
    assert (found.next_at, found.paused, found.standing.asked) == (None, True, ())


async def test_change_of_what_it_starts_leaves_its_next_instant(harness: Harness) -> None:
    await harness.put(every="1h")
    harness.clock.advance(minutes=90)
    assert (
        await harness.put(every="1h", input={"slow": False})
    ).next_at == harness.clock.now() - 1800 * MICROS
    assert (await harness.put(every="2h")).next_at == harness.clock.now() + 1800 * MICROS


async def test_deleted_schedule_fires_no_more(harness: Harness) -> None:
    schedules = await harness.schedules()
    await harness.put(every="10m")
    await schedules.delete(NAME)
    assert await harness.after(hours=1) == []
    for act in (schedules.get, schedules.pause, schedules.resume, schedules.trigger, schedules.delete):
        with pytest.raises(ScheduleNotFoundError, match="there is no schedule 'daily'"):
            await act(NAME)


async def test_declared_schedule_is_put_by_a_worker_until_an_operator_changes_it(harness: Harness) -> None:
    schedules = await harness.schedules()
    harness.flow.schedule("hourly", every="1h", stamp="at")
    assert await harness.after(minutes=60) == []
    assert await harness.after(minutes=60) == ["10:00"]
    harness.flow.schedule("hourly", every="30m", stamp="at")
    await harness.worker.close()
    assert await harness.after(minutes=30) == ["10:00"]
    assert await harness.after(minutes=30) == ["10:00", "11:00"]
    await schedules.put("hourly", harness.flow, every="2h", stamp="at")
    harness.flow.schedule("hourly", every="5m", stamp="at")
    await harness.worker.close()
    await harness.after()
    assert (await schedules.get("hourly")).plan.every == 2 * 3600 * MICROS


async def test_declared_schedule_that_is_over_keeps_no_worker_from_starting(harness: Harness) -> None:
    harness.flow.schedule("once", at="2020-01-01T00:00")
    assert await harness.after() == []
    assert (await (await harness.schedules()).get("once")).over
    with pytest.raises(InputError, match="'61' is not a valid minute"):
        harness.flow.schedule("never", cron="61 * * * *")


async def test_workers_sleep_ends_when_the_next_is_due(harness: Harness) -> None:
    service = await harness.hf.service()
    service.runtime.register(harness.flow.program())
    await harness.put(every="10m")
    scheduler = Scheduler(service, every=5.0)
    due = await harness.hf.open()
    assert scheduler._pause(await due.next_schedule(("report",))) == 5.0
    harness.clock.advance(seconds=598.5)
    assert scheduler._pause(await due.next_schedule(("report",))) == 1.5


async def test_input_is_encrypted_and_who_has_no_key_leaves_it_to_others() -> None:
    from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, with_scope
    from holdfast.store.memory import MemoryStore

    clock = FakeClock(BEGIN)
    inner = MemoryStore(clock)
    ring = StaticKeys(with_scope(None, EVERYBODY, new_scope(BEGIN)))
    async with Holdfast(inner, clock=clock, keys=ring) as hf:
        harness = Harness(hf, clock)
        await harness.put(every="1h", input={"slow": False, "iban": "DE02"})
        row = await inner.schedule("default", NAME)
        assert row is not None
        assert b"DE02" not in row.body
        assert (await harness.get()).plan.input["iban"] == "DE02"
        clock.advance(hours=1)
        from holdfast.runs.encryption.cipher import FieldCipher
        from holdfast.runs.encryption.store import with_encryption

        async with Holdfast(with_encryption(inner, FieldCipher(None)), clock=clock) as blind:
            worker = Worker(harness.flow, on=blind)
            await worker.run_until_idle()
            await worker.close()
            with pytest.raises(KeyMissingError):
                await (await blind.schedules()).get(NAME)
            assert await (await blind.schedules()).list() == []
        assert await harness.after() == ["09:00"]
        await harness.worker.close()


async def test_schedule_of_a_newer_version_is_left_to_others_and_holds_up_nobody(harness: Harness) -> None:
    store = await harness.hf.open()
    await harness.put(every="1h")
    strange = ScheduleRow(tenant="a", name="new", flow="report", body=b'{"plan": 7}', next_at=1)
    await store.put_schedule(strange)
    assert await harness.after(hours=1) == ["09:00"]
    assert await store.schedule("a", "new") is not None
    assert [each.name for each in await (await harness.schedules()).list()] == [NAME]
    with pytest.raises(SchemaTooNewError, match="the schedule 'new' cannot be read by this version"):
        await (await harness.schedules()).get("new", tenant="a")


async def test_schedule_that_cannot_be_served_here_holds_up_nobody(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """Its zone came with a newer calendar than this machine has."""
    store = await harness.hf.open()
    await harness.put(every="1h")
    body = b'{"plan": {"cron": "0 9 * * *", "zone": "Mars/Olympus"}, "standing": {"due": 1}}'
    await store.put_schedule(ScheduleRow(tenant="a", name="mars", flow="report", body=body, next_at=1))
    assert await harness.after(hours=1) == ["09:00"]
    assert await harness.after(hours=1) == ["09:00", "10:00"]
    lines = [record for record in caplog.records if "schedule mars" in record.getMessage()]
    assert len(lines) == 1
    with pytest.raises(InputError, match="'Mars/Olympus' is not a time zone that is known here"):
        await (await harness.schedules()).next("mars", tenant="a")
    assert (await store.schedule("a", "mars") or pytest.fail("it is gone")).next_at == 1


async def test_long_wait_for_the_run_before_is_not_written_all_the_time(harness: Harness) -> None:
    await harness.put(every="10m", input={"slow": True}, overlap="wait")
    await harness.after(minutes=10)
    await harness.after(minutes=10)
    begun = (await harness.get()).revision
    for _ in range(3600):
        await harness.after(seconds=2)
    # It looks again after a twentieth of the time that the run has taken so far, and after a minute at most.
    assert (await harness.get()).revision - begun < 200
    await harness.answer_all()
    assert len(await harness.after(minutes=1)) == 2


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_schedules_are_under_the_new_key_after_reencrypting(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    places = {"memory": "memory:", "sqlite": f"sqlite:{tmp_path / 's.db'}"}
    store = await open_store(places.get(kind) or request.getfixturevalue("address"))
    old = ring()
    new = turned(old)
    async with Holdfast(store, keys=old) as hf:
        made = await (await hf.schedules()).put(NAME, "report", every="1h", input={"iban": "DE02"})
    async with Holdfast(store, keys=new) as hf:
        done = await reencrypt(await hf.service())
        assert (done.rows, done.unreadable) == (1, {})
    async with Holdfast(store, keys=without(new, old.file.scopes["*"].current)) as hf:
        assert await (await hf.schedules()).get(NAME) == made
    await store.close()
