"""Messages of queues: published once, claimed by one worker, and changed only under its claim."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from holdfast.types.clock import MICROS
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow
from holdfast.types.outbox import OutboxMessage
from holdfast.types.queue_message import (
    EVENTS,
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessageRefusal,
    MessageRow,
    MessageState,
    NewMessage,
)
from holdfast.types.record import Kind, Side
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HoldTerms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

TTL = 300 * MICROS
LONG = 60.0


def message(id: str = "m1", **given: Any) -> NewMessage:  # noqa: A002
    fields: dict[str, Any] = {
        "id": id, "tenant": "default", "scope": "support", "queue": "reviews", "payload": b'{"n": 1}',
        "digest": "d1", "retention": 3600 * MICROS,
    }  # fmt: skip
    return NewMessage(**{**fields, **given})


def wanted(**given: Any) -> MessageClaim:
    fields: dict[str, Any] = {
        "tenant": "default",
        "scope": "support",
        "queue": "reviews",
        "by": "w",
        "ttl": TTL,
    }
    return MessageClaim(**{**fields, **given})


def act(what: MessageAct, id: str = "m1", **given: Any) -> MessageChange:  # noqa: A002
    return MessageChange(tenant="default", id=id, act=what, **given)


async def published(kit: StoreKit, id: str = "m1", **given: Any) -> MessageRow:  # noqa: A002
    found = await kit.store.publish_message(message(id, **given))
    assert found is not None
    return found[0]


async def claimed(kit: StoreKit, **given: Any) -> MessageRow:
    (row,) = await kit.store.claim_messages(wanted(**given))
    return row


async def changed(kit: StoreKit, what: MessageAct, id: str = "m1", **given: Any) -> MessageRow:  # noqa: A002
    row = await kit.store.change_message(act(what, id, **given))
    assert isinstance(row, MessageRow)
    return row


async def token_of(kit: StoreKit, id: str) -> int:  # noqa: A002
    row = await kit.store.queue_message("default", id)
    assert row is not None
    return row.claim_token


async def ids_claimed(kit: StoreKit, **given: Any) -> list[str]:
    return [row.id for row in await kit.store.claim_messages(wanted(**given))]


@pytest.mark.anyio
@pytest.mark.covers("QU-12")
class QueueSuite:
    @pytest.mark.covers("QU-1")
    async def test_message_comes_back_as_it_was_published(self, kit: StoreKit) -> None:
        given = message(
            type="task",
            correlation_id="c",
            priority="high",
            group_key="g",
            run="r",
            node="n",
            expires_at=1 << 60,
        )
        found = await kit.store.publish_message(given)
        assert found is not None
        row, fresh = found
        assert fresh
        assert row == await kit.store.queue_message("default", "m1")
        for name in set(NewMessage.__struct_fields__) - {"visible_at"}:
            assert getattr(row, name) == getattr(given, name), name
        assert (row.state, row.attempts, row.claim_token) == (MessageState.ready, 0, 0)
        assert row.visible_at == row.created_at == kit.clock.now()
        assert await kit.store.queue_message("acme", "m1") is None

    @pytest.mark.covers("QU-5")
    async def test_message_is_published_once_for_each_id_and_tenant(self, kit: StoreKit) -> None:
        first = await published(kit)
        again = await kit.store.publish_message(message(digest="d2", payload=b"other"))
        assert again == (first, False)
        other = await kit.store.publish_message(message(tenant="acme"))
        assert other is not None
        assert other[1]

    async def test_outbox_message_is_written_only_with_a_new_message(self, kit: StoreKit) -> None:
        note = OutboxMessage("queue.out", "queue:m1", b"{}")
        await kit.store.publish_message(message(), outbox=[note])
        await kit.store.publish_message(message(), outbox=[replace(note, key="queue:other")])
        found = await kit.store.list_outbox(topic="queue.out")
        assert [row.key for row in found] == ["queue:m1"]

    @pytest.mark.covers("QU-6")
    async def test_messages_are_claimed_by_priority_then_time_then_arrival(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        await published(kit, "low", priority="low")
        await published(kit, "later", visible_at=now + MICROS)
        await published(kit, "first")
        await published(kit, "second")
        await published(kit, "critical", priority="critical")
        await published(kit, "elsewhere", queue="other")
        assert await ids_claimed(kit, limit=2) == ["critical", "first"]
        kit.clock.advance(seconds=2)
        assert await ids_claimed(kit, limit=9) == ["second", "later", "low"]
        assert await ids_claimed(kit, limit=9) == []
        assert await ids_claimed(kit, queue="other", tenant="acme") == []

    @pytest.mark.covers("QU-6")
    async def test_group_is_worked_one_at_a_time_in_order(self, kit: StoreKit) -> None:
        await published(kit, "a1", group_key="a")
        await published(kit, "a2", group_key="a", priority="critical")
        await published(kit, "b1", group_key="b")
        assert await ids_claimed(kit, limit=9) == ["a1", "b1"]
        assert await ids_claimed(kit, limit=9) == []
        assert await ids_claimed(kit, id="a2") == []
        await changed(kit, MessageAct.release, "a1", token=await token_of(kit, "a1"), delay=0)
        assert await ids_claimed(kit, limit=9) == ["a1"]
        await changed(kit, MessageAct.complete, "a1", token=await token_of(kit, "a1"), by="user:dana")
        assert await ids_claimed(kit, limit=9) == ["a2"]

    @pytest.mark.covers("USERS-EVENT-MATCH")
    async def test_event_is_claimed_by_its_id_before_those_that_wait_and_not_before_one_that_is_tried_again(
        self, kit: StoreKit
    ) -> None:
        place = {"scope": EVENTS, "queue": "paid"}
        for name in ("e1", "e2", "e3"):
            await published(kit, name, group_key="paid", **place)
        assert await ids_claimed(kit, id="e2", **place) == ["e2"]
        assert await ids_claimed(kit, id="e1", **place) == []  # one at a time
        given_back = {"token": await token_of(kit, "e2"), "delay": 0, "counted": False}
        kit.clock.advance(seconds=1)
        await changed(kit, MessageAct.release, "e2", **given_back)
        # It has kept its place.
        for name in ("e1", "e2"):
            assert await ids_claimed(kit, **place) == [name]
            await changed(kit, MessageAct.complete, name, token=await token_of(kit, name), by="user:dana")
        await published(kit, "e4", group_key="paid", **place)
        assert await ids_claimed(kit, **place) == ["e3"]
        later = {"token": await token_of(kit, "e3"), "delay": 60_000_000}
        await changed(kit, MessageAct.release, "e3", **later)
        assert await ids_claimed(kit, id="e4", **place) == []
        kit.clock.advance(seconds=61)
        assert await ids_claimed(kit, **place) == ["e3"]

    async def test_one_message_is_claimed_by_its_id_while_it_is_ready(self, kit: StoreKit) -> None:
        await published(kit, "m1")
        await published(kit, "m2")
        row = await claimed(kit, id="m2", by="user:dana")
        assert (row.id, row.claimed_by) == ("m2", "user:dana")
        assert row.claim_until == kit.clock.now() + TTL
        assert await ids_claimed(kit, id="m2") == []
        assert await ids_claimed(kit, id="unknown") == []

    @pytest.mark.covers("QU-7")
    async def test_stale_token_changes_nothing(self, kit: StoreKit) -> None:
        await published(kit)
        first = await claimed(kit)
        await changed(kit, MessageAct.release, token=first.claim_token, delay=0)
        second = await claimed(kit, by="other")
        assert second.claim_token > first.claim_token
        for what in (MessageAct.extend, MessageAct.complete, MessageAct.release, MessageAct.dead):
            done = await kit.store.change_message(act(what, token=first.claim_token, ttl=TTL))
            assert done is MessageRefusal.claim_lost
        assert await kit.store.queue_message("default", "m1") == second
        assert await kit.store.change_message(act(MessageAct.extend, "?")) is MessageRefusal.unknown

    @pytest.mark.covers("QU-7")
    async def test_token_of_a_claim_cannot_be_guessed(self, kit: StoreKit) -> None:
        names = [f"m{i}" for i in range(20)]
        for name in names:
            await published(kit, name)
        rows = await kit.store.claim_messages(wanted(limit=20))
        tokens = [row.claim_token for row in rows]
        # Random in 48 bits: neither counted, nor near each other, nor the same again.
        assert len(set(tokens)) == 20
        assert min(abs(a - b) for a, b in pairwise(sorted(tokens))) > 2**20
        assert all(0 < each < 2**62 for each in tokens)
        kept = await kit.store.queue_message("default", rows[0].id)
        assert kept == rows[0]
        guesses = (0, 1, 2, rows[0].claim_token + 1, rows[1].claim_token, -1, 2**62, 2**80, None)
        for what in (MessageAct.extend, MessageAct.complete, MessageAct.release):
            for guess in guesses:
                done = await kit.store.change_message(act(what, rows[0].id, token=guess, ttl=TTL))
                assert done is MessageRefusal.claim_lost, (what, guess)
        assert await kit.store.queue_message("default", rows[0].id) == kept

    @pytest.mark.covers("QU-7")
    async def test_tokens_of_later_claims_are_larger_by_steps_that_cannot_be_guessed(
        self, kit: StoreKit
    ) -> None:
        await published(kit)
        tokens: list[int] = []
        for _ in range(8):
            tokens.append((await claimed(kit)).claim_token)
            await changed(kit, MessageAct.release, token=tokens[-1], delay=0, counted=False)
        steps = [b - a for a, b in pairwise([0, *tokens])]
        assert len(set(steps)) == 8
        assert min(steps) > 2**20
        assert max(steps) <= 2**48

    @pytest.mark.covers("QU-7")
    async def test_claimed_message_is_given_up_by_its_worker(self, kit: StoreKit) -> None:
        await published(kit)
        row = await claimed(kit)
        done = await kit.store.change_message(act(MessageAct.dead, frees=False))
        assert done is MessageRefusal.claimed
        assert await kit.store.queue_message("default", "m1") == row
        gone = await changed(kit, MessageAct.dead, token=row.claim_token, frees=False)
        assert gone.state is MessageState.dead

    @pytest.mark.covers("QU-7")
    async def test_claim_is_extended_and_never_shortened(self, kit: StoreKit) -> None:
        await published(kit)
        row = await claimed(kit)
        kit.clock.advance(seconds=10)
        longer = await changed(kit, MessageAct.extend, token=row.claim_token, ttl=TTL)
        assert longer.claim_until == kit.clock.now() + TTL
        same = await changed(kit, MessageAct.extend, token=row.claim_token, ttl=1)
        assert same.claim_until == longer.claim_until

    async def test_completion_keeps_its_result_and_may_be_repeated(self, kit: StoreKit) -> None:
        await published(kit)
        row = await claimed(kit)
        done = await changed(kit, MessageAct.complete, token=row.claim_token, by="user:dana", result=b'"yes"')
        assert (done.state, done.result, done.completed_by) == (MessageState.completed, b'"yes"', "user:dana")
        assert (done.claimed_by, done.claim_until, done.ended_at) == (None, None, kit.clock.now())
        again = await changed(kit, MessageAct.complete, token=row.claim_token, by="user:eve", result=b'"no"')
        assert again == done

    @pytest.mark.covers("QU-7")
    async def test_lapsed_claim_is_ready_again_after_one_sweep(self, kit: StoreKit) -> None:
        await published(kit)
        row = await claimed(kit)
        assert (await kit.store.sweep_messages()).total == 0
        kit.clock.advance(seconds=300)
        # Nobody else has claimed it yet: the worker may still complete it.
        assert await ids_claimed(kit) == []
        assert (await kit.store.sweep_messages()).lapsed == 1
        assert (await kit.store.sweep_messages()).total == 0
        back = await kit.store.queue_message("default", "m1")
        assert back is not None
        assert (back.state, back.attempts, back.claimed_by) == (MessageState.ready, 1, None)
        late = await kit.store.change_message(act(MessageAct.complete, token=row.claim_token))
        assert late is MessageRefusal.claim_lost
        assert (await claimed(kit)).claim_token != row.claim_token

    @pytest.mark.covers("QU-8")
    async def test_release_backs_off_and_the_last_attempt_is_dead(self, kit: StoreKit) -> None:
        await published(kit, max_attempts=3)
        waits: list[int] = []
        row = None
        for _ in range(3):
            row = await claimed(kit)
            row = await changed(kit, MessageAct.release, token=row.claim_token, error="no answer")
            waits.append((row.visible_at - kit.clock.now()) // MICROS)
            kit.clock.advance(seconds=300)
        assert waits[:2] == [1, 2]
        assert row is not None
        assert (row.state, row.attempts, row.error) == (MessageState.dead, 3, "no answer")
        assert await ids_claimed(kit) == []
        back = await changed(kit, MessageAct.requeue)
        assert (back.state, back.attempts, back.error, back.ended_at) == (MessageState.ready, 0, None, None)
        assert await ids_claimed(kit) == ["m1"]

    @pytest.mark.covers("QU-8")
    async def test_lapsed_claims_end_as_a_dead_letter_too(self, kit: StoreKit) -> None:
        await published(kit, max_attempts=1)
        await claimed(kit, by="worker-7")
        kit.clock.advance(seconds=300)
        await kit.store.sweep_messages()
        row = await kit.store.queue_message("default", "m1")
        assert row is not None
        assert row.state is MessageState.dead
        assert "worker-7" in (row.error or "")

    @pytest.mark.covers("QU-8")
    async def test_back_off_ends_at_five_minutes_and_zero_attempts_are_no_limit(self, kit: StoreKit) -> None:
        row = await published(kit, max_attempts=0)
        for _ in range(12):
            row = await claimed(kit)
            row = await changed(kit, MessageAct.release, token=row.claim_token)
            kit.clock.advance(seconds=300)
        assert (row.state, row.attempts) == (MessageState.ready, 12)
        assert row.visible_at - row.updated_at == 300 * MICROS

    @pytest.mark.covers("QU-1")
    async def test_only_a_dead_message_is_requeued(self, kit: StoreKit) -> None:
        await published(kit)
        assert await kit.store.change_message(act(MessageAct.requeue)) is MessageRefusal.not_dead
        row = await claimed(kit)
        assert await kit.store.change_message(act(MessageAct.requeue)) is MessageRefusal.not_dead
        await changed(kit, MessageAct.complete, token=row.claim_token)
        assert await kit.store.change_message(act(MessageAct.requeue)) is MessageRefusal.not_dead

    async def test_ended_message_is_neither_withdrawn_nor_dead(self, kit: StoreKit) -> None:
        await published(kit)
        row = await claimed(kit)
        await changed(kit, MessageAct.complete, token=row.claim_token)
        assert await kit.store.change_message(act(MessageAct.withdraw)) is MessageRefusal.ended
        assert await kit.store.change_message(act(MessageAct.dead)) is MessageRefusal.ended
        assert await kit.store.change_message(act(MessageAct.update, payload=b"x")) is MessageRefusal.ended
        await published(kit, "m2")
        gone = await changed(kit, MessageAct.withdraw, "m2")
        assert gone.state is MessageState.withdrawn
        assert await changed(kit, MessageAct.withdraw, "m2") == gone

    async def test_moved_message_loses_its_claim_and_keeps_the_higher_priority(self, kit: StoreKit) -> None:
        await published(kit, priority="high")
        row = await claimed(kit)
        moved = await changed(kit, MessageAct.move, queue="urgent", priority="low")
        assert (moved.queue, moved.priority, moved.state) == ("urgent", "high", MessageState.ready)
        lost = await kit.store.change_message(act(MessageAct.complete, token=row.claim_token))
        assert lost is MessageRefusal.claim_lost
        assert await ids_claimed(kit) == []
        assert await ids_claimed(kit, queue="urgent") == ["m1"]

    async def test_message_expires_at_its_time(self, kit: StoreKit) -> None:
        await published(kit, expires_at=kit.clock.now() + MICROS)
        await published(kit, "m2", expires_at=kit.clock.now() + MICROS)
        await claimed(kit, id="m2")
        kit.clock.advance(seconds=1)
        assert await ids_claimed(kit) == []
        assert (await kit.store.sweep_messages()).expired == 2
        rows = await kit.store.list_messages(MessageFilter(states=(MessageState.expired,)))
        assert [row.id for row in rows] == ["m2", "m1"]
        late = await kit.store.change_message(act(MessageAct.complete, "m2", token=1))
        assert late is MessageRefusal.claim_lost

    @pytest.mark.covers("QU-2")
    async def test_ended_messages_are_deleted_after_their_retention_dead_ones_are_kept(
        self, kit: StoreKit
    ) -> None:
        for name in ("gone", "dead", "open"):
            await published(kit, name)
        await changed(kit, MessageAct.withdraw, "gone")
        await changed(kit, MessageAct.dead, "dead", error="unreadable")
        kit.clock.advance(seconds=3599)
        assert (await kit.store.sweep_messages()).total == 0
        kit.clock.advance(seconds=1)
        assert (await kit.store.sweep_messages()).dropped == 1
        assert [row.id for row in await kit.store.list_messages(MessageFilter())] == ["open", "dead"]

    async def test_messages_are_listed_newest_first_by_filter_and_page(self, kit: StoreKit) -> None:
        await published(kit, "a", correlation_id="c", type="task")
        await published(kit, "b", tenant="acme")
        await published(kit, "c", queue="other")
        await published(kit, "d")

        async def found(after: int | None = None, limit: int = 9, **given: Any) -> list[str]:
            rows = await kit.store.list_messages(MessageFilter(**given), after=after, limit=limit)
            return [row.id for row in rows]

        assert await found() == ["d", "c", "b", "a"]
        assert await found(tenant="default", scope="support", queue="reviews") == ["d", "a"]
        assert await found(correlation_id="c") == await found(type="task") == ["a"]
        assert await found(states=(MessageState.ready,), limit=1) == ["d"]
        (last,) = await kit.store.list_messages(MessageFilter(queue="other"))
        assert await found(after=last.number) == ["b", "a"]
        assert await found(states=(MessageState.dead,)) == []

    async def test_counts_of_each_queue_and_the_age_of_its_oldest(self, kit: StoreKit) -> None:
        await published(kit, "a")
        kit.clock.advance(seconds=5)
        await published(kit, "b")
        await published(kit, "c", visible_at=kit.clock.now() + MICROS)
        await published(kit, "d", queue="other")
        await changed(kit, MessageAct.dead, "d")
        await published(kit, "e", tenant="acme")
        await claimed(kit, tenant="acme")
        found = {(one.tenant, one.queue): one for one in await kit.store.queue_counts()}
        reviews = found["default", "reviews"]
        assert (reviews.ready, reviews.delayed, reviews.claimed, reviews.dead) == (3, 1, 0, 0)
        assert reviews.oldest == 5 * MICROS
        assert found["default", "other"].dead == found["acme", "reviews"].claimed == 1
        assert [one.tenant for one in await kit.store.queue_counts("acme")] == ["acme"]

    @pytest.mark.covers("QU-30")
    async def test_ready_messages_are_read_in_the_order_of_claims_page_by_page(self, kit: StoreKit) -> None:
        for number in range(7):
            await published(kit, f"n{number}")
            kit.clock.advance(seconds=1)
        await published(kit, "urgent", priority="critical")
        await published(kit, "later", visible_at=kit.clock.now() + MICROS)
        await published(kit, "g1", group_key="g")
        await published(kit, "g2", group_key="g")
        await claimed(kit, id="n3")
        hold = await self._asked(kit)
        await published(kit, "review", priority="critical", hold=hold.id)
        want, found, after = wanted(limit=3, reviews=False), list[str](), None
        while page := await kit.store.ready_messages(want, after=after):
            found += [row.id for row in page]
            after = page[-1].place
        assert found == ["urgent", "n0", "n1", "n2", "n4", "n5", "n6", "g1"]
        assert (await kit.store.ready_messages(wanted(limit=2)))[1].id == "review"
        # Only what has become visible since then.
        since = kit.clock.now() - MICROS
        kit.clock.advance(seconds=2)
        late = await kit.store.ready_messages(wanted(limit=9, reviews=False), since=since)
        assert [row.id for row in late] == ["urgent", "g1", "later"]
        assert await ids_claimed(kit, limit=9, reviews=False) == [*found, "later"]
        assert await ids_claimed(kit, id="review", reviews=False) == []

    async def test_claims_that_last_very_long_are_found(self, kit: StoreKit) -> None:
        for name in ("a", "b", "c"):
            await published(kit, name)
        await claimed(kit, id="a")
        kept = await claimed(kit, id="b", ttl=400 * 86_400 * MICROS)
        beyond = MessageFilter(claimed_beyond=kit.clock.now() + 365 * 86_400 * MICROS)
        assert [row.id for row in await kit.store.list_messages(beyond)] == ["b"]
        await changed(kit, MessageAct.complete, "b", token=kept.claim_token, by="w")
        assert await kit.store.list_messages(beyond) == []

    # -- holds

    async def _asked(self, kit: StoreKit) -> HoldRow:
        lease = await kit.claimed()
        hold = kit.new_hold(terms=HoldTerms(queue="support/reviews"))
        await kit.written(lease, kit.record(1, side=Side(holds=[hold])))
        row = await kit.store.hold(hold.id)
        assert row is not None
        return row

    async def _published_for(self, kit: StoreKit, hold: HoldRow) -> MessageRow:
        return await published(kit, "m1", hold=hold.id, correlation_id=hold.id)

    def _resolved(self, hold: HoldRow, at: int, **given: Any) -> HoldChange:
        fields = {
            "status": HoldStatus.resolved, "resolution": b"{}", "resolved_by": "user:dana", "resolved_at": at
        }  # fmt: skip
        return HoldChange(hold=hold.id, version=hold.version, at=at, fields=fields, **given)

    @pytest.mark.covers("QB-2")
    async def test_hold_with_a_queue_writes_a_message_for_the_bridge(self, kit: StoreKit) -> None:
        hold = await self._asked(kit)
        (note,) = await kit.store.list_outbox(topic="hold.queue")
        assert (note.hold, note.key) == (hold.id, f"{hold.id}:hold.queue:1")
        plain = kit.new_hold()
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(holds=[plain])))
        assert len(await kit.store.list_outbox(topic="hold.queue")) == 1

    @pytest.mark.covers("QB-1")
    async def test_message_of_a_hold_is_named_by_it_and_needs_it_open(self, kit: StoreKit) -> None:
        hold = await self._asked(kit)
        assert await kit.store.publish_message(message("x", hold=hold.id, tenant="acme")) is None
        row = await self._published_for(kit, hold)
        after = await kit.store.hold(hold.id)
        assert after is not None
        assert (after.message_id, after.version) == (row.id, hold.version)
        await kit.store.change_hold(self._resolved(after, kit.clock.now()))
        assert await kit.store.publish_message(message("m2", hold=hold.id)) is None
        assert await kit.store.queue_message("default", "m2") is None

    @pytest.mark.covers("QU-20")
    async def test_end_of_a_message_by_a_sweep_writes_its_notice(self, kit: StoreKit) -> None:
        await published(kit, "late", expires_at=kit.clock.now() + TTL)
        await published(kit, "given-up", max_attempts=1)
        await published(kit, "again")
        for name in ("given-up", "again"):
            await claimed(kit, id=name)
        kit.clock.advance(seconds=TTL / MICROS + 1)

        def notice(row: MessageRow) -> list[OutboxMessage]:
            return [OutboxMessage("queue.out", f"{row.id}:{row.state}", b'{"id": 1}')]

        done = await kit.store.sweep_messages(notice=notice)
        assert (done.lapsed, done.expired) == (2, 1)
        written = await kit.store.list_outbox(topic="queue.out")
        assert sorted(each.key for each in written) == ["given-up:dead", "late:expired"]
        assert {each.payload for each in written} == {b'{"id": 1}'}

    @pytest.mark.covers("QU-3", "QU-9")
    async def test_hold_names_only_a_message_of_its_own(self, kit: StoreKit) -> None:
        """Callers choose the ids of their messages, and may take one that a hold would have."""
        hold = await self._asked(kit)
        bait = await published(kit, "m1", queue="bait")
        for _ in range(2):
            found = await kit.store.publish_message(message("m1", hold=hold.id, correlation_id=hold.id))
            assert found == (bait, False)
            after = await kit.store.hold(hold.id)
            assert after is not None
            assert after.message_id is None
        own = await published(kit, "m2", hold=hold.id)
        assert own.hold == hold.id
        for name in ("m1", "m2", "m3"):
            found = await kit.store.publish_message(message(name, hold=hold.id))
            assert found == (own, False)
        after = await kit.store.hold(hold.id)
        assert after is not None
        assert after.message_id == "m2"
        assert await kit.store.queue_message("default", "m1") == bait
        assert await kit.store.queue_message("default", "m3") is None

    @pytest.mark.covers("QB-9")
    async def test_message_ends_with_its_hold(self, kit: StoreKit) -> None:
        endings: dict[HoldStatus, MessageState] = {
            HoldStatus.cancelled: MessageState.withdrawn,
            HoldStatus.expired: MessageState.expired,
        }
        for i, (status, state) in enumerate(endings.items()):
            hold = await self._asked(kit)
            await published(kit, f"m{i}", hold=hold.id)
            fields = {"status": status, "closed_by": "user:dana", "closed_at": kit.clock.now()}
            done = await kit.store.change_hold(
                HoldChange(hold=hold.id, version=hold.version, at=kit.clock.now(), fields=fields)
            )
            assert isinstance(done, HoldRow)
            row = await kit.store.queue_message("default", f"m{i}")
            assert row is not None
            assert row.state is state
            keys = [note.key for note in await kit.store.list_outbox(hold=hold.id, topic="hold.queue")]
            assert keys == [f"{hold.id}:hold.queue:1", f"{hold.id}:hold.queue:{status}"]

    @pytest.mark.covers("QB-9")
    async def test_message_is_withdrawn_with_a_hold_that_its_run_closes(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = kit.new_hold(terms=HoldTerms(queue="support/reviews"))
        await kit.written(lease, kit.record(1, side=Side(holds=[hold])))
        await published(kit, hold=hold.id)
        await kit.written(lease, kit.record(2, side=Side(close_all_holds="the branch lost")))
        row = await kit.store.queue_message("default", "m1")
        assert row is not None
        assert row.state is MessageState.withdrawn
        # The broker hears of it.
        assert [each.key for each in await kit.store.list_outbox(topic="hold.queue")] == [
            f"{hold.id}:hold.queue:1",
            f"{hold.id}:hold.queue:cancelled",
        ]

    @pytest.mark.covers("QB-2")
    async def test_waiter_hears_at_once_of_messages_and_of_holds_that_ask_in_a_queue(
        self, kit: StoreKit
    ) -> None:
        lease = await kit.claimed()
        hold = kit.new_hold(terms=HoldTerms(queue="support/reviews"))

        async def decide() -> None:
            await kit.store.change_hold(self._resolved(await kit.hold(hold.id), kit.clock.now()))

        other = kit.new_hold(0, terms=HoldTerms(queue="support/other"))
        first = kit.record(0, kind=Kind.created, term=0, side=Side(holds=[other]))
        acts: list[Callable[[], Awaitable[object]]] = [
            lambda: kit.store.create(kit.new_run(first=[first])),
            lambda: kit.written(lease, kit.record(1, side=Side(holds=[hold]))),
            lambda: published(kit, hold=hold.id),
            decide,
            lambda: published(kit, "m2"),
            lambda: kit.store.change_message(act(MessageAct.withdraw, "m2")),
        ]
        for each in acts:
            seen = kit.store.queue_changes()
            waiting = asyncio.create_task(kit.store.wait_queues(seen, LONG))
            await asyncio.sleep(0)
            await each()
            await asyncio.wait_for(waiting, LONG / 2)
            assert kit.store.queue_changes() > seen
            # What happened before the wait is not missed.
            await asyncio.wait_for(kit.store.wait_queues(seen, LONG), LONG / 2)
        await kit.store.wait_queues(kit.store.queue_changes(), 0.01)

    @pytest.mark.covers("QU-9")
    async def test_hold_and_message_are_completed_in_one_transaction_or_not_at_all(
        self, kit: StoreKit
    ) -> None:
        hold = await self._asked(kit)
        await self._published_for(kit, hold)
        row = await claimed(kit)
        now = kit.clock.now()
        lost = act(MessageAct.complete, token=row.claim_token + 1, by="user:dana", result=b"{}")
        refused = await kit.store.change_hold(self._resolved(hold, now, message=lost))
        assert refused is ChangeRefusal.message_lost
        kept = await kit.store.hold(hold.id)
        assert kept is not None
        assert kept.status is HoldStatus.pending
        good = replace(lost, token=row.claim_token)
        done = await kit.store.change_hold(self._resolved(hold, now, message=good))
        assert isinstance(done, HoldRow)
        after = await kit.store.queue_message("default", "m1")
        assert after is not None
        assert (after.state, after.completed_by) == (MessageState.completed, "user:dana")

    @pytest.mark.covers("QB-12")
    async def test_new_assignee_writes_a_message_for_the_bridge(self, kit: StoreKit) -> None:
        hold = await self._asked(kit)
        fields = {"assignee": "user:eve", "epoch": 2}
        await kit.store.change_hold(
            HoldChange(hold=hold.id, version=hold.version, at=kit.clock.now(), fields=fields)
        )
        keys = [note.key for note in await kit.store.list_outbox(hold=hold.id, topic="hold.queue")]
        assert keys == [f"{hold.id}:hold.queue:1", f"{hold.id}:hold.queue:2"]

    async def test_messages_of_a_deleted_run_are_deleted(self, kit: StoreKit) -> None:
        hold = await self._asked(kit)
        await self._published_for(kit, hold)
        kit.clock.advance(seconds=3600)
        assert await kit.store.delete_run(hold.run)
        assert await kit.store.queue_message("default", "m1") is None


@pytest.mark.anyio
@pytest.mark.covers("QU-12")
class QueueRaceSuite:
    """`races`: rounds of each; the soak has two hundred."""

    races = 10

    async def test_one_of_many_claims_a_message(self, kit: StoreKit) -> None:
        async def contend(store: Store, number: int) -> int:
            return len(await store.claim_messages(wanted(by=str(number))))

        for i in range(self.races):
            await published(kit, f"m{i}")
            assert sum(await kit.race(4, contend)) == 1

    @pytest.mark.covers("QU-6")
    async def test_group_is_claimed_once_when_an_earlier_message_of_it_comes_back(
        self, kit: StoreKit
    ) -> None:
        async def contend(store: Store, number: int) -> int:
            if number == 0:
                await store.change_message(act(MessageAct.requeue, first))
            return len(await store.claim_messages(wanted(by=str(number))))

        for i in range(self.races):
            first, second = f"a{i}", f"b{i}"
            await published(kit, first, group_key=f"g{i}")
            await changed(kit, MessageAct.dead, first)
            await published(kit, second, group_key=f"g{i}")
            assert sum(await kit.race(4, contend)) == 1
            for name in (first, second):
                await changed(kit, MessageAct.withdraw, name)

    async def test_completion_and_withdrawal_have_one_winner(self, kit: StoreKit) -> None:
        for i in range(self.races):
            name = f"m{i}"
            await published(kit, name)
            row = await claimed(kit, id=name)
            acts = (
                act(MessageAct.complete, name, token=row.claim_token, by="user:dana", result=b"{}"),
                act(MessageAct.withdraw, name),
            )

            async def contend(store: Store, number: int, acts: Any = acts) -> bool:
                return isinstance(await store.change_message(acts[number]), MessageRow)

            won = await kit.race(2, contend)
            assert sum(won) == 1
            after = await kit.store.queue_message("default", name)
            assert after is not None
            assert after.state == ("completed" if won[0] else "withdrawn")

    async def test_completion_and_expiry_have_one_winner(self, kit: StoreKit) -> None:
        for i in range(self.races):
            name = f"m{i}"
            await published(kit, name, expires_at=kit.clock.now() + MICROS)
            row = await claimed(kit, id=name)
            kit.clock.advance(seconds=1)
            done = act(MessageAct.complete, name, token=row.claim_token, by="user:dana")

            async def contend(store: Store, number: int, done: Any = done) -> int:
                if number:
                    return (await store.sweep_messages()).expired
                return isinstance(await store.change_message(done), MessageRow)

            assert sum(await kit.race(2, contend)) == 1
