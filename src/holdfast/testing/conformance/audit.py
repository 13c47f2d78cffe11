"""The audit: one chain per tenant, written with the change that it records, and never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.testing.conformance.hold_changes import asked, decided, entry, to
from holdfast.types.audit import GENESIS, AuditRow, NewAudit, hash_of
from holdfast.types.hold import facts_digest
from holdfast.types.record import Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit


def new_audit(number: int = 0, **given: Any) -> NewAudit:
    entry = NewAudit(at=number, actor="user:ada", action="noted", data=b'{"n":"\xc3\xbc"}')
    return msgspec.structs.replace(entry, **given)


def require_whole(chain: list[AuditRow], head: tuple[int, bytes]) -> None:
    prev = GENESIS
    for number, row in enumerate(chain, 1):
        assert (row.seq, row.prev) == (number, prev)
        assert row.hash == hash_of(row)
        prev = row.hash
    assert head == (len(chain), prev)


async def chain_of(kit: StoreKit, tenant: str = "default") -> list[AuditRow]:
    """The tenant's whole chain, verified."""
    chain = await kit.store.audit(tenant)
    require_whole(chain, await kit.store.audit_head(tenant))
    return chain


def data(row: AuditRow) -> dict[str, Any]:
    return msgspec.json.decode(row.data)


@pytest.mark.anyio
@pytest.mark.covers("HOLD-AUDIT-01")
class AuditSuite:
    async def test_nothing_was_done_in_a_new_store(self, kit: StoreKit) -> None:
        assert await chain_of(kit) == []
        assert await kit.store.audit_head("default") == (0, GENESIS)
        assert await kit.store.audit_tenants() == []
        assert await kit.store.append_audit("default", []) == []
        assert await kit.store.audit_tenants() == []

    async def test_entries_come_back_as_they_were_said(self, kit: StoreKit) -> None:
        given = [new_audit(1, hold="h", run="r"), new_audit(2, action="refused", actor="user:ü", data=b"{}")]
        written = await kit.store.append_audit("default", given)
        chain = await chain_of(kit)
        assert chain == written
        kept = [NewAudit(**{f: getattr(row, f) for f in NewAudit.__struct_fields__}) for row in chain]
        assert kept == given

    async def test_each_tenant_has_a_chain_of_its_own_that_goes_on(self, kit: StoreKit) -> None:
        for number in range(3):
            await kit.store.append_audit("default", [new_audit(number), new_audit(number)])
            await kit.store.append_audit("acme", [new_audit(number)])
        assert [row.at for row in await chain_of(kit)] == [0, 0, 1, 1, 2, 2]
        assert [row.seq for row in await chain_of(kit, "acme")] == [1, 2, 3]
        assert await kit.store.audit_tenants() == ["acme", "default"]

    async def test_chain_goes_on_in_another_handle(self, kit: StoreKit) -> None:
        await kit.store.append_audit("default", [new_audit(1)])
        other = await kit.another()
        await other.append_audit("default", [new_audit(2)])
        await kit.store.append_audit("default", [new_audit(3)])
        assert [row.at for row in await chain_of(kit)] == [1, 2, 3]
        if other is not kit.store:
            await other.close()

    async def test_chain_is_whole_when_many_write_at_once(self, kit: StoreKit) -> None:
        async def contend(store: Store, number: int) -> None:
            for _ in range(5):
                await store.append_audit("default", [new_audit(number), new_audit(number)])

        await kit.race(4, contend)
        chain = await chain_of(kit)
        assert sorted(row.at for row in chain) == sorted([0, 1, 2, 3] * 10)

    async def test_pages_and_holds(self, kit: StoreKit) -> None:
        await kit.store.append_audit("default", [new_audit(n, hold="a" if n % 2 else "b") for n in range(6)])
        read = kit.store.audit
        assert [row.seq for row in await read("default", after=2, limit=3)] == [3, 4, 5]
        assert [row.seq for row in await read("default", hold="a")] == [2, 4, 6]
        assert [row.seq for row in await read("default", hold="a", after=2, limit=1)] == [4]
        assert await read("default", after=6) == []
        assert await read("acme", hold="a") == []

    @pytest.mark.covers("HI-5")
    @pytest.mark.parametrize("change", ["edit", "remove", "swap", "cut"])
    async def test_what_was_done_to_a_chain_shows(self, kit: StoreKit, change: str) -> None:
        await kit.store.append_audit("default", [new_audit(n) for n in range(4)])
        chain, head = await kit.store.audit("default"), await kit.store.audit_head("default")
        require_whole(chain, head)
        if change == "edit":
            chain[1] = msgspec.structs.replace(chain[1], actor="user:eve")
        elif change == "remove":
            del chain[1]
        elif change == "swap":
            chain[1], chain[2] = chain[2], chain[1]
        else:
            del chain[3]
        with pytest.raises(AssertionError):
            require_whole(chain, head)

    async def test_opened_hold_is_reported_with_its_facts(self, kit: StoreKit) -> None:
        lease = await kit.claimed(tenant="acme")
        given = kit.new_hold(1, assignee="group:x", expires_at=99, request_hash="sha256:1")
        await kit.asked(lease, given)
        await kit.written(lease, kit.record(2, side=Side(holds=[given])))
        (row,) = await chain_of(kit, "acme")
        assert (row.actor, row.action, row.hold) == ("system:engine", "created", given.id)
        assert (row.run, row.at) == (lease.run, kit.clock.now())
        assert data(row) == {
            "node": "approve",
            "type": "decision",
            "assignee": "group:x",
            "request_hash": "sha256:1",
            "expires_at": 99,
            "facts": facts_digest(given),
        }
        assert await chain_of(kit) == []

    async def test_holds_that_end_with_their_run_are_reported(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        first, second = kit.new_hold(1), kit.new_hold(1, ordinal=1)
        await kit.written(lease, kit.record(1, side=Side(holds=[first, second])))
        await kit.store.change_hold(to(await kit.hold(first.id), decided()))
        end = Side(status=RunStatus.cancelled, close_all_holds="nobody needs it")
        await kit.written(lease, kit.record(2, side=end))
        chain = await chain_of(kit)
        assert [(row.action, row.hold) for row in chain[2:]] == [("cancelled", second.id)]
        assert data(chain[-1]) == {"reason": "nobody needs it"}
        closed = await kit.hold(second.id)
        assert (closed.closed_by, closed.closed_at) == ("system:engine", kit.clock.now())
        assert (closed.closed_reason, closed.status) == ("nobody needs it", HoldStatus.cancelled)

    async def test_audit_outlives_the_run(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await kit.store.change_hold(to(hold, {"priority": "high"}, audit=(entry(hold, "raised"),)))
        assert await kit.store.delete_run(hold.run)
        chain = await chain_of(kit)
        assert [row.action for row in chain] == ["created", "raised", "cancelled"]
        assert data(chain[-1])["reason"] == "the run was deleted"
        assert await kit.store.audit("default", hold=hold.id) == chain
