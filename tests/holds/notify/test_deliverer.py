"""The deliverer on real stores: who is told, once, again, or not at all."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast import Worker
from holdfast.holds.notify.channel import ChannelScope
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.notify.expiry import KEPT, NO_CHANNEL
from holdfast.holds.notify.recipients import recipients_of
from holdfast.holds.notify.settings import TOPICS, NotifySettings
from holdfast.holds.notify.slack import Slack
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldChange
from holdfast.types.outbox import JUDGE, OutboxMessage, OutboxState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, ApprovalTerms, Assignee, operator
from tests.holds.notify.scene import FAILS, REFUSED, Diary, scene
from tests.holds.notify.servers import http_server

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/holds.db"


@pytest.mark.covers("NO-1", "NO-4", "HOLD-NOTE-01")
async def test_deliverer_tells_once_and_sets_the_flag_when_a_hold_opens(store):
    diary = Diary()
    async with scene(diary, store=store) as it:
        row = await it.ask()
        assert not row.notification_sent
        round_ = await it.deliverer.deliver()
        assert (round_.done, round_.total) == (1, 1)
        assert (await it.deliverer.deliver()).total == 0
        after = await it.row(row)
        assert (after.notification_sent, after.notified_at) == (True, it.clock.now())
        assert "notified" in await it.actions(row)
    assert diary.told() == [("hold.created", "Dana@acme.example")]
    assert diary.notices[0].title == "Refund 3?"


@pytest.mark.covers("NO-1")
async def test_deliverer_leaves_messages_waiting_when_there_is_no_channel(store):
    async with scene(store=store) as it:
        row = await it.ask()
        assert (await it.deliverer.deliver()).total == 0
        assert not (await it.row(row)).notification_sent
        (message,) = await it.store.list_outbox(hold=row.id)
        assert message.state is OutboxState.waiting


@pytest.mark.covers("SAFE-TOOLS-07")
async def test_notices_of_every_topic_are_skipped_when_no_channel_was_set_up_for_three_days(store):
    """Those that are younger wait on, and so do messages that are no notices."""
    async with scene(store=store) as it:
        row = await it.ask()
        await _put(it, row, [*TOPICS, JUDGE])
        it.clock.advance(seconds=KEPT / MICROS - 60)
        await _put(it, row, TOPICS, "young")
        assert (await it.deliverer.deliver()).total == 0
        assert await _waiting(it) == 2 * len(TOPICS) + 2
        it.clock.advance(seconds=120)
        await it.deliverer.deliver()
        left = await it.store.list_outbox(state=OutboxState.waiting)
        assert sorted(each.topic for each in left) == sorted([*TOPICS, JUDGE])
        skipped = await it.store.list_outbox(state=OutboxState.skipped)
        assert {each.topic for each in skipped} == set(TOPICS)
        assert {each.error for each in skipped} == {NO_CHANNEL}
        # However long and however many: at most what came within three days waits.
        for day in range(10):
            await _put(it, row, TOPICS * 5, f"day-{day}")
            it.clock.advance(hours=24)
            await it.deliverer.deliver()
        assert await _waiting(it) <= len(TOPICS) * 5 * 4 + 1


@pytest.mark.covers("SAFE-TOOLS-07")
async def test_notices_that_waited_are_sent_when_a_channel_is_set_up_in_time(store):
    diary = Diary()
    async with scene(store=store) as it:
        await it.ask()
        await it.deliverer.deliver()
        it.clock.advance(seconds=KEPT / MICROS - 60)
        await it.deliverer.deliver()
        late = Channels(it.store, it.clock, given=[diary])
        assert (await Deliverer(it.store, it.clock, late).deliver()).done == 1
    assert diary.told() == [("hold.created", "Dana@acme.example")]


async def _put(it, row, topics, name="old"):
    """Messages about the hold, as its changes write them."""
    for number, topic in enumerate(topics):
        now = await it.row(row)
        message = OutboxMessage(topic, f"{row.id}:{name}-{number}", b"{}", hold=row.id)
        change = HoldChange(hold=row.id, version=now.version, at=it.store.now(), outbox=(message,))
        await it.store.change_hold(change)


async def _waiting(it) -> int:
    return len(await it.store.list_outbox(state=OutboxState.waiting, limit=1000))


@pytest.mark.covers("NO-2", "HOLD-NOTE-01")
async def test_deliverer_tries_again_with_back_off_when_a_channel_fails(store):
    diary = Diary(answers={"Dana@acme.example": [FAILS, FAILS]})
    async with scene(diary, store=store) as it:
        row = await it.ask()
        assert (await it.deliverer.deliver()).waiting == 1
        assert not (await it.row(row)).notification_sent
        assert (await it.deliverer.deliver()).total == 0
        it.clock.advance(seconds=15)
        assert (await it.deliverer.deliver()).waiting == 1
        it.clock.advance(seconds=80)
        assert (await it.deliverer.deliver()).done == 1
        assert (await it.row(row)).notification_sent
        assert (await it.actions(row)).count("notification_failed") == 2
    assert len(diary.notices) == 3
    assert len({notice.id for notice in diary.notices}) == 1


@pytest.mark.covers("NO-3", "HOLD-NOTE-01")
async def test_deliverer_keeps_a_state_for_each_recipient_when_some_fail(store):
    diary = Diary(
        people={"group:finance": ("a@x", "b@x", "c@x")}, answers={"b@x": [FAILS], "c@x": [REFUSED] * 2}
    )
    async with scene(diary, store=store, assignee="group:finance") as it:
        row = await it.ask()
        assert (await it.deliverer.deliver()).waiting == 1
        assert (await it.row(row)).notification_sent
        it.clock.advance(seconds=15)
        assert (await it.deliverer.deliver()).dead == 1
        states = {each.to: (each.accepted, each.final) for each in await recipients_of(it.store, row.id)}
    assert states == {"a@x": (True, False), "b@x": (True, False), "c@x": (False, True)}
    assert [notice.to for notice in diary.notices] == ["a@x", "b@x", "c@x", "b@x"]


@pytest.mark.covers("NO-5")
async def test_deliverer_hands_type_and_value_to_the_channel_when_a_group_is_asked():
    diary = Diary()
    async with scene(diary, assignee="group:finance") as it:
        row = await it.ask()
        assert (await it.deliverer.deliver()).skipped == 1
        assert not (await it.row(row)).notification_sent
    assert diary.asked == [Assignee("group", "finance")]
    assert diary.notices == []


@pytest.mark.covers("NO-6")
async def test_deliverer_tells_nobody_when_a_hold_is_unrouted():
    diary, hook = Diary(), Diary("hook", personal=False, people={"unrouted": ("hook",)})
    async with scene(diary, hook, assignee="") as it:
        row = await it.ask()
        assert (await it.deliverer.deliver()).skipped == 1
        assert not (await it.row(row)).notification_sent
    assert diary.notices == hook.notices == []


@pytest.mark.covers("NO-7")
async def test_deliverer_tells_nobody_when_a_run_stands_at_a_breakpoint():
    diary = Diary(people={"unrouted": ("x",)})
    async with scene(diary) as it:
        result = await it.flow.run({"n": 1}, on=it.hf, breaks=["approve"])
        (row,) = await it.store.holds(run=result.run_id)
        assert row.type == "debug_breakpoint"
        assert await it.store.list_outbox(hold=row.id) == []
        assert (await it.deliverer.deliver()).total == 0


@pytest.mark.covers("NO-8")
async def test_deliverer_sends_nothing_twice_when_a_message_is_delivered_again(store):
    """Another deliverer had told it, and died before it could say so."""
    diary = Diary()
    async with scene(diary, store=store) as it:
        row = await it.ask()
        (message,) = await it.store.claim_outbox(limit=1, lease=60 * MICROS)
        await it.deliverer._deliver_one(message)
        it.clock.advance(seconds=61)
        assert (await it.deliverer.deliver()).done == 1
        assert (await it.row(row)).notification_sent
    assert len(diary.notices) == 1


@pytest.mark.covers("NO-8")
async def test_two_deliverers_tell_once_when_they_run_at_once(store):
    diary = Diary()
    async with scene(diary, store=store) as it:
        for _ in range(10):
            await it.ask()
        other = Deliverer(it.store, it.clock, it.deliverer.channels)
        await asyncio.gather(it.deliverer.deliver(), other.deliver())
    assert len(diary.notices) == len({notice.hold for notice in diary.notices}) == 10


@pytest.mark.covers("NO-9")
async def test_deliverer_skips_a_message_when_the_hold_was_decided_before(store):
    diary = Diary()
    async with scene(diary, store=store) as it:
        row = await it.ask()
        await it.resolve(row)
        await it.deliverer.deliver()
        it.clock.advance(seconds=2)
        await it.deliverer.deliver()
        states = {each.topic: each.state for each in await it.store.list_outbox(hold=row.id)}
        assert not (await it.row(row)).notification_sent
    assert diary.notices == []
    assert states == {"hold.created": OutboxState.skipped, "hold.closed": OutboxState.skipped}


@pytest.mark.covers("NO-9")
async def test_deliverer_stops_at_the_next_recipient_when_the_hold_is_decided_meanwhile():
    async with scene(assignee="group:finance") as it:
        row = await it.ask()

        async def decides(notice):
            if notice.topic == "hold.created":
                await it.resolve(row)

        diary = Diary(people={"group:finance": ("a@x", "b@x")}, before=decides)
        it.deliverer.channels._fixed.append((None, diary))
        await it.deliverer.deliver()
        (first,) = await recipients_of(it.store, row.id)
        assert (first.to, first.accepted, first.late) == ("a@x", True, True)
        after = await it.row(row)
        assert (after.status, after.notification_sent) == (HoldStatus.resolved, False)
        it.clock.advance(seconds=2)
        await it.deliverer.deliver()
    assert diary.told() == [("hold.created", "a@x"), ("hold.closed", "a@x")]


@pytest.mark.covers("HOLD-NOTE-09")
async def test_deliverer_tells_of_the_end_after_the_beginning_when_both_are_under_way():
    async with scene() as it:
        sending, go_on = asyncio.Event(), asyncio.Event()

        async def slow(notice):
            if notice.topic == "hold.created":
                sending.set()
                await go_on.wait()

        diary = Diary(before=slow)
        it.deliverer.channels._fixed.append((None, diary))
        row = await it.ask()
        first = asyncio.create_task(it.deliverer.deliver())
        await sending.wait()
        await it.resolve(row)
        other = Deliverer(it.store, it.clock, it.deliverer.channels)
        assert (await other.deliver()).waiting == 1
        go_on.set()
        await first
        it.clock.advance(seconds=2)
        assert (await other.deliver()).done == 1
    assert [topic for topic, _ in diary.told()] == ["hold.created", "hold.closed"]


async def test_row_is_changed_once_when_many_are_reported():
    diary = Diary(people={"group:finance": ("a@x", "b@x", "c@x")})
    async with scene(diary, assignee="group:finance") as it:
        row = await it.ask()
        await it.deliverer.deliver()
        assert (await it.row(row)).version == row.version + 1


async def test_only_one_person_gets_a_link_of_their_own():
    mail, chat = Diary("mail"), Diary("chat", personal=False)
    async with scene(mail, chat, settings=NotifySettings(base_url="https://holdfast.example/")) as it:
        row = await it.ask()
        await it.deliverer.deliver()
    assert mail.notices[0].link.startswith("https://holdfast.example/l/v1.")
    assert chat.notices[0].link == f"https://holdfast.example/inbox/{row.id}"


@pytest.mark.covers("HOLD-NOTE-09")
async def test_deliverer_tells_of_the_end_when_a_run_is_cancelled():
    diary = Diary()
    async with scene(diary) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await (await it.hf.service()).cancel(row.run)
        worker = Worker(it.flow, on=it.hf)
        await worker.run_until_idle()
        await worker.close()
        await it.deliverer.deliver()
    assert diary.told()[-1] == ("hold.closed", "Dana@acme.example")
    assert diary.notices[-1].outcome.endswith("withdrew the question: the run was cancelled")


async def test_next_signer_is_reported_when_it_is_their_turn():
    diary = Diary()
    signers = ApprovalTerms(mode="sequential", of=("user:a@x", "user:b@x"))
    async with scene(diary, approval=signers) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        assert [notice.to for notice in diary.notices] == ["a@x"]
        await it.holds.resolve(Actor(id="user:a@x"), row.id, {"decision": "approve"})
        await it.deliverer.deliver()
    assert [notice.to for notice in diary.notices] == ["a@x", "b@x"]


@pytest.mark.covers("HOLD-NOTE-09", "WB-13")
async def test_deliverer_closes_every_channel_when_one_has_won(store):
    mail, chat, deaf = (
        Diary("mail"),
        Diary("chat", personal=False),
        Diary("deaf", scope=ChannelScope(outcomes=False)),
    )
    chat.people = {"user:Dana@acme.example": ("chat",)}
    async with scene(mail, chat, deaf, store=store) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await it.resolve(row, "reject")
        assert (await it.deliverer.deliver()).done == 1
    assert mail.told()[-1] == ("hold.closed", "Dana@acme.example")
    assert chat.told() == [("hold.created", "chat"), ("hold.closed", "chat")]
    assert chat.notices[-1].outcome == "local rejected, over the API"
    assert len(deaf.notices) == 1


async def test_deliverer_tells_the_new_assignee_and_sets_the_flag_anew_when_a_hold_goes_on(store):
    diary = Diary()
    async with scene(diary, store=store) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await it.holds.reassign(operator(), row.id, "user:sam@acme.example")
        assert not (await it.row(row)).notification_sent
        await it.deliverer.deliver()
        assert (await it.row(row)).notification_sent
    assert diary.told() == [("hold.created", "Dana@acme.example"), ("hold.assigned", "sam@acme.example")]


async def test_deliverer_skips_the_old_assignee_when_the_hold_went_on_before():
    diary = Diary()
    async with scene(diary) as it:
        row = await it.ask()
        await it.holds.reassign(operator(), row.id, "user:sam@acme.example")
        assert (await it.deliverer.deliver()).skipped == 1
    assert diary.told() == [("hold.assigned", "sam@acme.example")]


async def test_deliverer_goes_on_with_the_others_when_a_channel_raises(caplog):
    async def breaks(notice):
        raise RuntimeError("a bug")

    good, bad = Diary("good"), Diary("bad", before=breaks)
    async with scene(bad, good) as it:
        await it.ask()
        assert (await it.deliverer.deliver()).waiting == 1
    assert len(good.notices) == 1


@pytest.mark.covers("G-47", "HOLD-NOTE-03")
@pytest.mark.parametrize("answer", ['{"decision": "approve", "approved": true}', "approve", '{"ok": true}'])
async def test_notifier_approves_nothing_when_the_other_side_says_so(answer):
    async with http_server() as server, scene() as it:
        slack = Slack("ops", server.url, egress=server.egress)
        it.deliverer.channels._fixed.append((None, slack))
        row = await it.ask()
        server.says(200, body=answer)
        assert (await it.deliverer.deliver()).done == 1
        after = await it.row(row)
    assert (after.status, after.resolution, after.notification_sent) == (HoldStatus.pending, None, True)


async def test_asked_back_goes_to_a_caller_who_was_asked():
    diary = Diary()
    async with scene(diary) as it:
        row = await it.ask()
        await it.deliverer.deliver()
        await it.holds.ask_back(operator("user:Dana@acme.example"), row.id, "For what?", to="user:kim@acme")
        await it.deliverer.deliver()
    assert diary.told()[-1] == ("hold.asked_back", "kim@acme")
    assert diary.notices[-1].prompt == "For what?\n\nAbout: Refund 3?"


async def test_every_seat_is_reported_when_several_have_to_agree():
    diary = Diary()
    async with scene(diary, approval=ApprovalTerms(mode="quorum", need=2, of=("user:a@x", "user:b@x"))) as it:
        await it.ask()
        await it.deliverer.deliver()
    assert sorted(notice.to for notice in diary.notices) == ["a@x", "b@x"]


async def test_audit_has_no_secret_when_a_notice_failed():
    async with http_server() as server, scene() as it:
        slack = Slack("ops", f"{server.url}/T000/s3cr3t", egress=server.egress)
        it.deliverer.channels._fixed.append((None, slack))
        row = await it.ask()
        server.says(404, body="no_service")
        assert (await it.deliverer.deliver()).dead == 1
        rows = await it.store.audit(row.tenant, hold=row.id)
    assert b"s3cr3t" not in msgspec.json.encode(rows)
    assert b"no_service" in rows[-1].data
