"""Lists of holds: every filter, every order, and stable cursors (LI-1, LI-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.errors import InputError
from holdfast.testing.conformance.hold_changes import decided, note, to
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow, NewHold
from holdfast.types.record import Side
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HoldTerms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.lease import Lease

ADA, EVE = ("user", "ada@x"), ("user", "eve@x")
FINANCE = ("group", "finance")


async def opened(kit: StoreKit, lease: Lease, *given: dict[str, Any]) -> list[HoldRow]:
    """One hold each, a second apart, in the run's next record."""
    row = await kit.row(lease.run)
    holds: list[NewHold] = []
    for number, fields in enumerate(given):
        kit.clock.advance(seconds=1)
        holds.append(kit.new_hold(row.head + 1, ordinal=100 * row.head + number, **fields))
    await kit.written(lease, kit.record(row.head + 1, side=Side(holds=holds)))
    return [await kit.hold(hold.id) for hold in holds]


def of(assignee: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"assignee_type": assignee[0], "assignee_value": assignee[1], **more}


async def ids(kit: StoreKit, order: HoldOrder = HoldOrder.oldest, **where: Any) -> list[str]:
    found = await kit.store.list_holds(HoldFilter(**where), order=order)
    assert await kit.store.count_holds(HoldFilter(**where)) == len(found)
    return [row.id for row, _ in found]


async def paged(kit: StoreKit, where: HoldFilter, order: HoldOrder, size: int) -> list[str]:
    seen: list[str] = []
    after: Sequence[Any] | None = None
    while page := await kit.store.list_holds(where, order=order, after=after, limit=size):
        seen += [row.id for row, _ in page]
        # As a client sends it back.
        after = msgspec.json.decode(msgspec.json.encode(page[-1][1]))
    return seen


@pytest.mark.anyio
class HoldListSuite:
    @pytest.mark.covers("LI-1")
    async def test_fields_narrow_and_values_widen(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        a, b, c, d = await opened(
            kit,
            lease,
            of(ADA, type="approval", priority="high", tags=("vip", "eu")),
            of(FINANCE, type="choice", priority="low", tags=("eu",)),
            of(ADA, type="debug_breakpoint", priority="high"),
            of(EVE, type="approval", priority="normal", tags=("us",)),
        )
        assert await ids(kit) == [a.id, b.id, c.id, d.id]
        assert await ids(kit, assignees=(ADA,)) == [a.id, c.id]
        assert await ids(kit, assignees=(ADA, FINANCE, ADA)) == [a.id, b.id, c.id]
        assert await ids(kit, assignees=()) == []
        assert await ids(kit, assignees=(("group", "ada@x"), ("user", "finance"))) == []
        assert await ids(kit, type=("approval", "choice")) == [a.id, b.id, d.id]
        assert await ids(kit, not_type=("debug_breakpoint", "choice")) == [a.id, d.id]
        assert await ids(kit, priority=("high", "low")) == [a.id, b.id, c.id]
        assert await ids(kit, tags=("vip", "us")) == [a.id, d.id]
        assert await ids(kit, ids=(b.id, d.id, "nobody")) == [b.id, d.id]
        assert await ids(kit, assignees=(ADA, EVE), type=("approval",), tags=("eu",)) == [a.id]
        assert await ids(kit, tenant="default", assignees=(ADA,), priority=("low",)) == []

    @pytest.mark.covers("LI-1")
    async def test_what_the_run_is_can_be_asked_for(self, kit: StoreKit) -> None:
        first = await kit.claimed(flow="refund", instance_key="order-1", deployment="d-1")
        second = await kit.claimed(flow="hire", started_by="service:bot")
        third = await kit.claimed(tenant="acme")
        (a,), (b,), (c,) = [await opened(kit, lease, {}) for lease in (first, second, third)]
        assert await ids(kit, tenant="default") == [a.id, b.id]
        assert await ids(kit, tenant="nobody") == []
        assert await ids(kit, flow=("refund",)) == [a.id, c.id]
        assert await ids(kit, flow=("refund",), tenant="default") == [a.id]
        assert await ids(kit, run=(second.run, third.run)) == [b.id, c.id]
        assert await ids(kit, run=(second.run,), tenant="acme") == []
        assert await ids(kit, instance_key=("order-1", "order-2")) == [a.id]
        assert await ids(kit, deployment=("d-1",)) == [a.id]
        assert await ids(kit, started_by=("service:bot", "user:ada")) == [b.id]
        assert await ids(kit, deployment=("flow:hire", "flow:refund")) == [b.id, c.id]

    @pytest.mark.covers("LI-1")
    async def test_text_is_found_in_any_case(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        a, b, _ = await opened(
            kit, lease, {"prompt": "Überweisung an ÖBB?"}, {"prompt": "refund ÖBB 5%_"}, {"prompt": "Ship"}
        )
        assert await ids(kit, text="öbb") == [a.id, b.id]
        assert await ids(kit, text="ÜBERWEISUNG") == [a.id]
        assert await ids(kit, text="5%_", tenant="default") == [b.id]
        assert await ids(kit, text="%") == [b.id]
        assert await ids(kit, text=a.id[:9]) == [a.id]
        assert await ids(kit, text=a.id[1:]) == []
        page = await kit.store.list_holds(HoldFilter(text="öbb"), limit=1)
        assert [row.id for row, _ in page] == [a.id]
        rest = await kit.store.list_holds(HoldFilter(text="öbb"), after=page[0][1], limit=1)
        assert [row.id for row, _ in rest] == [b.id]

    @pytest.mark.covers("LI-1")
    async def test_spans_begin_with_their_first_instant_and_end_before_their_last(
        self, kit: StoreKit
    ) -> None:
        lease = await kit.claimed()
        a, b, c = await opened(kit, lease, {"expires_at": 10}, {"expires_at": 20}, {})
        assert await ids(kit, created_from=b.created_at) == [b.id, c.id]
        assert await ids(kit, created_to=b.created_at) == [a.id]
        assert await ids(kit, expires_from=10, expires_to=20) == [a.id]
        assert await ids(kit, expires_from=11) == [b.id]
        assert await ids(kit, expires_to=99) == [a.id, b.id], "one without a deadline never ends"

    @pytest.mark.covers("LI-1")
    async def test_what_became_of_them_can_be_asked_for(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        a, b, c = await opened(kit, lease, of(ADA), of(ADA), of(EVE))
        await kit.store.change_hold(to(a, decided("user:ada@x")))
        await kit.store.change_hold(to(c, decided("user:eve@x")))
        assert await ids(kit, status=(HoldStatus.pending,)) == [b.id]
        assert await ids(kit, status=(HoldStatus.resolved, HoldStatus.pending)) == [a.id, b.id, c.id]
        assert await ids(kit, assignees=(ADA,), status=(HoldStatus.resolved,), tenant="default") == [a.id]
        assert await ids(kit, resolved_by=("user:eve@x", "user:x")) == [c.id]
        assert await ids(kit, resolved_by=("user:eve@x", "user:ada@x"), tenant="default") == [a.id, c.id]
        assert await ids(kit, resolved_from=5, resolved_by=("user:eve@x",)) == [c.id]
        assert await ids(kit, resolved_from=6) == await ids(kit, resolved_to=5) == []
        assert await ids(kit, resolved_to=6) == [a.id, c.id], "an open one was not decided"
        newest = await ids(kit, HoldOrder.newest, resolved_by=("user:eve@x", "user:ada@x"), tenant="default")
        assert newest == [c.id, a.id]

    async def test_notes_choose_and_pass_over(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        a, b, c = await opened(kit, lease, {}, {}, {})
        for row, until in ((a, 50), (b, None)):
            await kit.store.change_hold(to(row, notes=(note(row, "ada", kind="snooze", until=until),)))
        assert await ids(kit, noted=("snooze", "ada")) == [a.id, b.id]
        assert await ids(kit, noted=("snooze", "ada"), tenant="default", status=(HoldStatus.resolved,)) == []
        assert await ids(kit, noted=("snooze", "eve")) == []
        assert await ids(kit, not_noted=("snooze", "ada", 49)) == [c.id]
        assert await ids(kit, not_noted=("snooze", "ada", 50)) == [a.id, c.id]
        assert await ids(kit, not_noted=("watch", "ada", 0)) == [a.id, b.id, c.id]

    async def test_what_several_may_vote_on_is_in_the_lists_of_all(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        both = HoldTerms(also_for=("group:finance", "user:eve@x"))
        a, b, c = await opened(kit, lease, of(ADA, terms=both), of(EVE, terms=both), of(ADA))
        for order in (HoldOrder.oldest, HoldOrder.inbox):
            for given in ({}, {"status": (HoldStatus.pending,)}, {"tenant": "default"}):
                assert await ids(kit, order, assignees=(FINANCE,), **given) == [a.id, b.id]
                assert await ids(kit, order, assignees=(EVE, FINANCE), **given) == [a.id, b.id]
                assert await ids(kit, order, assignees=(ADA, EVE, FINANCE), **given) == [a.id, b.id, c.id]
                assert await ids(kit, order, assignees=(("role", "x"),), **given) == []
        assert await ids(kit, assignees=(FINANCE,), tenant="acme") == []
        assert await ids(kit, assignees=(FINANCE,), ids=(a.id, c.id)) == [a.id]
        await kit.store.change_hold(to(a, {"terms": HoldTerms(also_for=("role:x",))}))
        await kit.store.change_hold(to(b, decided("user:eve@x")))
        assert await ids(kit, assignees=(FINANCE,), status=(HoldStatus.pending,)) == []
        assert await ids(kit, assignees=(FINANCE,), status=(HoldStatus.resolved,)) == [b.id]
        assert await ids(kit, assignees=(("role", "x"),)) == [a.id]

    async def test_imported_history_is_listed_when_it_is_asked_for(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        (a,) = await opened(kit, lease, of(ADA))
        history = await kit.store.history(lease.run)
        assert history is not None
        kit.clock.advance(days=1)
        await kit.store.delete_run(lease.run)
        await kit.store.adopt(history)
        for order in HoldOrder:
            assert await ids(kit, order, tenant="default", assignees=(ADA,)) == []
            assert await ids(kit, order, tenant="default", assignees=(ADA,), live=False) == [a.id]

    @pytest.mark.covers("CP-10")
    async def test_inbox_is_by_urgency_then_deadline_then_age(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        rows = await opened(
            kit,
            lease,
            of(ADA, priority="low", expires_at=1),
            of(FINANCE, priority="normal"),
            of(ADA, priority="normal"),
            of(FINANCE, priority="normal", expires_at=30),
            of(ADA, priority="normal", expires_at=20),
            of(FINANCE, priority="critical"),
            of(ADA, priority="high", expires_at=99),
        )
        wanted = [rows[i].id for i in (5, 6, 4, 3, 1, 2, 0)]
        pending = {"tenant": "default", "status": (HoldStatus.pending,)}
        assert await ids(kit, HoldOrder.inbox, **pending) == wanted
        assert await ids(kit, HoldOrder.inbox, assignees=(ADA, FINANCE), **pending) == wanted
        assert await ids(kit, HoldOrder.inbox, assignees=(ADA,), **pending) == [
            rows[i].id for i in (6, 4, 2, 0)
        ]
        assert await ids(kit, HoldOrder.inbox) == wanted
        assert await ids(kit, HoldOrder.newest) == [row.id for row in reversed(rows)]

    @pytest.mark.covers("LI-2")
    @pytest.mark.parametrize("order", list(HoldOrder))
    async def test_pages_are_the_list_whatever_their_size(self, kit: StoreKit, order: HoldOrder) -> None:
        lease = await kit.claimed()
        given = [
            of((ADA, FINANCE, EVE)[i % 3], priority=("low", "high")[i % 2], expires_at=(None, 7, 9)[i % 3])
            for i in range(12)
        ]
        # Asked at the same time: only the store's number orders them.
        row = await kit.row(lease.run)
        holds = [kit.new_hold(row.head + 1, ordinal=i, **fields) for i, fields in enumerate(given)]
        await kit.written(lease, kit.record(row.head + 1, side=Side(holds=holds)))
        where = HoldFilter(tenant="default", assignees=(ADA, FINANCE), status=(HoldStatus.pending,))
        whole = [row.id for row, _ in await kit.store.list_holds(where, order=order)]
        assert len(whole) == 8
        for size in (1, 3, 8):
            assert await paged(kit, where, order, size) == whole

    @pytest.mark.covers("LI-2")
    async def test_cursor_misses_and_repeats_nothing_while_rows_come_and_go(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        rows = await opened(kit, lease, *[of(ADA, expires_at=10 * i) for i in range(1, 7)])
        where = HoldFilter(tenant="default", assignees=(ADA,), status=(HoldStatus.pending,))
        page = await kit.store.list_holds(where, order=HoldOrder.inbox, limit=3)
        assert [row.id for row, _ in page] == [row.id for row in rows[:3]]
        # One before the cursor comes, the cursor's own row goes, one behind it goes, one behind it comes.
        early, late = await opened(kit, lease, of(ADA, expires_at=5), of(ADA, expires_at=45))
        for gone in (rows[2], rows[4]):
            await kit.store.change_hold(to(gone, decided()))
        rest = await kit.store.list_holds(where, order=HoldOrder.inbox, after=page[-1][1])
        assert [row.id for row, _ in rest] == [rows[3].id, late.id, rows[5].id]
        assert early.id not in {row.id for row, _ in rest}

    @pytest.mark.covers("LI-2")
    async def test_place_of_another_list_is_refused(self, kit: StoreKit) -> None:
        for order, after in (
            (HoldOrder.inbox, (1, 2)),
            (HoldOrder.newest, (1, 2, 3, 4)),
            (HoldOrder.oldest, ("1", 2)),
            (HoldOrder.oldest, (None, 2)),
        ):
            with pytest.raises(InputError, match="not a place"):
                await kit.store.list_holds(HoldFilter(), order=order, after=after)

    async def test_counting_ends_at_the_limit(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await opened(kit, lease, *[of((ADA, EVE)[i % 2]) for i in range(6)])
        where = HoldFilter(assignees=(ADA, EVE))
        assert await kit.store.count_holds(where) == 6
        assert await kit.store.count_holds(where, limit=4) == 4
        assert await kit.store.count_holds(where, limit=2) == 2
