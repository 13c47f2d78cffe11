"""A hold asks in a queue that is bound to NATS; a foreign client completes it, and the run resumes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import nats
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.errors import SettingsError, StoreBusyError, TransportError
from holdfast.queues import nats as nats_transport
from holdfast.queues.nats import NatsTransport
from holdfast.queues.settings import QueueSettings, QueueSpec
from holdfast.queues.transport import Ack, TransportStatus
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.transports import BINDING, message, next_of
from holdfast.types.hold import HoldRow
from holdfast.types.outbox import OutboxState
from holdfast.types.queue_message import COMPLETED_EVENT, REJECTED, MessageFilter, MessageState
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.holds.notify.servers import Certificate
from tests.queues.conftest import DANA, PLACE, Harness
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.services.nats import DEAD, DONE, INBOUND, OPEN, NatsServer, require_binary

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]


def bound_to(*servers: NatsServer, **more: Any) -> QueueSettings:
    backend = {"servers": [each.address for each in servers], **more}
    return QueueSettings(queues={"support/reviews": QueueSpec(backend="nats")}, backends={"nats": backend})


def event(hold: str, decision: str = "approve", **more: Any) -> bytes:
    data = {"correlation_id": hold, "completed_by": DANA.id, "result": {"decision": decision}}
    return msgspec.json.encode({"id": f"e-{hold}", "type": COMPLETED_EVENT, "data": data, **more})


class NatsOffice(Harness):
    @property
    def transport(self) -> NatsTransport:
        found = self.queues.relay._named("nats")  # pyright: ignore[reportPrivateUsage]
        assert isinstance(found, NatsTransport)
        return found

    async def delivered(self) -> Ack:
        """What the broker brings next, and what becomes of it."""
        found = await next_of(self.transport)
        how, reason = await self.queues.relay.taken(found)
        await found.settle(how, reason)
        return how

    async def published(self, **asked: Any) -> HoldRow:
        hold = await self.asks(**asked)
        await self.message(hold)
        return await self.hold(hold.id)


@pytest.fixture
async def harness(
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> AsyncIterator[NatsOffice]:
    clock = FakeClock()
    settings = bound_to(nats_server)
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        yield NatsOffice(hf, await hf.queues(), await hf.open(), clock)


@pytest.fixture
def own_server(tmp_path: Path) -> Any:
    require_binary()
    own = NatsServer(tmp_path / "nats")
    own.start()
    yield own
    own.stop()


def refund() -> Flow:
    flow = Flow("refund", effect="pure")
    ask = flow.hold("review", prompt="Pay?", options=["approve", "reject"], queue="support/reviews")

    async def pay(s: Any) -> dict[str, Any]:
        return {"paid": s["decision"]}

    flow.edge(ask, flow.node(id="pay")(pay))
    return flow


async def until(check: Any, seconds: float = HANG) -> Any:
    async with asyncio.timeout(seconds):
        while not (found := await check()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return found


@pytest.mark.covers("QU-22", "QU-20")
async def test_foreign_client_completes_a_review_and_the_run_ends(
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    file = tmp_path / "queues.toml"
    file.write_text(
        '[queues."support/reviews"]\nbackend = "nats"\ndirection = "both"\n'
        f'[backends.nats]\nservers = ["{nats_server.address}"]\n'
    )
    flow = refund()
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", queues=file) as hf, Worker(flow, on=hf):
        (hold,) = (await flow.run({"amount": 250}, on=hf)).holds
        await until(lambda: foreign.subjects(OPEN))
        (seen,) = await foreign.seen()
        assert (seen["type"], seen["correlation_id"], seen["tenant"]) == ("hitl_request", hold.id, "default")
        assert seen["payload"]["prompt"] == "Pay?"  # pyright: ignore[reportIndexIssue]
        await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))

        async def paid() -> Any:
            return (await flow.result(hold.run, on=hf)).state.get("paid")

        assert await until(paid) == "approve"
        await until(lambda: _none(foreign.subjects(OPEN)))
        rows = [row.action for row in await (await hf.open()).audit("default") if row.hold == hold.id]
        assert rows.count("resolved") == 1


@pytest.mark.covers("QB-2", "QU-20")
async def test_review_completion_and_withdrawal_wait_for_no_round_of_the_worker(
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, settings = refund(), bound_to(nats_server)
    # The worker looks when it starts; its next round is too late for this test.
    monkeypatch.setattr("holdfast.queues.maintenance._EVERY", 3600.0)
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", queues=settings) as hf, Worker(flow, on=hf):
        (hold,) = (await flow.run({"amount": 250}, on=hf)).holds
        await until(lambda: foreign.subjects(OPEN))
        await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))
        await until(lambda: _none(foreign.subjects(OPEN)))

        async def paid() -> Any:
            return (await flow.result(hold.run, on=hf)).state.get("paid")

        assert await until(paid) == "approve"


async def _none(found: Any) -> bool:
    return not await found


@pytest.mark.covers("QU-21", "QB-4", "QB-10")
async def test_completion_is_delivered_again_until_it_is_committed_and_applied_once(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold = await harness.published()
    await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))
    # Before the consumer is made. Only here: on a busy machine a second is short.
    harness.transport.settings = msgspec.structs.replace(harness.transport.settings, ack_wait="1s")

    async def busy(*_given: Any, **_more: Any) -> Any:
        raise StoreBusyError("locked")

    with monkeypatch.context() as patch:
        patch.setattr(harness.store, "hold", busy)
        assert await harness.delivered() is Ack.retry
    # Committed, and the process dies before the acknowledgement.
    lost = await next_of(harness.transport)
    assert await harness.queues.relay.taken(lost) == (Ack.ack, "")
    assert (await harness.hold(hold.id)).resolved_by == DANA.id
    assert await harness.delivered() is Ack.ack
    assert (await harness.actions(hold.id)).count("resolved") == 1


@pytest.mark.covers("QU-21", "QB-7", "PLATFORM-BAD-02")
async def test_foreign_tenant_unreadable_and_decided_apply_nothing(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    hold = await harness.published()
    await foreign.js.publish(f"hf.done.acme.{hold.id}", event(hold.id))
    await foreign.js.publish("hf.done.default.a", event(hold.id, tenant="acme"))
    assert await harness.delivered() is Ack.reject
    assert "foreign_completion" in await harness.actions(None)
    await foreign.js.publish("hf.done.default.b", b"\xff\x00")
    assert await harness.delivered() is Ack.reject
    await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id, "perhaps"))
    assert await harness.delivered() is Ack.reject
    assert set(await foreign.subjects(DEAD)) == {
        f"hf.dead.done.default.{each}" for each in ("a", "b", hold.id)
    }
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    # The corrected one takes the subject; a second decision comes too late.
    await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))
    assert await harness.delivered() is Ack.ack
    await foreign.js.publish(f"hf.done.default.{hold.id}.second", event(hold.id, "reject", id="e2"))
    assert await harness.delivered() is Ack.ack
    after = await harness.hold(hold.id)
    assert msgspec.json.decode(after.resolution or b"")["decision"] == "approve"


@pytest.mark.covers("QU-21", "QB-7", "PLATFORM-BAD-02")
async def test_what_no_queue_receives_is_rejected_and_shown(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nats_transport, "LOOK", 0.05)
    hold = await harness.published()
    sent = {
        f"hf.done.acme.{hold.id}": event(hold.id),
        "hf.in.acme.support.reviews.ext-3": b'{"id": "ext-3", "payload": 1}',
        "hf.in.default.support.nosuch.ext-4": b'{"id": "ext-4", "payload": 1}',
    }
    for subject, body in sent.items():
        await foreign.js.publish(subject, body)
    for _ in sent:
        assert await harness.delivered() is Ack.reject
    assert set(await foreign.subjects(DEAD)) == {f"hf.dead.{each.removeprefix('hf.')}" for each in sent}
    assert await foreign.subjects(DONE) == await foreign.subjects(INBOUND) == []
    assert "foreign_completion" in await harness.actions(None)
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    rejected = await harness.store.list_messages(MessageFilter(type=REJECTED), limit=10)
    assert any("hf.in.default.support.nosuch.ext-4" in (each.error or "") for each in rejected)


@pytest.mark.covers("QU-21", "PLATFORM-BAD-02")
async def test_broker_decides_only_holds_that_ask_in_a_queue_that_receives_from_it(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    await harness.transport.jetstream()
    asked = [await harness.asks(queue=queue) for queue in (None, "finance/payments")]
    for hold in asked:
        await foreign.js.publish(f"hf.done.default.{hold.id}", event(hold.id))
        assert await harness.delivered() is Ack.reject
        assert (await harness.hold(hold.id)).status is HoldStatus.pending
        assert (await harness.actions(hold.id)).count("unbound_completion") == 1
    for queue, state in (("tasks", MessageState.ready), ("reviews", MessageState.completed)):
        row = await harness.queues.publish("support", queue, {"n": 1}, id=queue)
        body = msgspec.json.decode(event(row.id))
        body["data"]["message_id"] = row.id
        await foreign.js.publish(f"hf.done.default.{row.id}", msgspec.json.encode(body))
        assert await harness.delivered() is (Ack.ack if queue == "reviews" else Ack.reject)
        assert (await harness.queues.get("support", queue, row.id)).state is state


@pytest.mark.covers("QU-20", "QU-21")
async def test_foreign_producer_publishes_to_a_queue(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    await harness.transport.jetstream()
    body = msgspec.json.encode({"id": "order-7", "payload": {"order": 7}, "priority": "high"})
    for _ in range(2):
        await foreign.js.publish("hf.in.default.support.reviews.order-7", body)
        assert await harness.delivered() is Ack.ack
        # Acknowledged, it is deleted: its subject is free again.
        await until(lambda: _none(foreign.subjects(INBOUND)))
    (row,) = await harness.store.list_messages(MessageFilter())
    assert (row.id, row.priority, row.tenant) == ("order-7", "high", "default")


@pytest.mark.covers("QU-24")
async def test_reconciler_finds_the_completion_that_a_restored_store_has_lost(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    done, gone = await harness.published(), await harness.published()
    await foreign.js.publish(f"hf.done.default.{done.id}", event(done.id))
    await foreign.js.purge_stream(OPEN)
    found = await harness.queues.reconcile()
    assert (found.holds, found.published, found.applied) == (2, 1, 1)
    assert (await harness.hold(done.id)).status is HoldStatus.resolved
    (left,) = await foreign.subjects(OPEN)
    assert left.endswith(str(gone.message_id))


@pytest.mark.covers("QU-24")
async def test_reconciler_publishes_lost_messages_for_machines_again(
    harness: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    for name in ("one", "two"):
        await harness.queues.publish("support", "reviews", {"name": name}, id=f"task-{name}")
    await harness.queues.work()
    assert len(await foreign.subjects(OPEN)) == 2
    assert (await harness.queues.reconcile()).published == 0
    await foreign.js.purge_stream(OPEN)
    assert (await harness.queues.reconcile()).published == 2
    assert {each.rpartition(".")[2] for each in await foreign.subjects(OPEN)} == {"task-one", "task-two"}


@pytest.mark.covers("QU-20", "QU-21", "PLATFORM-BAD-02")
async def test_broker_that_is_killed_loses_no_review_and_no_completion(
    tmp_path: Path, own_server: NatsServer
) -> None:
    clock = FakeClock()
    settings = bound_to(own_server, timeout="1s")
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        harness = NatsOffice(hf, await hf.queues(), await hf.open(), clock)
        first = await harness.published()
        client = await nats.connect(own_server.address)
        await client.jetstream().publish(f"hf.done.default.{first.id}", event(first.id))
        await client.close()
        own_server.stop()
        second = await harness.asks()
        await harness.queues.work()
        (waiting,) = [
            each
            for each in await harness.store.list_outbox(topic="hold.queue")
            if each.state is OutboxState.waiting
        ]
        assert waiting.hold == second.id
        # The row can be worked on meanwhile.
        mine = await harness.queues.publish(*PLACE, {"n": 1}, id="m1")
        assert mine.state is MessageState.ready
        own_server.start()

        async def sent() -> bool:
            clock.advance(minutes=10)
            await harness.queues.work()
            rows = await harness.store.list_outbox(limit=50)
            return all(each.state is OutboxState.done for each in rows if "queue" in each.topic)

        await until(sent)
        assert await harness.delivered() is Ack.ack
        assert (await harness.hold(first.id)).status is HoldStatus.resolved
        client = await nats.connect(own_server.address)
        found = await Foreign(client).subjects(OPEN)
        await client.close()
        rows = await harness.store.list_messages(MessageFilter(states=(MessageState.ready,)))
        assert {each.rpartition(".")[2] for each in found} - {str(first.message_id)} == {
            row.id for row in rows if row.id != first.message_id
        }


@pytest.mark.covers("QU-20")
async def test_broker_that_is_away_from_the_start_stops_nothing(tmp_path: Path, caplog: Any) -> None:
    require_binary()
    away = NatsServer(tmp_path / "nats")
    settings = bound_to(away, user="holdfast", password="hunter2")
    clock = FakeClock()
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}", clock=clock, queues=settings) as hf:
        harness = NatsOffice(hf, await hf.queues(), await hf.open(), clock)
        hold = await harness.asks()
        row = await harness.claimed(hold)
        await harness.queues.complete(DANA, *PLACE, row.id, row.claim_token, {"decision": "approve"})
        assert (await harness.hold(hold.id)).status is HoldStatus.resolved
        assert "no NATS server can be reached" in caplog.text
        assert "hunter2" not in caplog.text


@pytest.mark.covers("QU-22")
async def test_two_stores_share_a_server_under_prefixes_of_their_own(own_server: NatsServer) -> None:
    transports = {
        prefix: NatsTransport({"servers": own_server.address, "prefix": prefix}, [BINDING])
        for prefix in ("acme-test", "acme")
    }
    one = message(tenant="default", correlation_id="c1")
    client = await nats.connect(own_server.address)
    js = client.jetstream()
    try:
        for prefix, transport in transports.items():
            await transport.publish(one)
            names = transport.names
            assert names.message(one) == f"{prefix}.q.default.{one.scope}.{one.queue}.{one.priority}.{one.id}"
            assert await Foreign(client).subjects(names.open) == [names.message(one)]
        await js.publish("acme.done.default.c1", event("c1"))
        await js.publish("acme-test.in.default.support.reviews.m1", b"unreadable")
        found = await next_of(transports["acme"])
        assert msgspec.json.decode(found.body)["id"] == "e-c1"
        await found.settle(Ack.ack)
        wrong = await next_of(transports["acme-test"])
        await wrong.settle(Ack.reject)
        dead = await Foreign(client).subjects("ACME_TEST_DEAD")
        assert dead == ["acme-test.dead.in.default.support.reviews.m1"]
        await transports["acme"].withdraw(one)
        statuses = [(await each.status(one)).status for each in transports.values()]
        assert statuses == [TransportStatus.open, TransportStatus.completed]
    finally:
        for transport in transports.values():
            await transport.close()
        await client.close()


@pytest.mark.covers("QU-20")
async def test_connection_is_refused_without_the_right_password_and_authority(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    require_binary()
    pem = tmp_path / "server.pem"
    pem.write_bytes(Certificate.of("127.0.0.1").file)
    secured = (
        "--tls",
        "--tlscert",
        str(pem),
        "--tlskey",
        str(pem),
        "--user",
        "holdfast",
        "--pass",
        "hunter2",
    )
    own = NatsServer(tmp_path / "nats", options=secured)
    own.start()
    servers = own.address.replace("nats://", "tls://")
    right = {"servers": servers, "user": "holdfast", "password": "hunter2", "tls_ca": str(pem)}
    try:
        for wrong in ({"password": "hunter3"}, {"tls_ca": None}, {}):
            transport = NatsTransport({**right, **wrong}, [BINDING])
            one = message()
            if wrong:
                with pytest.raises(TransportError) as refused:
                    await transport.publish(one)
                assert "hunter" not in str(refused.value)
            else:
                await transport.publish(one)
                assert (await transport.status(one)).status is TransportStatus.open
            await transport.close()
    finally:
        own.stop()
    assert "hunter" not in caplog.text


@pytest.mark.covers("QU-20")
async def test_credentials_file_lets_in_and_one_of_another_account_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    require_binary()
    pytest.importorskip("nkeys")
    from tests.services.nats_accounts import make_accounts

    accounts = make_accounts(tmp_path / "accounts")
    own = NatsServer(tmp_path / "nats", options=("-c", str(accounts.config)))
    own.start()
    try:
        for path in (accounts.credentials, accounts.foreign):
            transport = NatsTransport({"servers": own.address, "credentials": str(path)}, [BINDING])
            one = message()
            if path == accounts.foreign:
                with pytest.raises(TransportError):
                    await transport.publish(one)
            else:
                await transport.publish(one)
                assert (await transport.status(one)).status is TransportStatus.open
            await transport.close()
    finally:
        own.stop()
    seed = accounts.credentials.read_text().splitlines()[-2]
    assert seed not in caplog.text


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({}, "servers"),
        ({"servers": []}, "nats://HOST:PORT"),
        ({"servers": "http://127.0.0.1"}, "nats://HOST:PORT"),
        ({"servers": "nats://me:hunter2@127.0.0.1"}, "contains credentials"),
        ({"servers": "nats://127.0.0.1", "ack_wait": "soon"}, "ack_wait"),
        ({"servers": "nats://127.0.0.1", "replicas": 0}, "replicas"),
        ({"servers": "nats://127.0.0.1", "consumer": "a.b"}, "consumer"),
        ({"servers": "nats://127.0.0.1", "prefix": "Acme.test"}, "prefix"),
        ({"servers": "nats://127.0.0.1", "tls_ca": "/nowhere.pem"}, "tls_ca"),
        ({"servers": "nats://127.0.0.1", "pasword": "hunter2"}, "pasword"),
    ],
)
def test_settings_name_what_is_wrong_and_show_no_secret(given: dict[str, Any], part: str) -> None:
    with pytest.raises(SettingsError, match=part) as refused:
        NatsTransport(given, [])
    assert "hunter2" not in str(refused.value)
