"""Two at once: one wins, the others learn who, and the row is consistent. More of it is in the proofs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from holdfast.errors import ConflictError, ForbiddenError, HoldClaimedError, HoldDecidedError
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.holds.actions.scene import ADMIN, FINN, SAM, Scene, said

pytestmark = pytest.mark.anyio

ROUNDS = 10
CROWD = [Actor(id=f"user:p{n}@acme", groups=frozenset({"finance"})) for n in range(6)]


async def at_once(*acts: Coroutine[Any, Any, Any]) -> tuple[list[Any], list[BaseException]]:
    done = await asyncio.gather(*acts, return_exceptions=True)
    refused = [each for each in done if isinstance(each, BaseException)]
    return [each for each in done if not isinstance(each, BaseException)], refused


async def asked(scene: Scene) -> HoldRow:
    return await scene.asks(assignee="group:finance")


@pytest.mark.covers("RC-1", "HOLD-LIFE-13")
async def test_one_of_many_decisions_wins_and_the_others_name_it(scene: Scene) -> None:
    for _ in range(ROUNDS):
        row = await asked(scene)
        won, lost = await at_once(*(scene.holds.resolve(each, row.id, "approve") for each in CROWD))
        after = await scene.row(row.id)
        assert [each.row for each in won] == [after]
        assert all(isinstance(each, HoldDecidedError) for each in lost)
        assert {each.facts["resolved_by"] for each in lost if isinstance(each, HoldDecidedError)} == {
            after.resolved_by
        }
        assert len(await scene.audit(row, "resolved")) == 1
        assert len(await scene.audit(row, "refused")) == len(CROWD) - 1
        assert (await scene.goes_on(row)).completed


@pytest.mark.covers("RC-4")
async def test_a_decision_and_a_cancel_do_not_both_count(scene: Scene) -> None:
    for _ in range(ROUNDS):
        row = await asked(scene)
        await at_once(scene.holds.resolve(SAM, row.id, "approve"), scene.holds.cancel(ADMIN, row.id))
        after = await scene.row(row.id)
        effective = [
            each.action for each in await scene.audit(row) if each.action in ("resolved", "cancelled")
        ]
        assert effective == [str(after.status)]
        result = await scene.goes_on(row)
        assert result.completed is (after.status is HoldStatus.resolved)


@pytest.mark.covers("RC-5")
async def test_reassignments_at_once_leave_one_consistent_row_and_a_notice_for_each(scene: Scene) -> None:
    row = await asked(scene)
    targets = [f"user:p{n}@acme" for n in range(6)]
    done, refused = await at_once(*(scene.holds.reassign(ADMIN, row.id, to) for to in targets))
    assert not refused
    after = await scene.row(row.id)
    assert (after.epoch, after.version) == (row.epoch + len(done), row.version + len(done))
    assert after.assignee == f"user:{after.assignee_value}"
    assert (await scene.topics(row)).count("hold.assigned") == len(done)
    by_version = await at_once(
        *(scene.holds.reassign(ADMIN, row.id, to, if_match=after.version) for to in targets)
    )
    assert len(by_version[0]) == 1
    assert {getattr(each, "status", None) for each in by_version[1]} == {412}


@pytest.mark.covers("RS-6")
async def test_the_same_key_at_once_decides_once_and_answers_all_alike(scene: Scene) -> None:
    row = await asked(scene)
    done, refused = await at_once(
        *(scene.holds.resolve(SAM, row.id, "approve", idempotency_key="k") for _ in range(6))
    )
    assert not refused
    assert sum(not each.replay for each in done) == 1
    assert {each.row.version for each in done} == {row.version + 1}


@pytest.mark.covers("AS-12", "HOLD-LIFE-10", "HOLD-LIFE-02")
async def test_one_of_many_claims_and_one_of_many_placed_decisions_stands(scene: Scene) -> None:
    row = await asked(scene)
    won, lost = await at_once(*(scene.holds.claim(each, row.id) for each in CROWD))
    assert len(won) == 1
    assert all(isinstance(each, HoldClaimedError) for each in lost)
    other = await asked(scene)
    placed, late = await at_once(*(scene.holds.place(each, other.id, "approve") for each in CROWD))
    assert len(placed) == 1
    assert all(isinstance(each, HoldClaimedError) for each in late)
    scene.clock.advance(seconds=8)
    await asyncio.gather(*(scene.holds.get(each, other.id) for each in CROWD))
    assert len(await scene.audit(other, "resolved")) == 1
    assert (await scene.row(other.id)).resolved_by == placed[0].row.placed_by


@pytest.mark.covers("RC-13", "HOLD-LIFE-01")
async def test_nothing_changes_a_decided_row(scene: Scene) -> None:
    row = await asked(scene)
    done = (await scene.holds.resolve(SAM, row.id, {"decision": "approve", "comment": "ok"})).row
    acts: list[Coroutine[Any, Any, Any]] = [
        scene.holds.resolve(FINN, row.id, "reject"),
        scene.holds.place(FINN, row.id, "reject"),
        scene.holds.undo(SAM, row.id),
        scene.holds.cancel(ADMIN, row.id),
        scene.holds.reassign(ADMIN, row.id, "user:x"),
        scene.holds.extend(ADMIN, row.id, scene.clock.now() + 10**12),
        scene.holds.claim(FINN, row.id),
        scene.holds.release(SAM, row.id),
        scene.holds.ask_back(FINN, row.id, "Why?", to="agent"),
        scene.holds.reply(ADMIN, row.id, "Because."),
    ]
    won, lost = await at_once(*acts)
    assert not won
    assert all(isinstance(each, (ConflictError, ForbiddenError)) for each in lost), lost
    assert await scene.row(row.id) == done
    assert said(done)["comment"] == "ok"
