"""Whatever rights, groups and names people have: what must never be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.permissions.actor import ActorMemberships, Capacity
from holdfast.holds.permissions.check import ACTIONS, AGENT_CHANNELS, PermissionFacts, can
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, Actor
from tests.holds.permissions.people import NOW, hold_for

NAMES = ("dana", "sam", "service:bot")
KEYS = ("finance", "leads")


def some(*values: str) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(values))


capacities = st.builds(
    Capacity, people=some(*NAMES), groups=some(*KEYS), roles=some(*KEYS), delegations=some("dep")
)
actors = st.builds(
    Actor,
    id=st.sampled_from(["user:dana", "user:sam", "service:bot"]),
    tenant=st.sampled_from(["acme", "other"]),
    rights=some(RESOLVE, MANAGE, OVERRIDE),
    channel=st.sampled_from(["api", "inbox", "agent", "link"]),
)
standings = st.builds(
    ActorMemberships, actor=actors, own=capacities, others=st.lists(capacities, max_size=1).map(tuple)
)
holds = st.builds(
    lambda to, tenant, approval, **terms: hold_for(
        *to, tenant=tenant, started_by=terms.pop("started_by"), approval=approval, **terms
    ),
    st.sampled_from(
        [
            ("user", "dana"),
            ("group", "finance"),
            ("role", "leads"),
            ("delegated_user", "dep"),
            ("unrouted", ""),
        ]
    ),
    st.sampled_from(["acme", "other"]),
    st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["any", "quorum", "sequential"]),
            "of": st.lists(st.sampled_from(["group:finance", "user:sam"]), max_size=2).map(tuple),
            "exclude": st.lists(st.sampled_from(["initiator", "last_editor", "user:sam"]), max_size=2).map(
                tuple
            ),
        }
    ),
    strict_assignee=st.booleans(),
    allow_services=st.booleans(),
    started_by=st.sampled_from([None, "user:dana", "service:bot"]),
    starter_in=st.sampled_from([None, (), ("group:finance",)]),
)
asks: dict[str, Any] = {
    "reason": st.sampled_from([None, "why not"]),
    "decision": st.sampled_from([None, "approve", "reject"]),
}
DECIDING = ("resolve", "vote", "place")


@pytest.mark.covers("HOLD-AUTH-04", "RS-8", "HOLD-SEC-09")
@given(standings, holds, st.sampled_from(sorted(ACTIONS)), st.fixed_dictionaries(asks))
def test_nobody_of_another_tenant_ever_may_and_never_learns_that_it_is_there(
    standing: ActorMemberships, hold: Any, action: str, asked: dict[str, Any]
) -> None:
    found = can(standing, action, hold, NOW, **asked)
    if standing.actor.tenant != hold.tenant:
        assert (found.allowed, found.code) == (False, "not_found")
    else:
        assert found.code != "not_found"


@pytest.mark.covers("HOLD-AUTH-08", "HOLD-SEC-12")
@given(standings, holds, st.sampled_from(DECIDING), st.fixed_dictionaries(asks))
def test_nobody_decides_what_they_are_excluded_from_or_started_as_a_service(
    standing: ActorMemberships, hold: Any, action: str, asked: dict[str, Any]
) -> None:
    past = PermissionFacts(last_editor="user:sam")
    if not can(standing, action, hold, NOW, past, **asked).allowed:
        return
    actor, terms = standing.actor, hold.terms
    names = standing.own.people | {actor.id.removeprefix("user:")}
    exclude = terms.approval.exclude
    assert not ("initiator" in exclude and hold.started_by and hold.started_by.removeprefix("user:") in names)
    assert not ({"last_editor", "user:sam"} & set(exclude) and "sam" in names)
    if actor.is_service and hold.started_by == actor.id:
        assert terms.allow_services
    if actor.channel == "agent":
        assert asked["decision"] == "reject"


@pytest.mark.covers("HOLD-AUTH-04", "RS-8", "HOLD-AUTH-10")
@given(standings, holds, st.sampled_from(DECIDING), st.fixed_dictionaries(asks))
def test_a_caller_who_decides_has_a_place_a_right_or_a_reason(
    standing: ActorMemberships, hold: Any, action: str, asked: dict[str, Any]
) -> None:
    found = can(standing, action, hold, NOW, **asked)
    if not found.allowed:
        assert found.why
        return
    rights = standing.actor.rights
    if found.authority == "permission":
        assert rights & {RESOLVE, MANAGE}
        assert not hold.terms.binds_everybody
    elif found.authority == "override":
        assert OVERRIDE in rights
        assert asked["reason"]
        assert found.flagged
    else:
        assert found.authority in {"assignee", "delegate", "substitute"}
        assert found.matched


@pytest.mark.covers("AS-10", "HOLD-SEC-09")
@given(standings, holds, st.fixed_dictionaries(asks))
def test_a_caller_who_has_a_place_in_a_decision_also_sees_it(
    standing: ActorMemberships, hold: Any, asked: dict[str, Any]
) -> None:
    found = can(standing, "resolve", hold, NOW, **asked)
    seen = can(standing, "view", hold, NOW)
    if found.allowed and hold.assignee_type != "unrouted":
        assert seen.allowed
    if seen.allowed and hold.assignee_type == "unrouted" and not hold.terms.approval.of:
        # An agent has to hear what became of its own question, wherever that went.
        assert MANAGE in standing.actor.rights or seen.authority == "starter"
    if seen.authority == "starter":
        assert standing.actor.channel in AGENT_CHANNELS
