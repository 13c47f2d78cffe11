"""One person has several names, and is one person under all of them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import (
    AlreadyVotedError,
    ForbiddenError,
    HoldDecidedError,
    InputError,
    LinkInvalidError,
    NotAssignedError,
)
from holdfast.holds.actions.submission import Submission
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.base import Memberships, Person
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.links.tokens import LinkGrant
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, OVERRIDE, Actor, operator
from tests.holds.scenarios.firm import Firm, person

pytestmark = pytest.mark.anyio

TWO = {"mode": "quorum", "need": 2}


@pytest.mark.covers("RS-10", "HOLD-AUTH-05")
async def test_person_votes_once_under_whichever_of_their_names(firm: Firm) -> None:
    row = await firm.asks(assignee="group:board", approval=TWO)
    await firm.holds.resolve(person("dana"), row.id, "approve")
    with pytest.raises(AlreadyVotedError):
        await firm.holds.resolve(person("dana@acme"), row.id, "approve")
    assert (await firm.row(row.id)).status is HoldStatus.pending


@pytest.mark.covers("RS-10", "HOLD-AUTH-05")
async def test_vote_that_a_substitute_gave_is_not_given_again_by_who_was_away(firm: Firm) -> None:
    row = await firm.asks(assignee="group:board", approval=TWO)
    await firm.people.put_away("default", "dana", Away(substitute="sam"))
    await firm.holds.resolve(person("sam@acme"), row.id, "approve")
    await firm.people.back("default", "dana")
    with pytest.raises(AlreadyVotedError):
        await firm.holds.resolve(person("dana"), row.id, "approve")
    done = await firm.holds.resolve(person("kim"), row.id, "approve")
    assert done.row.status is HoldStatus.resolved


@pytest.mark.covers("AS-11", "HOLD-SEC-09")
async def test_who_is_gone_decides_nothing_however_their_name_is_written(firm: Firm) -> None:
    row = await firm.asks(assignee="user:bob@acme")
    await firm.people.delete_person("default", "bob")
    for name in ("user:bob@acme", "bob@acme", "bob"):
        with pytest.raises(NotAssignedError, match="is not in the directory"):
            await firm.holds.resolve(Actor(id=name), row.id, "approve")


@pytest.mark.covers("RA-6")
async def test_hold_does_not_go_to_who_is_excluded_under_another_name(firm: Firm) -> None:
    row = await firm.asks(
        assignee="group:finance", approval={"exclude": ["initiator"]}, run={"started_by": "user:dana"}
    )
    with pytest.raises(InputError, match="cannot be assigned to user:dana@acme"):
        await firm.holds.reassign(person("ada", MANAGE), row.id, "user:dana@acme")


@pytest.mark.covers("HOLD-SEC-03")
async def test_link_to_an_address_is_good_for_its_owner_who_signs_in_by_id(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana@acme", links="login_required")
    token = await firm.links.make(row, LinkGrant(to="user:dana@acme", purpose="decide"))
    with pytest.raises(LinkInvalidError, match="another person"):
        await firm.links.decide(token, Submission(decision="approve"), actor=person("kim"))
    done = await firm.links.decide(token, Submission(decision="approve"), actor=person("dana"))
    assert done.row.resolved_by == "user:dana"


@pytest.mark.covers("HOLD-AUTH-07")
async def test_veto_says_no_and_nothing_else_where_one_decision_is_enough(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana", approval={"veto": ["user:kim"]})
    for act in (
        firm.holds.resolve(person("kim"), row.id, "approve"),
        firm.holds.claim(person("kim"), row.id),
        firm.holds.reassign(person("kim"), row.id, "user:kim"),
    ):
        with pytest.raises(Exception, match=r"not to user:kim|no right"):
            await act
    done = await firm.holds.resolve(person("kim"), row.id, "reject")
    assert done.row.resolved_by == "user:kim"


@pytest.mark.covers("HOLD-AUTH-05", "RS-10")
async def test_hold_that_others_vote_on_waits_for_them_and_not_for_its_assignee(firm: Firm) -> None:
    row = await firm.asks(
        assignee="user:kim", approval={"mode": "quorum", "need": 1, "of": ["group:finance"]}
    )
    assert (row.assignee_type, row.assignee_value) == ("group", "finance")
    assert row.assignee == "user:kim"
    await firm.links.revoke(operator(), row.id)
    with pytest.raises(NotAssignedError):
        await firm.holds.resolve(person("kim"), row.id, "approve")


@pytest.mark.covers("HOLD-SEC-02")
async def test_links_are_not_revoked_of_what_is_decided(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana")
    await firm.holds.resolve(person("dana"), row.id, "approve")
    with pytest.raises(HoldDecidedError):
        await firm.links.revoke(operator(), row.id)


@pytest.mark.covers("HOLD-SEC-02", "NO-1")
async def test_notice_that_waits_when_links_are_revoked_is_still_reported(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana")
    await firm.links.revoke(operator(), row.id)
    await firm.delivers()
    assert [each.to for each in firm.channel.told] == ["dana"]
    await firm.links.revoke(operator(), row.id)
    await firm.delivers()
    assert len(firm.channel.told) == 1


@pytest.mark.covers("RS-8")
async def test_reason_that_is_no_text_is_refused_in_words(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana")
    given = {"reason": 5}
    with pytest.raises(InputError, match="must be text"):
        await firm.holds.resolve(person("ada", OVERRIDE), row.id, "approve", **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be text"):
        await firm.holds.claim(person("dana"), row.id, **given)  # type: ignore[arg-type]


class Counting(TableDirectory):
    """Counts how often it was asked for what costs most."""

    asked = 0

    async def memberships(self, tenant: str, ref: str) -> Memberships:
        self.asked += 1
        return await super().memberships(tenant, ref)


@pytest.mark.covers("RS-10")
async def test_vote_asks_what_the_others_belong_to_only_where_that_matters(firm: Firm) -> None:
    everybody = [f"p{number}" for number in range(20)]
    for name in everybody:
        await firm.people.put_person("default", Person(id=name))
    await firm.people.put_group("default", "all", everybody)
    directory = firm.holds.ctx.directory = Counting(firm.holds.store)
    row = await firm.asks(assignee="group:all", approval=TWO)
    await firm.holds.resolve(person("p1"), row.id, "approve")
    assert directory.asked == 1
    excluding = {**TWO, "exclude": ["role:cfo"]}
    row = await firm.asks(assignee="group:all", approval=excluding)
    await firm.holds.resolve(person("p1"), row.id, "approve")
    assert directory.asked > 20


@pytest.mark.covers("RA-5", "HOLD-AUTH-05")
@pytest.mark.parametrize("approval", [TWO, {"mode": "sequential", "of": ["group:board", "group:finance"]}])
async def test_one_of_several_does_not_choose_who_the_others_are(firm: Firm, approval: Any) -> None:
    row = await firm.asks(assignee="group:board", approval=approval)
    with pytest.raises(ForbiddenError):
        await firm.holds.reassign(person("dana"), row.id, "user:bob")
    moved = await firm.holds.reassign(person("ada", MANAGE), row.id, "user:bob")
    assert moved.assignee_value == "bob"
