"""The deliverer and time: back-off, reminders, escalations, dead letters, long lists."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.holds.directory.admin import Registrar
from holdfast.holds.directory.base import Person
from holdfast.holds.notify.channel import Delivery
from holdfast.types.clock import MICROS
from holdfast.types.delivery_retry import LONGEST, WAITS, next_try
from holdfast.types.document import Document
from holdfast.types.outbox import OutboxState
from tests.holds.notify.scene import FAILS, REFUSED, Diary, Scene, scene

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/holds.db"


@pytest.mark.covers("RE-2")
async def test_reminder_counts_when_a_channel_has_taken_it(store):
    diary = Diary()
    async with scene(diary, store=store, reminder="30m") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        diary.answers = {"Dana@acme.example": [FAILS]}
        sweeper = (await it.hf.service()).runtime.sweeper
        it.clock.advance(minutes=31)
        await sweeper.sweep()
        assert (await it.deliverer.deliver()).waiting == 1
        assert (await it.row(row)).reminder_count == 0
        it.clock.advance(minutes=1)
        await sweeper.sweep()
        assert (await it.deliverer.deliver()).done == 1
        after = await it.row(row)
        assert (after.reminder_count, after.notified_at) == (1, it.clock.now())
        assert (await it.actions(row)).count("reminded") == 1
    assert diary.notices[-1].subject == "Reminder: Refund 3?"


async def chosen(it: Scene, name: str, **notifications: bool) -> None:
    body = msgspec.json.encode({"theme": "dark", "notifications": notifications})
    await it.store.put_document(
        Document(tenant="default", kind="preferences", name=name, body=body), expect=None
    )


@pytest.mark.covers("WEB-PERSON-notices")
async def test_person_who_wants_no_reminder_and_no_outcome_still_gets_the_first_notice(store):
    diary, room = Diary(), Diary(name="room", personal=False)
    async with scene(diary, room, store=store, reminder="30m") as it:
        await chosen(it, "dana@acme.example", reminders=False, outcomes=False)
        row = await it.ask()
        await it.deliverer.deliver()
        assert diary.told() == [("hold.created", "Dana@acme.example")]
        it.clock.advance(minutes=31)
        await (await it.hf.service()).runtime.sweeper.sweep()
        await it.deliverer.deliver()
        await it.resolve(row)
        await it.deliverer.deliver()
    # A room with many readers is told all the same.
    assert len(room.notices) == 3
    assert len(diary.notices) == 1


@pytest.mark.covers("WEB-PERSON-notices")
async def test_person_is_known_by_their_address_in_the_directory(store):
    diary = Diary()
    async with scene(diary, store=store, reminder="30m") as it:
        dana = Person(id="dana", email="Dana@acme.example")
        await Registrar(it.store).put_person("default", dana)
        await chosen(it, "dana", reminders=False)
        row = await it.ask()
        await it.deliverer.deliver()
        it.clock.advance(minutes=31)
        await (await it.hf.service()).runtime.sweeper.sweep()
        await it.deliverer.deliver()
        assert len(diary.notices) == 1
        await it.resolve(row)
        await it.deliverer.deliver()
    assert len(diary.notices) == 2


@pytest.mark.covers("HOLD-NOTE-07")
async def test_dead_letter_is_reported_when_it_is_replayed(store):
    diary = Diary(answers={"Dana@acme.example": [FAILS] * (len(WAITS) + 1)})
    async with scene(diary, store=store) as it:
        row = await it.ask()
        for _ in range(len(WAITS) + 1):
            await it.deliverer.deliver()
            it.clock.advance(days=2)
        (dead,) = await it.store.list_outbox(state=OutboxState.dead)
        assert dead.error == "not now"
        assert (await it.deliverer.deliver()).total == 0
        assert await it.store.replay_outbox(dead.id)
        assert (await it.deliverer.deliver()).done == 1
        assert (await it.row(row)).notification_sent
    assert len(diary.notices) == len(WAITS) + 2


@pytest.mark.covers("HOLD-NOTE-07", "NO-3")
async def test_replay_tells_only_those_who_do_not_know_when_some_do():
    diary = Diary(people={"group:finance": ("a@x", "b@x")}, answers={"b@x": [REFUSED]})
    async with scene(diary, assignee="group:finance") as it:
        await it.ask()
        assert (await it.deliverer.deliver()).dead == 1
        (dead,) = await it.store.list_outbox(state=OutboxState.dead)
        await it.store.replay_outbox(dead.id)
        assert (await it.deliverer.deliver()).done == 1
    assert [notice.to for notice in diary.notices] == ["a@x", "b@x", "b@x"]


@pytest.mark.covers("HOLD-SEC-05")
def test_back_off_goes_on_over_days_and_is_spread():
    now = 1_000 * MICROS
    for attempt, wait in enumerate(WAITS, start=1):
        due = [next_try(f"key{n}", attempt, now) - now for n in range(50)]
        assert 0.75 * wait * MICROS <= min(due) < max(due) <= 1.25 * wait * MICROS
    assert next_try("key", len(WAITS) + 1, now) is None
    assert sum(WAITS) > 2 * 86_400
    assert next_try("key", 1, now, 3600.0) == now + 3600 * MICROS
    assert next_try("key", 1, now, 1e12) == now + round(LONGEST * MICROS)


@pytest.mark.covers("EX-9")
async def test_escalation_stands_when_its_notice_fails_and_is_reported_later(store):
    diary = Diary(answers={"boss@acme.example": [FAILS]})
    async with scene(diary, store=store, timeout="1h", on_timeout="escalate:user:boss@acme.example") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        it.clock.advance(hours=1)
        await (await it.hf.service()).runtime.sweeper.sweep()
        assert (await it.deliverer.deliver()).waiting == 1
        after = await it.row(row)
        assert (after.assignee_value, after.notification_sent) == ("boss@acme.example", False)
        it.clock.advance(seconds=15)
        await it.deliverer.deliver()
        assert (await it.row(row)).notification_sent
    assert diary.told()[-1] == ("hold.escalated", "boss@acme.example")


async def test_reminder_is_not_sent_when_the_hold_was_decided_after_the_sweep():
    diary = Diary()
    async with scene(diary, reminder="30m") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        it.clock.advance(minutes=31)
        await (await it.hf.service()).runtime.sweeper.sweep()
        await it.resolve(row)
        await it.deliverer.deliver()
        it.clock.advance(seconds=2)
        await it.deliverer.deliver()
    assert [topic for topic, _ in diary.told()] == ["hold.created", "hold.closed"]


@pytest.mark.covers("HOLD-SEC-05")
async def test_deliverer_waits_as_long_as_the_other_side_says():
    later = Delivery(accepted=False, retry=True, after=7200.0, detail="HTTP 429")
    diary = Diary(answers={"Dana@acme.example": [later]})
    async with scene(diary) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        (message,) = await it.store.list_outbox(hold=row.id)
        assert message.due_at == it.clock.now() + 7200 * MICROS


async def test_deliverer_serves_until_it_is_cancelled():
    diary = Diary()
    async with scene(diary) as it:
        serving = asyncio.create_task(it.deliverer.serve())
        await it.ask()
        while not diary.notices:
            await asyncio.sleep(0)
            it.clock.advance(seconds=1)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert len(diary.notices) == 1


async def test_long_list_is_reported_in_several_rounds():
    async with scene(assignee="group:all") as it:

        async def slow(notice):
            it.clock.advance(seconds=100)

        everybody = tuple(f"p{n}@x" for n in range(5))
        diary = Diary(people={"group:all": everybody}, before=slow)
        it.deliverer.channels._fixed.append((None, diary))
        await it.ask()
        assert (await it.deliverer.deliver()).waiting == 1
        assert len(diary.notices) == 2
        while (await it.deliverer.deliver()).waiting:
            pass
    assert [notice.to for notice in diary.notices] == list(everybody)
