"""Completions that come from outside decide a hold once, in its tenant, or change nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import AnswerInvalidError, InputError, StoreBusyError
from holdfast.queues.completions import (
    EARLY,
    MOST_OF_HOLD,
    Completion,
    CompletionOutcome,
    queue_actor,
    read_completion,
)
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.ids import new_id
from holdfast.types.queue_message import COMPLETED_EVENT, MessageState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.queues.conftest import DANA, PLACE, Harness, anybody

pytestmark = pytest.mark.anyio


def event(hold: str | None, decision: str = "approve", **given: Any) -> dict[str, Any]:
    data = {
        "message_id": "m-1", "correlation_id": hold, "scope": "support", "queue": "reviews",
        "result": {"decision": decision},
    }  # fmt: skip
    more = {"id": "e-1", "type": COMPLETED_EVENT, "time": "2027-01-01T00:00:00Z", "tenant": "default"}
    return {**more, **{name: given.pop(name) for name in [*given] if name in more}, "data": {**data, **given}}


def webhook(tenant: str, completed_by: str | None) -> Actor:
    """The sender of a completion that comes by a webhook."""
    return msgspec.structs.replace(queue_actor(tenant, completed_by), auth_method="webhook")


async def take(harness: Harness, body: dict[str, Any], tenant: str = "default") -> CompletionOutcome:
    found = read_completion(body)
    return await harness.queues.completions.apply(found, webhook(tenant, found.completed_by))


@pytest.mark.covers("QB-3", "QU-4")
async def test_completion_decides_in_the_name_of_the_person_else_of_the_queue(harness: Harness) -> None:
    for by, expected in (("user:dana@acme", "user:dana@acme"), (None, "system:queue"), ("x", "system:queue")):
        hold = await harness.asks()
        await harness.message(hold)
        done = await take(harness, event(hold.id, completed_by=by, comment=None))
        assert (done.outcome, done.status) == ("resolved", "resolved")
        after = await harness.hold(hold.id)
        assert after.resolved_by == expected
        row = await harness.message(hold)
        assert (row.state, row.completed_by) == (MessageState.completed, expected)


@pytest.mark.covers("QU-4")
async def test_flat_form_of_a_completion_is_read_too(harness: Harness) -> None:
    hold = await harness.asks()
    flat = {"data": {"checkpoint_id": hold.id, "resolution": "reject", "comment": "no"}}
    assert (await take(harness, flat)).outcome == "resolved"
    kept = msgspec.json.decode((await harness.hold(hold.id)).resolution or b"")
    assert (kept["decision"], kept["comment"]) == ("reject", "no")


@pytest.mark.covers("QB-4")
async def test_redelivery_changes_nothing_and_leaves_one_audit_entry(harness: Harness) -> None:
    hold = await harness.asks()
    await harness.message(hold)
    assert (await take(harness, event(hold.id))).outcome == "resolved"
    for _ in range(5):
        assert (await take(harness, event(hold.id))).status == "resolved"
    assert (await harness.actions(hold.id)).count("resolved") == 1
    other = await take(harness, event(hold.id, "reject", id="e-2"))
    assert other.outcome == "already_decided"


@pytest.mark.covers("QB-5")
async def test_id_that_is_missing_or_none_of_ours_touches_nothing(harness: Harness) -> None:
    hold = await harness.asks()
    for odd in (None, "", "nosuch", "../x"):
        assert (await take(harness, event(odd))).outcome == "ignored"
    for bad in ({}, {"data": "text"}, {"data": {"result": 5}}, {"data": {"correlation_id": 7}}):
        with pytest.raises(InputError):
            await take(harness, bad)
    assert await harness.store.documents("default", EARLY) == []
    assert (await harness.hold(hold.id)).status is HoldStatus.pending


@pytest.mark.covers("QB-6")
async def test_late_completion_is_ignored_and_audited_once(harness: Harness) -> None:
    hold = await harness.asks()
    await harness.queues.people.cancel(anybody(), hold.id)
    for _ in range(3):
        done = await take(harness, event(hold.id))
        assert (done.outcome, done.status) == ("late", "cancelled")
    assert (await harness.actions(hold.id)).count("late_completion") == 1
    assert (await harness.hold(hold.id)).status is HoldStatus.cancelled


@pytest.mark.covers("QB-7")
async def test_completion_of_another_tenant_is_ignored_and_audited_as_security_event(
    harness: Harness,
) -> None:
    hold = await harness.asks()
    assert (await take(harness, event(hold.id, tenant="acme"))).outcome == "ignored"
    assert (await take(harness, event(hold.id, tenant=None), tenant="acme")).outcome == "ignored"
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    assert "foreign_completion" in await harness.actions(None)
    assert [row.action for row in await harness.store.audit("acme")] == ["foreign_completion"]


@pytest.mark.covers("QB-8")
async def test_invalid_answer_leaves_hold_and_message_open(harness: Harness) -> None:
    hold = await harness.asks()
    await harness.message(hold)
    with pytest.raises(AnswerInvalidError):
        await take(harness, event(hold.id, "perhaps"))
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    assert (await harness.message(hold)).state is MessageState.ready
    assert "refused" in await harness.actions(hold.id)
    assert (await take(harness, event(hold.id))).outcome == "resolved"


@pytest.mark.covers("QB-10")
async def test_error_of_the_store_is_raised_so_that_the_sender_repeats(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = await harness.asks()

    async def busy(_change: Any) -> HoldRow:
        raise StoreBusyError("locked")

    with monkeypatch.context() as patch:
        patch.setattr(harness.store, "change_hold", busy)
        with pytest.raises(StoreBusyError):
            await take(harness, event(hold.id))
    assert (await take(harness, event(hold.id))).outcome == "resolved"


@pytest.mark.covers("QB-9")
async def test_completion_after_the_hold_was_decided_elsewhere_is_a_no_op(harness: Harness) -> None:
    hold = await harness.asks()
    await harness.message(hold)
    await harness.queues.people.resolve(anybody(), hold.id, "reject")
    assert (await take(harness, event(hold.id))).outcome == "already_decided"
    assert (await harness.message(hold)).state is MessageState.withdrawn


@pytest.mark.covers("QB-13")
async def test_completion_of_a_republished_message_is_accepted_with_a_warning(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    hold = await harness.asks()
    await harness.message(hold)
    assert (await take(harness, event(hold.id, message_id="another"))).outcome == "resolved"
    assert "another" in caplog.text


@pytest.mark.covers("QU-25")
async def test_completion_before_its_hold_is_kept_and_applied_when_the_hold_is_opened(
    harness: Harness,
) -> None:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], queue="support/reviews")
    run = new_id()
    async with Holdfast("memory:", clock=FakeClock()) as elsewhere:
        # The id of a hold follows from that of its run.
        (foreseen,) = (await flow.run({}, on=elsewhere, run_id=run)).holds
    assert (await take(harness, event(foreseen.id))).outcome == "kept"
    await flow.run({}, on=harness.hf, run_id=run)
    await harness.queues.work()
    after = await harness.hold(foreseen.id)
    assert (after.status, after.resolved_by) == (HoldStatus.resolved, "system:queue")
    assert await harness.store.documents("default", EARLY) == []


@pytest.mark.covers("QU-25", "RC-9")
async def test_early_completion_of_a_hold_without_a_queue_is_applied_within_one_sweep(
    harness: Harness,
) -> None:
    hold = await harness.asks(queue=None)
    kept = Completion(correlation_id=hold.id, answer={"decision": "approve"}, key="e-1")
    await harness.queues.completions._keep(kept, webhook("default", None), hold.id)  # pyright: ignore[reportPrivateUsage]
    harness.clock.advance(minutes=5)
    await harness.queues.work()
    assert (await harness.hold(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("QU-25")
async def test_completion_without_a_hold_is_forgotten_after_a_week(harness: Harness) -> None:
    await harness.asks()  # the tenant has an audit
    unknown = new_id()
    assert (await take(harness, event(unknown))).outcome == "kept"
    assert (await take(harness, event(unknown, "reject", id="e-2"))).outcome == "kept"
    harness.clock.advance(days=6)
    await harness.queues.reconcile()
    kept = await harness.store.documents("default", EARLY)
    assert [each.name.partition(":")[0] for each in kept] == [unknown, unknown]
    harness.clock.advance(days=2)
    await harness.queues.reconcile()
    assert await harness.store.documents("default", EARLY) == []


@pytest.mark.covers("QU-25")
async def test_each_early_event_is_kept_once_and_a_few_of_each_hold(harness: Harness) -> None:
    """Several people may vote before the hold is there."""
    unknown = new_id()
    for number in range(MOST_OF_HOLD):
        for _ in range(2):
            assert (await take(harness, event(unknown, id=f"e-{number}"))).outcome == "kept"
    assert len(await harness.store.documents("default", EARLY)) == MOST_OF_HOLD
    assert (await take(harness, event(unknown, id="e-more"))).outcome == "ignored"
    assert (await take(harness, event(new_id(), id="e-more"))).outcome == "kept"


@pytest.mark.covers("RC-8", "QU-12")
@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.soak)])
async def test_completion_and_decision_at_once_have_one_winner(harness: Harness, rounds: int) -> None:
    for turn in range(rounds):
        hold = await harness.asks()
        row = await harness.claimed(hold)
        people, queues = harness.queues.people, harness.queues
        acts = [
            queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"}),
            people.resolve(anybody(), hold.id, "reject"),
        ]
        found = await asyncio.gather(*(acts if turn % 2 else acts[::-1]), return_exceptions=True)
        assert sum(not isinstance(each, BaseException) for each in found) == 1, found
        after, message = await harness.hold(hold.id), await harness.message(hold)
        decision = msgspec.json.decode(after.resolution or b"")["decision"]
        assert message.state == ("completed" if decision == "approve" else "withdrawn")
        assert (await harness.actions(hold.id)).count("resolved") == 1
