"""One person's inbox is read from an index: what it costs does not depend on what others have to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from bench.inbox import INBOX, filled
from holdfast.store.hold_order import SHARED_ASSIGNEE
from holdfast.store.sql import due_holds
from holdfast.store.sql.sqlite import hold_lists
from holdfast.store.sql.sqlite.connect import SqliteSettings, connect
from holdfast.store.sql.sqlite.dialect import SqliteConn
from holdfast.types.hold import Due, HoldFilter, HoldOrder
from holdfast.types.status import HoldStatus

pytestmark = pytest.mark.anyio

PENDING, DECIDED = (HoldStatus.pending,), (HoldStatus.resolved, HoldStatus.cancelled)
ADA = (("user", "a"),)
FEW, MANY = 100, 10_000


class Watched:
    """A connection that counts what its statements look at."""

    def __init__(self, file: str) -> None:
        self.conn = connect(SqliteSettings(path=file))
        self.seen: dict[str, int] = {}
        cast("apsw.Connection", self.conn).trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note)

    def _note(self, event: dict[str, Any]) -> None:
        for name, value in event["stmt_status"].items():
            short = name.removeprefix("SQLITE_STMTSTATUS_")
            self.seen[short] = self.seen.get(short, 0) + value

    def page(self, where: HoldFilter, order: HoldOrder, after: Any = None, limit: int = 50) -> list[Any]:
        self.seen.clear()
        return hold_lists.select(self.conn.cursor(), where, order, after, limit)

    def plan(
        self, where: HoldFilter, order: HoldOrder, after: Any = None, *, shared: bool = False
    ) -> list[str]:
        cur, text = self.conn.cursor(), []
        for each, of in hold_lists.stretches(cur, where):
            if (of[0] == SHARED_ASSIGNEE) is not shared:
                continue
            sql, args = hold_lists.places(each, order, after, 50, of)
            text += [row[-1] for row in cur.execute("EXPLAIN QUERY PLAN " + sql, args).fetchall()]
        return text


@pytest.fixture
async def watched(tmp_path: Path) -> Watched:
    return Watched(await filled(tmp_path, FEW, mine=16))


@pytest.mark.covers("HOLD-SPEED-01")
@pytest.mark.parametrize(
    ("where", "order", "index"),
    [
        (INBOX, HoldOrder.inbox, "holds_of_assignee"),
        (HoldFilter(tenant="t", status=PENDING), HoldOrder.inbox, "holds_of_tenant"),
        (HoldFilter(tenant="t", status=PENDING), HoldOrder.oldest, "holds_by_age"),
        (HoldFilter(tenant="t", flow=("f",), tags=("x",), text="y"), HoldOrder.newest, "holds_by_age"),
        (HoldFilter(tenant="t", assignees=ADA, status=DECIDED), HoldOrder.newest, "holds_asked_of"),
        (HoldFilter(tenant="t", resolved_by=("user:a",)), HoldOrder.newest, "holds_resolved_by"),
        (HoldFilter(status=PENDING), HoldOrder.oldest, "holds_by_age"),
    ],
)
async def test_lists_are_read_in_order_from_an_index(
    watched: Watched, where: HoldFilter, order: HoldOrder, index: str
) -> None:
    for after in (None, (1, 1, 1, 1) if order is HoldOrder.inbox else (1, 1)):
        plan = watched.plan(where, order, after)
        of_holds = [step for step in plan if " holds " in f"{step} "]
        assert of_holds
        for step in of_holds:
            assert step.startswith("SEARCH"), plan
            assert f"INDEX {index} " in step, plan
        assert not any("TEMP B-TREE" in step for step in plan), plan


@pytest.mark.covers("HOLD-SPEED-01")
async def test_what_waits_for_several_is_found_by_each_of_them(watched: Watched) -> None:
    for order in HoldOrder:
        shares, rows, *_ = watched.plan(INBOX, order, shared=True)
        assert shares == "SEARCH hold_shares USING PRIMARY KEY (tenant=? AND assignee=?)"
        assert rows == "SEARCH holds USING INTEGER PRIMARY KEY (rowid=?)"
        over = HoldFilter(tenant="t", assignees=ADA, status=DECIDED)
        plan = watched.plan(over, order, shared=True)
        assert any("INDEX holds_shared_by_age (tenant=? AND status=?" in step for step in plan), plan


@pytest.mark.parametrize(
    ("where", "way"),
    [
        (HoldFilter(tenant="t", ids=("a", "b")), "holds_1 (id=?)"),
        (HoldFilter(tenant="t", run=("r",)), "holds_2 (run_key=?)"),
        (HoldFilter(tenant="t", noted=("watch", "me"), status=PENDING), "holds_1 (id=?)"),
    ],
)
async def test_few_that_are_named_are_looked_up(watched: Watched, where: HoldFilter, way: str) -> None:
    for order in HoldOrder:
        plan = watched.plan(where, order)
        (of_holds,) = {step for step in plan if " holds " in f"{step} "}
        assert way in of_holds, plan


@pytest.mark.covers("HOLD-SPEED-01", "HOLD-SPEED-02")
async def test_page_looks_at_no_more_rows_when_there_are_a_hundred_times_as_many(tmp_path: Path) -> None:
    few = Watched(await filled(tmp_path, FEW, mine=16))
    many = Watched(await filled(tmp_path, MANY, mine=16))
    for limit in (5, 50):
        assert len(few.page(INBOX, HoldOrder.inbox, limit=limit)) == min(limit, 16)
        steps = few.seen["VM_STEP"]
        page = many.page(INBOX, HoldOrder.inbox, limit=limit)
        assert len(page) == min(limit, 16)
        assert many.seen["VM_STEP"] <= 1.2 * steps
        # Sorted is only what waits for several: here nothing.
        assert (many.seen["FULLSCAN_STEP"], many.seen["SORT"]) == (0, 1)
    # Nor does the last page of a long list cost more than its first.
    everything = HoldFilter(tenant="acme", status=PENDING)
    (_, early), *_ = many.page(everything, HoldOrder.inbox)
    many.page(everything, HoldOrder.inbox, early)
    steps = many.seen["VM_STEP"]
    late = many.page(everything, HoldOrder.inbox, limit=1_500)[-1][1]
    assert len(many.page(everything, HoldOrder.inbox, late)) == 50
    assert many.seen["VM_STEP"] <= 1.2 * steps


@pytest.mark.covers("HOLD-SPEED-02")
async def test_page_looks_at_nothing_that_others_vote_on(tmp_path: Path) -> None:
    watched = Watched(await filled(tmp_path, MANY, mine=16))
    assert len(watched.page(INBOX, HoldOrder.inbox)) == 16
    steps = watched.seen["VM_STEP"]
    terms = """UPDATE holds SET terms = json_object('also_for', json_array('group:others', 'role:x'))
        WHERE status = 'pending'"""
    watched.conn.execute(terms)
    mine = """UPDATE holds SET terms = json_object('also_for', json_array('role:cfo', 'group:g1'))
        WHERE number IN (20, 40)"""
    watched.conn.execute(mine)
    page = watched.page(INBOX, HoldOrder.inbox)
    assert len({row.id for row, _ in page}) == len(page) == 18
    assert watched.seen["VM_STEP"] <= 1.5 * steps


async def test_sweeps_look_only_at_what_is_due(tmp_path: Path) -> None:
    many = Watched(await filled(tmp_path, MANY, mine=16))
    conn = SqliteConn(many.conn.cursor())
    for due in (Due.expiry, Due.reminder, Due.placed):
        many.seen.clear()
        found = await due_holds.due(conn, due, 100, 9)
        assert [row.expires_at for row in found] == ([50, 100] if due is Due.expiry else [])
        assert many.seen["VM_STEP"] < 400, due
        assert (many.seen["FULLSCAN_STEP"], many.seen["SORT"]) == (0, 0)
    many.seen.clear()
    assert await due_holds.next_due(conn) == 50
    assert many.seen["VM_STEP"] < 100
