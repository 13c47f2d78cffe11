from __future__ import annotations

import pytest

from holdfast.errors import (
    ExcludedError,
    ForbiddenError,
    HoldClaimedError,
    HoldNotFoundError,
    NotAssignedError,
)
from holdfast.holds.permissions.actor import memberships_for, snapshot
from holdfast.holds.permissions.check import (
    ACTIONS,
    PermissionFacts,
    PermissionVerdict,
    can,
    excluded_target,
    require,
)
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, Assignee, operator
from tests.holds.permissions.people import LATER, NOW, Firm, actor, hold_for, judge

pytestmark = pytest.mark.anyio

DANA, SAM, KIM = actor("user:dana@acme"), actor("user:sam@acme"), actor("user:kim@acme")
FINANCE = hold_for("group", "finance")
UNROUTED = hold_for("unrouted")


# ---------------------------------------------------------------------- whose it is


@pytest.mark.covers("RS-8", "HOLD-AUTH-04")
async def test_person_decides_what_is_theirs_under_any_of_their_names() -> None:
    for name in ("dana", "dana@acme"):
        hold = hold_for("user", name)
        assert (await judge(Firm(), DANA, "resolve", hold)).authority == "assignee"
        assert (await judge(Firm(), actor("user:dana"), "resolve", hold)).allowed
        assert (await judge(Firm(), SAM, "resolve", hold)).code == "not_assigned"


@pytest.mark.covers("AS-11", "RS-8")
async def test_member_decides_and_somebody_else_does_not() -> None:
    firm = Firm()
    found = await judge(firm, SAM, "resolve", FINANCE)
    assert (found.allowed, found.authority, found.matched) == (True, "assignee", "group:finance")
    assert (await judge(firm, KIM, "resolve", FINANCE)).code == "not_assigned"
    assert (await judge(firm, KIM, "resolve", hold_for("role", "cfo"))).allowed


@pytest.mark.covers("AS-11", "HOLD-AUTH-11")
async def test_member_who_has_left_the_group_cannot_decide_whatever_their_credential_says() -> None:
    firm = Firm()
    who = actor("user:sam@acme", groups=frozenset({"finance"}))
    assert (await judge(firm, who, "resolve", FINANCE)).allowed
    firm.groups["finance"] = ("dana",)
    assert (await judge(firm, who, "resolve", FINANCE)).code == "not_assigned"
    del firm.people["dana"]
    assert (await judge(firm, DANA, "resolve", hold_for("user", "dana@acme"))).code == "not_assigned"


async def test_somebody_inactive_may_do_nothing_with_any_right() -> None:
    gone = actor("user:gone@acme", RESOLVE, MANAGE, OVERRIDE)
    for action in ACTIONS:
        found = await judge(Firm(), gone, action, hold_for("user", "gone@acme"), reason="I insist")
        assert (found.allowed, found.code) == (False, "forbidden"), action


async def test_credential_says_who_belongs_where_when_there_is_no_directory() -> None:
    who = actor("user:x", groups=frozenset({"finance"}), roles=frozenset({"cfo"}))
    assert (await judge(None, who, "resolve", FINANCE)).allowed
    assert (await judge(None, who, "resolve", hold_for("role", "cfo"))).allowed
    assert not (await judge(None, who, "resolve", hold_for("group", "Finance"))).allowed, "AS-6"


# ---------------------------------------------------------------------- rights


@pytest.mark.covers("RS-8")
async def test_right_to_resolve_counts_for_any_hold_and_is_recorded_as_permission() -> None:
    for right in (RESOLVE, MANAGE):
        who = actor("user:api", right)
        for hold in (FINANCE, hold_for("user", "dana"), UNROUTED):
            assert (await judge(Firm(), who, "resolve", hold)).authority == "permission"


@pytest.mark.covers("RS-8", "HOLD-AUTH-10")
@pytest.mark.parametrize(
    "terms",
    [
        {"strict_assignee": True},
        {"approval": {"mode": "quorum", "need": 2}},
        {"approval": {"mode": "sequential", "of": ("group:finance",)}},
        {"approval": {"exclude": ("initiator",)}},
    ],
    ids=["strict", "quorum", "sequential", "duties"],
)
async def test_hold_that_binds_to_its_assignee_takes_an_override_with_a_reason(
    terms: dict[str, object],
) -> None:
    hold = hold_for("group", "finance", **terms)
    assert (await judge(Firm(), SAM, "resolve", hold)).authority == "assignee"
    assert (await judge(Firm(), actor("user:api", RESOLVE, MANAGE), "resolve", hold)).code == "not_assigned"
    admin = actor("user:admin", OVERRIDE)
    for reason in (None, "", "  "):
        assert (await judge(Firm(), admin, "resolve", hold, reason=reason)).code == "not_assigned"
    found = await judge(Firm(), admin, "resolve", hold, reason="everybody is ill")
    assert (found.authority, found.flagged) == ("override", True)


async def test_local_operator_decides_an_unrouted_hold() -> None:
    assert (await judge(None, operator(), "resolve", UNROUTED)).allowed


# ---------------------------------------------------------------------- unrouted, claims


@pytest.mark.covers("AS-10")
async def test_unrouted_hold_is_seen_and_claimed_by_admins_only() -> None:
    for who in (DANA, actor("user:api", RESOLVE), actor("user:unrouted")):
        assert (await judge(Firm(), who, "view", UNROUTED)).code == "not_assigned", who
        assert (await judge(Firm(), who, "claim", UNROUTED)).code == "not_assigned", who
    admin = actor("user:admin", MANAGE)
    assert (await judge(Firm(), admin, "view", UNROUTED)).authority == "manage"
    assert (await judge(Firm(), admin, "claim", UNROUTED)).allowed


@pytest.mark.covers("AS-12")
async def test_claimed_hold_is_decided_by_its_claimer_by_override_or_when_the_claim_has_lapsed() -> None:
    hold = hold_for("group", "finance", claimed_by="user:Dana@acme", claim_until=LATER)
    assert (await judge(Firm(), DANA, "resolve", hold)).allowed
    for who in (SAM, actor("user:api", RESOLVE), actor("user:admin", MANAGE)):
        assert (await judge(Firm(), who, "resolve", hold)).code == "claimed"
        assert (await judge(Firm(), who, "claim", hold)).code == "claimed"
    assert (await judge(Firm(), SAM, "view", hold)).allowed
    boss = actor("user:sam@acme", OVERRIDE)
    assert (await judge(Firm(), boss, "resolve", hold, reason="urgent")).flagged
    assert (await judge(Firm(), SAM, "resolve", hold, now=LATER)).authority == "assignee"


@pytest.mark.covers("AS-12")
async def test_claim_is_released_by_its_claimer_or_an_admin() -> None:
    hold = hold_for("group", "finance", claimed_by="user:dana@acme", claim_until=LATER)
    assert (await judge(Firm(), DANA, "release", hold)).allowed
    assert (await judge(Firm(), SAM, "release", hold)).code == "forbidden"
    assert (await judge(Firm(), actor("user:admin", MANAGE), "release", hold)).allowed


async def test_claim_keeps_nobody_from_voting() -> None:
    hold = hold_for(
        "group", "finance", approval={"mode": "quorum", "need": 2}, claimed_by="user:dana", claim_until=LATER
    )
    assert (await judge(Firm(), SAM, "vote", hold)).allowed


# ---------------------------------------------------------------------- arranging


@pytest.mark.covers("RA-5")
async def test_assignee_admin_and_owner_reassign_and_nobody_else() -> None:
    past = PermissionFacts(owners=frozenset({"user:kim"}))
    assert (await judge(Firm(), SAM, "reassign", FINANCE, past)).authority == "assignee"
    assert (await judge(Firm(), actor("user:admin", MANAGE), "reassign", FINANCE, past)).authority == "manage"
    assert (await judge(Firm(), KIM, "reassign", FINANCE, past)).authority == "owner"
    for who in (KIM, actor("user:api", RESOLVE), actor("user:boss", OVERRIDE)):
        assert (await judge(Firm(), who, "reassign", FINANCE)).code == "forbidden"


async def test_owner_arranges_and_does_not_decide() -> None:
    past = PermissionFacts(owners=frozenset({"user:kim"}))
    for action in ("view", "cancel", "extend", "reassign"):
        assert (await judge(Firm(), KIM, action, FINANCE, past)).allowed, action
    assert not (await judge(Firm(), KIM, "resolve", FINANCE, past)).allowed
    assert not (await judge(Firm(), KIM, "unroute", FINANCE, past)).allowed


async def test_cancelling_and_extending_is_for_those_who_manage() -> None:
    for action in ("cancel", "extend", "unroute"):
        assert (await judge(Firm(), SAM, action, FINANCE)).code == "forbidden", action
        assert (await judge(Firm(), actor("user:admin", MANAGE), action, FINANCE)).allowed, action


@pytest.mark.covers("RA-6")
async def test_hold_does_not_go_to_somebody_who_is_excluded() -> None:
    hold = hold_for("group", "finance", approval={"exclude": ("initiator",)}, started_by="user:Sam@acme")
    assert excluded_target(Assignee("user", "sam@acme"), hold, PermissionFacts()) is not None
    assert excluded_target(Assignee("user", "dana@acme"), hold, PermissionFacts()) is None
    assert excluded_target(Assignee("group", "finance"), hold, PermissionFacts()) is None


async def test_a_caller_who_was_asked_back_sees_and_replies_and_decides_nothing() -> None:
    past = PermissionFacts(asked=frozenset({"user:kim@acme"}))
    assert (await judge(Firm(), KIM, "view", FINANCE, past)).authority == "asked"
    assert (await judge(Firm(), KIM, "reply", FINANCE, past)).allowed
    assert not (await judge(Firm(), KIM, "resolve", FINANCE, past)).allowed
    assert not (await judge(Firm(), SAM, "reply", FINANCE, past)).allowed


# ---------------------------------------------------------------------- delegated users


class Core:
    """Deployments of which one is delegated."""

    def __init__(self, to: str | None) -> None:
        self.to = to

    async def delegation(self, tenant: str, ref: str) -> None: ...

    async def delegated_to(self, tenant: str, people: frozenset[str], now: int) -> frozenset[str]:
        return frozenset({"dep-1"}) if self.to in people else frozenset()


@pytest.mark.covers("AS-9")
async def test_delegated_hold_is_whosever_the_delegation_is_at_that_moment() -> None:
    hold, core = hold_for("delegated_user", "dep-1"), Core("dana@acme")
    assert (await judge(Firm(), DANA, "resolve", hold, delegations=core)).authority == "delegate"
    core.to = "sam@acme"
    assert not (await judge(Firm(), DANA, "resolve", hold, delegations=core)).allowed
    assert (await judge(Firm(), SAM, "view", hold, delegations=core)).allowed
    core.to, revoked = None, PermissionFacts(astray=True)
    assert not (await judge(Firm(), SAM, "resolve", hold, revoked, delegations=core)).allowed
    assert not (await judge(Firm(), actor("user:api", RESOLVE), "view", hold, revoked)).allowed
    assert (await judge(Firm(), actor("user:admin", MANAGE), "view", hold, revoked)).allowed
    assert (await judge(Firm(), actor("user:admin", MANAGE), "claim", hold, revoked)).allowed


# ---------------------------------------------------------------------- the system


@pytest.mark.covers("HOLD-AUTH-04")
async def test_system_is_what_comes_from_inside_and_a_policy_decides_its_own_holds() -> None:
    assert (await judge(Firm(), actor("system:expiry", channel="system"), "resolve", FINANCE)).allowed
    for name in ("system:expiry", "policy:small"):
        assert not (await judge(Firm(), actor(name, channel="api"), "resolve", FINANCE)).allowed
    small = actor("policy:small", channel="system")
    assert (await judge(Firm(), small, "resolve", hold_for("group", "finance", auto="small"))).allowed
    for hold in (FINANCE, hold_for("group", "finance", auto="large")):
        assert (await judge(Firm(), small, "resolve", hold)).code == "forbidden"


# ---------------------------------------------------------------------- refusals


@pytest.mark.covers("HOLD-AUTH-04")
async def test_act_that_nobody_has_heard_of_is_refused() -> None:
    found = await judge(Firm(), operator(), "approve_everything", FINANCE)
    assert (found.allowed, found.code) == (False, "forbidden")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("not_found", HoldNotFoundError),
        ("excluded", ExcludedError),
        ("claimed", HoldClaimedError),
        ("not_assigned", NotAssignedError),
        ("forbidden", ForbiddenError),
    ],
)
def test_refusal_is_an_error_that_says_why(code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        require(PermissionVerdict(allowed=False, code=code, why="it is so"), FINANCE, "resolve")


@pytest.mark.covers("HOLD-AUTH-11", "HOLD-SEC-09")
async def test_snapshot_tells_what_somebody_belonged_to_when_they_decided() -> None:
    firm = Firm()
    firm.away("dana", "kim")
    standing = await memberships_for(KIM, firm, NOW)
    verdict = can(standing, "resolve", FINANCE, NOW)
    found = snapshot(standing, verdict.matched, NOW)
    assert (found["person"], found["matched"]) == ("user:kim@acme", "group:finance")
    assert (found["groups"], found["roles"]) == ([], ["cfo"])
    assert found["stood_in_for"] == [{"person": "user:dana", "groups": ["finance"], "roles": []}]
    assert found["at"].startswith("1970-01-01T00:00:01")
