"""What earlier releases left: messages at a broker, completions in the store. Nothing of it decides without
the right, is delivered for ever or is lost without a word."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.js.errors import NotFoundError

from holdfast.cli.commands.doctor import _findings  # pyright: ignore[reportPrivateUsage]
from holdfast.queues import relay as relay_module
from holdfast.queues.completions import EARLY, Completion, queue_actor
from holdfast.queues.nats import NatsTransport
from holdfast.queues.transport import Ack
from holdfast.types.document import Document
from holdfast.types.ids import new_id
from holdfast.types.queue_message import REJECTED, MessageFilter, MessageState
from holdfast.types.status import HoldStatus
from tests.queues.conftest import DANA, Harness, anybody
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.queues.test_nats_story import NatsOffice
from tests.queues.test_nats_story import harness as nats_harness  # noqa: F401  # a fixture
from tests.services.nats import DEAD, OPEN, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]
STRANGE = "hf.q.default.reviews.17"
"""A subject with other parts than those of this release."""


async def left_behind(nats_harness: NatsOffice, foreign: Foreign) -> tuple[str, str, str]:  # noqa: F811
    """Subjects of an ended message that was never withdrawn, of one that this store does not know, and of an
    open one."""
    ended, still_open = await nats_harness.published(), await nats_harness.published()
    (subject,) = [s for s in await foreign.subjects(OPEN) if s.endswith(str(ended.message_id))]
    body = (await foreign.js.get_last_msg(OPEN, subject)).data or b""
    await nats_harness.queues.people.resolve(anybody(), ended.id, "approve")
    await nats_harness.queues.work()
    assert subject not in await foreign.subjects(OPEN)
    await foreign.js.publish(subject, body)  # as if it had not been withdrawn
    await foreign.js.publish(STRANGE, body)
    return subject, STRANGE, str(still_open.message_id)


@pytest.mark.covers("QU-24")
async def test_reconciler_withdraws_ended_messages_and_leaves_those_it_does_not_know(
    nats_harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    ended, strange, still_open = await left_behind(nats_harness, foreign)
    found = await nats_harness.queues.reconcile()
    assert (found.withdrawn, found.unknown) == (1, 1)
    subjects = await foreign.subjects(OPEN)
    assert ended not in subjects
    assert strange in subjects
    assert any(each.endswith(still_open) for each in subjects)


@pytest.mark.covers("QU-24")
async def test_doctor_names_what_is_left_at_a_broker(
    nats_harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    nats_server: NatsServer,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, strange, _ = await left_behind(nats_harness, foreign)
    await foreign.js.publish("hf.in.default.support.reviews.old", b'{"message": "of another release"}')
    assert await nats_harness.delivered() is Ack.reject
    file = tmp_path / "queues.toml"
    file.write_text(
        f'[queues."support/reviews"]\nbackend = "nats"\n[backends.nats]\nservers = "{nats_server.address}"\n'
    )
    monkeypatch.setenv("HOLDFAST_QUEUES", str(file))

    async def said() -> dict[str, Any]:
        found = _findings(f"sqlite:{tmp_path / 'q.db'}", deep=False)
        return {each.check: each async for each in found}

    first = await said()
    assert first["messages"].about == [strange]
    assert first["rejected messages"].said.startswith("1 messages at nats")
    assert (
        "hf.dead.in.default.support.reviews.old: the message does not fit"
        in first["rejected messages"].about[0]
    )
    await foreign.js.purge_stream(OPEN, subject=strange)
    assert (await said())["messages"].about == [ended]
    await nats_harness.queues.reconcile()
    assert (await said())["messages"].state == "ok"


@pytest.mark.covers("QU-21")
async def test_message_over_which_our_code_fails_is_a_dead_letter_after_some_deliveries(
    nats_harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(relay_module, "MOST_DELIVERIES", 3)
    relay = nats_harness.queues.relay

    async def fails(*_: object) -> None:
        raise KeyError("a field of another release")

    monkeypatch.setattr(relay, "_take", fails)
    caplog.set_level(logging.CRITICAL, "holdfast")
    await nats_harness.transport.jetstream()
    await foreign.js.publish("hf.in.default.support.reviews.old", b'{"id": "old", "payload": 1}')
    assert [await nats_harness.delivered() for _ in range(3)] == [Ack.retry, Ack.retry, Ack.reject]
    assert await foreign.subjects(DEAD) == ["hf.dead.in.default.support.reviews.old"]
    where = MessageFilter(states=(MessageState.dead,), type=REJECTED)
    (shown,) = await nats_harness.store.list_messages(where, limit=9)
    assert "it failed 3 times, the last time with KeyError" in str(shown.error)


@pytest.mark.covers("QU-25", "PLATFORM-BAD-02")
async def test_early_completion_that_an_earlier_release_kept_for_a_broker_decides_nothing(
    harness: Harness,
) -> None:
    hold = await harness.asks()
    kept = Completion(correlation_id=hold.id, answer={"decision": "approve"}, key="e-1", completed_by=DANA.id)
    actor = queue_actor("default", DANA.id)
    for name, body in (
        (hold.id, msgspec.json.encode({"completion": kept, "actor": actor})),
        (f"{hold.id}:other", b'{"completion": {"of": "another release"}}'),
    ):
        await harness.store.put_document(
            Document(tenant="default", kind=EARLY, name=name, body=body), expect=0
        )
    assert (await harness.message(hold)).state is MessageState.ready
    assert (await harness.hold(hold.id)).status is HoldStatus.pending
    assert await harness.store.documents("default", EARLY) == []
    assert "unbound_completion" in await harness.actions(hold.id)


@pytest.mark.covers("QU-22")
async def test_stream_of_other_settings_is_named_and_nothing_is_created(
    foreign: Foreign,  # noqa: F811
    nats_server: NatsServer,  # noqa: F811
) -> None:
    prefix = f"old-{new_id()[:8]}"
    transport = NatsTransport({"servers": nats_server.address, "prefix": prefix}, [])
    stream = transport.names.done
    await foreign.js.add_stream(name=stream, subjects=[transport.names.streams[stream]])
    try:
        found = await transport.content()
        assert found.unfit == [
            f"the stream {stream} has other settings: discard, max_msgs_per_subject, discard_new_per_subject"
        ]
        with pytest.raises(NotFoundError):
            await foreign.js.stream_info(transport.names.dead)
    finally:
        await foreign.js.delete_stream(stream)
        await transport.close()
