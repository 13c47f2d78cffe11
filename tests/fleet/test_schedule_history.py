"""What became of a schedule's instants, and instants of the past that are filled in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import InputError
from holdfast.runs.schedules.schedule import HISTORY, OUTCOMES
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import iso
from holdfast.types.status import RunStatus
from tests.fleet.schedule_service import NAME, Harness

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-FLEET-04")]

BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    clock = FakeClock(BEGIN)
    async with Holdfast("memory:", clock=clock) as hf:
        made = Harness(hf, clock)
        yield made
        await made.worker.close()


async def history(harness: Harness) -> list[tuple[str, str]]:
    """(time, outcome), the oldest first."""
    found = await (await harness.schedules()).history(NAME)
    return [(iso(each.instant)[11:16], each.outcome) for each in reversed(found)]


async def test_each_outcome_is_in_the_history(harness: Harness) -> None:
    await harness.put(cron="0 * * * *", missed="skip", input={"slow": True})
    await harness.after(hours=1)
    await harness.after(hours=1)
    await harness.answer_all()
    await harness.after(hours=3, minutes=30)
    await harness.put(cron="0 * * * *", input={"lane": 1}, mode="strict", thread="t")
    await harness.after(hours=1)
    await (await harness.schedules()).trigger(NAME)
    await harness.after(minutes=5)
    assert await history(harness) == [
        ("09:00", "started"),
        ("10:00", "skipped"),
        ("11:00", "missed"),
        ("13:00", "missed"),
        ("14:00", "started"),
        ("14:35", "triggered"),
    ]
    found = (await (await harness.schedules()).history(NAME))[::-1]
    assert found[1].reason.endswith("had not ended")
    assert iso(found[2].last or 0)[11:16] == "12:00"
    assert {each.outcome for each in found} <= set(OUTCOMES)
    runs = {row.id for row in await harness.runs()}
    assert [each.run in runs for each in found] == [True, False, False, False, True, True]


async def test_start_that_fails_is_in_the_history_with_its_reason(harness: Harness) -> None:
    await harness.put(cron="0 * * * *", deployment="gone")
    await harness.after(hours=1)
    (only,) = await (await harness.schedules()).history(NAME)
    assert (only.outcome, only.run) == ("failed", None)
    assert "gone" in only.reason


async def test_history_keeps_the_newest(harness: Harness) -> None:
    await harness.put(cron="* * * * *", missed="all", overlap="allow")
    await harness.after(minutes=HISTORY + 20)
    found = await (await harness.schedules()).history(NAME)
    assert len(found) == HISTORY
    assert iso(found[0].instant)[11:16] == "10:00"


async def test_range_is_filled_in_once_and_runs_that_exist_stay(harness: Harness) -> None:
    await harness.put(cron="0 * * * *")
    schedules = await harness.schedules()
    await harness.after(hours=1)
    await schedules.pause(NAME)
    harness.clock.advance(hours=4)
    found = await schedules.fill(NAME, "2026-03-02T07:00", "2026-03-02T12:30", by="user:eve")
    assert [iso(at)[11:16] for at in found] == ["07:00", "08:00", "09:00", "10:00", "11:00", "12:00"]
    for _twice in range(2):
        await harness.after()
        assert sorted(harness.began) == [f"2026-03-02T{hour:02}:00:00Z" for hour in range(7, 13)]
        await schedules.fill(NAME, "2026-03-02T07:00", "2026-03-02T12:30", by="user:eve")
    rows = await harness.runs()
    assert len(rows) == 6
    assert sorted({row.started_by for row in rows}) == [
        "schedule:daily (user:eve)",
        "schedule:daily (user:local)",
    ]
    outcomes = [outcome for _, outcome in await history(harness)]
    assert outcomes == ["started", *["filled"] * 5]
    assert (await harness.get()).paused


async def test_filled_runs_start_one_after_the_other_when_they_are_to_wait(harness: Harness) -> None:
    await harness.put(cron="0 * * * *", input={"slow": True})
    schedules = await harness.schedules()
    await schedules.pause(NAME)
    harness.clock.advance(hours=4)
    await schedules.fill(NAME, "2026-03-02T09:00", "2026-03-02T11:00", one_by_one=True)
    for count in (1, 2, 3):
        for _ in range(3):
            await harness.after(minutes=2)
        assert len(harness.began) == count
        await harness.answer_all()
    await harness.after(minutes=2)
    assert {row.status for row in await harness.runs()} == {RunStatus.completed}
    assert (await harness.get()).standing.filling == ()


async def test_schedule_fires_while_a_filled_run_is_waited_for(harness: Harness) -> None:
    await harness.put(cron="0 * * * *", overlap="allow", input={"slow": True})
    harness.clock.advance(hours=2, minutes=1)
    await (await harness.schedules()).fill(NAME, "2026-03-02T05:00", "2026-03-02T06:00", one_by_one=True)
    assert sorted(await harness.after()) == ["05:00", "10:00"]
    assert sorted(await harness.after(hours=1)) == ["05:00", "10:00", "11:00"]


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        ("2026-03-02T07:00", "2026-03-02T06:00", "ends before it begins"),
        ("2026-03-02T07:00", "2026-03-03T07:00", "in the future"),
        ("2026-03-02T07:01", "2026-03-02T07:59", "has no instant"),
        ("2020-03-02T07:00", "2026-03-02T07:00", "more than 1,000"),
        ("yesterday", "2026-03-02T07:00", "is not a moment"),
    ],
)
async def test_range_that_cannot_be_filled_in_is_refused(
    harness: Harness, first: str, last: str, why: str
) -> None:
    await harness.put(cron="0 * * * *")
    with pytest.raises(InputError, match=why):
        await (await harness.schedules()).fill(NAME, first, last)
    assert (await harness.get()).standing.filling == ()


async def test_command_line_shows_the_history_and_fills_in(tmp_path: Any) -> None:
    from tests.fleet.test_doctor_fleet import holdfast

    (tmp_path / "jobs.py").write_text(
        'from holdfast import Flow\nreport = Flow("report", effect="pure")\n'
        "@report.node\nasync def write(s):\n    return {}\n"
    )
    flow, store = str(tmp_path / "jobs.py"), ["--store", f"sqlite:{tmp_path / 'h.db'}"]
    await holdfast("schedules", "set", "daily", "--flow", flow, "--cron", "0 3 * * *", *store)
    span = ["--from", "2026-01-01", "--to", "2026-01-03T12:00"]
    dry = await holdfast("schedules", "fill", "daily", *span, "--dry-run", "--json", *store)
    assert [line[:10] for line in json.loads(dry)["items"]] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert "has not fired" in await holdfast("schedules", "history", "daily", *store)
    await holdfast("schedules", "fill", "daily", *span, *store)
    await holdfast("worker", flow, "--until-idle", *store)
    found = json.loads(await holdfast("schedules", "history", "daily", "--json", *store))["items"]
    assert [each["outcome"] for each in found] == ["filled"] * 3
    assert "filled" in await holdfast("schedules", "history", "daily", *store)
