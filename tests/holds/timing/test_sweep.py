"""The sweeper on real stores: what is due is done once, whoever else sweeps."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from holdfast.errors import DirectoryUnavailableError, StoreBusyError
from holdfast.holds.directory.base import Circle
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.timing.expire import ExpiryFacts, expire
from holdfast.holds.timing.sweeper import HoldSweeper, SweepCounts
from holdfast.store.protocols import Store
from holdfast.testing.conformance.kit import StoreKit
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.outbox import OutboxState
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HoldTerms, Rung
from tests.holds.permissions.people import Firm
from tests.holds.timing.places import HOUR, MINUTE
from tests.holds.timing.rows import APPROVE, REJECT
from tests.holds.timing.waits import actions, asked, delivered, mail, sweeper, told

pytestmark = pytest.mark.anyio

TO_LEADS: dict[str, Any] = {"expiry_action": "escalate", "escalation_target": "group:leads"}


@pytest.mark.covers("EX-1", "EX-3", "EX-4", "EX-5", "EX-8", "HOLD-TIME-01")
@pytest.mark.parametrize(
    ("action", "status", "letter"),
    [
        (None, HoldStatus.expired, "lapse"),
        ("cancel", HoldStatus.cancelled, "lapse"),
        ("default_option", HoldStatus.resolved, "answer"),
    ],
)
async def test_a_sweep_ends_what_is_due_and_wakes_its_run(
    kit: StoreKit, action: str | None, status: HoldStatus, letter: str
) -> None:
    hold = await asked(kit, expiry_action=action)
    kit.clock.advance(hours=2)

    assert (await sweeper(kit).sweep()).expired == 1

    row = await kit.hold(hold)
    assert row.status is status
    assert await mail(kit, row.run) == [(letter, hold.encode())]
    assert (await actions(kit, hold))[-1] == str(status)
    assert await told(kit, hold, "hold.closed") == 1
    assert (await sweeper(kit).sweep()).total == 0
    assert await kit.hold(hold) == row
    resolved = (row.resolution, row.resolved_by, row.resolved_at)
    assert all(resolved) if status is HoldStatus.resolved else resolved == (None, None, None)


@pytest.mark.covers("EX-1", "EX-2")
async def test_a_sweep_leaves_alone_what_is_not_due(kit: StoreKit) -> None:
    soon, never = await asked(kit), await asked(kit, expires_at=None)
    kit.clock.advance(minutes=119)
    before = [await kit.hold(hold) for hold in (soon, never)]

    assert (await sweeper(kit).sweep()).total == 0
    assert [await kit.hold(hold) for hold in (soon, never)] == before
    kit.clock.advance(days=10_000)
    await sweeper(kit).sweep()
    assert (await kit.hold(never)).status is HoldStatus.pending


@pytest.mark.covers("EX-1")
async def test_one_bad_row_does_not_stop_the_batch(kit: StoreKit, caplog: pytest.LogCaptureFixture) -> None:
    bad = await asked(kit, terms=HoldTerms(ladder=(Rung("a"), Rung("b", "banana"))), expiry_action="escalate")
    good = [await asked(kit) for _ in range(3)]
    kit.clock.advance(hours=3)
    sweeps = sweeper(kit)

    with caplog.at_level(logging.ERROR):
        swept = await sweeps.sweep()
        again = await sweeps.sweep()

    assert (swept.expired, swept.failed, again.failed) == (3, 1, 1)
    assert [(await kit.hold(hold)).status for hold in good] == [HoldStatus.expired] * 3
    assert (await kit.hold(bad)).status is HoldStatus.pending
    assert len([each for each in caplog.records if bad in each.getMessage()]) == 1


@pytest.mark.covers("EX-1")
async def test_a_store_that_is_busy_ends_the_sweep_and_nothing_is_called_bad(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = await asked(kit)
    kit.clock.advance(hours=3)

    async def busy(_change: HoldChange) -> HoldRow:
        raise StoreBusyError("somebody else writes")

    with monkeypatch.context() as patched:
        patched.setattr(kit.store, "change_hold", busy)
        with pytest.raises(StoreBusyError):
            await sweeper(kit).sweep()
    assert (await kit.hold(hold)).status is HoldStatus.pending
    assert (await sweeper(kit).sweep()).expired == 1


@pytest.mark.covers("EX-1")
async def test_more_than_a_batch_is_swept_at_once_in_order(kit: StoreKit) -> None:
    lease = await kit.claimed()
    now = kit.clock.now()
    for seq in range(1, 231):
        due = now + (1000 - seq) * MINUTE  # the later asked, the earlier due
        await kit.asked(lease, kit.new_hold(seq, visit=seq, expires_at=due), seq)
    kit.clock.advance(minutes=1000)

    assert (await sweeper(kit).sweep()).expired == 230
    ended = [row for row in await kit.store.audit("default") if row.action == "expired"]
    seqs = [(await kit.hold(HoldId(row.hold or ""))).seq for row in ended]
    assert seqs == sorted(seqs, reverse=True)


@pytest.mark.covers("EX-6", "EX-7", "HOLD-PROOF-04", "HOLD-TIME-03")
async def test_an_escalation_does_not_loop_over_a_week_of_sweeps(kit: StoreKit) -> None:
    """Each five minutes, as the sweep would: one escalation a rung, and then an end."""
    hold = await asked(kit, **TO_LEADS, terms=HoldTerms(ladder=(Rung("group:leads"), Rung("role:cfo", "1d"))))
    sweeps, seen = sweeper(kit), 0
    for _ in range(7 * 24 * 12):
        kit.clock.advance(minutes=5)
        seen += (await sweeps.sweep()).expired

    row = await kit.hold(hold)
    assert seen == 3
    assert (row.status, row.escalation_count, row.epoch) == (HoldStatus.expired, 2, 3)
    assert await told(kit, hold, "hold.escalated") == 2
    assert (await actions(kit, hold)).count("escalated") == 2
    assert await mail(kit, row.run) == [("lapse", hold.encode())]


@pytest.mark.covers("EX-1", "EX-6", "HOLD-TIME-01")
async def test_many_sweepers_at_once_have_one_effect(kit: StoreKit) -> None:
    holds = [await asked(kit, **TO_LEADS) for _ in range(5)] + [await asked(kit) for _ in range(5)]
    kit.clock.advance(hours=2)

    async def contend(store: Store, _: int) -> int:
        return (await HoldSweeper(store, kit.clock).sweep()).expired

    assert sum(await kit.race(4, contend)) == 10
    for hold in holds:
        assert len([each for each in await actions(kit, hold) if each in ("escalated", "expired")]) == 1
    assert {(await kit.hold(hold)).epoch for hold in holds[:5]} == {2}


@pytest.mark.covers("EX-9")
async def test_an_escalation_stands_when_nobody_could_be_reported(kit: StoreKit) -> None:
    hold = await asked(kit, **TO_LEADS)
    kit.clock.advance(hours=2)
    await sweeper(kit).sweep()
    await delivered(kit, OutboxState.dead)

    row = await kit.hold(hold)
    assert (row.assignee_type, row.assignee_value, row.escalation_count) == ("group", "leads", 1)


@pytest.mark.covers("EX-7")
async def test_an_escalation_to_nobody_known_is_unrouted_and_said_aloud(
    kit: StoreKit, caplog: pytest.LogCaptureFixture
) -> None:
    lost = await asked(kit, **TO_LEADS)
    found = await asked(kit, expiry_action="escalate", escalation_target="role:cfo")
    away = await asked(kit, expiry_action="escalate", escalation_target="delegated_user")
    kit.clock.advance(hours=2)
    with caplog.at_level(logging.ERROR):
        await sweeper(kit, directory=Firm()).sweep()

    row = await kit.hold(lost)
    assert (row.status, row.assignee_type, row.assignee) == (HoldStatus.pending, "unrouted", "group:leads")
    assert "group 'leads' is not in the directory" in row.assignee_reason
    assert (await kit.hold(found)).assignee_value == "cfo"
    assert (await kit.hold(away)).assignee_type == "unrouted"
    assert (
        len([each for each in caplog.records if "was escalated, but has no assignee" in each.getMessage()])
        == 2
    )


async def test_an_escalation_goes_on_while_the_directory_is_away(kit: StoreKit) -> None:
    class Away(Firm):
        async def group(self, tenant: str, key: str) -> Circle | None:
            raise DirectoryUnavailableError("it does not answer")

    hold = await asked(kit, **TO_LEADS)
    kit.clock.advance(hours=2)

    assert (await sweeper(kit, directory=Away()).sweep()).expired == 1
    assert (await kit.hold(hold)).assignee_value == "leads"


@pytest.mark.covers("EX-11")
async def test_a_deadline_that_was_extended_first_beats_the_sweep(kit: StoreKit) -> None:
    row = await kit.hold(await asked(kit))
    kit.clock.advance(hours=2)
    now = kit.clock.now()
    late = expire(row, now, ExpiryFacts())
    assert late is not None
    extended = HoldChange(hold=row.id, version=row.version, at=now, fields={"expires_at": now + HOUR})

    assert isinstance(await kit.store.change_hold(extended), HoldRow)
    assert await kit.store.change_hold(late) is ChangeRefusal.stale
    assert (await sweeper(kit).sweep()).expired == 0
    assert (await kit.hold(row.id)).status is HoldStatus.pending


@pytest.mark.covers("EX-5", "EX-8")
async def test_a_default_that_approves_passes_the_guardrails_or_is_not_taken(kit: StoreKit) -> None:
    never = Guardrails({"never": lambda _facts: "too much money"})
    terms = HoldTerms(default_option="approve")
    no_way = await asked(kit, expiry_action="default_option", options=(APPROVE,), terms=terms)
    refused = await asked(kit, expiry_action="default_option", options=(APPROVE, REJECT), terms=terms)
    kit.clock.advance(hours=2)
    await sweeper(kit, guardrails=never).sweep()

    assert (await kit.hold(no_way)).status is HoldStatus.expired
    resolution = msgspec.json.decode((await kit.hold(refused)).resolution or b"")
    assert (resolution["decision"], resolution["effective_decision"]) == ("default", "reject")


async def test_a_sweep_of_one_run_touches_no_other(kit: StoreKit) -> None:
    mine, other = await asked(kit), await asked(kit)
    kit.clock.advance(hours=2)

    assert (await sweeper(kit).sweep((await kit.hold(mine)).run)).expired == 1
    assert (await kit.hold(other)).status is HoldStatus.pending


async def test_a_decision_that_was_placed_in_time_is_made_and_not_the_expiry(kit: StoreKit) -> None:
    hold = await asked(kit)
    kit.clock.advance(minutes=119)
    row, now = await kit.hold(hold), kit.clock.now()
    placed = {"placed": msgspec.json.encode({"decision": "approve"}), "placed_by": "user:dana",
              "placed_until": now + 2 * MINUTE}  # fmt: skip
    await kit.store.change_hold(HoldChange(hold=hold, version=row.version, at=now, fields=placed))
    kit.clock.advance(minutes=1)
    assert (await sweeper(kit).sweep()).total == 0
    kit.clock.advance(minutes=1)

    assert (await sweeper(kit).sweep()).placed == 1
    row = await kit.hold(hold)
    assert (row.status, row.resolved_by) == (HoldStatus.resolved, "user:dana")


@pytest.mark.covers("RM-5")
async def test_a_run_that_was_not_woken_is_reported_again_and_once(kit: StoreKit) -> None:
    hold = await asked(kit)
    row, now = await kit.hold(hold), kit.clock.now()
    decided = {
        "status": HoldStatus.resolved,
        "resolution": b"{}",
        "resolved_by": "user:x",
        "resolved_at": now,
    }
    await kit.store.change_hold(HoldChange(hold=hold, version=row.version, at=now, fields=decided))
    kit.clock.advance(seconds=59)
    assert (await sweeper(kit).sweep()).resumed == 0
    kit.clock.advance(seconds=2)

    assert (await sweeper(kit).sweep()).resumed == 1
    assert await mail(kit, row.run) == [("answer", hold.encode())]
    assert (await sweeper(kit).sweep()).resumed == 0


@pytest.mark.covers("HOLD-TIME-01", "HOLD-TIME-06")
async def test_a_serving_sweeper_sees_what_falls_due_within_a_second(kit: StoreKit) -> None:
    serving = asyncio.create_task(sweeper(kit).serve())
    await asleep(kit)
    hold = await asked(kit, expires_at=kit.clock.now() + MINUTE)  # nobody told the sweeper of it
    kit.clock.advance(seconds=59)
    await asleep(kit)
    assert (await kit.hold(hold)).status is HoldStatus.pending
    kit.clock.advance(seconds=1)
    await asleep(kit)
    serving.cancel()

    assert (await kit.hold(hold)).status is HoldStatus.expired


@pytest.mark.covers("RM-5", "HOLD-TIME-01")
async def test_a_serving_sweeper_looks_around_each_five_minutes(kit: StoreKit) -> None:
    seen: list[int] = []

    class Counting(HoldSweeper):
        async def sweep(self, run: RunId | None = None) -> SweepCounts:
            seen.append(self.clock.now())
            return await super().sweep(run)

    serving = asyncio.create_task(Counting(kit.store, kit.clock).serve())
    for _ in range(60):
        await asleep(kit)
        kit.clock.advance(seconds=10)
    await asleep(kit)
    serving.cancel()

    assert [later - earlier for earlier, later in pairwise(seen)] == [5 * MINUTE, 5 * MINUTE]


async def asleep(kit: StoreKit) -> None:
    """Until the sweeper has nothing more to do."""
    while not kit.clock.sleeping:  # noqa: ASYNC110 - the clock tells nobody who lies down
        await asyncio.sleep(0.001)
