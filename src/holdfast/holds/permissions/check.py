"""Permission checks for holds: one function for lists, single holds, links, bulk, votes and every change.

Rights come with the credential. `resolve`: any hold of the tenant that is not restricted to its assignee.
`manage`: that too, unrouted holds, and reassigning, extending and cancelling. `view`: to see any hold that
is assigned, and nothing else. `override`: a decision
against the assignment, with a reason, marked as such. No right lifts an exclusion: separation of duties
applies to admins too. A credential of an agent may see and cancel the agent's questions, and approves
nothing.

A person has a place in a decision by name, group, role or delegation, or as a substitute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from holdfast.errors import (
    ExcludedError,
    ForbiddenError,
    HoldClaimedError,
    HoldNotFoundError,
    NotAssignedError,
    StepUpRequiredError,
)
from holdfast.holds.permissions.actor import ActorMemberships, Capacity
from holdfast.holds.permissions.assignees import DELEGATED, UNROUTED, parse_assignee, person_key
from holdfast.holds.permissions.exclusions import (
    PermissionFacts,
    actor_capacity,
    excluded_target,
    exclusion,
    starter_of,
    starters_of,
)
from holdfast.holds.permissions.participants import behind, excluded_by_chain
from holdfast.holds.permissions.vote_count import rejects, voters_of
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, VIEW, Assignee


def places(
    standing: ActorMemberships, hold: HoldRow, past: PermissionFacts | None = None
) -> tuple[Assignee, ...]:
    """The places of a person, for themselves or as a substitute, without excluded ones."""
    known = past or PermissionFacts()
    return tuple(
        seat
        for seat in _seats(hold)
        if any(
            capacity.fits(seat) and _in_capacity(standing, capacity, hold, known, (seat,)).allowed
            for capacity in standing.capacities
        )
    )


def place_verdict(
    standing: ActorMemberships, hold: HoldRow, past: PermissionFacts, *, veto: bool = True
) -> PermissionVerdict | None:
    """Their own place first; then those of the people they substitute. None: they have none. `veto`: whether
    a veto counts as a place."""
    seats, no = _seats(hold) if veto else voters_of(hold), None
    for capacity in standing.capacities:
        if _matching(capacity, seats) is None:
            continue
        found = _in_capacity(standing, capacity, hold, past, seats)
        if found.allowed:
            return found
        no = no or found
    return no


def viewer_verdict(standing: ActorMemberships, hold: HoldRow) -> PermissionVerdict | None:
    """The same for viewing, which has no exclusions."""
    seats = (*_seats(hold), Assignee(hold.assignee_type, hold.assignee_value))
    for capacity in standing.capacities:
        matched = _matching(capacity, seats)
        if matched is not None:
            return _as(capacity, matched)
    return None


def _in_capacity(
    standing: ActorMemberships,
    capacity: Capacity,
    hold: HoldRow,
    past: PermissionFacts,
    seats: Iterable[Assignee],
) -> PermissionVerdict:
    """A substitute inherits the exclusions of both people."""
    # The actor's own exclusions come first: otherwise an excluded person could decide as a substitute.
    for each in (actor_capacity(standing), capacity):
        why = exclusion(each, hold, past)
        if why is not None:
            return refused("excluded", why)
    found = _as_it_opened(standing, capacity, hold, past)
    matches, no = [each for each in seats if found.fits(each)], None
    for matched in matches:
        # The makers of the credential and of this very place: another seat may have been given by others.
        why = excluded_by_chain(standing, hold, past, behind(standing, past, capacity, matched))
        if why is None:
            return _as(capacity, matched)
        no = no or refused("excluded", why)
    return no or refused(
        "excluded", "the starter of the run became one of its approvers only after the hold was opened"
    )


def _as_it_opened(
    standing: ActorMemberships, capacity: Capacity, hold: HoldRow, past: PermissionFacts
) -> Capacity:
    """For the run's starter, only groups, roles and delegations count that they had when the hold was opened;
    and they cannot be a substitute (section 3, rule 11). Unknown memberships do not count."""
    starters = starters_of(hold, past)
    if capacity.for_whom is not None and starters & actor_capacity(standing).people:
        return Capacity(for_whom=capacity.for_whom)
    if not starters & capacity.people:
        return capacity
    # Memberships at the time of opening, because the starter could otherwise join the approving group
    # afterwards and approve their own request. Being named as a person is not affected.
    then = hold.terms.starter_in or ()
    return msgspec.structs.replace(
        capacity,
        groups=frozenset(key for key in capacity.groups if f"group:{key}" in then),
        roles=frozenset(key for key in capacity.roles if f"role:{key}" in then),
        delegations=frozenset(ref for ref in capacity.delegations if f"{DELEGATED}:{ref}" in then),
    )


def _seats(hold: HoldRow) -> tuple[Assignee, ...]:
    return (*voters_of(hold), *(parse_assignee(text) for text in hold.terms.approval.veto))


def _matching(capacity: Capacity, seats: Iterable[Assignee]) -> Assignee | None:
    return next((each for each in seats if capacity.fits(each)), None)


def _as(capacity: Capacity, matched: Assignee) -> PermissionVerdict:
    own = "delegate" if matched.type == DELEGATED else "assignee"
    return PermissionVerdict(
        allowed=True,
        authority=own if capacity.for_whom is None else "substitute",
        matched=str(matched),
        on_behalf_of=capacity.for_whom,
    )


AGENT_CHANNELS: Final = frozenset({"agent", "mcp"})
DECISIONS: Final = frozenset({"resolve", "vote", "place"})
ARRANGING: Final = frozenset({"claim", "release", "reassign", "unroute", "cancel", "extend"})
_AGENTS: Final = "a credential of an agent may only reject, comment, and cancel the agent's own questions"


class _Case(msgspec.Struct, frozen=True):
    standing: ActorMemberships
    action: str
    hold: HoldRow
    now: int
    past: PermissionFacts
    reason: str
    decision: str | None


def can(
    standing: ActorMemberships,
    action: str,
    hold: HoldRow,
    now: int,
    past: PermissionFacts | None = None,
    *,
    reason: str | None = None,
    decision: str | None = None,
) -> PermissionVerdict:
    """Whether the action is allowed, and by which authority. `reason` uses the right to override; `decision`
    is needed for agents, which may only reject. An unknown action is refused."""
    actor = standing.actor
    # Before every other check: another tenant's hold must look exactly like a hold that does not exist.
    if actor.tenant != hold.tenant:
        return refused("not_found", f"there is no hold {hold.id!r}")
    # Before the rights: the credential of a person who was deactivated may still be valid.
    if standing.barred is not None:
        return refused("forbidden", standing.barred)
    rule = ACTIONS.get(action)
    if rule is None:
        return refused("forbidden", f"{action!r} is not an action on holds")
    # The channel is set by the server and the id may come from a credential, so the id alone is not trusted.
    if actor.is_system and actor.channel == "system":
        return _unattended(standing, hold)
    case = _Case(standing, action, hold, now, past or PermissionFacts(), (reason or "").strip(), decision)
    # Before the rule of the action: over these channels an agent has no rights that decide or arrange,
    # whatever its credential grants elsewhere. Only the questions of runs that it started may be withdrawn.
    if actor.channel in AGENT_CHANNELS and action in ARRANGING:
        return by("starter") if action == "cancel" and _started(case) else refused("forbidden", _AGENTS)
    return rule(case)


def _unattended(standing: ActorMemberships, hold: HoldRow) -> PermissionVerdict:
    """Sweeps, and the policy that the hold was opened under. A name such as `system:` alone gives no rights:
    actors from other channels are checked like all others."""
    kind, _, name = standing.actor.id.partition(":")
    if kind == "policy" and name != hold.terms.auto:
        return refused("forbidden", f"policy {name!r} may not decide this hold")
    return by("system")


# ---------------------------------------------------------------------- seeing


def _sees(case: _Case) -> PermissionVerdict:
    found = viewer_verdict(case.standing, case.hold)
    if found is not None:
        return found
    if case.standing.has(MANAGE):
        return by("manage")
    if _is_asked(case):
        return by("asked")
    if case.standing.actor.channel in AGENT_CHANNELS and _started(case):
        # The service that asked for an agent has to see the outcome.
        return by("starter")
    if not _is_astray(case):
        if _owns(case):
            return by("owner")
        if case.standing.has(RESOLVE) or case.standing.has(OVERRIDE):
            return by("permission")
        # Only to see it: a comment or a draft is of people who take part.
        if case.action == "view" and case.standing.has(VIEW):
            return by("permission")
    return _not_theirs(case)


def _replies(case: _Case) -> PermissionVerdict:
    return by("asked") if _is_asked(case) else _manages(case)


def _is_asked(case: _Case) -> bool:
    # By all names of the person: the question may have been
    # put to an e-mail address and the actor signed in by id.
    asked = {person_key(name) for name in case.past.asked}
    return bool(asked & (case.standing.own.people | {person_key(case.standing.actor.id)}))


# ---------------------------------------------------------------------- deciding


def _decides(case: _Case) -> PermissionVerdict:
    no = _agent(case) or _excluded(case)
    if no is not None:
        return no
    found = _authority(case)
    # After the permission: a person who may not decide the hold must not learn who works on it.
    if found.allowed and found.authority != "override" and _is_claimed(case):
        found = _override(case) or refused("claimed", f"{case.hold.claimed_by} is working on this hold")
    # Last: the sign-in page is for a person who may decide once they have signed in.
    return _needs_sign_in(case) or found if found.allowed else found


def _needs_sign_in(case: _Case) -> PermissionVerdict | None:
    """A token, a link and a chat account prove no presence; an old session proves an earlier one."""
    limit, since = case.hold.terms.step_up, case.standing.actor.signed_in_at
    if limit is None or case.action not in DECISIONS:
        return None
    if since is not None and case.now - since <= limit * MICROS:
        return None
    return refused("step_up", f"this hold requires a sign-in within the last {limit} seconds")


def _authority(case: _Case) -> PermissionVerdict:
    seated = place_verdict(case.standing, case.hold, case.past, veto=_may_veto(case))
    if seated is not None and seated.allowed:
        return seated
    # After the place, so that the recorded authority is the assignment where there is one.
    if case.standing.has(RESOLVE) and not case.hold.terms.binds_everybody:
        return by("permission")
    return _override(case) or seated or _not_theirs(case)


def _may_veto(case: _Case) -> bool:
    """A person who has only a veto can only reject."""
    return case.hold.terms.approval.mode != "any" or _says_no(case)


def _says_no(case: _Case) -> bool:
    return case.decision is not None and rejects(case.hold.options, case.decision)


def _agent(case: _Case) -> PermissionVerdict | None:
    """Agents do not approve their own questions (section 3, rule 13); no right and no override lifts this."""
    actor = case.standing.actor
    made = {name for each in case.standing.makers for name in each.people}
    started = _started(case) or bool(made & starters_of(case.hold, case.past))
    if actor.is_service and started and not case.hold.terms.allow_services:
        return refused("excluded", f"{actor.id} started this run, and a service may not decide its own runs")
    if actor.channel in AGENT_CHANNELS and not _says_no(case):
        return refused("forbidden", _AGENTS)
    return None


def _started(case: _Case) -> bool:
    return starter_of(case.hold, case.past) in actor_capacity(case.standing).people


# Asked before any right and any override: if an admin could approve their own request, separation of duties
# would bind only people without rights.
def _excluded(case: _Case) -> PermissionVerdict | None:
    standing, hold, past = case.standing, case.hold, case.past
    why = exclusion(actor_capacity(standing), hold, past)
    why = why or excluded_by_chain(standing, hold, past, behind(standing, past))
    return None if why is None else refused("excluded", why)


def _override(case: _Case) -> PermissionVerdict | None:
    # Without a reason the right has no effect: an assignment is
    # not overridden by accident, and the audit always has a text.
    if case.standing.has(OVERRIDE) and case.reason:
        return PermissionVerdict(allowed=True, authority="override", flagged=True)
    return None


def _is_claimed(case: _Case) -> bool:
    """Claimed by another person, and not expired. If several people vote, a claim does not stop a vote."""
    hold = case.hold
    # Votes of several people do not exclude each other, so one person's claim must not delay the others.
    if hold.claimed_by is None or hold.terms.approval.mode != "any":
        return False
    if hold.claim_until is not None and hold.claim_until <= case.now:
        return False
    return person_key(hold.claimed_by) not in actor_capacity(case.standing).people


# ---------------------------------------------------------------------- managing


def _claims(case: _Case) -> PermissionVerdict:
    """An unrouted hold is claimed by admins, and assigned to them (AS-10)."""
    if not _is_astray(case):
        return _decides(case)
    no = _agent(case) or _excluded(case)
    return no or (by("manage") if case.standing.has(MANAGE) else _not_theirs(case))


def _releases(case: _Case) -> PermissionVerdict:
    claimer = case.hold.claimed_by
    if claimer is not None and person_key(claimer) in actor_capacity(case.standing).people:
        return by("assignee")
    return _manages(case)


def _reassigns(case: _Case) -> PermissionVerdict:
    if case.hold.terms.approval.mode != "any":
        # The new assignee gets a vote: one of several voters must not choose the others.
        return _manages(case)
    seated = place_verdict(case.standing, case.hold, case.past, veto=False)
    return seated if seated is not None and seated.allowed else _manages(case)


def _manages(case: _Case) -> PermissionVerdict:
    if case.standing.has(MANAGE):
        return by("manage")
    if _owns(case):
        return by("owner")
    return refused("forbidden", f"{case.standing.actor.id} has no right to {case.action} this hold")


def _unroutes(case: _Case) -> PermissionVerdict:
    if case.standing.has(MANAGE):
        return by("manage")
    return refused("forbidden", "only admins can remove the assignee of a hold")


def _owns(case: _Case) -> bool:
    """The flow's owner manages who decides, but does not decide by that."""
    return any(case.standing.own.fits(parse_assignee(owner)) for owner in case.past.owners)


def _is_astray(case: _Case) -> bool:
    return case.past.astray or case.hold.assignee_type == UNROUTED


def _not_theirs(case: _Case) -> PermissionVerdict:
    whom = "admins" if _is_astray(case) else Assignee(case.hold.assignee_type, case.hold.assignee_value)
    why = f"this hold is assigned to {whom}, not to {case.standing.actor.id}"
    silence = case.standing.silence
    return refused("not_assigned", f"{why} ({silence})" if silence else why)


ACTIONS: Final[dict[str, Callable[[_Case], PermissionVerdict]]] = {
    **dict.fromkeys(("view", "comment", "watch", "snooze", "seen", "draft"), _sees),
    **dict.fromkeys(("resolve", "vote", "place", "ask_back", "review"), _decides),
    **dict.fromkeys(("cancel", "extend"), _manages),
    "claim": _claims,
    "release": _releases,
    "reassign": _reassigns,
    "unroute": _unroutes,
    "reply": _replies,
}

__all__ = ["ACTIONS", "PermissionFacts", "PermissionVerdict", "can", "excluded_target", "places", "require"]


class PermissionVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`authority`: why it is allowed: assignee, substitute, delegate, permission, manage, owner, override,
    asked, system. `matched`: the assignee that matched. `code`: of a refusal."""

    allowed: bool
    authority: str = ""
    code: str = ""
    why: str = ""
    matched: str = ""
    on_behalf_of: str | None = None
    flagged: bool = False


def by(authority: str) -> PermissionVerdict:
    return PermissionVerdict(allowed=True, authority=authority)


def refused(code: str, why: str) -> PermissionVerdict:
    return PermissionVerdict(allowed=False, code=code, why=why)


def require(verdict: PermissionVerdict, hold: HoldRow, action: str) -> PermissionVerdict:
    """The verdict, if it is allowed. Raises HoldNotFoundError for another tenant's hold, ExcludedError,
    HoldClaimedError, NotAssignedError, ForbiddenError."""
    if verdict.allowed:
        return verdict
    if verdict.code == "not_found":
        # The same error as for an unknown id, so that ids of other tenants cannot be probed.
        raise HoldNotFoundError(f"there is no hold {hold.id!r}.", hold=hold.id)
    error = _ERRORS.get(verdict.code, ForbiddenError)
    raise error(f"{verdict.why}.", hint=_HINTS.get(verdict.code), hold=hold.id, action=action)


_ERRORS: Final = {
    "excluded": ExcludedError,
    "claimed": HoldClaimedError,
    "not_assigned": NotAssignedError,
    "step_up": StepUpRequiredError,
}
_HINTS: Final = {
    "claimed": "Wait until it is released, or override it with a reason if you have that right.",
    "step_up": "Sign in again in a browser (/sign-in), and decide there.",
    "not_assigned": "With the right to override it can be decided with a reason.",
}
