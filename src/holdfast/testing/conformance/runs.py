"""Runs: creating once, finding, listing, superseding, deleting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import ClaimRequest, RunFilter
from holdfast.testing.conformance.kit import TTL, StoreKit
from holdfast.types.hold import BREAKPOINT
from holdfast.types.ids import RunId, checkpoint_id, new_run_id
from holdfast.types.record import NewTimer, Refusal, Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.store.rows import NewRun, RunRow

UNKNOWN = RunId("00000000-0000-4000-8000-000000000000")


@pytest.mark.anyio
class RunSuite:
    @pytest.mark.covers("D-2", "RS-STORE-1")
    async def test_run_stands_as_given_with_its_first_record_when_created(self, kit: StoreKit) -> None:
        new = kit.new_run(thread="t", instance_key="i", priority=3, ready_at=7)
        row, fresh = await kit.store.create(new)
        assert fresh
        assert await kit.store.get_run(new.id) == row
        given = (new.id, "default", "refund", "v1", "c1", "main", 3, "t", "i", 7)
        assert given == (
            row.id, row.tenant, row.flow, row.version, row.code, row.lane, row.priority, row.thread,
            row.instance_key, row.ready_at,
        )  # fmt: skip
        assert (row.status, row.term, row.worker, row.lease_until) == (RunStatus.pending, 0, None, None)
        assert (row.head, row.event_seq, row.inbox_seq, row.horizon) == (0, 1, 0, 0)
        (record,) = await kit.store.read(new.id)
        assert (record.payload, record.digest, record.event_from) == (b"record 0", new.first[0].digest, 1)

    @pytest.mark.covers("CORE-STORE-11")
    async def test_run_is_created_once_when_create_is_called_twice(self, kit: StoreKit) -> None:
        new = kit.new_run()
        first, _ = await kit.store.create(new)
        assert await kit.store.create(new) == (first, False)
        assert len(await kit.store.read(new.id)) == 1
        assert len(await kit.whole_feed()) == 1

    async def test_idempotency_key_finds_the_earlier_run_of_its_tenant_and_flow(self, kit: StoreKit) -> None:
        first = await kit.created(idempotency_key="k")
        again, fresh = await kit.store.create(kit.new_run(idempotency_key="k"))
        assert (again.id, fresh) == (first.id, False)
        assert (await kit.created(idempotency_key="k", tenant="other")).id != first.id
        assert (await kit.created(idempotency_key="k", flow="other")).id != first.id
        assert (await kit.created(idempotency_key="l")).id != first.id
        assert len(await _ids(kit.store, RunFilter())) == 4

    async def test_one_run_exists_when_creators_race_with_one_key(self, kit: StoreKit) -> None:
        async def create(store: Store, _number: int) -> tuple[RunRow, bool]:
            return await store.create(kit.new_run(idempotency_key="k"))

        answers = await kit.race(6, create)
        assert sum(fresh for _, fresh in answers) == 1
        assert len({row.id for row, _ in answers}) == 1

    @pytest.mark.covers("RS-STORE-18", "RS-STORE-20")
    async def test_all_runs_are_kept_when_ten_threads_create_at_once(self, kit: StoreKit) -> None:
        async def create(store: Store, _number: int) -> RunId:
            return (await store.create(kit.new_run()))[0].id

        created = await kit.race(10, create)
        assert set(await _ids(kit.store, RunFilter())) == set(created)

    @pytest.mark.covers("RS-STORE-5", "RS-STORE-17", "G-3")
    async def test_store_and_caller_share_nothing(self, kit: StoreKit) -> None:
        new = kit.new_run(first=[kit.record(0, term=0, side=Side(timers=[NewTimer("t", 1)]))])
        await kit.store.create(new)
        assert new.first[0].side == Side(timers=[NewTimer("t", 1)])
        assert new.first[0].event_from == 0
        new.first[0].payload = b"changed"
        new.flow = "changed"
        (record,) = await kit.store.read(new.id)
        record.payload = b"changed too"
        (record,) = await kit.store.read(new.id)
        assert record.payload == b"record 0"
        assert (await kit.row(new.id)).flow == "refund"

    @pytest.mark.covers("D-35")
    async def test_superseded_run_ends_with_its_holds_timers_and_lease(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        await kit.written(lease, kit.record(2, side=Side(timers=[NewTimer("t", kit.clock.now())])))
        newer = await kit.created(supersedes=lease.run)
        old = await kit.row(lease.run)
        assert (old.status, old.superseded_by) == (RunStatus.cancelled, newer.id)
        assert old.term > lease.term
        assert (old.worker, old.ready_at) == (None, None)
        assert old.ended_at is not None
        assert (await kit.hold(hold)).status is HoldStatus.cancelled
        assert await kit.store.fire_timers(limit=10) == 0
        assert (await kit.settle(lease, kit.record(3))).refusal is Refusal.fenced

    async def test_supersession_is_done_once_when_create_is_called_twice(self, kit: StoreKit) -> None:
        old = await kit.created()
        new = kit.new_run(supersedes=old.id)
        await kit.store.create(new)
        before = await kit.row(old.id)
        assert (await kit.store.create(new))[1] is False
        assert await kit.row(old.id) == before

    @pytest.mark.covers("RS-STORE-2", "G-1")
    async def test_unknown_run_reads_as_nothing(self, kit: StoreKit) -> None:
        assert await kit.store.get_run(UNKNOWN) is None
        assert await kit.store.read(UNKNOWN) == []
        assert await kit.store.checkpoint_records(UNKNOWN) == []
        assert await kit.store.last_snapshot(UNKNOWN, 9) is None
        assert await kit.store.events(UNKNOWN, after=0, limit=9) == []
        assert await kit.store.pending(UNKNOWN) == (0, [])
        assert await kit.store.send(UNKNOWN, "cancel", b"") is False
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, run=UNKNOWN)) == []
        assert await kit.store.prune(UNKNOWN, horizon=1, replace=None) == 0

    async def test_runs_are_found_by_the_beginning_of_their_id(self, kit: StoreKit) -> None:
        for number in range(12):
            await kit.created(id=RunId(f"abcdef00-0000-4000-8000-0000000000{number:02}"))
        other = await kit.created(id=RunId("bbbbbbbb-0000-4000-8000-000000000000"))
        assert [row.id for row in await kit.store.find_runs("bbbb")] == [other.id]
        assert [row.id for row in await kit.store.find_runs(other.id)] == [other.id]
        assert len(await kit.store.find_runs("abcdef00-0000-4000")) == 10
        # A prefix is text: no character in it is a pattern.
        assert await kit.store.find_runs("%") == []
        assert await kit.store.find_runs("bbbb_bbb") == []
        assert await kit.store.find_runs("BBBB") == []

    @pytest.mark.covers("RS-STORE-8", "RS-STORE-9", "RS-STORE-11", "RS-STORE-16", "R-4")
    async def test_runs_are_listed_newest_first_page_by_page(self, kit: StoreKit) -> None:
        assert await kit.store.list_runs(RunFilter(), after=None, limit=10) == []
        # Several share an instant: the cursor must not lose or repeat one of them.
        created = [(await kit.created(created_at=1000 + number // 3)).id for number in range(8)]
        await kit.claim(created[0])
        seen: list[RunId] = []
        after: tuple[int, int] | None = None
        while page := await kit.store.list_runs(RunFilter(), after=after, limit=3):
            assert len(page) <= 3
            seen += [row.id for row in page]
            after = (page[-1].created_at, page[-1].key)
        assert seen == created[::-1]

    @pytest.mark.covers("RS-STORE-10", "RS-STORE-12", "RS-STORE-15")
    async def test_runs_are_filtered_by_each_field_and_by_all_together(self, kit: StoreKit) -> None:
        plain = await kit.created(created_at=1000)
        special = await kit.created(
            created_at=2000,
            tenant="acme",
            flow="order",
            thread="t1",
            version="v2",
            lane="other",
            instance_key="c-9",
            deployment="d-1",
        )
        lease = (await kit.claim(special.id)).lease
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        completed = (RunStatus.completed,)
        for where in (
            RunFilter(tenant="acme"),
            RunFilter(status=completed),
            RunFilter(status=(RunStatus.failed, RunStatus.completed)),
            RunFilter(flow="order"),
            RunFilter(thread="t1"),
            RunFilter(version="v2"),
            RunFilter(instance_key="c-9"),
            RunFilter(deployment="d-1"),
            RunFilter(created_after=1500),
            RunFilter(tenant="acme", status=completed, flow="order", thread="t1", created_before=2500),
        ):
            assert await _ids(kit.store, where) == [special.id], where
        assert await _ids(kit.store, RunFilter(created_before=1500)) == [plain.id]

    async def test_runs_are_filtered_by_lease_worker_and_source(self, kit: StoreKit) -> None:
        plain = await kit.created(created_at=1000)
        held = await kit.created(created_at=2000)
        other = await kit.created(created_at=3000)
        fork = await kit.created(created_at=4000, forked_from=checkpoint_id(plain.id, 3))
        lease = (await kit.claim(held.id, worker="one")).lease
        await kit.claim(other.id, worker="two")
        assert await _ids(kit.store, RunFilter(leased=True)) == [other.id, held.id]
        assert await _ids(kit.store, RunFilter(worker="one")) == [held.id]
        assert await _ids(kit.store, RunFilter(worker="three")) == []
        assert await _ids(kit.store, RunFilter(forked_from=plain.id)) == [fork.id]
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        assert await _ids(kit.store, RunFilter(leased=True)) == [other.id]

    async def test_runs_are_searched_and_counted_by_status(self, kit: StoreKit) -> None:
        plain = await kit.created(created_at=1000)
        special = await kit.created(
            created_at=2000, flow="Order_100%", started_by="user:dana", instance_key="A1"
        )
        lease = (await kit.claim(special.id)).lease
        ended = Side(status=RunStatus.failed, error="Timeout! at 100%")
        await kit.written(lease, kit.record(1, side=ended))
        row = await kit.store.get_run(special.id)
        assert row is not None
        assert row.ended_at is not None
        took = row.ended_at - row.created_at
        for where in (
            RunFilter(started_by="user:dana"),
            RunFilter(instance_key="A1"),
            RunFilter(text="order_1"),
            RunFilter(text=special.id[:8]),
            RunFilter(text="100%"),
            RunFilter(status=(RunStatus.failed,), took_over=took - 1, took_under=took + 1),
        ):
            assert await _ids(kit.store, where) == [special.id], where
            assert await kit.store.count_runs(where) == {RunStatus.failed: 1}, where
        if not kit.sealed:
            for text in ("timeout!", "100%", "AT 100"):
                assert await _ids(kit.store, RunFilter(error=text)) == [special.id]
            assert await _ids(kit.store, RunFilter(error="timeout_")) == []
        for where in (RunFilter(text="order%"), RunFilter(took_under=took), RunFilter(at_breakpoint=True)):
            assert special.id not in await _ids(kit.store, where), where
        # A run that has not ended is measured until the moment at which it is shown.
        assert await _ids(kit.store, RunFilter(took_over=500, shown_at=1600)) == [special.id, plain.id]
        assert await kit.store.count_runs(RunFilter()) == {RunStatus.pending: 1, RunStatus.failed: 1}
        assert await kit.store.count_runs(RunFilter(flow="none")) == {}

    async def test_runs_at_a_breakpoint_are_found(self, kit: StoreKit) -> None:
        stopped, other = await kit.claimed(), await kit.claimed()
        await kit.written(stopped, kit.record(1, side=Side(holds=[kit.new_hold(type=BREAKPOINT)])))
        await kit.written(other, kit.record(1, side=Side(holds=[kit.new_hold()])))
        assert await _ids(kit.store, RunFilter(at_breakpoint=True)) == [stopped.run]

    @pytest.mark.covers("SAFE-STORE-05")
    async def test_runs_whose_lease_expired_are_listed_as_they_are_shown(self, kit: StoreKit) -> None:
        expired = (await kit.claimed()).run
        kit.clock.advance(seconds=61)
        live, waiting = (await kit.claimed()).run, (await kit.created()).id
        now = kit.clock.now()
        for status, stored, shown in (
            ((RunStatus.running,), {live, expired}, {live}),
            ((RunStatus.resumable,), set[RunId](), {expired}),
            ((RunStatus.resumable, RunStatus.pending), {waiting}, {waiting, expired}),
            ((RunStatus.running, RunStatus.resumable), {live, expired}, {live, expired}),
        ):
            assert set(await _ids(kit.store, RunFilter(status=status))) == stored
            assert set(await _ids(kit.store, RunFilter(status=status, shown_at=now))) == shown
            counted = await kit.store.count_runs(RunFilter(status=status, shown_at=now))
            assert sum(counted.values()) == len(shown)
            assert set(counted) <= set(status)
        assert await _ids(kit.store, RunFilter(tenant="acme", flow="refund")) == []

    @pytest.mark.covers("SAFE-READ-05")
    async def test_threads_are_listed_with_the_newest_run_first(self, kit: StoreKit) -> None:
        for at, thread in ((1000, "a"), (2000, "b"), (3000, "a"), (3000, "c"), (4000, None)):
            await kit.created(thread=thread, created_at=at)
        await kit.created(thread="b", tenant="acme", created_at=9000)
        lease = await kit.claimed(thread="b", created_at=1500)
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        found = await kit.store.list_threads("default", after=None, limit=9)
        assert [(row.id, row.runs, row.open_runs, row.last_run_at) for row in found] == [
            ("c", 1, 1, 3000), ("a", 2, 2, 3000), ("b", 2, 1, 2000),
        ]  # fmt: skip
        assert [(row.created_at, row.pending_input_runs) for row in found] == [
            (3000, 0),
            (1000, 0),
            (1500, 0),
        ]
        assert [row.id for row in await kit.store.list_threads("acme", after=None, limit=9)] == ["b"]
        assert await kit.store.list_threads("nobody", after=None, limit=9) == []
        paged: list[str] = []
        after: tuple[int, str] | None = None
        while page := await kit.store.list_threads("default", after=after, limit=1):
            paged += [row.id for row in page]
            after = (page[-1].last_run_at, page[-1].id)
        assert paged == ["c", "a", "b"]

    @pytest.mark.covers("RS-STORE-6", "RS-STORE-7", "CORE-STORE-11")
    async def test_deleted_run_is_gone_with_everything(self, kit: StoreKit) -> None:
        new = _full_run(kit)
        await kit.store.create(new)
        await kit.store.send(new.id, "note", b"", event=kit.event())
        await kit.store.report_late(new.id, 0, b"late")
        other = await kit.created()
        assert await kit.store.delete_run(new.id) is True
        assert await kit.store.delete_run(new.id) is False
        assert await kit.store.get_run(new.id) is None
        assert await kit.store.read(new.id) == []
        assert await kit.store.events(new.id, after=0, limit=10) == []
        assert await kit.store.holds() == []
        assert await kit.store.next_timer() is None
        assert await kit.store.pending(new.id) == (0, [])
        assert await kit.store.late_reports(new.id) == []
        assert [row[1] for row in await kit.whole_feed()] == [other.id]
        assert (await kit.store.create(_full_run(kit)))[1] is True

    @pytest.mark.covers("R-42", "CORE-STORE-11")
    async def test_room_of_deleted_runs_is_freed_and_others_stay(self, kit: StoreKit) -> None:
        gone, stays = await kit.created(), await kit.claimed()
        await kit.store.delete_run(gone.id)
        for _ in range(2):
            await kit.store.free_space()
        await kit.written(stays, kit.record(1))
        assert len(await kit.store.read(stays.run)) == 2

    async def test_run_is_not_deleted_while_its_lease_lives(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await kit.store.delete_run(lease.run) is False
        assert await kit.store.get_run(lease.run) is not None
        kit.clock.advance(seconds=61)
        assert await kit.store.delete_run(lease.run) is True
        assert await kit.store.reclaim(limit=9, max_recoveries=9) == []


def _full_run(kit: StoreKit) -> NewRun:
    side = Side(holds=[kit.new_hold(0)], timers=[NewTimer("t", 1)])
    return kit.new_run(idempotency_key="k", id=new_run_id(), first=[kit.record(0, term=0, side=side)])


async def _ids(store: Store, where: RunFilter) -> list[RunId]:
    return [row.id for row in await store.list_runs(where, after=None, limit=100)]
