"""What the database itself refuses, whoever writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.conformance.hold_changes import asked, closed, decided, to
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.audit import NewAudit
from holdfast.types.clock import Clock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

pytestmark = pytest.mark.anyio

ROW = "VALUES ('default', {seq}, 0, 'user:eve', 'resolved', NULL, NULL, x'', x'', x'')"


@pytest.fixture
async def kit(tmp_path: Path) -> StoreKit:
    async def opened(clock: Clock) -> Store:
        return await open_store(str(tmp_path / "h.db"), clock=clock)

    kit = StoreKit(opened)
    await kit.start()
    return kit


@pytest.fixture
def file(tmp_path: Path) -> Iterator[apsw.Connection]:
    conn = apsw.Connection(str(tmp_path / "h.db"))
    yield conn
    conn.close()


@pytest.mark.covers("HOLD-AUDIT-01")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET actor = 'user:eve' WHERE seq = 2",
        "UPDATE OR REPLACE audit SET seq = 1 WHERE seq = 2",
        "UPDATE audit SET seq = seq + 10",
        "DELETE FROM audit WHERE seq = 3",
        "DELETE FROM audit",
        f"INSERT OR REPLACE INTO audit {ROW.format(seq=2)}",
        f"REPLACE INTO audit {ROW.format(seq=3)}",
        f"INSERT INTO audit {ROW.format(seq=5)}",
        f"INSERT INTO audit {ROW.format(seq=0)}",
        f"INSERT INTO audit {ROW.format(seq=2)} ON CONFLICT DO UPDATE SET actor = 'user:eve'",
    ],
)
async def test_database_refuses_to_change_the_audit(
    kit: StoreKit, file: apsw.Connection, statement: str
) -> None:
    await kit.store.append_audit("default", [NewAudit(at=n, actor="a", action="b") for n in range(3)])
    before = await kit.store.audit("default")
    with pytest.raises(apsw.ConstraintError):
        file.execute(statement)
    assert await kit.store.audit("default") == before
    await kit.stop()


async def row_with(kit: StoreKit, status: HoldStatus) -> HoldRow:
    hold = await asked(kit)
    if status is HoldStatus.pending:
        return hold
    fields = decided() if status is HoldStatus.resolved else closed(status)
    row = await kit.store.change_hold(to(hold, fields))
    assert isinstance(row, HoldRow)
    return row


@pytest.mark.covers("CP-9")
@pytest.mark.parametrize("status", [HoldStatus.resolved, HoldStatus.cancelled, HoldStatus.expired])
async def test_database_refuses_to_change_what_was_closed(
    kit: StoreKit, file: apsw.Connection, status: HoldStatus
) -> None:
    hold = await row_with(kit, status)
    others = [f"status = '{other}'" for other in HoldStatus if other is not status]
    changes = ("resolved_by = 'user:eve'", "assignee_value = 'eve'", "expires_at = 1", "closed_by = 'eve'")
    for change in (*others, *changes, "priority = 'low'", "version = 9", "epoch = 9"):
        with pytest.raises(apsw.ConstraintError, match="cannot change"):
            file.execute(f"UPDATE holds SET {change}")
    file.execute("UPDATE holds SET resumed_at = 7")
    assert (await kit.hold(hold.id)).resumed_at == 7
    await kit.stop()


@pytest.mark.covers("CP-14")
@pytest.mark.parametrize(
    "change",
    [
        "status = 'resolved'",
        "resolution = x'7b7d'",
        "resolved_by = 'user:eve', resolved_at = 1",
        "status = 'resolved', resolution = x'7b7d', resolved_by = 'user:eve'",
        "status = 'cancelled', resolution = x'7b7d', resolved_by = 'user:eve', resolved_at = 1",
        "status = 'asleep'",
        "assignee_type = 'team'",
    ],
)
async def test_database_refuses_half_a_decision(kit: StoreKit, file: apsw.Connection, change: str) -> None:
    hold = await row_with(kit, HoldStatus.pending)
    with pytest.raises(apsw.ConstraintError):
        file.execute(f"UPDATE holds SET {change}")
    assert await kit.hold(hold.id) == hold
    await kit.stop()


@pytest.mark.covers("CP-1", "CP-2", "CP-17")
async def test_database_refuses_to_make_another_hold_of_it(kit: StoreKit, file: apsw.Connection) -> None:
    await row_with(kit, HoldStatus.pending)
    for change in ("id = 'x'", "run_key = 9", "tenant = 'eve'", "block = 9", "type = 'x'", "seq = 9"):
        with pytest.raises(apsw.ConstraintError, match="cannot change"):
            file.execute(f"UPDATE holds SET {change}")
    columns = "run_key, tenant, updated_at, seq, type, priority, created_at, request_hash, prompt, context"
    again = (
        f"INSERT INTO holds (id, scope, node, visit, ordinal, {columns}) SELECT {{new}}, {columns} FROM holds"
    )
    for new in ("id, 'other', node, visit, ordinal", "'other', scope, node, visit, ordinal"):
        with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
            file.execute(again.format(new=new))
    await kit.stop()
