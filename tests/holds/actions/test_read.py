"""Lists, counts, history, figures, and a hold as the interface shows it."""

from __future__ import annotations

import re

import pytest

from holdfast.errors import ForbiddenError, HoldDecidedError, HoldNotFoundError, InputError, NotAssignedError
from holdfast.holds.queries.hold_view import checkpoint_view
from holdfast.holds.queries.metrics import Spread
from holdfast.types.hold import HoldFilter
from holdfast.types.status import HoldStatus
from holdfast.types.terms import RESOLVE, Actor
from tests.holds.actions.scene import ADMIN, CLERK, DANA, FINN, FOREIGN, SAM, Scene

pytestmark = pytest.mark.anyio

SEEDS = """id core_id tenant_id execution_id flow_name block_index instance_key checkpoint_type prompt options
assignee_raw assignee_type assignee_resolved context status priority expires_at expiry_action
escalation_target notification_sent reminder_count reminder_interval_m resolution resolved_by resolved_at"""
ADDED = """created_at updated_at version assignment_epoch last_notified_at claimed_by claim_until resumed_at
request_hash escalation_count original_timeout_s hitl_message_id node_id tags cancelled_by cancelled_at
cancel_reason"""


@pytest.mark.covers("LI-3", "AS-10", "HOLD-SEC-11")
async def test_everybody_sees_their_own_and_counts_agree(scene: Scene) -> None:
    dana = await scene.asks()
    group = await scene.asks(assignee="group:finance", priority="high")
    nobody = await scene.asks(assignee=None)
    done = await scene.asks(assignee="group:finance")
    await scene.holds.resolve(SAM, done.id, "approve")
    foreign = await scene.asks(run={"tenant": "elsewhere"})

    async def seen(actor: Actor, view: str) -> set[str]:
        page = await scene.holds.list(actor, view=view)
        assert await scene.holds.count(actor, view=view) == len(page.rows)
        return {each.id for each in page.rows}

    assert await seen(DANA, "mine") == {dana.id}
    assert (await seen(SAM, "mine"), await seen(SAM, "groups")) == (set(), {group.id})
    assert (await seen(SAM, "done"), await seen(FINN, "done")) == ({done.id}, set())
    assert (await seen(DANA, "all"), await seen(SAM, "all")) == ({dana.id}, {group.id, done.id})
    assert await seen(ADMIN, "all") == {dana.id, group.id, nobody.id, done.id}
    assert await seen(CLERK, "all") == {dana.id, group.id, done.id}
    assert await seen(ADMIN, "unrouted") == {nobody.id}
    assert await seen(FOREIGN, "all") == {foreign.id}
    for actor in (SAM, CLERK):
        with pytest.raises(ForbiddenError):
            await scene.holds.list(actor, view="unrouted")
    with pytest.raises(InputError, match="no view"):
        await scene.holds.list(DANA, view="everything")


@pytest.mark.covers("LI-3", "RS-8")
async def test_what_is_not_listed_cannot_be_opened_either(scene: Scene) -> None:
    row = await scene.asks(assignee=None)
    for actor in (DANA, SAM, Actor(id="user:r", rights=frozenset({RESOLVE}))):
        with pytest.raises(NotAssignedError):
            await scene.holds.get(actor, row.id)
    with pytest.raises(HoldNotFoundError):
        await scene.holds.get(FOREIGN, row.id)
    assert (await scene.holds.get(ADMIN, row.id)).id == row.id


@pytest.mark.covers("LI-1", "LI-2")
async def test_pages_follow_each_other_while_rows_come_and_filters_narrow_them(scene: Scene) -> None:
    kinds = [{"priority": "low"}, {"priority": "critical"}, {"tags": ["eu"]}, {"type": "choice"}, {}]
    rows = [await scene.asks(**each) for each in kinds]
    first = await scene.holds.list(DANA, limit=2)
    assert [each.priority for each in first.rows] == ["critical", "normal"]
    await scene.asks(priority="critical")
    seen = list(first.rows)
    cursor = first.cursor
    while cursor is not None:
        page = await scene.holds.list(DANA, limit=2, cursor=cursor)
        seen += page.rows
        cursor = page.cursor
    assert sorted(each.id for each in seen) == sorted(each.id for each in rows)

    async def found(**where: object) -> list[str]:
        page = await scene.holds.list(DANA, where=HoldFilter(**where))  # type: ignore[arg-type]
        return [each.id for each in page.rows]

    assert await found(priority=("low",)) == [rows[0].id]
    assert await found(tags=("eu",), status=(HoldStatus.pending,)) == [rows[2].id]
    assert await found(type=("choice",)) == [rows[3].id]
    assert await found(tags=("eu",), type=("choice",)) == []
    assert await found(assignees=(("user", "sam@acme"),)) == []
    await scene.holds.save_draft(ADMIN, rows[0].id, {"comment": "mine alone"})
    assert len(await found(noted=("draft", "ada@acme"))) == 6
    for wrong in ("%%%", "bm9wZQ"):
        with pytest.raises(InputError, match="cursor"):
            await scene.holds.list(DANA, cursor=wrong)
    with pytest.raises(InputError, match="1 to 500"):
        await scene.holds.list(DANA, limit=0)


@pytest.mark.covers("HI-1", "HI-2", "HI-3", "HI-4")
async def test_history_tells_in_order_what_the_audit_has_without_what_was_filled_in(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    await scene.holds.seen(SAM, row.id)
    await scene.holds.seen(SAM, row.id)
    await scene.holds.claim(SAM, row.id)
    await scene.holds.release(SAM, row.id)
    await scene.holds.comment(SAM, row.id, "secret thought")
    await scene.holds.reassign(SAM, row.id, "user:dana@acme")
    with pytest.raises(NotAssignedError):
        await scene.holds.resolve(CLERK_WITHOUT, row.id, "approve")
    body = {"decision": "approve", "response_data": {"iban": "NL00SECRET"}, "comment": "secret thought"}
    await scene.holds.resolve(DANA, row.id, body)
    result = await scene.holds.history(DANA, row.id)
    assert [each.action for each in result] == [
        "created",
        "viewed",
        "claimed",
        "released",
        "commented",
        "reassigned",
        "refused",
        "resolved",
    ]
    assert [each.seq for each in result] == sorted(each.seq for each in result)
    assert len({each.id for each in result}) == len(result)
    assert result == await scene.holds.history(ADMIN, row.id)
    audit = await scene.audit(row)
    assert [(each.seq, each.actor, each.action) for each in result] == [
        (each.seq, each.actor, each.action) for each in audit
    ]
    assert not re.search("SECRET|secret|blob", f"{result}{[each.data for each in audit]}")
    with pytest.raises(NotAssignedError):
        await scene.holds.history(CLERK_WITHOUT, row.id)


CLERK_WITHOUT = Actor(id="user:eve@acme")


@pytest.mark.covers("MX-1")
async def test_figures_are_taken_from_rows_and_audit(scene: Scene) -> None:
    quick = await scene.asks(assignee="group:finance", timeout="1h")
    slow = await scene.asks(assignee="group:finance", timeout="1h")
    open_one = await scene.asks(priority="high")
    scene.clock.advance(seconds=10)
    await scene.holds.seen(SAM, quick.id)
    await scene.holds.claim(SAM, quick.id)
    scene.clock.advance(seconds=10)
    await scene.holds.resolve(SAM, quick.id, "approve")
    with pytest.raises(HoldDecidedError):
        await scene.holds.resolve(FINN, quick.id, "reject")
    scene.clock.advance(hours=2)
    await scene.holds.resolve(FINN, slow.id, "approve")
    await scene.goes_on(quick)
    found = await scene.holds.metrics(ADMIN)
    assert (found.holds, found.pending_by_queue, found.pending_by_priority, found.pending_by_age) == (
        3,
        {"user:dana@acme": 1},
        {"high": 1},
        {"under 1d": 1},
    )
    assert (found.time_to_view, found.time_to_claim) == (Spread(1, 10.0, 10.0), Spread(1, 10.0, 10.0))
    assert found.time_to_decision == Spread(2, 7220.0, 7220.0)
    assert found.resume_lag == Spread(1, 7200.0, 7200.0)
    assert (found.late_rate, found.breach_rate, found.auto_rate, found.expiry_rate) == (0.5, 0.5, 0.0, 0.0)
    assert found.conflict_rate == pytest.approx(1 / 3)
    assert (found.reminder_rate, found.escalation_rate, found.notifier_failures) == (0.0, 0.0, 0)
    closed = await scene.holds.metrics(ADMIN, lasting=lambda _start, _end: 60_000_000)
    assert closed.time_to_decision == Spread(2, 60.0, 60.0)
    assert (await scene.holds.metrics(DANA)).holds == 1
    assert open_one.id


@pytest.mark.covers("CP-2", "CP-7", "CP-16")
async def test_the_interface_has_every_name_of_the_seeds_and_ours(scene: Scene) -> None:
    row = await scene.asks(timeout="1h", reminder="30m", tags=["eu"])
    shown = checkpoint_view(row)
    assert {*SEEDS.split(), *ADDED.split()} <= set(shown)
    assert not [name for name in shown if "blob" in name or "s3" in name]
    assert (shown["assignee_resolved"], shown["original_timeout_s"]) == (
        {"type": "user", "value": "dana@acme"},
        3600,
    )
    assert shown["options"][0] == {"id": "approve", "label": "approve", "variant": "secondary"}
    done = (await scene.holds.resolve(DANA, row.id, "approve")).row
    assert checkpoint_view(done, replay=True)["idempotent_replay"] is True
    assert checkpoint_view(done)["resolution"]["decision"] == "approve"
    cancelled = await scene.holds.cancel(ADMIN, (await scene.asks()).id, reason="gone")
    assert (checkpoint_view(cancelled)["cancelled_by"], checkpoint_view(cancelled)["cancel_reason"]) == (
        ADMIN.id,
        "gone",
    )
