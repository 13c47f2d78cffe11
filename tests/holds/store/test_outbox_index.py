"""A dispatcher reads only the messages of its own topics, however many others wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from holdfast.store.open import open_store
from holdfast.store.sql import outbox
from holdfast.store.sql.sqlite import claim_outbox
from holdfast.store.sql.sqlite.connect import SqliteSettings, connect
from holdfast.store.sql.sqlite.dialect import SqliteConn
from holdfast.types.outbox import OutboxState

pytestmark = pytest.mark.anyio

_MANY = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO outbox (tenant, at, topic, key, due_at, payload, state)
SELECT 'default', i, 'hold.created', 'k' || i, i, x'7b7d', iif(i % 2, 'waiting', 'done') FROM n"""
_ONE = """
INSERT INTO outbox (tenant, at, topic, key, due_at, payload)
VALUES ('default', 1, 'hold.judge', 'j', 5, x'')"""


@pytest.mark.covers("NO-8")
async def test_claim_looks_only_at_its_topics(tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    await (await open_store(str(file))).close()
    conn = connect(SqliteSettings(path=str(file)))
    conn.execute(_MANY)
    conn.execute(_ONE)
    steps: list[int] = []

    def note(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    cast("apsw.Connection", conn).trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    cur = conn.cursor()
    assert claim_outbox.any_due(cur, 99, ["hold.judge"])
    assert not claim_outbox.any_due(cur, 99, ["hold.closed"])
    assert [row.key for row in claim_outbox.claim(cur, 99, 9, 10, ["hold.judge"])] == ["j"]
    assert [row.key for row in claim_outbox.claim(cur, 20_000, 4, 10, [])] == ["k1", "k3", "k5", "j"]
    assert sum(steps) < 1_500
    steps.clear()
    waiting = await outbox.select(SqliteConn(cur), None, OutboxState.waiting, None, None, None, None, 3)
    assert [row.key for row in waiting] == ["k1", "k3", "k5"]
    assert await outbox.select(SqliteConn(cur), None, OutboxState.dead, None, None, None, None, 3) == []
    assert sum(steps) < 500
    conn.close()
