"""Who decides by a completion of a broker: a client may write any name into it, so a name proves nothing, and
the broker is one participant (ADR 84). What has no effect is shown with the reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import AlreadyVotedError, InputError, SettingsError
from holdfast.queues.completions import broker_actor, read_completion
from holdfast.queues.nats import REASON
from holdfast.queues.settings import QueueSettings, QueueSpec, queue_settings
from holdfast.queues.transport import Ack
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.ids import new_id
from holdfast.types.queue_message import COMPLETED_EVENT, MessageRow, MessageState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.queues.conftest import DANA, PLACE
from tests.queues.test_nats import Foreign, foreign, nats_server  # noqa: F401  # fixtures
from tests.queues.test_nats_story import NatsOffice, bound_to, harness  # noqa: F401
from tests.services.nats import DEAD, DONE, NatsServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("nats")]

TOOL = "service:review-tool"
SAM = Actor(id="user:sam@acme")
TWO = {"mode": "quorum", "need": 2, "of": [DANA.id, SAM.id]}


@pytest.fixture
async def bound(
    tmp_path: Path,
    nats_server: NatsServer,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> AsyncIterator[NatsOffice]:
    """The settings say who the clients of the broker are."""
    clock = FakeClock()
    settings = bound_to(nats_server, actor=TOOL)
    async with Holdfast(f"sqlite:{tmp_path / 'b.db'}", clock=clock, queues=settings) as hf:
        yield NatsOffice(hf, await hf.queues(), await hf.open(), clock)


async def sends(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    hold: str,
    by: str | None,
    decision: str = "approve",
    under: str = "",
    **more: Any,
) -> Ack:
    data = {"correlation_id": hold, "completed_by": by, "result": {"decision": decision}}
    body = {"id": f"e-{by}-{decision}", "type": COMPLETED_EVENT, "data": data, **more}
    await foreign.js.publish(f"hf.done.default.{hold}{under}", msgspec.json.encode(body))
    return await harness.delivered()


async def rejected(harness: NatsOffice) -> list[MessageRow]:  # noqa: F811
    return await harness.queues.list(*PLACE, states=(MessageState.dead,), type="rejected")


async def pending(harness: NatsOffice, hold: HoldRow) -> bool:  # noqa: F811
    return (await harness.hold(hold.id)).status is HoldStatus.pending


@pytest.mark.covers("QU-21", "QU-9")
@pytest.mark.parametrize(
    "asked",
    [
        {"approval": TWO},
        {"approval": {"mode": "sequential", "of": [DANA.id, SAM.id]}},
        {"approval": {"mode": "any", "exclude": ["user:eve@acme"]}},
        {"strict_assignee": True},
    ],
    ids=["quorum", "sequence", "exclusion", "strict"],
)
async def test_names_at_a_broker_decide_no_hold_that_certain_people_have_to_decide(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    asked: dict[str, Any],
) -> None:
    hold = await harness.published(**asked)
    for number, name in enumerate((DANA.id, SAM.id, None)):
        assert await sends(harness, foreign, hold.id, name, under=f".{number}") is Ack.reject
    assert await pending(harness, hold)
    assert (await harness.actions(hold.id)).count("unproven_completion") == 1
    await harness.queues.reconcile()
    assert await pending(harness, hold)
    # Those who prove who they are decide it as before.
    await harness.queues.people.resolve(DANA, hold.id, "approve")
    if "approval" in asked and asked["approval"]["mode"] != "any":
        await harness.queues.people.resolve(SAM, hold.id, "approve")
    assert (await harness.hold(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("QU-21", "QU-25")
async def test_early_completion_of_a_quorum_is_not_applied_either(harness: NatsOffice) -> None:  # noqa: F811
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], approval=TWO, queue="support/reviews")
    run = new_id()
    async with Holdfast("memory:", clock=FakeClock()) as elsewhere:
        (foreseen,) = (await flow.run({}, on=elsewhere, run_id=run)).holds
    data = {"correlation_id": foreseen.id, "completed_by": DANA.id, "result": {"decision": "approve"}}
    given = read_completion({"id": "e", "type": COMPLETED_EVENT, "data": data}, "nats")
    done = await harness.queues.completions.apply(given, broker_actor("default", DANA.id, "nats", None))
    assert done.outcome == "kept"
    await flow.run({}, on=harness.hf, run_id=run)
    await harness.queues.work()
    hold = await harness.hold(foreseen.id)
    assert hold.status is HoldStatus.pending
    assert "voted" not in await harness.actions(hold.id)


@pytest.mark.covers("QU-21")
async def test_broker_is_one_voter_whatever_names_it_sends(
    bound: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    hold = await bound.published(approval={**TWO, "of": [TOOL, DANA.id, SAM.id]})
    assert await sends(bound, foreign, hold.id, DANA.id, under=".1") is Ack.ack
    assert await sends(bound, foreign, hold.id, SAM.id, under=".2") is Ack.reject
    (said,) = await rejected(bound)
    assert "has voted" in (said.error or "")
    assert await pending(bound, hold)
    await bound.queues.people.resolve(SAM, hold.id, "approve")
    after = await bound.hold(hold.id)
    votes = msgspec.json.decode(after.resolution or b"")["votes"]
    assert [each["person"] for each in votes] == [TOOL, SAM.id]


@pytest.mark.covers("QU-21")
async def test_broker_without_a_seat_decides_no_strict_hold(
    bound: NatsOffice,
    foreign: Foreign,  # noqa: F811
) -> None:
    hold = await bound.published(strict_assignee=True)
    assert await sends(bound, foreign, hold.id, DANA.id) is Ack.reject
    assert await pending(bound, hold)
    plain = await bound.published()
    assert await sends(bound, foreign, plain.id, DANA.id) is Ack.ack
    assert (await bound.hold(plain.id)).resolved_by == TOOL


@pytest.mark.covers("QU-21")
async def test_name_of_a_broker_stands_behind_a_decision_with_the_broker(harness: NatsOffice) -> None:  # noqa: F811
    """Also where the check before it were missing, two names are one participant."""
    hold = await harness.published(approval=TWO)
    people = harness.queues.people
    first, second = (broker_actor("default", name, "nats", None) for name in (DANA.id, SAM.id))
    await people.resolve(first, hold.id, "approve")
    with pytest.raises(AlreadyVotedError, match="service:queue-nats"):
        await people.resolve(second, hold.id, "approve")


@pytest.mark.covers("QU-2")
def test_actor_of_a_broker_is_a_person_or_a_service() -> None:
    for wrong in ("tool", "system:queue", "user:", 7, ""):
        spec = {"support/reviews": QueueSpec(backend="nats")}
        with pytest.raises(SettingsError, match="actor"):
            queue_settings(QueueSettings(queues=spec, backends={"nats": {"actor": wrong}}))


@pytest.mark.covers("QB-7", "QU-21")
async def test_completion_without_effect_frees_its_subject_and_is_shown_with_the_reason(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
) -> None:
    hold, aside = await harness.published(), await harness.asks(queue=None)
    assert await sends(harness, foreign, hold.id, DANA.id, tenant="acme") is Ack.reject
    assert await sends(harness, foreign, aside.id, DANA.id) is Ack.reject
    assert await foreign.subjects(DONE) == []
    assert len(await foreign.subjects(DEAD)) == 2
    kept = await foreign.js.get_last_msg(DEAD, f"hf.dead.done.default.{hold.id}")
    assert "another tenant" in (kept.headers or {})[REASON]
    second, first = await rejected(harness)
    assert (first.correlation_id, first.attempts) == (hold.id, 0)
    assert "another tenant" in (first.error or "")
    assert "does not ask in a queue" in (second.error or "")
    said = msgspec.json.decode(first.payload)
    assert (said["tenant"], said["completed_by"], "result" in said) == ("acme", DANA.id, False)
    assert await harness.actions(None) == ["foreign_completion"]
    # The corrected one takes the subject at once.
    assert await sends(harness, foreign, hold.id, DANA.id) is Ack.ack
    assert (await harness.hold(hold.id)).status is HoldStatus.resolved
    # There is no work in what was rejected.
    with pytest.raises(InputError, match="could not be taken"):
        await harness.queues.requeue(*PLACE, first.id)
    assert [each.id for each in await harness.queues.claim(DANA, *PLACE, limit=9)] == []
    assert (await harness.queues.withdraw(*PLACE, first.id)).state is MessageState.withdrawn


@pytest.mark.covers("QU-21")
async def test_client_of_the_broker_cannot_fill_the_store(
    harness: NatsOffice,  # noqa: F811
    foreign: Foreign,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.queues.inbound.MOST_REJECTED", 3)
    await harness.transport.jetstream()  # makes the streams
    for body in (
        b"\xff",
        b"\xff",
        b"1",
        b"[]",
        b'{"type": "scaiqueue.message.completed", "data": {"correlation_id": "\\u0000"}}',
        b"{}",
    ):
        await foreign.js.publish(f"hf.done.default.{new_id()}", body)
        assert await harness.delivered() is Ack.reject
    assert len(await rejected(harness)) == 3
    assert len(await foreign.subjects(DEAD)) == 6
