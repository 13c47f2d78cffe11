"""Who is told, and that nobody stands in the way of others who are to be told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from holdfast import Away, Flow, Holdfast, Person
from holdfast.errors import EgressError
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.egress import Egress, target_of
from holdfast.holds.notify.mail import mail_addresses
from holdfast.holds.notify.recipients import recipients_of
from holdfast.holds.notify.settings import SlackSpec
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.outbox import OutboxRow, OutboxState
from holdfast.types.terms import Assignee
from tests.holds.scenarios.firm import Channel, Firm, person

pytestmark = pytest.mark.anyio

INSIDE = "https://10.0.0.1/x"  # it is refused without asking the network


async def asked(hf: Holdfast, tenant: str) -> None:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["yes", "no"], assignee="user:dana@acme")
    await flow.run({}, on=hf, tenant=tenant)


async def of_tenant(hf: Holdfast, tenant: str) -> list[OutboxRow]:
    return await (await hf.open()).list_outbox(tenant=tenant)


@pytest.mark.covers("NO-1", "HOLD-SEC-11")
async def test_tenant_without_a_channel_does_not_keep_another_from_being_reported(anyio_backend: str) -> None:
    async with Holdfast("memory:", clock=FakeClock()) as hf:
        for _ in range(25):
            await asked(hf, "quiet")
        await asked(hf, "loud")
        deliverer = (await hf.service()).runtime.deliverer
        assert deliverer is not None
        await deliverer.channels.put("loud", SlackSpec(name="chat", url=INSIDE))
        await deliverer.deliver()
        (message,) = await of_tenant(hf, "loud")
        assert (message.attempts, message.state) == (1, OutboxState.dead)
        assert "not a public address" in (message.error or "")


@pytest.mark.covers("NO-1")
async def test_instance_without_channels_leaves_messages_until_there_is_one(anyio_backend: str) -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        await asked(hf, "a")
        deliverer = (await hf.service()).runtime.deliverer
        assert deliverer is not None
        assert (await deliverer.deliver()).total == 0
        await deliverer.channels.put("a", SlackSpec(name="chat", url=INSIDE))
        clock.advance(seconds=60)
        assert (await deliverer.deliver()).total == 1


@pytest.mark.covers("NO-4", "NO-5", "HOLD-AUTH-09")
async def test_mail_goes_to_who_is_there_and_to_nobody_who_has_left(firm: Firm) -> None:
    store = firm.holds.store
    directory = TableDirectory(store)

    async def told(assignee: Assignee) -> tuple[str, ...]:
        return tuple(await mail_addresses(assignee, "default", directory, store.now()))

    assert await told(Assignee("user", "Dana@Acme")) == ("Dana@Acme",)
    await firm.people.put_away("default", "dana", Away(substitute="kim"))
    assert await told(Assignee("user", "Dana@Acme")) == ("Dana@Acme", "kim@acme")
    assert await told(Assignee("group", "finance")) == ("kim@acme", "sam@acme")
    await firm.people.put_person("default", Person(id="sam", email="sam@acme", active=False))
    assert await told(Assignee("group", "finance")) == ("kim@acme",)
    assert await told(Assignee("user", "sam@acme")) == ()


@pytest.mark.covers("RE-2", "NO-3")
async def test_reminders_of_years_leave_one_state_for_each_recipient(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana", reminder="15m")
    await firm.delivers()
    sweeper = (await firm.hf.service()).runtime.sweeper
    assert sweeper is not None
    for _ in range(5):
        firm.clock.advance(minutes=15)
        await sweeper.sweep()
        await firm.delivers()
    after: HoldRow = await firm.row(row.id)
    assert after.reminder_count == 5
    known = await recipients_of(firm.holds.store, row.id)
    assert [each.topic for each in known] == ["hold.created", "hold.reminded"]


@pytest.mark.covers("HOLD-SEC-06")
@pytest.mark.parametrize("allowed", ["Hooks.Internal:8080", "hooks.internal", "[::1]:8080", "[::1]"])
def test_host_that_the_operator_vouches_for_is_known_as_it_is_usually_written(allowed: str) -> None:
    host = "[::1]" if "::1" in allowed else "hooks.internal"
    assert target_of(f"http://{host}:8080/x", Egress(allow=(allowed,))).port == 8080
    with pytest.raises(EgressError):
        target_of("http://other.internal:8080/x", Egress(allow=(allowed,)))


class Lost(Channel):
    """Cannot find out where people are, until it can."""

    name = "lost"
    knows = False

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        if not self.knows:
            raise RuntimeError("the directory is away")
        return await super().addresses(to, tenant)


@pytest.mark.covers("NO-2", "NO-3")
async def test_channel_that_does_not_find_people_keeps_no_other_from_telling(anyio_backend: str) -> None:
    clock, lost, good = FakeClock(), Lost(), Channel()
    async with Holdfast("memory:", clock=clock, channels=[lost, good]) as hf:
        await asked(hf, "a")
        deliverer = (await hf.service()).runtime.deliverer
        assert deliverer is not None
        assert (await deliverer.deliver()).waiting == 1
        assert (len(lost.told), len(good.told)) == (0, 1)
        (message,) = await of_tenant(hf, "a")
        assert message.error == "lost: the directory is away"
        lost.knows = True
        clock.advance(hours=1)
        assert (await deliverer.deliver()).done == 1
        assert (len(lost.told), len(good.told)) == (1, 1)


@pytest.mark.covers("RE-4")
async def test_nobody_is_reminded_of_what_they_snoozed_under_another_name(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana@acme", reminder="15m")
    await firm.delivers()
    await firm.holds.snooze(person("dana"), row.id, timedelta(hours=1))
    sweeper = (await firm.hf.service()).runtime.sweeper
    assert sweeper is not None
    for minutes, pings in ((20, 0), (20, 0), (25, 1)):
        firm.clock.advance(minutes=minutes)
        await sweeper.sweep()
        await firm.delivers()
        assert len([each for each in firm.channel.told if each.topic == "hold.reminded"]) == pings
