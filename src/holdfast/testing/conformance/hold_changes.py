"""One compare-and-set changes a hold: all of it or nothing, and never what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.audit import NewAudit
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldKey, HoldRow, Note
from holdfast.types.ids import HoldId, derived_id
from holdfast.types.outbox import OutboxMessage
from holdfast.types.record import Side
from holdfast.types.status import HoldStatus, RunStatus
from holdfast.types.terms import ApprovalTerms, HoldTerms, Rung

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

TERMS = HoldTerms(
    approval=ApprovalTerms(mode="quorum", need=2, of=("group:a",)), ladder=(Rung("role:b", "4h"),)
)
CHANGED: dict[str, Any] = {
    "assignee": "Group: b",
    "assignee_type": "group",
    "assignee_value": "b",
    "assignee_reason": "moved",
    "epoch": 2,
    "priority": "high",
    "tags": ("x", "ü"),
    "terms": TERMS,
    "expires_at": 7,
    "expiry_action": "escalate",
    "original_timeout": 8,
    "escalation_target": "role:c",
    "escalation_count": 1,
    "reminder_interval": 15,
    "remind_at": 9,
    "reminder_count": 3,
    "notification_sent": True,
    "notified_at": 10,
    "message_id": "m",
    "claimed_by": "user:a",
    "claim_until": 11,
    "placed": b'{"decision":"yes"}',
    "placed_by": "user:b",
    "placed_until": 12,
    "paused_at": 13,
}


def decided(by: str = "user:ada", **more: Any) -> dict[str, Any]:
    return {
        "status": HoldStatus.resolved,
        "resolution": b'{"decision":"approve"}',
        "resolved_by": by,
        "resolved_at": 5,
        **more,
    }


def closed(status: HoldStatus, reason: str = "because") -> dict[str, Any]:
    return {"status": status, "closed_reason": reason, "closed_by": "user:ada", "closed_at": 6}


def to(hold: HoldRow, fields: dict[str, Any] | None = None, **given: Any) -> HoldChange:
    return HoldChange(hold=hold.id, version=hold.version, at=5, fields=fields or {}, **given)


def entry(hold: HoldRow, action: str = "noted") -> NewAudit:
    return NewAudit(at=5, actor="user:ada", action=action, hold=hold.id, run=hold.run, data=b'{"n":1}')


def note(hold: HoldRow, slot: str = "1", body: bytes = b'{"text":"hm"}', **given: Any) -> Note:
    made = Note(hold=hold.id, kind="comment", slot=slot, person="ada", at=5, body=body)
    return msgspec.structs.replace(made, **given)


async def asked(kit: StoreKit, **given: Any) -> HoldRow:
    """An open hold of a run that waits for it."""
    lease = await kit.claimed()
    hold = await kit.asked(lease, kit.new_hold(1, **given))
    await park(kit.store, lease, status=RunStatus.pending_input)
    return await kit.hold(hold)


async def written(kit: StoreKit, change: HoldChange) -> HoldRow:
    row = await kit.store.change_hold(change)
    assert isinstance(row, HoldRow)
    return row


async def traces(kit: StoreKit, hold: HoldRow) -> list[Any]:
    """Everything that a change could have written."""
    store = kit.store
    return [
        await store.hold(hold.id),
        await store.hold_notes(hold.id),
        await store.audit(hold.tenant),
        await store.list_outbox(),
        await store.pending(hold.run),
        await store.events(hold.run, after=0, limit=99),
        await store.get_run(hold.run),
    ]


@pytest.mark.anyio
class HoldChangeSuite:
    @pytest.mark.covers("CP-9", "CP-16")
    async def test_new_hold_is_pending_with_nothing_decided(self, kit: StoreKit) -> None:
        lease = await kit.claimed(instance_key="order-7", started_by="user:bob", deployment="d-1")
        given = kit.new_hold(1, block=4, tags=("a",), terms=TERMS, remind_at=3, reminder_interval=15)
        row = await kit.hold(await kit.asked(lease, given))
        assert all(getattr(row, field) == getattr(given, field) for field in given.__struct_fields__)
        assert (row.status, row.version, row.epoch) == (HoldStatus.pending, 1, 1)
        assert (row.resolution, row.resolved_by, row.resolved_at, row.resumed_at) == (None,) * 4
        assert (row.notification_sent, row.reminder_count, row.escalation_count) == (False, 0, 0)
        assert (row.run, row.tenant, row.flow) == (lease.run, "default", "refund")
        assert (row.instance_key, row.started_by, row.deployment) == ("order-7", "user:bob", "d-1")
        assert row.updated_at == kit.clock.now()

    @pytest.mark.covers("CP-16")
    async def test_every_field_comes_back_as_it_was_changed(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        kit.clock.advance(seconds=1)
        row = await written(kit, to(hold, CHANGED))
        assert row == await kit.hold(hold.id)
        assert {name: getattr(row, name) for name in CHANGED} == CHANGED
        assert (row.version, row.updated_at) == (2, kit.clock.now())
        same = set(hold.__struct_fields__) - CHANGED.keys() - {"version", "updated_at"}
        assert all(getattr(row, name) == getattr(hold, name) for name in same)

    @pytest.mark.covers("CP-2", "CP-1")
    @pytest.mark.parametrize(
        "field",
        ["id", "run", "tenant", "flow", "block", "type", "prompt", "created_at", "version", "context"],
    )
    async def test_what_a_hold_is_never_changes(self, kit: StoreKit, field: str) -> None:
        hold = await asked(kit)
        with pytest.raises(StoreError, match=field):
            await kit.store.change_hold(to(hold, {field: "other"}))
        assert await kit.hold(hold.id) == hold

    async def test_change_is_written_with_all_that_belongs_to_it(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await kit.store.claim_outbox(limit=9, lease=TTL)
        change = to(
            hold,
            decided(),
            audit=(entry(hold, "resolved"),),
            notes=(note(hold),),
            outbox=(OutboxMessage("hold.closed", f"{hold.id}:k", b'{"a":1}', hold.id),),
            mail=("answer", hold.id.encode()),
            event=kit.event("hold.resolved", b"one"),
            more_events=(kit.event("hold.more", b"two"),),
        )
        row = await written(kit, change)
        assert (row.status, row.resolution) == (HoldStatus.resolved, b'{"decision":"approve"}')
        assert await kit.store.hold_notes(hold.id) == [note(hold)]
        assert [(a.action, a.data) for a in await kit.store.audit("default")][1:] == [
            ("resolved", b'{"n":1}')
        ]
        (message,) = await kit.store.claim_outbox(limit=9, lease=TTL)
        assert (message.topic, message.key, message.payload) == (
            "hold.closed",
            f"{hold.id}:k",
            b'{"a":1}',
        )
        assert (message.hold, message.run, message.tenant) == (hold.id, hold.run, "default")
        _, (mail,) = await kit.store.pending(hold.run)
        assert (mail.kind, mail.payload) == ("answer", hold.id.encode())
        lines = [getattr(e, "payload", b"") for e in await kit.store.events(hold.run, after=2, limit=9)]
        assert lines == [b"one", b"two"]
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert taken.run.id == hold.run

    async def test_second_writer_finds_the_row_changed(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        change = to(
            hold,
            decided(),
            audit=(entry(hold),),
            outbox=(OutboxMessage("t", "k2", b"{}"),),
            mail=("answer", b""),
            event=kit.event(),
            notes=(note(hold),),
        )
        await written(kit, change)
        before = await traces(kit, hold)
        for again in (change, to(hold, {"priority": "high"}, audit=(entry(hold),), mail=("x", b""))):
            assert await kit.store.change_hold(again) is ChangeRefusal.stale
        assert await traces(kit, hold) == before

    @pytest.mark.covers("CP-9", "CP-14")
    @pytest.mark.parametrize("status", [HoldStatus.resolved, HoldStatus.cancelled, HoldStatus.expired])
    async def test_closed_hold_takes_nothing_but_its_resumption(
        self, kit: StoreKit, status: HoldStatus
    ) -> None:
        hold = await asked(kit)
        fields = decided() if status is HoldStatus.resolved else closed(status)
        row = await written(kit, to(hold, fields))
        assert row.status is status
        for name, value in {**CHANGED, **decided("eve"), **closed(HoldStatus.cancelled)}.items():
            assert await kit.store.change_hold(to(row, {name: value})) is ChangeRefusal.stale, name
        assert await kit.store.change_hold(to(row, {"resumed_at": 8, "epoch": 9})) is ChangeRefusal.stale
        assert await kit.hold(hold.id) == row
        resumed = await written(kit, to(row, {"resumed_at": 8}))
        assert (resumed.resumed_at, resumed.version, resumed.updated_at) == (8, row.version, row.updated_at)
        assert await kit.store.change_hold(to(row, {"resumed_at": 9})) is ChangeRefusal.stale
        assert await kit.hold(hold.id) == resumed

    @pytest.mark.covers("CP-14")
    @pytest.mark.parametrize(
        "fields",
        [
            {"status": HoldStatus.resolved},
            {"resolution": b"{}"},
            {"resolved_by": "user:ada", "resolved_at": 5},
            decided(resolution=None),
            decided(resolved_at=None),
            decided(status=HoldStatus.cancelled),
        ],
    )
    async def test_half_a_decision_is_refused(self, kit: StoreKit, fields: dict[str, Any]) -> None:
        hold = await asked(kit)
        before = await traces(kit, hold)
        with pytest.raises(StoreError):
            await kit.store.change_hold(to(hold, fields, audit=(entry(hold),), mail=("answer", b"")))
        assert await traces(kit, hold) == before

    async def test_change_without_fields_asks_for_no_version(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        row = await written(kit, to(hold, decided()))
        changed = await written(kit, to(hold, notes=(note(hold),), audit=(entry(hold, "commented"),)))
        assert changed == row
        assert await kit.store.hold_notes(hold.id) == [note(hold)]
        assert (await kit.store.audit("default"))[-1].action == "commented"

    async def test_unknown_and_imported_holds_take_no_change(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        history = await kit.store.history(hold.run)
        assert history is not None
        nobody = HoldChange(hold=HoldId(derived_id("x")), version=1, at=5, fields=decided())
        assert await kit.store.change_hold(nobody) is ChangeRefusal.unknown
        await kit.store.delete_run(hold.run)
        await kit.store.adopt(history)
        adopted = await kit.hold(hold.id)
        assert adopted.read_only
        before = await traces(kit, hold)
        for change in (to(adopted, decided(), mail=("answer", b"")), to(adopted, notes=(note(hold),))):
            assert await kit.store.change_hold(change) is ChangeRefusal.read_only
        assert await traces(kit, hold) == before

    async def test_link_is_used_once(self, kit: StoreKit) -> None:
        hold, other = await asked(kit), await asked(kit)
        row = await written(kit, to(hold, {"priority": "high"}, link="jti-1"))
        before = await traces(kit, hold)
        assert await kit.store.change_hold(to(row, decided(), link="jti-1")) is ChangeRefusal.link_used
        assert await kit.store.change_hold(to(other, decided(), link="jti-1")) is ChangeRefusal.link_used
        assert await traces(kit, hold) == before
        await written(kit, to(row, decided(), link="jti-2"))

    async def test_link_is_not_used_up_by_a_change_that_was_not_made(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        row = await written(kit, to(hold, {"priority": "high"}))
        assert await kit.store.change_hold(to(hold, decided(), link="j")) is ChangeRefusal.stale
        await written(kit, to(row, decided(), link="j"))

    async def test_idempotency_key_is_one_persons_at_one_hold(self, kit: StoreKit) -> None:
        hold, other = await asked(kit), await asked(kit)
        key = HoldKey("user:ada", "k", "digest")
        row = await written(kit, to(hold, {"priority": "high"}, key=key))
        assert await kit.store.hold_key(hold.id, "user:ada", "k") == key
        assert await kit.store.hold_key(hold.id, "user:eve", "k") is None
        assert await kit.store.hold_key(other.id, "user:ada", "k") is None
        # Also if the row has changed since: a repeated request gets the first result.
        for again in (
            to(hold, decided(), key=key),
            to(row, decided(), key=HoldKey("user:ada", "k", "other")),
        ):
            assert await kit.store.change_hold(again) is ChangeRefusal.key_used
        await written(kit, to(other, decided(), key=key))
        await written(kit, to(row, decided(), key=HoldKey("user:eve", "k", "digest")))

    async def test_note_replaces_the_one_in_its_slot_and_keeps_its_place(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        first, second = note(hold, "1"), note(hold, "2", kind="draft", until=9)
        await written(kit, to(hold, notes=(first, second)))
        newer = note(hold, "1", b"newer", person="eve", at=7)
        await written(kit, to(hold, notes=(newer,)))
        assert await kit.store.hold_notes(hold.id) == [newer, second]
        assert await kit.store.hold_notes(hold.id, kinds=["draft", "vote"]) == [second]
        other, kinds = await asked(kit), ("draft", "comment")
        await written(kit, to(other, notes=(note(other, "3", kind="vote"),)))
        assert await kit.store.count_notes([hold.id, other.id], kinds=kinds) == {hold.id: 2}
        assert await kit.store.count_notes([other.id, hold.id], kinds=["vote"]) == {other.id: 1}
        assert await kit.store.count_notes([], kinds=kinds) == {}
        await written(kit, to(hold, drop_notes=(("comment", "1"), ("comment", "never"))))
        assert await kit.store.hold_notes(hold.id) == [second]

    async def test_one_of_many_wins_and_leaves_one_trace_of_each_kind(self, kit: StoreKit) -> None:
        hold = await asked(kit)

        async def contend(store: Store, number: int) -> HoldRow | ChangeRefusal:
            by = f"user:{number}"
            act = decided(by) if number % 2 else {**closed(HoldStatus.cancelled), "closed_by": by}
            message = OutboxMessage("hold.closed", f"{hold.id}:hold.closed:1", by.encode(), hold.id)
            given = {"mail": ("answer", b""), "event": kit.event(), "outbox": (message,)}
            return await store.change_hold(to(hold, act, audit=(entry(hold, by),), **given))

        answers = await kit.race(8, contend)
        (won,) = [answer for answer in answers if isinstance(answer, HoldRow)]
        assert [answer for answer in answers if answer is not won] == [ChangeRefusal.stale] * 7
        by = won.resolved_by or won.closed_by
        assert await kit.hold(hold.id) == won
        assert [a.action for a in await kit.store.audit("default")] == ["created", by]
        assert len((await kit.store.pending(hold.run))[1]) == 1
        assert [m.topic for m in await kit.store.list_outbox()] == ["hold.created", "hold.closed"]

    async def test_run_takes_the_outcome_in_once(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.hold(await kit.asked(lease))
        await kit.written(lease, kit.record(2, side=Side(resumed_holds=[hold.id])))
        assert (await kit.hold(hold.id)).resumed_at is None, "nothing was decided"
        row = await written(kit, to(hold, decided()))
        kit.clock.advance(seconds=1)
        await kit.written(lease, kit.record(3, side=Side(resumed_holds=[hold.id])))
        at = kit.clock.now()
        kit.clock.advance(seconds=1)
        await kit.written(lease, kit.record(4, side=Side(resumed_holds=[hold.id])))
        resumed = await kit.hold(hold.id)
        assert (resumed.resumed_at, resumed.version) == (at, row.version)
        assert [a.action for a in await kit.store.audit("default")] == ["created"]
