"""Lists of runs are read from an index, newest first, whatever else the store holds."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from holdfast.store.open import open_store
from holdfast.store.rows import RunFilter
from holdfast.store.sql.runs import listing
from holdfast.store.sql.sqlite.connect import statement
from holdfast.types.status import RunStatus

Case = tuple[RunFilter, str]

CASES: list[Case] = [
    (RunFilter(), "runs_newest"),
    (RunFilter(created_after=5), "runs_newest"),
    (RunFilter(status=(RunStatus.failed,)), "runs_by_status"),
    (RunFilter(status=(RunStatus.failed,), created_before=5), "runs_by_status"),
    (RunFilter(flow="refund"), "runs_by_flow"),
    (RunFilter(flow="refund", tenant="acme", created_after=5), "runs_by_flow"),
]


@pytest.mark.covers("TOOL-CLI-03")
@pytest.mark.anyio
@pytest.mark.parametrize(("where", "index"), CASES)
async def test_a_list_is_read_from_an_index(where: RunFilter, index: str, tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    await (await open_store(f"sqlite:{file}")).close()

    for after in (None, (7, 7)):
        sql, args = listing(where, after)
        with apsw.Connection(str(file)) as db:
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement(sql)}", (*args, 20))]
        assert any(f"USING INDEX {index}" in step for step in plan), plan
        assert not any("TEMP B-TREE" in step for step in plan), plan
