"""Bytes and text are returned unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import FlowRow, RunFilter
from holdfast.testing.conformance.kit import TTL
from holdfast.types.hold import Option
from holdfast.types.record import NewTimer, OutboxMessage, Side

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit

MEGABYTE = 1024 * 1024
TEXTS = ("Žltý kôň", "日本語", "👩‍👩‍👧 ﷽", "a'b\"c;--%_\\", " lead and trail ", "e\u0301 \u200f \n\t")


@pytest.mark.anyio
class ValueSuite:
    @pytest.mark.parametrize("size", [0, 1, 255, MEGABYTE])
    async def test_payload_of_any_size_comes_back(self, kit: StoreKit, size: int) -> None:
        payload = bytes(n % 256 for n in range(256)) * (size // 256) + b"\x00" * (size % 256)
        lease = await kit.claimed()
        hold = kit.new_hold(1, context=payload, schema=payload)
        await kit.written(lease, kit.record(1, payload=payload, side=Side(holds=[hold])))
        await kit.store.send(lease.run, "note", payload, event=kit.event("e", payload))
        await kit.store.report_late(lease.run, 1, payload)
        await kit.store.put_blob(b"d", size, payload)
        await kit.store.put_flow(FlowRow(name="f", version="v", graph=payload, created_at=1))
        await kit.decide(hold.id, payload, event=kit.event())
        (record,) = await kit.store.read(lease.run, first=1)
        _, (message, _) = await kit.store.pending(lease.run)
        event = (await kit.store.events(lease.run, after=2, limit=1))[0]
        row = await kit.hold(hold.id)
        flow = await kit.store.flow("f", "v")
        assert flow is not None
        assert record.payload == message.payload == event.payload == flow.graph == payload
        assert row.context == row.schema == row.resolution == payload
        assert await kit.store.blob(b"d") == (size, payload)
        assert await kit.store.late_reports(lease.run) == [(1, payload)]

    @pytest.mark.covers("RS-STORE-14")
    @pytest.mark.parametrize("text", TEXTS)
    async def test_text_of_a_run_comes_back(self, kit: StoreKit, text: str) -> None:
        given = {
            "tenant": text,
            "flow": text,
            "version": text,
            "code": text,
            "lane": text,
            "thread": text,
            "instance_key": text,
            "forked_from": text,
        }
        row = await kit.created(**given, idempotency_key=text)
        assert {name: getattr(row, name) for name in given} == given
        again, fresh = await kit.store.create(kit.new_run(**given, idempotency_key=text))
        assert (again.id, fresh) == (row.id, False)
        where = RunFilter(tenant=text, flow=text, thread=text, version=text)
        assert await kit.store.list_runs(where, after=None, limit=9) == [row]
        lease = (await kit.claim(row.id, worker=text)).lease
        assert (await kit.row(row.id)).worker == text
        assert await kit.store.extend([lease], TTL) == [True]

    @pytest.mark.covers("RS-STORE-14")
    @pytest.mark.parametrize("text", TEXTS)
    async def test_text_of_a_record_and_its_side_comes_back(self, kit: StoreKit, text: str) -> None:
        lease = await kit.claimed()
        hold = kit.new_hold(
            1,
            node=text,
            scope=text,
            type=text,
            prompt=text,
            options=(Option(text, text, text),),
            assignee=text,
            priority=text,
            expiry_action=text,
            request_hash=text,
        )
        outbox = [OutboxMessage(text, text, text.encode())]
        timers = [NewTimer(text, kit.clock.now())]
        side = Side(error=text, holds=[hold], timers=timers, outbox=outbox)
        await kit.written(lease, kit.record(1, node=text, scope=text, side=side))
        (record,) = await kit.store.checkpoint_records(lease.run, node=text)
        assert (record.node, record.scope) == (text, text)
        assert (await kit.row(lease.run)).error == text
        row = await kit.hold(hold.id)
        assert all(getattr(row, field) == getattr(hold, field) for field in hold.__struct_fields__)
        assert await kit.store.fire_timers(limit=9) == 1
        _, (message,) = await kit.store.pending(lease.run)
        assert message.payload == text.encode()

    @pytest.mark.covers("RS-STORE-14")
    @pytest.mark.parametrize("text", TEXTS)
    async def test_text_of_messages_answers_and_flows_comes_back(self, kit: StoreKit, text: str) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        event = kit.event(text)
        assert await kit.store.send(lease.run, text, b"", dedupe=text, event=event) is True
        assert await kit.store.send(lease.run, text, b"", dedupe=text) is False
        decided = await kit.decide(hold, by=text, event=event)
        assert decided is not None
        assert decided.resolved_by == text
        _, (message, _) = await kit.store.pending(lease.run)
        assert message.kind == text
        shown = await kit.store.events(lease.run, after=2, limit=9)
        assert [getattr(row, "type", None) for row in shown] == [text, text]
        flow = FlowRow(name=text, version=text, graph=b"g", created_at=1)
        await kit.store.put_flow(flow)
        assert await kit.store.flow(text, text) == flow

    async def test_texts_that_differ_only_in_case_or_spaces_are_different(self, kit: StoreKit) -> None:
        for key in ("key", "KEY", "key ", " key", "kéy"):
            await kit.created(idempotency_key=key)
        lease = await kit.claimed()
        for key in ("t", "T", "t ", "ť"):
            assert await kit.store.send(lease.run, "note", b"", dedupe=key) is True
        timers = [NewTimer(token, 1) for token in ("t", "T", "t ", "ť")]
        await kit.written(lease, kit.record(1, side=Side(timers=timers)))
        assert await kit.store.fire_timers(limit=9) == 4

    async def test_large_numbers_come_back(self, kit: StoreKit) -> None:
        far = 253_402_300_799_999_999
        lease = await kit.claimed(priority=-(2**31))
        given = kit.record(1, at=far, visit=2**31, side=Side(timers=[NewTimer("t", far)]))
        await kit.written(lease, given)
        (record,) = await kit.store.read(lease.run, first=1)
        assert (record.at, record.visit) == (far, 2**31)
        assert await kit.store.next_timer() == far
        assert (await kit.row(lease.run)).priority == -(2**31)
