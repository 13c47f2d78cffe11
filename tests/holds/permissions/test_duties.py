"""Who is kept from deciding: separation of duties, starters, substitutes of the excluded, agents."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.holds.permissions.actor import assignees_of, memberships_for
from holdfast.holds.permissions.check import PermissionFacts
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE
from tests.holds.permissions.people import LATER, NOW, Firm, actor, hold_for, judge

pytestmark = pytest.mark.anyio

DANA, SAM, KIM = actor("user:dana@acme"), actor("user:sam@acme"), actor("user:kim@acme")
FINANCE = hold_for("group", "finance")


# ---------------------------------------------------------------------- separation of duties


@pytest.mark.covers("HOLD-AUTH-08")
@pytest.mark.parametrize(
    ("terms", "past"),
    [
        (
            {"approval": {"exclude": ("initiator",)}, "starter_in": ("group:finance",)},
            PermissionFacts(initiator="user:dana"),
        ),
        (
            {"approval": {"exclude": ("earlier_approvers",)}},
            PermissionFacts(approvers=frozenset({"user:DANA@acme"})),
        ),
        ({"approval": {"exclude": ("last_editor",)}}, PermissionFacts(last_editor="user:dana@acme")),
        ({"approval": {"exclude": ("role:cfo",)}}, PermissionFacts()),
        ({"excluded": ("user:dana@acme",)}, PermissionFacts()),
    ],
    ids=["initiator", "earlier_approvers", "last_editor", "role", "by_name"],
)
async def test_excluded_person_cannot_decide_with_any_right(
    terms: dict[str, object], past: PermissionFacts
) -> None:
    firm, hold = Firm(), hold_for("group", "finance", **terms)
    firm.roles["cfo"] = ("dana",)
    mighty = actor("user:dana@acme", RESOLVE, MANAGE, OVERRIDE)
    for action in ("resolve", "vote", "place", "claim"):
        for who in (DANA, mighty):
            found = await judge(firm, who, action, hold, past, reason="because I can")
            assert (found.allowed, found.code) == (False, "excluded"), action
    assert (await judge(firm, DANA, "view", hold, past)).allowed
    assert (await judge(firm, SAM, "resolve", hold, past)).allowed


@pytest.mark.covers("HOLD-AUTH-08")
async def test_excluded_member_does_not_hand_the_hold_on_either() -> None:
    hold = hold_for("group", "finance", excluded=("user:dana",))
    assert (await judge(Firm(), DANA, "reassign", hold)).code == "forbidden"


@pytest.mark.covers("HOLD-SEC-10")
async def test_starter_who_became_an_approver_later_is_none_for_this_hold() -> None:
    late = hold_for("group", "finance", started_by="user:sam@acme", starter_in=("role:clerk",))
    assert (await judge(Firm(), SAM, "resolve", late)).code == "excluded"
    assert (await judge(Firm(), DANA, "resolve", late)).allowed
    before = hold_for("group", "finance", started_by="user:sam@acme", starter_in=("group:finance",))
    assert (await judge(Firm(), SAM, "resolve", before)).allowed
    unknown = hold_for("group", "finance", started_by="user:sam@acme")
    assert (await judge(Firm(), SAM, "resolve", unknown)).code == "excluded"
    by_name = hold_for("user", "sam", started_by="user:sam@acme", starter_in=())
    assert (await judge(Firm(), SAM, "resolve", by_name)).allowed


@pytest.mark.covers("HOLD-SEC-10", "HOLD-AUTH-09")
async def test_starter_does_not_decide_as_somebodys_substitute() -> None:
    firm = Firm()
    firm.away("dana", "kim")
    hold = hold_for("user", "dana", started_by="user:kim@acme", starter_in=())
    assert (await judge(firm, KIM, "resolve", hold)).code == "excluded"


# ---------------------------------------------------------------------- substitutes


@pytest.mark.covers("HOLD-AUTH-09")
async def test_substitute_acts_in_every_place_of_a_caller_who_is_away_and_only_then() -> None:
    firm = Firm()
    firm.away("dana", "kim@acme", since=NOW, until=LATER)
    for hold in (hold_for("user", "dana@acme"), FINANCE):
        found = await judge(firm, KIM, "resolve", hold)
        assert (found.authority, found.on_behalf_of) == ("substitute", "user:dana")
        assert not (await judge(firm, KIM, "resolve", hold, now=NOW - 1)).allowed
        assert not (await judge(firm, KIM, "resolve", hold, now=LATER)).allowed
    standing = await memberships_for(KIM, firm, NOW)
    assert ("user", "dana@acme") in assignees_of(standing)
    assert ("group", "finance") in assignees_of(standing)


@pytest.mark.covers("HOLD-AUTH-09")
async def test_substitute_inherits_the_exclusions_of_both() -> None:
    firm = Firm()
    firm.away("dana", "kim")
    theirs = hold_for("user", "dana", excluded=("user:dana",))
    assert (await judge(firm, KIM, "resolve", theirs)).code == "excluded"
    own = hold_for("user", "dana", excluded=("user:kim",))
    assert (await judge(firm, KIM, "resolve", own)).code == "excluded"
    neither = hold_for("user", "dana", excluded=("user:sam",))
    assert (await judge(firm, KIM, "resolve", neither)).allowed


@pytest.mark.covers("HOLD-AUTH-09")
async def test_member_acts_for_themselves_where_only_their_absent_colleague_is_excluded() -> None:
    firm = Firm()
    firm.away("dana", "sam")
    hold = hold_for("group", "finance", excluded=("user:dana",))
    found = await judge(firm, SAM, "resolve", hold)
    assert (found.authority, found.on_behalf_of) == ("assignee", None)


@pytest.mark.covers("HOLD-AUTH-09", "HOLD-AUTH-08")
async def test_credential_that_speaks_for_somebody_inherits_their_exclusions() -> None:
    hold = hold_for("group", "finance", approval={"exclude": ("initiator",)}, started_by="user:kim@acme")
    who = actor("user:sam@acme", on_behalf_of="user:kim@acme")
    assert (await judge(Firm(), who, "resolve", hold)).code == "excluded"


# ---------------------------------------------------------------------- agents


@pytest.mark.covers("HOLD-SEC-12")
async def test_service_does_not_decide_the_run_that_it_started_unless_the_flow_says_so() -> None:
    bot = actor("service:billing", RESOLVE, MANAGE, OVERRIDE)
    own = hold_for("user", "service:billing", started_by="service:billing")
    for decision in ("approve", "reject"):
        found = await judge(Firm(), bot, "resolve", own, reason="sure", decision=decision)
        assert found.code == "excluded"
    assert (await judge(Firm(), bot, "comment", own)).allowed
    said = hold_for("user", "service:billing", started_by="service:billing", allow_services=True)
    assert (await judge(Firm(), bot, "resolve", said)).allowed
    assert (await judge(Firm(), bot, "resolve", hold_for("group", "finance", started_by="user:dana"))).allowed


@pytest.mark.covers("HOLD-SEC-12")
@pytest.mark.parametrize("channel", ["agent", "mcp"])
async def test_agent_rejects_or_comments_and_nothing_else(channel: str) -> None:
    who = actor("user:dana@acme", RESOLVE, MANAGE, OVERRIDE, channel=channel)
    assert (await judge(Firm(), who, "resolve", FINANCE, decision="reject")).allowed
    assert (await judge(Firm(), who, "comment", FINANCE)).allowed
    for decision in ("approve", "continue", None):
        found = await judge(Firm(), who, "resolve", FINANCE, decision=decision, reason="the agent is sure")
        assert found.code == "forbidden", decision


@pytest.mark.covers("HOLD-AUTH-08", "HOLD-AUTH-09")
async def test_a_caller_who_is_excluded_hands_nothing_on_for_others_either() -> None:
    firm = Firm()
    firm.away("dana", "kim")
    theirs = hold_for("user", "dana", excluded=("user:kim",))
    assert (await judge(firm, KIM, "reassign", theirs)).code == "forbidden"
    spoken_for = hold_for("group", "finance", excluded=("user:kim",))
    assert (await judge(firm, SAM, "reassign", spoken_for)).allowed
    for_kim = actor("user:sam@acme", on_behalf_of="user:kim")
    assert (await judge(firm, for_kim, "reassign", spoken_for)).code == "forbidden"


@pytest.mark.covers("HOLD-AUTH-09")
async def test_nobody_stands_in_for_somebody_who_has_left() -> None:
    firm = Firm()
    firm.away("dana", "kim")
    assert (await judge(firm, KIM, "resolve", hold_for("user", "dana"))).allowed
    firm.people["dana"] = msgspec.structs.replace(firm.people["dana"], active=False)
    assert (await judge(firm, KIM, "resolve", hold_for("user", "dana"))).code == "not_assigned"


@pytest.mark.covers("HOLD-AUTH-05")
async def test_seats_bind_and_not_the_assignee_until_the_hold_is_handed_on() -> None:
    terms = {"approval": {"mode": "quorum", "need": 2, "of": ("user:dana@acme", "user:sam@acme")}}
    assert (await judge(Firm(), KIM, "vote", hold_for("role", "cfo", **terms))).code == "not_assigned"
    assert (await judge(Firm(), KIM, "vote", hold_for("role", "cfo", epoch=2, **terms))).allowed
    assert (await judge(Firm(), DANA, "vote", hold_for("role", "cfo", epoch=2, **terms))).allowed
