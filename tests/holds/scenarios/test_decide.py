"""What a review found in deciding: slips that passed for something else, work that was lost, states that knew
too much."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.errors import (
    AnswerInvalidError,
    ConflictError,
    ForbiddenError,
    HoldDecidedError,
    InputError,
    NotFoundError,
)
from holdfast.holds.queries.hold_view import checkpoint_view
from holdfast.holds.queries.summary import why_of
from holdfast.testing.clock import FakeClock
from holdfast.types.outbox import ASKED_BACK, CLOSED
from holdfast.types.terms import Actor
from tests.holds.actions.scene import ADMIN, DANA, FINN, SAM, Scene, said

pytestmark = pytest.mark.anyio


@pytest.fixture
async def scene(anyio_backend: str) -> AsyncIterator[Scene]:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        yield Scene(hf, clock, await hf.holds())


# ---------------------------------------------------------------------- bodies


@pytest.mark.covers("RS-1", "HOLD-BAD-01")
@pytest.mark.parametrize(
    "body",
    [
        5,
        ["approve"],
        True,
        {"resolution": {"decision": "approve", "coment": "a slip"}},
        {"resolution": {"decision": "approve", "resolution": "reject"}},
    ],
)
async def test_a_body_is_refused_when_it_is_no_object_or_has_a_slip_inside(scene: Scene, body: Any) -> None:
    row = await scene.asks()
    for act in (scene.holds.resolve, scene.holds.place):
        with pytest.raises(AnswerInvalidError):
            await act(DANA, row.id, body)
    assert await scene.row(row.id) == row


@pytest.mark.covers("HOLD-SEC-15")
@pytest.mark.parametrize("body", [{"decision": "x" * 100_000}, {f"k{i}": 1 for i in range(10_000)}])
async def test_a_refusal_says_little_of_what_was_too_much(scene: Scene, body: dict[str, Any]) -> None:
    row = await scene.asks()
    with pytest.raises(AnswerInvalidError) as caught:
        await scene.holds.resolve(DANA, row.id, body)
    assert len(str(caught.value)) < 500


@pytest.mark.covers("RS-1")
async def test_a_decision_that_is_given_twice_is_refused_also_beside_a_text(scene: Scene) -> None:
    row = await scene.asks()
    with pytest.raises(AnswerInvalidError, match="not as both"):
        await scene.holds.resolve(DANA, row.id, "approve", decision="reject")


@pytest.mark.covers("RS-4")
@pytest.mark.parametrize("data", [[1], "x", 5, False, {"a": float("nan")}, {"a": [float("inf")]}])
async def test_data_that_nobody_asked_for_is_an_object_of_json(scene: Scene, data: Any) -> None:
    row = await scene.asks()
    with pytest.raises(AnswerInvalidError):
        await scene.holds.resolve(DANA, row.id, {"decision": "approve", "response_data": data})
    assert await scene.row(row.id) == row
    done = await scene.holds.resolve(DANA, row.id, "approve", response_data={"amount_approved": 500})
    assert said(done.row)["response_data"] == {"amount_approved": 500}


@pytest.mark.covers("RS-3")
@pytest.mark.parametrize("kind", ["freeform", "approval"])
async def test_a_free_decision_is_a_few_words(scene: Scene, kind: str) -> None:
    row = await scene.asks(options=None, type=kind)
    with pytest.raises(AnswerInvalidError, match="200 characters"):
        await scene.holds.resolve(DANA, row.id, "x" * 201)
    await scene.holds.resolve(DANA, row.id, "x" * 200, comment="and the rest " * 100)


# ---------------------------------------------------------------------- again


@pytest.mark.covers("RS-6")
@pytest.mark.parametrize(
    "other",
    [
        {"comment": 5},
        {"comment": ["ok"]},
        {"response_data": float("nan")},
        {"response_data": [1]},
        {"request_hash": "sha256:another"},
    ],
)
async def test_only_the_very_same_is_the_same_again(scene: Scene, other: dict[str, Any]) -> None:
    row = await scene.asks()
    await scene.holds.resolve(DANA, row.id, {"decision": "approve"})
    with pytest.raises(HoldDecidedError):
        await scene.holds.resolve(DANA, row.id, {"decision": "approve", **other})
    again = await scene.holds.resolve(DANA, row.id, {"decision": "approve", "request_hash": row.request_hash})
    assert again.replay


# ---------------------------------------------------------------------- drafts


@pytest.mark.covers("HOLD-LIFE-05")
async def test_a_slip_of_the_hand_leaves_what_was_filled_in_before(scene: Scene) -> None:
    row = await scene.asks()
    half = {"decision": "approve", "response_data": {"amount": 3}, "comment": "an hour of work"}
    await scene.holds.save_draft(DANA, row.id, half)
    with pytest.raises(AnswerInvalidError):
        await scene.holds.resolve(DANA, row.id, "aprove")
    kept = await scene.holds.draft(DANA, row.id)
    assert kept is not None
    assert (kept.decision, kept.response_data, kept.comment) == ("aprove", {"amount": 3}, "an hour of work")


# ---------------------------------------------------------------------- the undo window, claims, many at once


async def test_a_window_of_no_time_decides_at_once_and_of_less_than_that_not_at_all(scene: Scene) -> None:
    row = await scene.asks()
    for seconds in (-1, float("nan")):
        with pytest.raises(InputError):
            await scene.holds.place(DANA, row.id, "approve", seconds=seconds)
    done = await scene.holds.place(DANA, row.id, "approve", seconds=0)
    assert str(done.row.status) == "resolved"


async def test_what_stands_in_a_moment_is_neither_asked_about_nor_handed_on(scene: Scene) -> None:
    row = await scene.asks()
    await scene.holds.place(DANA, row.id, "approve")
    with pytest.raises(ConflictError, match="Undo it first"):
        await scene.holds.ask_back(DANA, row.id, "Really?", to="user:kim@acme")
    with pytest.raises(ConflictError, match="Undo it first"):
        await scene.holds.reassign(DANA, row.id, "user:sam@acme")
    await scene.holds.undo(DANA, row.id)
    assert (await scene.holds.reassign(DANA, row.id, "user:sam@acme")).assignee == "user:sam@acme"


@pytest.mark.covers("AS-10", "MX-1")
async def test_a_caller_who_takes_an_unrouted_hold_has_claimed_it(scene: Scene) -> None:
    row = await scene.asks(assignee=None)
    scene.clock.advance(minutes=5)
    after = await scene.holds.claim(ADMIN, row.id)
    assert [each.action for each in await scene.audit(row)] == ["created", "reassigned", "claimed"]
    assert (await scene.holds.metrics(ADMIN)).time_to_claim.p50 == 300
    assert why_of(after) == "reassigned to user:ada@acme"


async def test_many_are_a_list(scene: Scene) -> None:
    row = await scene.asks()
    with pytest.raises(InputError, match="list of ids"):
        await scene.holds.bulk(DANA, row.id, "approve", preview=False)


# ---------------------------------------------------------------------- what a run learns

PRIVATE = {"members", "auth_method", "authority", "channel", "on_behalf_of"}


@pytest.mark.covers("RM-2")
async def test_a_run_is_reported_what_was_decided_and_not_what_the_decider_belongs_to(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    done = await scene.holds.resolve(SAM, row.id, "approve", comment="fine")
    assert set(said(done.row)) > PRIVATE
    result = (await scene.goes_on(row)).state["decision_result"]
    assert not PRIVATE & set(result)
    assert (result["decision"], result["comment"], result["resolved_by"]) == ("approve", "fine", SAM.id)
    assert {"response_data", "resolved_at", "auto_expired", "late"} <= set(result)


@pytest.mark.covers("RM-2", "RS-10")
async def test_a_run_is_reported_the_votes_without_the_voters_groups(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance", approval={"mode": "quorum", "need": 2})
    for person in (SAM, FINN):
        await scene.holds.resolve(person, row.id, "approve")
    result = (await scene.goes_on(row)).state["decision_result"]
    assert [vote["person"] for vote in result["votes"]] == [SAM.id, FINN.id]
    assert b"finance" not in msgspec.json.encode(result)


@pytest.mark.covers("CA-3")
async def test_a_decision_is_refused_once_the_run_was_asked_to_stop(scene: Scene) -> None:
    """Though no worker has it yet: it would be taken, and lost."""
    row = await scene.asks()
    service = await scene.hf.service()
    await service.cancel(row.run, by="user:kim@acme")
    with pytest.raises(HoldDecidedError, match="cancelled by user:kim@acme"):
        await scene.holds.resolve(DANA, row.id, "approve")
    assert (await scene.goes_on(row)).status == "cancelled"
    assert [each.action for each in await scene.audit(row)] == ["created", "cancelled", "refused"]
    assert (await scene.topics(row)).count(CLOSED) == 1
    lines = [event.type for event in await service.events(row.run)]
    assert lines.count("hold.cancelled") == 1


@pytest.mark.covers("CP-16")
async def test_a_caller_who_decides_is_not_reported_what_the_runs_starter_belongs_to(scene: Scene) -> None:
    row = await scene.asks(strict_assignee=True)
    terms = msgspec.structs.replace(row.terms, starter_in=("group:works-council",))
    shown = checkpoint_view(msgspec.structs.replace(row, terms=terms))
    assert shown["terms"] == {"strict_assignee": True}


# ---------------------------------------------------------------------- a question that is taken back


async def test_a_question_back_is_taken_back_and_the_deadline_goes_on(scene: Scene) -> None:
    row = await scene.asks(timeout="2h")
    await scene.holds.ask_back(DANA, row.id, "Is this usual?", to="user:kim@acme")
    scene.clock.advance(hours=1)
    with pytest.raises(ForbiddenError):
        await scene.holds.withdraw_question(SAM, row.id)
    after = await scene.holds.withdraw_question(DANA, row.id)
    assert after.paused_at is None
    assert after.expires_at == (row.expires_at or 0) + 3_600_000_000
    assert await scene.holds.comments(DANA, row.id) == []
    assert [each.action for each in await scene.audit(row)][-1] == "question_dropped"
    with pytest.raises(NotFoundError):
        await scene.holds.withdraw_question(DANA, row.id)


async def test_one_of_several_questions_is_taken_back_by_name(scene: Scene) -> None:
    row = await scene.asks(timeout="2h")
    for whom in ("kim", "lee"):
        await scene.holds.ask_back(DANA, row.id, "Is this usual?", to=f"user:{whom}@acme")
    first, second = await scene.holds.comments(DANA, row.id)
    assert (await scene.holds.withdraw_question(ADMIN, row.id, question=first.slot)).paused_at is not None
    assert (await scene.holds.withdraw_question(ADMIN, row.id, question=second.slot)).paused_at is None
    assert (await scene.topics(row)).count(ASKED_BACK) == 2


async def test_a_caller_who_was_asked_back_finds_it_in_a_list_until_they_replied(scene: Scene) -> None:
    row = await scene.asks()
    kim = Actor(id="user:Kim@acme")
    for question in ("Is this usual?", "Since when?"):
        await scene.holds.ask_back(DANA, row.id, question, to="user:kim@acme")
    assert [each.id for each in (await scene.holds.list(kim, view="asked")).rows] == [row.id]
    assert await scene.holds.count(kim, view="asked") == 1
    assert await scene.holds.count(SAM, view="asked") == 0
    first, second = await scene.holds.comments(DANA, row.id)
    await scene.holds.reply(kim, row.id, "It is.", question=first.slot)
    assert await scene.holds.count(kim, view="asked") == 1
    await scene.holds.withdraw_question(DANA, row.id, question=second.slot)
    assert await scene.holds.count(kim, view="asked") == 0
