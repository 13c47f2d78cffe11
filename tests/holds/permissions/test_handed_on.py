"""Holds whose person changes while they wait: delegations, escalations, claims of what nobody has."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import (
    AnswerInvalidError,
    ContentChangedError,
    ExcludedError,
    HoldClaimedError,
    InputError,
    NotAssignedError,
)
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, RESOLVE
from tests.holds.permissions.people import Firm, actor

pytestmark = pytest.mark.anyio

DANA, SAM, KIM = actor("user:dana@acme"), actor("user:sam@acme"), actor("user:kim@acme")
ADMIN = actor("user:admin", MANAGE)


async def ask(
    hf: Holdfast, assignee: str | None, *, deployment: str | None = None, **terms: object
) -> HoldRow:
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], assignee=assignee, **terms)  # type: ignore[arg-type]
    result = await flow.run({}, on=hf, deployment=deployment)
    return result.holds[0]


@pytest.mark.covers("AS-9")
async def test_delegated_hold_follows_the_delegation_and_is_unrouted_while_it_is_revoked() -> None:
    async with Holdfast("memory:", clock=FakeClock(), directory=Firm()) as hf:
        holds, deployments = await hf.holds(), await hf.deployments()
        await hf.deploy("desk", "refund", on_behalf_of="user:dana@acme")
        row = await ask(hf, "delegated_user", deployment="desk")
        assert row.assignee_type == "delegated_user"
        assert [each.id for each in (await holds.list(DANA)).rows] == [row.id]

        await deployments.delegate("desk", "user:sam@acme")
        assert not (await holds.list(DANA)).rows
        assert [each.id for each in (await holds.list(SAM)).rows] == [row.id]

        await deployments.revoke("desk")
        for who in (DANA, SAM, actor("user:api", RESOLVE)):
            with pytest.raises(NotAssignedError, match="admins"):
                await holds.get(who, row.id)
        assert (await holds.get(ADMIN, row.id)).id == row.id

        await deployments.delegate("desk", "user:dana@acme")
        decided = (await holds.resolve(DANA, row.id, "approve")).row
        assert decided.status is HoldStatus.resolved


@pytest.mark.covers("AS-9")
async def test_deployment_that_is_delegated_to_nobody_has_no_delegated_user() -> None:
    async with Holdfast("memory:", clock=FakeClock()) as hf:
        await hf.deploy("desk", "refund")
        for deployment in ("desk", None):
            row = await ask(hf, "delegated_user", deployment=deployment)
            assert (row.assignee, row.assignee_type) == ("delegated_user", "unrouted")
            assert "is not delegated" in row.assignee_reason


@pytest.mark.covers("HOLD-AUTH-05", "EX-6")
async def test_a_caller_who_a_vote_was_escalated_to_may_vote() -> None:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock, directory=Firm()) as hf:
        holds = await hf.holds()
        users = ["user:dana@acme", "user:sam@acme"]
        row = await ask(
            hf,
            None,
            approval={"mode": "quorum", "need": 2, "of": users},
            timeout="2h",
            on_timeout="escalate:role:cfo",
        )
        await holds.vote(SAM, row.id, "approve")
        with pytest.raises(NotAssignedError):
            await holds.vote(KIM, row.id, "approve")
        clock.advance(hours=2)
        await HoldSweeper(holds.store, clock, directory=Firm()).sweep()
        moved = await holds.get(ADMIN, row.id)
        assert (moved.assignee_type, moved.assignee_value) == ("role", "cfo")
        assert (await holds.vote(KIM, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("AS-10")
async def test_unrouted_hold_is_its_claimers_own_and_the_second_claimer_is_refused() -> None:
    async with Holdfast("memory:", clock=FakeClock()) as hf:
        holds = await hf.holds()
        row = await ask(hf, None)
        with pytest.raises(NotAssignedError):
            await holds.claim(DANA, row.id)
        mine = await holds.claim(ADMIN, row.id)
        assert (mine.assignee_type, mine.assignee_value) == ("user", "admin")
        with pytest.raises(HoldClaimedError) as caught:
            await holds.claim(actor("user:other", MANAGE), row.id)
        assert caught.value.status == 409
        assert (await holds.resolve(ADMIN, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-AUTH-09")
async def test_substitution_ends_by_itself() -> None:
    clock, firm = FakeClock(), Firm()
    async with Holdfast("memory:", clock=clock, directory=firm) as hf:
        holds = await hf.holds()
        row = await ask(hf, "user:dana@acme")
        firm.away("dana", "kim", until=clock.now() + timedelta(days=1) // timedelta(microseconds=1))
        assert (await holds.get(KIM, row.id)).id == row.id
        clock.advance(days=1)
        with pytest.raises(NotAssignedError):
            await holds.resolve(KIM, row.id, "approve")
        assert (await holds.resolve(DANA, row.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-AUTH-05", "RS-10")
async def test_quorum_of_a_group_that_nobody_can_count_stays_open() -> None:
    async with Holdfast("memory:", clock=FakeClock()) as hf:
        holds = await hf.holds()
        row = await ask(hf, "group:finance", approval={"mode": "quorum", "need": 2})
        people = [actor(f"user:p{number}", groups=frozenset({"finance"})) for number in range(3)]
        for who, decision in zip(people, ("reject", "approve", "approve"), strict=True):
            after = (await holds.vote(who, row.id, decision)).row
        assert (after.status, after.resolved_by) == (HoldStatus.resolved, "user:p2")


@pytest.mark.covers("HOLD-AUTH-08")
async def test_a_caller_who_edited_last_does_not_release_what_they_wrote() -> None:
    async with Holdfast("memory:", clock=FakeClock(), directory=Firm()) as hf:
        holds = await hf.holds()
        flow = Flow("refund", effect="pure")
        amount = {"type": "input", "field": "amount", "kind": "integer", "default": 100}
        write = flow.hold("write", prompt="How much?", sections=[amount], assignee="group:finance")
        release = flow.hold(
            "release",
            prompt="Release?",
            options=["approve"],
            assignee="group:finance",
            approval={"exclude": ["last_editor"]},
            bind="released",
        )
        flow.chain(write, release)
        result = await flow.run({}, on=hf)
        await holds.resolve(SAM, result.holds[0].id, "submit", response_data={"amount": 250})
        (hold,) = (await flow.resume(result.run_id, on=hf)).holds
        with pytest.raises(ExcludedError, match="last editor"):
            await holds.resolve(SAM, hold.id, "approve")
        assert (await holds.resolve(DANA, hold.id, "approve")).row.status is HoldStatus.resolved


@pytest.mark.covers("RS-7", "HOLD-BAD-03")
async def test_what_is_given_beside_a_decision_is_never_left_aside() -> None:
    async with Holdfast("memory:", clock=FakeClock()) as hf:
        holds = await hf.holds()
        row = await ask(hf, "user:dana@acme")
        with pytest.raises(ContentChangedError):
            await holds.resolve(DANA, row.id, "approve", request_hash="sha256:other")
        with pytest.raises(AnswerInvalidError, match="not as both"):
            await holds.resolve(DANA, row.id, {"decision": "approve"}, request_hash="sha256:other")
        assert (await holds.get(DANA, row.id)).status is HoldStatus.pending


@pytest.mark.covers("RA-3", "AS-8")
async def test_a_name_that_the_directory_does_not_have_leaves_the_hold_where_it_is() -> None:
    """Also for admins: a slip would take it from the list of its assignee."""
    async with Holdfast("memory:", clock=FakeClock(), directory=Firm()) as hf:
        holds, row = await hf.holds(), await ask(hf, "user:dana@acme")
        for who, to in ((ADMIN, "user:nobody@acme"), (DANA, "nobody"), (ADMIN, "group:none")):
            with pytest.raises(InputError, match="is not in the directory"):
                await holds.reassign(who, row.id, to)
        assert [each.id for each in (await holds.list(DANA)).rows] == [row.id]
        assert (await holds.get(DANA, row.id)).version == row.version
        assert (await holds.reassign(ADMIN, row.id, None)).assignee_type == "unrouted"
