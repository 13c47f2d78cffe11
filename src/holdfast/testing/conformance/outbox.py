"""The outbox: messages are written once by their key, claimed for a while, sent, finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.testing.conformance.hold_changes import asked, decided, to
from holdfast.types.clock import MICROS
from holdfast.types.outbox import OutboxMessage, OutboxState
from holdfast.types.record import Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.outbox import OutboxRow

LEASE = 10 * MICROS
DONE, DEAD, WAITING = OutboxState.done, OutboxState.dead, OutboxState.waiting


async def run_with_messages(kit: StoreKit, *messages: OutboxMessage, **given: str) -> str:
    """The messages, with a run's first record."""
    lease = await kit.claimed(**given)
    await kit.written(lease, kit.record(1, side=Side(outbox=list(messages))))
    return lease.run


def message(key: str = "k", topic: str = "hold.created", due_at: int | None = None) -> OutboxMessage:
    return OutboxMessage(topic, key, b'{"n":1}', due_at=due_at)


async def claim(kit: StoreKit, limit: int = 9, topics: tuple[str, ...] = ()) -> list[OutboxRow]:
    return await kit.store.claim_outbox(limit=limit, lease=LEASE, topics=topics)


@pytest.mark.anyio
@pytest.mark.covers("NO-8")
class OutboxSuite:
    async def test_message_is_claimed_as_it_was_written(self, kit: StoreKit) -> None:
        run = await run_with_messages(
            kit, OutboxMessage("t", "hold-1:k", b"\x00\xc3\xff", "hold-1"), tenant="acme"
        )
        (row,) = await claim(kit)
        assert (row.topic, row.key, row.payload, row.hold) == (
            "t",
            "hold-1:k",
            b"\x00\xc3\xff",
            "hold-1",
        )
        assert (row.tenant, row.run, row.at) == ("acme", run, kit.clock.now())
        assert (row.state, row.attempts, row.error) == (WAITING, 1, None)
        assert row.claimed_until == kit.clock.now() + LEASE
        assert await kit.store.list_outbox() == [row]

    async def test_key_is_reported_once_in_its_tenant(self, kit: StoreKit) -> None:
        await run_with_messages(kit, message(), message())
        await run_with_messages(kit, message(topic="other"))
        await run_with_messages(kit, message(), tenant="acme")
        assert [(row.tenant, row.topic) for row in await kit.store.list_outbox()] == [
            ("default", "hold.created"),
            ("acme", "hold.created"),
        ]
        for row in await claim(kit):
            assert await kit.store.finish_outbox(row.id, attempt=1, state=DONE)
        await run_with_messages(kit, message())
        assert await claim(kit) == []

    @pytest.mark.covers("WB-67-notices")
    async def test_messages_are_listed_newest_first_before_a_number(self, kit: StoreKit) -> None:
        await run_with_messages(kit, *[message(f"m{number}") for number in range(4)])
        sent = (await claim(kit))[1]
        assert await kit.store.finish_outbox(sent.id, attempt=1, state=DONE)
        found = await kit.store.list_outbox(tenant="default", state=WAITING, before=2**63 - 1, limit=2)
        rest = await kit.store.list_outbox(tenant="default", state=WAITING, before=found[-1].id)
        keys = [row.key for row in [*found, *rest]]
        assert keys == sorted({"m0", "m1", "m2", "m3"} - {sent.key}, reverse=True)
        assert await kit.store.list_outbox(tenant="acme", state=WAITING, before=2**63 - 1) == []

    async def test_claimed_message_is_not_claimed_again_until_the_lease_is_over(self, kit: StoreKit) -> None:
        await run_with_messages(kit, message())
        (first,) = await claim(kit)
        assert await claim(kit) == []
        kit.clock.advance(seconds=10)
        (second,) = await claim(kit)
        assert (second.id, second.attempts) == (first.id, 2)
        assert not await kit.store.finish_outbox(first.id, attempt=1, state=DONE)
        assert (await kit.store.list_outbox())[0].state is WAITING
        assert await kit.store.finish_outbox(first.id, attempt=2, state=DONE)
        assert not await kit.store.finish_outbox(first.id, attempt=2, state=DEAD)
        (row,) = await kit.store.list_outbox()
        assert (row.state, row.claimed_until) == (DONE, None)

    async def test_message_waits_for_its_time(self, kit: StoreKit) -> None:
        later = kit.clock.now() + 60 * MICROS
        await run_with_messages(kit, message("later", due_at=later), message("now"))
        assert [row.key for row in await claim(kit)] == ["now"]
        kit.clock.advance(seconds=60)
        assert [row.key for row in await claim(kit)] == ["now", "later"]

    async def test_message_that_failed_is_tried_again_then(self, kit: StoreKit) -> None:
        await run_with_messages(kit, message())
        (row,) = await claim(kit)
        again = kit.clock.now() + 30 * MICROS
        finish = kit.store.finish_outbox
        assert await finish(row.id, attempt=1, state=WAITING, error="refused", due_at=again)
        kit.clock.advance(seconds=29)
        assert await claim(kit) == []
        kit.clock.advance(seconds=1)
        (retried,) = await claim(kit)
        assert (retried.attempts, retried.error, retried.due_at) == (2, "refused", again)

    async def test_dead_message_is_reported_after_a_replay(self, kit: StoreKit) -> None:
        await run_with_messages(kit, message())
        (row,) = await claim(kit)
        assert not await kit.store.replay_outbox(row.id)
        assert await kit.store.finish_outbox(row.id, attempt=1, state=DEAD, error="gave up")
        assert await claim(kit) == []
        (dead,) = await kit.store.list_outbox(state=DEAD)
        assert dead.error == "gave up"
        kit.clock.advance(seconds=1)
        assert await kit.store.replay_outbox(row.id)
        assert not await kit.store.replay_outbox(row.id)
        (again,) = await claim(kit)
        assert (again.attempts, again.error) == (1, None)
        assert await kit.store.finish_outbox(row.id, attempt=1, state=DONE)
        assert not await kit.store.replay_outbox(row.id)
        assert not await kit.store.replay_outbox(999)

    async def test_oldest_are_claimed_first_and_topics_chosen(self, kit: StoreKit) -> None:
        for number in range(3):
            await run_with_messages(kit, message(f"a{number}", "a"), message(f"b{number}", "b"))
            kit.clock.advance(seconds=1)
        assert [row.key for row in await claim(kit, limit=2)] == ["a0", "b0"]
        assert [row.key for row in await claim(kit, topics=("b", "c"))] == ["b1", "b2"]
        assert [row.key for row in await claim(kit)] == ["a1", "a2"]

    async def test_one_message_goes_to_one_of_many(self, kit: StoreKit) -> None:
        await run_with_messages(kit, *[message(f"k{number}") for number in range(12)])

        async def contend(store: Store, _: int) -> list[int]:
            taken: list[int] = []
            while rows := await store.claim_outbox(limit=2, lease=LEASE):
                taken += [row.id for row in rows]
            return taken

        taken = [number for mine in await kit.race(4, contend) for number in mine]
        assert sorted(taken) == sorted({row.id for row in await kit.store.list_outbox()})

    async def test_lists_are_filtered(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await run_with_messages(kit, message(), tenant="acme")
        assert [row.key for row in await kit.store.list_outbox(tenant="acme")] == ["k"]
        assert [row.topic for row in await kit.store.list_outbox(hold=hold.id)] == ["hold.created"]
        assert await kit.store.list_outbox(state=DEAD, hold=hold.id) == []
        assert len(await kit.store.list_outbox(limit=1)) == 1
        assert len(await kit.store.list_outbox(topic="hold.created", hold=hold.id)) == 1
        assert await kit.store.list_outbox(topic="hold.closed") == []
        written = [row.due_at for row in await kit.store.list_outbox()]
        assert await kit.store.list_outbox(due_before=min(written)) == []
        assert len(await kit.store.list_outbox(state=WAITING, due_before=max(written) + 1)) == len(written)

    async def test_hold_is_informed_of_when_it_opens_and_when_it_ends(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kept = kit.new_hold(1)
        silent = kit.new_hold(1, ordinal=1, type="debug_breakpoint")
        await kit.written(lease, kit.record(1, side=Side(holds=[kept, silent])))
        (created,) = await claim(kit)
        assert (created.key, created.hold) == (f"{kept.id}:hold.created:1", kept.id)
        assert msgspec.json.decode(created.payload)["hold"] == kept.id
        end = Side(status=RunStatus.cancelled, close_all_holds="over")
        await kit.written(lease, kit.record(2, side=end))
        (closed,) = await claim(kit)
        assert (closed.topic, closed.key) == ("hold.closed", f"{kept.id}:hold.closed:1")
        about = msgspec.json.decode(closed.payload)
        assert (about["hold"], about["epoch"], about["status"]) == (kept.id, 1, "cancelled")

    async def test_decided_hold_is_not_informed_of_again_when_its_run_ends(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await claim(kit)
        await kit.store.change_hold(to(hold, decided()))
        assert await kit.store.delete_run(hold.run)
        (row,) = await kit.store.list_outbox(hold=hold.id)
        assert (row.topic, row.state, row.payload) == ("hold.created", OutboxState.skipped, b"{}")
        kit.clock.advance(days=1)
        assert await claim(kit) == []

    async def test_withdrawal_outlives_the_run_that_was_deleted(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await run_with_messages(kit, message("another"))
        assert await kit.store.delete_run(hold.run)
        (row,) = await kit.store.list_outbox(hold=hold.id)
        assert (row.topic, row.state, row.run) == ("hold.closed", WAITING, None)
        assert {taken.key for taken in await claim(kit)} == {"another", row.key}

    async def test_message_about_a_hold_is_named_after_it(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        for key in ("other", f"{hold.id}", f"x:{hold.id}:y"):
            change = to(hold, decided(), outbox=(OutboxMessage("t", key, b"", hold.id),))
            with pytest.raises(StoreError, match="does not begin"):
                await kit.store.change_hold(change)
        assert await kit.hold(hold.id) == hold
