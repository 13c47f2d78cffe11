"""A hostile client of the broker: what it publishes straight to the subjects decides nothing that it may not
decide, and stops nobody's queue."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import nats
import pytest

from holdfast import Holdfast
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.queues.transport import Ack
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import new_id
from holdfast.types.queue_message import MessageFilter, MessageState
from holdfast.types.status import HoldStatus
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.queues.test_nats_story import NatsOffice, bound_to, event, harness, own_server, until  # noqa: F401
from tests.services.nats import DEAD, OPEN, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]


@pytest.mark.covers("QU-24", "PLATFORM-BAD-02")
async def test_reconciler_applies_no_completion_that_names_another_hold(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    mine, other = await harness.published(), await harness.asks(queue=None)
    await foreign.js.publish(f"hf.done.default.{mine.id}", event(other.id))
    await harness.queues.reconcile()
    assert (await harness.hold(other.id)).status is HoldStatus.pending
    assert (await harness.hold(mine.id)).status is HoldStatus.pending


@pytest.mark.covers("QU-24", "PLATFORM-BAD-02")
async def test_reconciler_takes_no_completion_from_a_queue_that_only_sends(
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    clock, bound = FakeClock(), bound_to(nats_server)
    spec = QueueSpec(backend="nats", direction="out")
    settings = QueueSettings(queues={"support/reviews": spec}, backends=bound.backends)
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        sends = NatsOffice(hf, await hf.queues(), await hf.open(), clock)
        hold = await sends.published()
        await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))
        await sends.queues.reconcile()
        assert (await sends.hold(hold.id)).status is HoldStatus.pending
        assert "unbound_completion" in await sends.actions(hold.id)


BROKEN = (b"\xff", b"[1]", b'{"type": "scaiqueue.message.completed"}', b"[" * 100_000)


@pytest.mark.covers("QU-24", "PLATFORM-BAD-02")
@pytest.mark.parametrize("body", BROKEN, ids=["bytes", "list", "empty", "deep"])
async def test_broken_completion_of_one_hold_does_not_stop_the_reconciler(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    body: bytes,
) -> None:
    broken, gone = await harness.published(), await harness.published()
    await foreign.js.publish(f"hf.done.default.{broken.id}", body)
    await foreign.js.purge_stream(OPEN)
    found = await harness.queues.reconcile()
    assert found.holds == 2
    assert any(each.endswith(str(gone.message_id)) for each in await foreign.subjects(OPEN))


@pytest.mark.covers("QU-24", "PLATFORM-BAD-02")
async def test_completion_by_a_person_who_may_not_decide_does_not_stop_the_reconciler(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    asked = await harness.published(approval={"mode": "quorum", "need": 2, "of": ["user:a@x", "user:b@x"]})
    gone = await harness.published()
    await foreign.js.publish(f"hf.done.default.{asked.id}", event(asked.id))
    await foreign.js.purge_stream(OPEN)
    await harness.queues.reconcile()
    assert any(each.endswith(str(gone.message_id)) for each in await foreign.subjects(OPEN))


@pytest.mark.covers("QU-21", "PLATFORM-BAD-02")
@pytest.mark.parametrize("depth", [5_000, 100_000])
async def test_deeply_nested_message_is_a_dead_letter(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    depth: int,
) -> None:
    await harness.transport.jetstream()
    nested = b"[" * depth + b"]" * depth
    body = b'{"id": "deep", "payload": ' + nested + b"}"
    await foreign.js.publish("hf.in.default.support.reviews.deep", body)
    assert await harness.delivered() is Ack.reject


@pytest.mark.covers("QU-21", "PLATFORM-BAD-02")
async def test_largest_message_that_cannot_be_read_is_a_dead_letter(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    hold = await harness.published()
    await foreign.js.publish("hf.done.default.big", b"x" * foreign.client.max_payload)
    assert await harness.delivered() is Ack.reject
    assert await foreign.subjects(DEAD) == ["hf.dead.done.default.big"]
    await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))
    assert await harness.delivered() is Ack.ack
    assert (await harness.hold(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("QU-21", "PLATFORM-BAD-02")
async def test_producer_decides_no_hold_and_completer_publishes_no_message(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    hold = await harness.published()
    before = await harness.store.list_messages(MessageFilter())
    await foreign.js.publish("hf.in.default.support.reviews.x", event(hold.id))
    assert await harness.delivered() is Ack.reject
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    await foreign.js.publish("hf.done.default.y", b'{"id": "y", "payload": {"pay": 1}}')
    assert await harness.delivered() is Ack.reject
    after = await harness.store.list_messages(MessageFilter())
    assert [row for row in after if row.type != "rejected"] == before
    assert [row.state for row in after if row.type == "rejected"] == [MessageState.dead] * 2


@pytest.mark.covers("QU-25", "PLATFORM-BAD-02")
async def test_early_completion_that_is_forbidden_does_not_stop_the_others(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await harness.transport.jetstream()
    hold = await harness.asks(approval={"mode": "quorum", "need": 2, "of": ["user:a@x", "user:b@x"]})
    await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))

    async def none(*_given: Any) -> None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(harness.store, "hold", none)
        assert await harness.delivered() is Ack.ack
    other = await harness.asks()
    found = await harness.queues.reconcile()
    assert found.holds == 2
    places = [each.rpartition(".")[2] for each in await foreign.subjects(OPEN)]
    assert {(await harness.hold(each.id)).message_id for each in (hold, other)} == set(places)


@pytest.mark.covers("QU-20", "PLATFORM-BAD-02")
async def test_broker_that_comes_back_empty_is_filled_again(tmp_path: Path, own_server: NatsServer) -> None:  # noqa: F811
    clock = FakeClock()
    settings = bound_to(own_server, timeout="1s")
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        own = NatsOffice(hf, await hf.queues(), await hf.open(), clock)
        hold = await own.published()
        own_server.stop()
        shutil.rmtree(tmp_path / "nats" / "jetstream")
        own_server.start()
        client = await nats.connect(own_server.address)

        async def back() -> list[str]:
            clock.advance(minutes=10)
            await own.queues.reconcile()
            return await Foreign(client).subjects(OPEN)

        assert await until(back)
        await client.jetstream().publish(f"hf.done.default.{hold.id}", event(hold.id))
        assert await own.delivered() is Ack.ack
        await client.close()
        assert (await own.hold(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("QU-21", "PLATFORM-BAD-02")
@pytest.mark.parametrize(
    "changed",
    [
        {"id": "\0"},
        {"id": {"a": [1]}},
        {"id": "x" * 100_000},
        {"id": 1e300},
        {"result": {"decision": "approve", "comment": "\0"}},
        {"result": {"decision": {"approve": 1}}},
        {"result": {"decision": "approve", "comment": ["x"]}},
        {"result": {"decision": "approve", "request_hash": 7}},
        {"result": {"decision": "approve", "response_data": "x" * 900_000}},
        {"completed_by": "user:\n"},
        {"completed_by": "user:"},
        {"message_id": "../x"},
    ],
    ids=lambda each: next(iter(each)),
)
async def test_odd_fields_never_stop_the_receiver(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    changed: dict[str, Any],
) -> None:
    hold = await harness.published()
    body = msgspec.json.decode(event(hold.id))
    (body if "id" in changed else body["data"]).update(changed)
    await foreign.js.publish(f"hf.done.default.{new_id()}", msgspec.json.encode(body))
    how = await harness.delivered()
    assert how in (Ack.ack, Ack.reject)
    assert (await harness.hold(hold.id)).resolved_by in (None, "user:dana@acme", "system:queue")
