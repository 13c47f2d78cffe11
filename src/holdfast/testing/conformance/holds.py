"""Holds: opened once, decided once."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.event import EventRow
from holdfast.types.hold import HoldRow, Option
from holdfast.types.ids import HoldId, derived_id
from holdfast.types.record import Record, Refusal, Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

NOBODY = HoldId(derived_id("nobody"))


@pytest.mark.anyio
class HoldSuite:
    async def test_hold_is_kept_as_it_was_asked(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        given = kit.new_hold(
            1,
            scope="a/b",
            visit=2,
            ordinal=3,
            prompt="Überweisen? 💶",
            options=(Option("yes", "Yes", "primary"), Option("no", "No")),
            assignee="group:finance",
            context=b"\x00\xff",
            schema=b"{}",
            expires_at=99,
            expiry_action="fail",
        )
        await kit.asked(lease, given)
        row = await kit.hold(given.id)
        for field in given.__struct_fields__:
            assert getattr(row, field) == getattr(given, field), field
        assert await kit.store.holds(run=lease.run) == [row]

    @pytest.mark.covers("D-28", "R-28", "CP-17", "CP-1")
    async def test_repeated_ask_finds_its_own_hold(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = kit.new_hold(1)
        await kit.asked(lease, hold)
        # After a crash the node asks again: the same id at a later record, or the same place with another id.
        again = kit.new_hold(2, id=hold.id, prompt="Again?")
        same_place = kit.new_hold(3, prompt="Again?")
        await kit.written(lease, kit.record(2, side=Side(holds=[again])))
        await kit.written(lease, kit.record(3, side=Side(holds=[same_place])))
        elsewhere = kit.new_hold(4, id=hold.id, visit=2)
        await kit.written(lease, kit.record(4, side=Side(holds=[elsewhere])))
        (row,) = await kit.store.holds()
        assert (row.id, row.seq, row.visit, row.prompt) == (hold.id, 1, 1, "Refund?")

    @pytest.mark.covers("CP-15", "D-37")
    async def test_hold_is_never_there_without_its_state(self, kit: StoreKit) -> None:
        """The state is the records, and the blobs that they name: these are put first."""
        lease = await kit.claimed()
        data = b"a large value"
        digest = sha256(data).digest()
        hold = kit.new_hold(1)
        asking = kit.record(1, side=Side(holds=[hold], blobs=[digest]))
        refused = await kit.settle(lease, asking)
        assert refused.refusal is Refusal.put_blobs_again
        assert await kit.store.hold(hold.id) is None
        assert (await kit.store.audit("default"), await kit.store.list_outbox()) == ([], [])
        await kit.store.put_blob(digest, len(data), data)
        assert await kit.store.hold(hold.id) is None, "what a crash leaves here is a blob that nobody names"
        await kit.written(lease, asking)
        row = await kit.hold(hold.id)
        assert (row.run, row.seq) == (lease.run, 1)
        kit.clock.advance(days=9)
        assert await kit.store.condemn_blobs(older_than=kit.clock.now(), limit=9) == []
        assert digest not in msgspec.structs.astuple(row), "no list can show where the state lies"

    @pytest.mark.covers("D-28")
    async def test_answered_hold_stays_answered_when_asked_again(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = kit.new_hold(1)
        await kit.asked(lease, hold)
        decided = await kit.decide(hold.id, event=kit.event())
        await kit.written(lease, kit.record(2, side=Side(holds=[hold])))
        assert await kit.hold(hold.id) == decided

    @pytest.mark.covers("D-28", "R-27", "R-28", "CP-17")
    async def test_asks_of_other_places_never_collide(self, kit: StoreKit) -> None:
        lease, other = await kit.claimed(), await kit.claimed()
        holds = [
            kit.new_hold(1),
            kit.new_hold(1, ordinal=1),
            kit.new_hold(1, visit=2),
            kit.new_hold(1, node="other"),
            kit.new_hold(1, scope="frame"),
        ]
        await kit.written(lease, kit.record(1, side=Side(holds=holds)))
        await kit.asked(other, kit.new_hold(1))
        assert len(await kit.store.holds(run=lease.run)) == 5
        assert len(await kit.store.holds()) == 6

    @pytest.mark.covers("R-21", "R-25", "R-26")
    async def test_answer_is_stored_with_message_event_and_wake_up(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        await park(kit.store, lease, status=RunStatus.pending_input)
        kit.clock.advance(days=7)
        chosen = b'{"choice":"yes"}'
        decided = await kit.decide(hold, chosen, "ada@ä", event=kit.event("hold.resolved", b"by ada"))
        assert decided is not None
        assert decided == await kit.hold(hold)
        assert (decided.status, decided.version) == (HoldStatus.resolved, 2)
        assert (decided.resolution, decided.resolved_by, decided.resolved_at) == (
            chosen,
            "ada@ä",
            kit.clock.now(),
        )
        seen, (message,) = await kit.store.pending(lease.run)
        assert (seen, message.kind, message.payload) == (1, "answer", hold.encode())
        (event,) = await kit.store.events(lease.run, after=2, limit=9)
        assert event == EventRow(3, kit.clock.now(), "hold.resolved", b"by ada")
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert taken.run.id == lease.run

    @pytest.mark.covers("CORE-STORE-11", "CORE-HOLD-02")
    async def test_second_answer_changes_nothing(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        first = await kit.decide(hold, event=kit.event())
        before = await kit.row(lease.run)
        assert await kit.decide(hold, event=kit.event()) is None
        assert await kit.decide(hold, b'"no"', "eve", event=kit.event()) is None
        assert await kit.hold(hold) == first
        assert await kit.row(lease.run) == before

    async def test_unknown_hold_takes_no_answer(self, kit: StoreKit) -> None:
        assert await kit.store.hold(NOBODY) is None
        assert await kit.decide(NOBODY, event=kit.event()) is None
        assert await kit.whole_feed() == []

    @pytest.mark.covers("R-22", "R-25", "CORE-HOLD-02")
    async def test_one_answer_wins_when_people_race(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)

        async def contend(store: Store, number: int) -> bool:
            result = kit.event("hold.resolved", b"%d" % number)
            given = kit.decision(hold, b"%d" % number, f"person-{number}", event=result)
            return isinstance(await store.change_hold(given), HoldRow)

        won = await kit.race(8, contend)
        assert sum(won) == 1
        winner = b"%d" % won.index(True)
        row = await kit.hold(hold)
        assert (row.resolution, row.resolved_by) == (winner, f"person-{winner.decode()}")
        seen, rows = await kit.store.pending(lease.run)
        assert (seen, len(rows)) == (1, 1)
        (event,) = await kit.store.events(lease.run, after=2, limit=9)
        assert not isinstance(event, Record)
        assert event.payload == winner

    async def test_holds_are_listed_oldest_first_and_filtered(self, kit: StoreKit) -> None:
        assert await kit.store.holds() == []
        opened: list[HoldId] = []
        for number in range(4):
            kit.clock.advance(seconds=1)
            lease = await kit.claimed(tenant="acme" if number % 2 else "default")
            opened.append(await kit.asked(lease))
        await kit.decide(opened[0], event=kit.event())
        listed = kit.store.holds
        assert [row.id for row in await listed()] == opened
        assert [row.id for row in await listed(limit=2)] == opened[:2]
        assert [row.id for row in await listed(tenant="acme")] == opened[1::2]
        assert [row.id for row in await listed(status=HoldStatus.resolved)] == opened[:1]
        assert [row.id for row in await listed(status=HoldStatus.pending, tenant="default")] == [opened[2]]
        run = (await kit.hold(opened[3])).run
        assert [row.id for row in await listed(run=run)] == opened[3:]
