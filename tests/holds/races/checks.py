"""What holds of every hold at every moment, and of every change of one."""

from __future__ import annotations

import msgspec

from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

ENDS = ("resolved", "cancelled", "expired")
MOVES = ("reassigned", "escalated")


def check_row(row: HoldRow) -> None:
    open_still = row.status is HoldStatus.pending
    decided = (row.resolution, row.resolved_by, row.resolved_at)
    assert all(each is not None for each in decided) is (row.status is HoldStatus.resolved)
    assert any(each is not None for each in decided) is (row.status is HoldStatus.resolved)
    assert (row.closed_at is not None) is (row.status in (HoldStatus.cancelled, HoldStatus.expired))
    assert (row.claimed_by is None) is (row.claim_until is None)
    assert (row.placed is None) is (row.placed_by is None) is (row.placed_until is None)
    of_open = (row.claimed_by, row.placed, row.paused_at, row.remind_at)
    assert open_still or of_open == (None,) * 4
    assert row.resumed_at is None or not open_still


def check_change(before: HoldRow | None, row: HoldRow) -> None:
    if before is None or before == row:
        return
    if before.status is not HoldStatus.pending:
        assert before.resumed_at is None
        assert msgspec.structs.replace(row, resumed_at=None) == before
        return
    assert row.version > before.version
    assert row.epoch >= before.epoch
    assert row.escalation_count >= before.escalation_count
    asked = ("id", "run", "tenant", "flow", "prompt", "options", "request_hash", "created_at", "context")
    assert all(getattr(row, name) == getattr(before, name) for name in asked)


async def audit_of(store: Store) -> list[tuple[str, str, str, int]]:
    records = await store.audit("default", limit=10_000)
    return [(each.hold or "", each.action, each.actor, each.at) for each in records]


def check_audit(row: HoldRow, records: list[tuple[str, str, str, int]]) -> None:
    actions = [action for _, action, _, _ in records]
    assert actions[0] == "created"
    ended = [action for action in actions if action in ENDS]
    assert ended == ([] if row.status is HoldStatus.pending else [str(row.status)])
    assert row.epoch == 1 + sum(action in MOVES for action in actions)
    assert row.escalation_count == actions.count("escalated")
    assert [at for *_, at in records] == sorted(at for *_, at in records)
    if row.status is HoldStatus.resolved:
        (by,) = [actor for _, action, actor, _ in records if action == "resolved"]
        assert by == row.resolved_by
