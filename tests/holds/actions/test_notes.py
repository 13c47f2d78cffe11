"""Comments, drafts, watching, snoozing; many at once; taking a decision back; asking back."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from holdfast.errors import (
    ConflictError,
    ForbiddenError,
    HoldClaimedError,
    HoldDecidedError,
    InputError,
    NotAssignedError,
    NotFoundError,
    ValueTooLargeError,
)
from holdfast.holds.actions.submission import Submission
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.types.clock import MICROS
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.holds.actions.scene import ADMIN, DANA, FINN, SAM, Scene, data, said

pytestmark = pytest.mark.anyio

IAN = Actor(id="user:ian@acme")


@pytest.mark.covers("HOLD-LIFE-04", "HOLD-SEC-15")
async def test_a_comment_is_left_by_who_sees_the_hold_also_after_the_decision(scene: Scene) -> None:
    row = await scene.asks()
    note = await scene.holds.comment(DANA, row.id, "  Who ordered this? ")
    assert msgspec.json.decode(note.body) == {"text": "Who ordered this?"}
    for wrong, error in (("  ", InputError), ("x" * 10_001, ValueTooLargeError)):
        with pytest.raises(error):
            await scene.holds.comment(DANA, row.id, wrong)
    with pytest.raises(NotAssignedError):
        await scene.holds.comment(SAM, row.id, "me too")
    assert (await scene.row(row.id)).version == row.version
    done = (await scene.holds.resolve(DANA, row.id, "approve")).row
    await scene.holds.comment(ADMIN, row.id, "Noted.")
    assert [each.person for each in await scene.holds.comments(DANA, row.id)] == [DANA.id, ADMIN.id]
    assert await scene.row(row.id) == done
    assert "ordered" not in str([each.data for each in await scene.audit(row)])


@pytest.mark.covers("HOLD-LIFE-05")
async def test_a_draft_is_ones_own_unchecked_and_gone_when_dropped(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    half = Submission(response_data={"amount": "12 and a"})
    await scene.holds.save_draft(SAM, row.id, half)
    assert (await scene.holds.draft(SAM, row.id), await scene.holds.draft(FINN, row.id)) == (half, None)
    await scene.holds.save_draft(SAM, row.id, {"decision": "reject"})
    assert await scene.holds.draft(SAM, row.id) == Submission(decision="reject")
    with pytest.raises(NotAssignedError):
        await scene.holds.save_draft(DANA, row.id, half)
    await scene.holds.delete_draft(SAM, row.id)
    assert await scene.holds.draft(SAM, row.id) is None
    assert (await scene.row(row.id)).version == row.version


@pytest.mark.covers("HOLD-LIFE-08", "HOLD-LIFE-07")
async def test_watched_and_snoozed_holds_are_in_views_of_their_own(scene: Scene) -> None:
    row = await scene.asks()
    await scene.holds.watch(ADMIN, row.id)
    await scene.holds.snooze(DANA, row.id, timedelta(hours=1))

    async def seen(actor: Actor, view: str) -> list[str]:
        return [each.id for each in (await scene.holds.list(actor, view=view)).rows]

    assert (await seen(ADMIN, "watching"), await seen(DANA, "watching")) == ([row.id], [])
    assert (await seen(DANA, "snoozed"), await seen(DANA, "mine")) == ([row.id], [])
    scene.clock.advance(hours=1)
    assert (await seen(DANA, "snoozed"), await seen(DANA, "mine")) == ([], [row.id])
    await scene.holds.unwatch(ADMIN, row.id)
    assert await seen(ADMIN, "watching") == []
    await scene.holds.snooze(DANA, row.id, timedelta(hours=1))
    await scene.holds.unsnooze(DANA, row.id)
    assert await seen(DANA, "mine") == [row.id]
    # The history does not end with a snooze that is over; what was not there does not end.
    await scene.holds.unsnooze(DANA, row.id)
    marks = [
        each.action for each in await scene.audit(row) if "snooze" in each.action or "watch" in each.action
    ]
    assert marks == ["watched", "snoozed", "unwatched", "snoozed", "unsnoozed"]
    with pytest.raises(InputError, match="past"):
        await scene.holds.snooze(DANA, row.id, scene.clock.now())
    with pytest.raises(InputError, match="zone"):
        await scene.holds.snooze(DANA, row.id, datetime(2040, 1, 1))  # noqa: DTZ001
    with pytest.raises(NotAssignedError):
        await scene.holds.watch(SAM, row.id)


@pytest.mark.covers("HOLD-LIFE-09")
async def test_a_preview_says_what_each_would_come_to_and_writes_nothing(scene: Scene) -> None:
    schema = {"type": "object", "required": ["amount"]}
    fine = [(await scene.asks()).id for _ in range(2)]
    form = (await scene.asks(schema=schema)).id
    alone = (await scene.asks(bulk=False)).id
    other = (await scene.asks(assignee="user:sam@acme")).id
    asked = [*fine, form, alone, other, "nonsense", fine[0]]
    shown = await scene.holds.bulk(DANA, asked, "approve")
    assert (shown.preview, shown.done) == (True, 2)
    assert shown.left_out == {"answer_invalid": 2, "not_assigned": 1, "hold_not_found": 1}
    assert all(item.why for item in shown.items if not item.done)
    assert {(await scene.row(each)).status for each in asked if each != "nonsense"} == {HoldStatus.pending}
    stale = await scene.holds.bulk(DANA, fine, "approve", versions={fine[0]: 99})
    assert stale.left_out == {"version_stale": 1}
    made = await scene.holds.bulk(DANA, asked, "approve", preview=False)
    assert [item.done for item in made.items] == [True, True, False, False, False, False]
    assert [(await scene.row(each)).status for each in fine] == [HoldStatus.resolved] * 2
    assert [(await scene.row(each)).status for each in (form, alone, other)] == [HoldStatus.pending] * 3
    with pytest.raises(InputError, match="more than"):
        await scene.holds.bulk(DANA, [str(n) for n in range(1001)], "approve")


@pytest.mark.covers("HOLD-LIFE-10")
async def test_a_placed_decision_is_shown_to_others_and_made_when_its_time_is_up(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    placed = (await scene.holds.place(SAM, row.id, "approve")).row
    assert (placed.status, placed.placed_by) == (HoldStatus.pending, SAM.id)
    assert placed.placed_until == scene.clock.now() + 8 * MICROS
    for act in (
        scene.holds.resolve(FINN, row.id, "reject"),
        scene.holds.cancel(ADMIN, row.id),
        scene.holds.reassign(ADMIN, row.id, "user:x"),
        scene.holds.claim(FINN, row.id),
    ):
        with pytest.raises(HoldClaimedError, match="sam@acme has decided"):
            await act
    scene.clock.advance(seconds=8)
    done = await scene.holds.get(FINN, row.id)
    assert (done.status, done.resolved_by, done.placed) == (HoldStatus.resolved, SAM.id, None)
    assert (said(done)["decision"], said(done)["authority"]) == ("approve", "assignee")
    with pytest.raises(HoldDecidedError):
        await scene.holds.undo(SAM, row.id)
    assert (await scene.goes_on(row)).state["decision"] == "approve"


@pytest.mark.covers("HOLD-LIFE-10")
async def test_a_placed_decision_is_taken_back_by_its_decider_alone(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    await scene.holds.place(SAM, row.id, {"decision": "approve", "comment": "hm"})
    with pytest.raises(ForbiddenError, match="only user:sam@acme"):
        await scene.holds.undo(FINN, row.id)
    back = await scene.holds.undo(SAM, row.id)
    assert (back.status, back.placed, back.placed_by) == (HoldStatus.pending, None, None)
    assert await scene.holds.draft(SAM, row.id) == Submission(decision="approve", comment="hm")
    with pytest.raises(ConflictError, match="has no decision to undo"):
        await scene.holds.undo(SAM, row.id)
    scene.clock.advance(hours=1)
    await HoldSweeper(scene.holds.store, scene.clock).sweep()
    assert (await scene.row(row.id)).status is HoldStatus.pending


@pytest.mark.covers("HOLD-LIFE-10")
async def test_the_sweep_makes_a_placed_decision_and_urgent_ones_have_no_window(scene: Scene) -> None:
    row = await scene.asks(timeout="5s", on_timeout="cancel")
    await scene.holds.place(DANA, row.id, "approve", seconds=6)
    scene.clock.advance(seconds=6)
    swept = await HoldSweeper(scene.holds.store, scene.clock).sweep()
    assert (swept.placed, (await scene.row(row.id)).resolved_by) == (1, DANA.id)
    urgent = await scene.asks(undo=0)
    assert (await scene.holds.place(DANA, urgent.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-LIFE-11")
async def test_a_deadline_stands_still_while_the_requester_is_asked_back(scene: Scene) -> None:
    row = await scene.asks(
        timeout="1h", on_timeout="cancel", reminder="15m", run={"started_by": "user:ian@acme"}
    )
    assert row.expires_at is not None
    scene.clock.advance(minutes=10)
    asked = await scene.holds.ask_back(DANA, row.id, "Which invoice?")
    assert (asked.status, asked.paused_at, asked.remind_at) == (HoldStatus.pending, scene.clock.now(), None)
    assert "hold.asked_back" in await scene.topics(row)
    scene.clock.advance(hours=20)
    await HoldSweeper(scene.holds.store, scene.clock).sweep()
    with pytest.raises(ForbiddenError):
        await scene.holds.reply(SAM, row.id, "42")
    back = await scene.holds.reply(IAN, row.id, "Invoice 42.")
    assert (back.status, back.paused_at) == (HoldStatus.pending, None)
    assert back.expires_at == row.expires_at + 20 * 3600 * MICROS
    assert back.remind_at == scene.clock.now() + 15 * 60 * MICROS
    texts = [msgspec.json.decode(note.body)["text"] for note in await scene.holds.comments(DANA, row.id)]
    assert texts == ["Which invoice?", "Invoice 42."]
    assert said((await scene.holds.resolve(DANA, row.id, "approve")).row)["late"] is False


@pytest.mark.covers("HOLD-LIFE-11")
async def test_agent_and_colleague_are_asked_back_and_the_last_answer_counts(scene: Scene) -> None:
    row = await scene.asks(timeout="1h")
    await scene.holds.ask_back(DANA, row.id, "Why so much?", to="agent")
    scene.clock.advance(minutes=5)
    await scene.holds.ask_back(DANA, row.id, "Do you know them?", to="user:sam@acme")
    assert (await scene.holds.get(SAM, row.id)).id == row.id
    half = await scene.holds.reply(SAM, row.id, "Yes.")
    assert half.paused_at == row.created_at
    with pytest.raises(ForbiddenError):
        await scene.holds.reply(SAM, row.id, "And more.")
    agent = Actor(id=f"agent:{row.run}", channel="agent")
    with pytest.raises(ForbiddenError):
        await scene.holds.resolve(agent, row.id, "approve")
    whole = await scene.holds.reply(agent, row.id, "Two orders at once.")
    assert (whole.paused_at, whole.expires_at) == (None, (row.expires_at or 0) + 300 * MICROS)
    assert [data(each)["to"] for each in await scene.audit(row, "asked_back")] == [agent.id, "user:sam@acme"]
    with pytest.raises(NotFoundError):
        await scene.holds.reply(ADMIN, row.id, "late")


@pytest.mark.covers("HOLD-LIFE-11", "HOLD-BAD-01")
async def test_nobody_is_asked_back_who_is_not_there(scene: Scene) -> None:
    row = await scene.asks()
    for to in ("requester", "group:finance", "user:dana@acme", ""):
        with pytest.raises(InputError):
            await scene.holds.ask_back(DANA, row.id, "Why?", to=to)
    with pytest.raises(InputError, match="empty"):
        await scene.holds.ask_back(DANA, row.id, "  ", to="agent")
    assert (await scene.row(row.id)).version == row.version
