"""Cancelling, reassigning, extending, claiming: whose a hold is, and until when."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from holdfast.errors import (
    ConflictError,
    ForbiddenError,
    HoldChangedError,
    HoldClaimedError,
    HoldDecidedError,
    HoldReassignedError,
    InputError,
    NotAssignedError,
)
from holdfast.types.clock import MICROS
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, Actor
from tests.holds.actions.scene import ADMIN, BOSS, DANA, FINN, SAM, Scene, data, said

pytestmark = pytest.mark.anyio

OTHER_ADMIN = Actor(id="user:otto@acme", rights=frozenset({MANAGE}))


@pytest.mark.covers("CA-1", "CA-2", "HOLD-LIFE-01")
async def test_a_cancelled_hold_has_no_decision_and_its_run_ends(scene: Scene) -> None:
    row = await scene.asks()
    with pytest.raises(ForbiddenError):
        await scene.holds.cancel(DANA, row.id)
    with pytest.raises(InputError, match="must be text"):
        await scene.holds.cancel(ADMIN, row.id, reason=5)  # type: ignore[arg-type]
    done = await scene.holds.cancel(ADMIN, row.id, reason="order withdrawn")
    assert (done.status, done.closed_by, done.closed_reason) == (
        HoldStatus.cancelled,
        ADMIN.id,
        "order withdrawn",
    )
    assert (done.resolution, done.resolved_by, done.resolved_at) == (None, None, None)
    assert await scene.holds.cancel(ADMIN, row.id) == done
    assert len(await scene.audit(row, "cancelled")) == 1
    with pytest.raises(HoldDecidedError, match="cancelled by user:ada@acme"):
        await scene.holds.resolve(DANA, row.id, "approve")
    assert str((await scene.goes_on(row)).status) == "cancelled"


@pytest.mark.covers("CA-2")
async def test_cancelling_what_is_decided_is_a_conflict(scene: Scene) -> None:
    row = await scene.asks()
    await scene.holds.resolve(DANA, row.id, "approve")
    with pytest.raises(HoldDecidedError, match="'approve' by user:dana@acme"):
        await scene.holds.cancel(ADMIN, row.id)


@pytest.mark.covers("RA-1", "RA-2", "RA-4", "RA-5", "HOLD-LIFE-01")
async def test_reassigning_reads_the_assignee_anew_and_tells_them(scene: Scene) -> None:
    row = await scene.asks(timeout="2h", reminder="30m")
    scene.clock.advance(minutes=10)
    moved = await scene.holds.reassign(DANA, row.id, " Group: finance", reason="holiday")
    assert (moved.assignee, moved.assignee_type, moved.assignee_value) == (
        " Group: finance",
        "group",
        "finance",
    )
    assert (moved.epoch, moved.reminder_count, moved.notification_sent) == (row.epoch + 1, 0, False)
    assert moved.expires_at == row.expires_at
    assert moved.remind_at == scene.clock.now() + 30 * 60 * MICROS
    (entry,) = await scene.audit(row, "reassigned")
    assert (data(entry)["from"], data(entry)["to"]) == ("user:dana@acme", "group:finance")
    again = await scene.holds.reassign(ADMIN, row.id, "group:finance", expires_at=timedelta(hours=5))
    assert again.expires_at == scene.clock.now() + 5 * 3600 * MICROS
    assert (await scene.topics(row)).count("hold.assigned") == 2
    with pytest.raises(ForbiddenError):
        await scene.holds.reassign(BOSS, row.id, "user:boss@acme")
    assert said((await scene.holds.resolve(SAM, row.id, "approve")).row)["decision"] == "approve"
    with pytest.raises(HoldDecidedError):
        await scene.holds.reassign(ADMIN, row.id, "user:x")


@pytest.mark.covers("RA-3", "RA-6", "HOLD-BAD-01")
async def test_nobody_is_for_admins_and_the_excluded_are_refused(scene: Scene) -> None:
    row = await scene.asks(approval={"exclude": ["initiator"]}, run={"started_by": "user:ian@acme"})
    with pytest.raises(InputError, match="Name a person") as blank:
        await scene.holds.reassign(DANA, row.id, "  ")
    with pytest.raises(InputError, match="ian@acme") as excluded:
        await scene.holds.reassign(DANA, row.id, "user:Ian@acme")
    assert (blank.value.status, excluded.value.status) == (422, 422)
    assert (await scene.row(row.id)).version == row.version
    assert (await scene.holds.reassign(ADMIN, row.id, None)).assignee_type == "unrouted"


@pytest.mark.covers("EX-11", "HOLD-LIFE-03")
async def test_a_deadline_is_extended_by_a_caller_who_may_and_only_to_later(scene: Scene) -> None:
    row = await scene.asks(timeout="1h")
    assert row.expires_at is not None
    with pytest.raises(ForbiddenError):
        await scene.holds.extend(DANA, row.id, timedelta(hours=3))
    for wrong in (row.expires_at, scene.clock.now() - 1):
        with pytest.raises(InputError, match="later"):
            await scene.holds.extend(ADMIN, row.id, wrong)
    with pytest.raises(HoldChangedError):
        await scene.holds.extend(ADMIN, row.id, timedelta(hours=3), if_match=row.version + 1)
    longer = await scene.holds.extend(ADMIN, row.id, timedelta(hours=3), if_match=row.version)
    assert longer.expires_at == scene.clock.now() + 3 * 3600 * MICROS
    scene.clock.advance(hours=2)
    assert said((await scene.holds.resolve(DANA, row.id, "approve")).row)["late"] is False


@pytest.mark.covers("AS-12", "HOLD-LIFE-02")
async def test_a_claim_keeps_others_out_until_it_lapses_or_is_released(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    claimed = await scene.holds.claim(SAM, row.id, seconds=600)
    assert (claimed.claimed_by, claimed.claim_until) == (SAM.id, scene.clock.now() + 600 * MICROS)
    assert (claimed.assignee, claimed.epoch) == (row.assignee, row.epoch)
    for act in (scene.holds.claim(FINN, row.id), scene.holds.resolve(FINN, row.id, "approve")):
        with pytest.raises(HoldClaimedError, match=r"sam@acme") as caught:
            await act
        assert caught.value.status == 409
    with pytest.raises(ForbiddenError):
        await scene.holds.release(FINN, row.id)
    assert (await scene.holds.release(SAM, row.id)).claimed_by is None
    await scene.holds.claim(SAM, row.id, seconds=600)
    scene.clock.advance(seconds=600)
    assert (await scene.holds.claim(FINN, row.id)).claimed_by == FINN.id
    assert (await scene.holds.release(ADMIN, row.id)).claimed_by is None
    for wrong in (0, -1, float("nan"), float("inf"), 10**9):
        with pytest.raises(InputError, match="lasts at most"):
            await scene.holds.claim(SAM, row.id, seconds=wrong)


@pytest.mark.covers("AS-12")
async def test_a_claimed_hold_is_decided_by_others_only_with_override(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    await scene.holds.claim(SAM, row.id)
    over = await scene.holds.resolve(BOSS, row.id, "reject", reason="urgent")
    assert (over.row.resolved_by, said(over.row)["authority"]) == (BOSS.id, "override")
    assert over.row.claimed_by is None


@pytest.mark.covers("AS-10")
async def test_an_unrouted_hold_goes_to_the_admin_who_claims_it_first(scene: Scene) -> None:
    row = await scene.asks(assignee=None)
    with pytest.raises(NotAssignedError):
        await scene.holds.claim(SAM, row.id)
    mine = await scene.holds.claim(ADMIN, row.id)
    assert (mine.assignee, mine.assignee_type, mine.assignee_value) == (ADMIN.id, "user", "ada@acme")
    with pytest.raises(ConflictError) as caught:
        await scene.holds.claim(OTHER_ADMIN, row.id)
    assert caught.value.status == 409
    assert isinstance(caught.value, (HoldClaimedError, HoldReassignedError))
    assert (await scene.row(row.id)).assignee_value == "ada@acme"
    assert msgspec.json.decode((await scene.audit(row, "reassigned"))[0].data)["from"] == "unrouted"
