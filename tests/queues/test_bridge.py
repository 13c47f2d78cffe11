"""A hold that asks in a queue has one message there, which lives and ends with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from holdfast.errors import (
    AlreadyVotedError,
    ClaimLostError,
    ExcludedError,
    FormInvalidError,
    HoldDecidedError,
    KeyMissingError,
    MessageEndedError,
    NotAssignedError,
    TransportError,
)
from holdfast.queues.review_request import encoded_request
from holdfast.queues.service import QueueService
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import QUEUE_OUT, OutboxRow, OutboxState
from holdfast.types.queue_message import MessageFilter, MessageState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import RESOLVE, Actor
from tests.queues.conftest import DANA, PLACE, Harness, anybody

pytestmark = pytest.mark.anyio

EVE = Actor(id="user:eve@acme")
FORM = [
    {"type": "context", "title": "Order", "content": "{{order}}"},
    {"type": "input", "field": "amount", "kind": "currency", "required": True},
    {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
]


@pytest.mark.covers("QB-1", "QU-3")
async def test_hold_with_a_queue_publishes_one_request_and_knows_its_id(harness: Harness) -> None:
    hold = await harness.asks(priority="high", timeout="2h")
    assert hold.message_id is None
    row = await harness.message(hold)
    assert (row.type, row.correlation_id, row.hold, row.run) == ("hitl_request", hold.id, hold.id, hold.run)
    assert (row.scope, row.queue, row.priority, row.state) == (*PLACE, "high", MessageState.ready)
    shown = msgspec.json.decode(row.payload)
    assert list(shown) == sorted(shown)
    assert set(shown) == {
        "hold_id", "run", "flow", "node", "prompt", "sections", "options", "assignee", "priority",
        "expires_at", "request_hash", "url",
    }  # fmt: skip
    assert (shown["prompt"], shown["assignee"]) == ("Pay 250?", DANA.id)
    assert shown["url"] == f"https://holdfast.example/inbox/{hold.id}"
    assert [each["id"] for each in shown["options"]] == ["approve", "reject"]
    await harness.queues.work()
    assert len(await harness.store.list_messages(MessageFilter())) == 1
    assert (await harness.hold(hold.id)).version == hold.version


@pytest.mark.covers("QB-1")
async def test_hold_without_a_queue_publishes_nothing(harness: Harness) -> None:
    hold = await harness.asks(queue=None)
    await harness.queues.work()
    assert (await harness.hold(hold.id)).message_id is None
    assert await harness.store.list_messages(MessageFilter()) == []


@pytest.mark.covers("QU-3")
async def test_request_has_the_rendered_form_unless_it_is_too_large(harness: Harness) -> None:
    hold = await harness.asks(options=None, sections=FORM)
    shown = msgspec.json.decode((await harness.message(hold)).payload)
    assert [each["type"] for each in shown["sections"]] == ["context", "input", "decision"]
    large = msgspec.structs.replace(hold, prompt="x" * 262_000)
    shown = msgspec.json.decode(encoded_request(large, ""))
    assert (shown["sections"], len(shown["prompt"]), shown["url"]) == (None, 262_000, None)


@pytest.mark.covers("QU-9")
async def test_completing_the_request_decides_the_hold_and_resumes_its_run(harness: Harness) -> None:
    hold = await harness.asks()
    row = await harness.claimed(hold)
    answer = {"decision": "approve", "comment": "fine"}
    done = await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, answer)
    assert (done.state, done.completed_by) == (MessageState.completed, DANA.id)
    after = await harness.hold(hold.id)
    assert (after.status, after.resolved_by) == (HoldStatus.resolved, DANA.id)
    kept = msgspec.json.decode(after.resolution or b"")
    assert (kept["decision"], kept["comment"], kept["channel"]) == ("approve", "fine", "queue")
    # The same request again has no second effect.
    assert await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, answer) == done
    assert (await harness.actions(hold.id)).count("resolved") == 1


@pytest.mark.covers("QU-7")
async def test_message_that_was_completed_takes_no_other_result(harness: Harness) -> None:
    await harness.queues.publish(*PLACE, {"order": 7}, id="plain")
    (row,) = await harness.queues.claim(DANA, *PLACE)
    done = await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"a": 1, "b": 2})
    assert await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"b": 2, "a": 1}) == done
    for other in ({"a": 1}, None):
        with pytest.raises(MessageEndedError, match="with another result"):
            await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, other)
    assert (await harness.queues.get(*PLACE, "plain")).result == b'{"a":1,"b":2}'


@pytest.mark.covers("QU-9")
async def test_person_who_may_not_decide_cannot_complete_the_request(harness: Harness) -> None:
    hold = await harness.asks(strict_assignee=True)
    row = await harness.claimed(hold)
    with pytest.raises(NotAssignedError):
        await harness.queues.complete(EVE, *PLACE, row.id, row.claim_token, {"decision": "approve"})
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    assert (await harness.message(hold)).state is MessageState.claimed


@pytest.mark.covers("QU-9")
async def test_person_who_may_not_decide_cannot_hide_the_request_from_those_who_may(harness: Harness) -> None:
    hold = await harness.asks(strict_assignee=True)
    row = await harness.message(hold)
    await harness.queues.publish(*PLACE, {"order": 7}, id="plain", priority="low")
    for attempt in (
        harness.queues.claim_one(EVE, *PLACE, row.id),
        harness.queues.dead(EVE, *PLACE, row.id),
        harness.queues.claim_one(Actor(id="user:eve@acme", rights=frozenset({RESOLVE})), *PLACE, row.id),
    ):
        with pytest.raises(NotAssignedError, match="assigned to user:dana@acme"):
            await attempt
    # What is not a review is claimed behind those that are left out.
    assert [each.id for each in await harness.queues.claim(EVE, *PLACE, limit=5)] == ["plain"]
    assert await harness.queues.claim(EVE, *PLACE) == []
    assert (await harness.message(hold)).state is MessageState.ready
    assert [each.id for each in await harness.queues.claim(DANA, *PLACE)] == [row.id]


@pytest.mark.covers("QU-9")
async def test_excluded_person_and_one_who_has_voted_leave_the_request_to_the_others(
    harness: Harness,
) -> None:
    several = {"mode": "quorum", "need": 2, "of": ["group:support"], "exclude": [EVE.id]}
    hold = await harness.asks(approval=several)
    dana, eve, sam = [
        Actor(id=f"user:{name}@acme", groups=frozenset({"support"})) for name in ("dana", "eve", "sam")
    ]
    row = await harness.message(hold)
    with pytest.raises(ExcludedError):
        await harness.queues.claim_one(eve, *PLACE, row.id)
    (mine,) = await harness.queues.claim(dana, *PLACE)
    await harness.queues.complete(dana, *PLACE, row.id, mine.claim_token, {"decision": "approve"})
    with pytest.raises(AlreadyVotedError):
        await harness.queues.claim_one(dana, *PLACE, row.id)
    assert await harness.queues.claim(dana, *PLACE) == []
    assert [each.id for each in await harness.queues.claim(sam, *PLACE)] == [row.id]


@pytest.mark.covers("QU-9", "QB-8")
async def test_answer_that_does_not_fit_changes_neither_hold_nor_message(harness: Harness) -> None:
    hold = await harness.asks(options=None, sections=FORM)
    row = await harness.claimed(hold)
    for answer in ({"decision": "approve"}, {"decision": "approve", "response_data": {"amount": "much"}}):
        with pytest.raises(FormInvalidError):
            await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, answer)
    assert (await harness.message(hold)).state is MessageState.claimed
    good = {"decision": "approve", "response_data": {"amount": "12.50"}}
    await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, good)
    assert (await harness.hold(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("QU-9")
async def test_lost_claim_decides_nothing(harness: Harness) -> None:
    hold = await harness.asks()
    first = await harness.claimed(hold)
    harness.clock.advance(minutes=6)
    await harness.queues.work()
    second = await harness.claimed(hold)
    with pytest.raises(ClaimLostError):
        await harness.queues.complete(DANA, *PLACE, first.id, first.claim_token, {"decision": "approve"})
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    assert (await harness.message(hold)).claim_token == second.claim_token


@pytest.mark.covers("QU-9")
async def test_vote_gives_the_request_back_for_the_next_voter(harness: Harness) -> None:
    hold = await harness.asks(approval={"mode": "quorum", "need": 2, "of": [DANA.id, "user:sam@acme"]})
    row = await harness.claimed(hold)
    back = await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"})
    assert (back.state, back.attempts) == (MessageState.ready, 0)
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    again = await harness.claimed(hold, by="user:sam@acme")
    sam = Actor(id="user:sam@acme")
    done = await harness.queues.complete(sam, *PLACE, row.id, again.claim_token, {"decision": "approve"})
    assert done.state is MessageState.completed
    assert (await harness.hold(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("QB-9")
async def test_hold_that_is_decided_elsewhere_withdraws_its_message(harness: Harness) -> None:
    hold = await harness.asks()
    row = await harness.claimed(hold)
    await harness.queues.people.resolve(anybody(), hold.id, "reject")
    assert (await harness.message(hold)).state is MessageState.withdrawn
    with pytest.raises(ClaimLostError):
        await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"})
    assert (await harness.actions(hold.id)).count("resolved") == 1


@pytest.mark.covers("QB-9", "QU-9")
async def test_message_ends_with_a_hold_that_is_cancelled_or_expires(harness: Harness) -> None:
    cancelled, expired = await harness.asks(), await harness.asks(timeout="1h")
    for hold in (cancelled, expired):
        await harness.message(hold)
    await harness.queues.people.cancel(anybody(), cancelled.id)
    assert (await harness.message(cancelled)).state is MessageState.withdrawn
    harness.clock.advance(hours=2)
    await (await harness.hf.service()).runtime.sweeper.sweep()
    assert (await harness.message(expired)).state is MessageState.expired


@pytest.mark.covers("QB-12")
async def test_new_assignee_finds_the_message_and_an_old_claim_ends(harness: Harness) -> None:
    hold = await harness.asks()
    row = await harness.claimed(hold)
    await harness.queues.people.reassign(anybody(), hold.id, "user:eve@acme")
    after = await harness.message(hold)
    assert msgspec.json.decode(after.payload)["assignee"] == "user:eve@acme"
    assert after.state is MessageState.ready
    with pytest.raises(ClaimLostError):
        await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"})


@pytest.mark.covers("QB-12")
async def test_new_deadline_is_shown_and_a_claim_survives_it(harness: Harness) -> None:
    hold = await harness.asks(timeout="1h")
    row = await harness.claimed(hold)
    until = harness.clock.now() + 7200 * 1_000_000
    await harness.queues.people.extend(anybody(), hold.id, datetime.fromtimestamp(until / 1e6, UTC))
    after = await harness.message(hold)
    assert (after.state, after.claim_token) == (MessageState.claimed, row.claim_token)
    assert msgspec.json.decode(after.payload)["expires_at"] != msgspec.json.decode(row.payload)["expires_at"]


@pytest.mark.covers("QB-2")
async def test_request_that_cannot_be_published_is_tried_again_and_the_hold_stays_open(
    harness: Harness,
) -> None:
    hold = await harness.asks()
    # Since it was asked, the operator requires that queues are listed.
    harness.queues.settings = harness.queues.bridge.settings = msgspec.structs.replace(
        harness.queues.settings, strict=True
    )
    await harness.queues.work()
    (waiting,) = await harness.store.list_outbox(topic="hold.queue")
    assert (waiting.state, waiting.attempts) == (OutboxState.waiting, 1)
    assert "not listed" in (waiting.error or "")
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    harness.queues.bridge.settings = msgspec.structs.replace(harness.queues.settings, strict=False)
    harness.clock.advance(hours=1)
    assert (await harness.message(hold)).state is MessageState.ready
    (sent,) = await harness.store.list_outbox(topic="hold.queue")
    assert sent.state is OutboxState.done


@pytest.mark.covers("QB-2")
async def test_message_without_a_hold_is_named_when_it_cannot_be_published(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(_row: object) -> OutboxState:
        raise TransportError("no NATS server can be reached.")

    monkeypatch.setattr(harness.queues.bridge, "_relayed", away)
    row = OutboxRow(
        id=1,
        tenant="default",
        run=None,
        hold=None,
        at=0,
        topic=QUEUE_OUT,
        key="queue.out:t1:new",
        payload=b"",
    )
    await harness.queues.bridge._one(row)
    assert "queue.out:t1:new could not be published: no NATS server can be reached" in caplog.text


@pytest.mark.covers("QB-2")
async def test_hold_that_cannot_be_read_here_does_not_stop_the_others(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, other = await harness.asks(), await harness.asks()
    read = harness.store.hold

    async def hold(name: HoldId) -> HoldRow | None:
        if name == locked.id:
            raise KeyMissingError("encrypted under another key", key="k2")
        return await read(name)

    with monkeypatch.context() as patch:
        patch.setattr(harness.store, "hold", hold)
        await harness.message(other)
        states = {row.hold: row.state for row in await harness.store.list_outbox(topic="hold.queue")}
    assert states == {locked.id: OutboxState.waiting, other.id: OutboxState.done}
    harness.clock.advance(hours=1)
    assert (await harness.message(locked)).state is MessageState.ready


@pytest.mark.covers("QB-11", "QU-24")
async def test_reconciler_publishes_what_is_missing_under_the_same_id(harness: Harness) -> None:
    hold = await harness.asks()
    # The outbox message was lost, as by a restore.
    (note,) = await harness.store.claim_outbox(limit=9, lease=1, topics=("hold.queue",))
    await harness.store.finish_outbox(note.id, attempt=note.attempts, state=OutboxState.skipped)
    found = await harness.queues.reconcile()
    assert (found.holds, found.published) == (1, 1)
    row = await harness.message(hold)
    again = await harness.queues.reconcile()
    assert (again.holds, again.published, again.applied) == (1, 0, 0)
    assert (await harness.message(hold)).id == row.id


@pytest.mark.covers("QU-24")
async def test_one_worker_of_a_store_reconciles_at_a_time(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [(await harness.hf.new_service()).runtime.queues for _ in range(2)]
    queues: list[QueueService] = [harness.queues, *(each.open() for each in others if each is not None)]
    turns: list[int] = []
    for number, each in enumerate(queues):
        reconcile = each.bridge.reconcile

        async def counted(*, holds: bool, number: int = number, act: Any = reconcile) -> Any:
            turns.append(number)
            return await act(holds=holds)

        monkeypatch.setattr(each.bridge, "reconcile", counted)
    for first in (0, 1, 2):
        harness.clock.advance(minutes=6)
        for each in (*queues[first:], *queues[:first]):
            await each.work()
    assert turns == [0, 1, 2]


async def test_decided_hold_keeps_its_message_id_and_says_who_decided(harness: Harness) -> None:
    hold = await harness.asks()
    row = await harness.claimed(hold)
    await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"})
    with pytest.raises(HoldDecidedError):
        await harness.queues.people.resolve(anybody(), hold.id, "reject")
    assert (await harness.hold(hold.id)).message_id == row.id
