"""Reminders from the sweep to whoever is reminded: as many as are due, whatever was down meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.holds.notify.channel import Delivery
from tests.holds.notify.scene import Diary, Scene, scene

pytestmark = pytest.mark.anyio


async def passed(it: Scene, *, minutes: int, delivering: bool = True) -> None:
    """So long, with a sweep each five minutes."""
    sweeper = (await it.hf.service()).runtime.sweeper
    for _ in range(minutes // 5):
        it.clock.advance(minutes=5)
        await sweeper.sweep()
        if delivering:
            await it.deliverer.deliver()


def reminders(diary: Diary) -> int:
    return [topic for topic, _ in diary.told()].count("hold.reminded")


@pytest.mark.covers("RE-1", "RE-2", "HOLD-TIME-02")
async def test_somebody_is_reminded_each_interval_until_they_decide() -> None:
    diary = Diary()
    async with scene(diary, reminder="1h") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await passed(it, minutes=300)
        assert (reminders(diary), (await it.row(row)).reminder_count) == (5, 5)
        await it.resolve(row)
        await passed(it, minutes=300)

    assert reminders(diary) == 5


@pytest.mark.covers("RE-3")
async def test_an_outage_of_days_ends_with_the_notice_alone() -> None:
    """Whoever was never told of a hold is told of it, and not reminded in the same breath."""
    diary = Diary()
    async with scene(diary, reminder="1h") as it:
        await it.ask()
        await passed(it, minutes=3000, delivering=False)
        await it.deliverer.deliver()
        assert [topic for topic, _ in diary.told()] == ["hold.created"]
        await passed(it, minutes=65)

    assert reminders(diary) == 1


@pytest.mark.covers("RE-3", "RE-5")
async def test_an_outage_after_the_notice_ends_with_one_reminder() -> None:
    diary = Diary()
    async with scene(diary, reminder="1h") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await passed(it, minutes=3000, delivering=False)
        await asyncio.gather(it.deliverer.deliver(), it.deliverer.deliver())

        assert (reminders(diary), (await it.row(row)).reminder_count) == (1, 1)


@pytest.mark.covers("RE-2")
async def test_reminders_that_nobody_takes_never_count() -> None:
    gone = Delivery(accepted=False, detail="no such mailbox")
    diary = Diary()
    async with scene(diary, reminder="1h") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        diary.answers = {"Dana@acme.example": [gone] * 3}
        await passed(it, minutes=180)
        before = await it.row(row)
        assert (reminders(diary), before.reminder_count) == (3, 0)
        await passed(it, minutes=60)

        assert (await it.row(row)).reminder_count == 1


@pytest.mark.covers("RE-6", "EX-6")
async def test_an_escalation_begins_the_count_again_and_history_keeps_all() -> None:
    diary = Diary()
    async with scene(
        diary, reminder="1h", timeout="150m", on_timeout="escalate:user:lead@acme.example"
    ) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await passed(it, minutes=150)
        assert (await it.row(row)).reminder_count == 0
        await passed(it, minutes=65)

        assert (await it.row(row)).reminder_count == 1
        assert (await it.actions(row)).count("reminded") == 3
        assert diary.told()[-1] == ("hold.reminded", "lead@acme.example")
