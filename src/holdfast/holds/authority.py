"""Who may do what to a hold: one function for lists, single holds, links, bulk, votes and every change.

Rights come with the credential. `resolve`: any hold of the tenant that does not bind to its assignee.
`manage`: that too, the unrouted ones, and reassigning, extending and cancelling. `override`: a decision
against the rules of assignment, with a reason, flagged. No right lifts an exclusion: separation of duties
binds admins too.
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
)
from holdfast.holds.approvals import rejects, seats_of
from holdfast.holds.assigning import DELEGATED, UNROUTED, parse_assignee, person_key
from holdfast.holds.exclusions import Past, actor_capacity, excluded_target, exclusion, starter_of
from holdfast.holds.standing import Capacity, Standing
from holdfast.types.hold import HoldRow
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, Assignee

__all__ = ["ACTIONS", "Past", "Verdict", "can", "demand", "excluded_target"]

AGENT_CHANNELS: Final = frozenset({"agent", "mcp"})


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`authority`: by what somebody may: assignee, substitute, delegate, permission, manage, owner, override,
    asked, system. `matched`: the assignee that they are one of. `code`: of a refusal."""

    allowed: bool
    authority: str = ""
    code: str = ""
    why: str = ""
    matched: str = ""
    on_behalf_of: str | None = None
    flagged: bool = False


class _Case(msgspec.Struct, frozen=True):
    standing: Standing
    action: str
    hold: HoldRow
    now: int
    past: Past
    reason: str
    decision: str | None


def can(
    standing: Standing,
    action: str,
    hold: HoldRow,
    now: int,
    past: Past | None = None,
    *,
    reason: str | None = None,
    decision: str | None = None,
) -> Verdict:
    """Whether, and by what authority. `reason` makes use of the right to override; `decision` is asked of
    agents, which may only say no. An act that nobody has heard of is refused."""
    actor = standing.actor
    if actor.tenant != hold.tenant:
        return _refused("not_found", f"there is no hold {hold.id!r}")
    if standing.barred is not None:
        return _refused("forbidden", standing.barred)
    rule = ACTIONS.get(action)
    if rule is None:
        return _refused("forbidden", f"there is no such act as {action!r}")
    if actor.is_system:
        return Verdict(allowed=True, authority="system")
    return rule(_Case(standing, action, hold, now, past or Past(), (reason or "").strip(), decision))


def demand(verdict: Verdict, hold: HoldRow, action: str) -> Verdict:
    """The verdict, where it is a yes. Raises HoldNotFoundError for another tenant's hold, ExcludedError,
    HoldClaimedError, NotAssignedError, ForbiddenError."""
    if verdict.allowed:
        return verdict
    if verdict.code == "not_found":
        raise HoldNotFoundError(f"there is no hold {hold.id!r}.", hold=hold.id)
    error = _ERRORS.get(verdict.code, ForbiddenError)
    raise error(f"{verdict.why}.", hint=_HINTS.get(verdict.code), hold=hold.id, action=action)


# ---------------------------------------------------------------------- seeing


def _sees(case: _Case) -> Verdict:
    seats = (*_seats(case.hold), _assignee(case.hold))
    for capacity in case.standing.capacities:
        matched = _matching(capacity, seats)
        if matched is not None:
            return _as(capacity, matched)
    return _sees_otherwise(case)


def _sees_otherwise(case: _Case) -> Verdict:
    astray = case.past.astray or case.hold.assignee_type == UNROUTED
    if case.standing.has(MANAGE):
        return Verdict(allowed=True, authority="manage")
    if _is_asked(case):
        return Verdict(allowed=True, authority="asked")
    if not astray and _owns(case):
        return Verdict(allowed=True, authority="owner")
    if not astray and (case.standing.has(RESOLVE) or case.standing.has(OVERRIDE)):
        return Verdict(allowed=True, authority="permission")
    return _not_theirs(case)


def _replies(case: _Case) -> Verdict:
    return Verdict(allowed=True, authority="asked") if _is_asked(case) else _manages(case)


def _is_asked(case: _Case) -> bool:
    asked = {person_key(name) for name in case.past.asked}
    return bool(asked & (case.standing.own.people | {person_key(case.standing.actor.id)}))


# ---------------------------------------------------------------------- deciding


def _decides(case: _Case) -> Verdict:
    refused = _agent(case) or _excluded(case)
    if refused is not None:
        return refused
    found = _authority(case)
    if found.allowed and found.authority != "override" and _is_claimed(case):
        return _override(case) or _refused("claimed", f"{case.hold.claimed_by} is working on this hold")
    return found


def _authority(case: _Case) -> Verdict:
    placed = _place(case)
    if placed is not None and placed.allowed:
        return placed
    if case.standing.has(RESOLVE) and not case.hold.terms.binds_everybody:
        return Verdict(allowed=True, authority="permission")
    return _override(case) or placed or _not_theirs(case)


def _place(case: _Case) -> Verdict | None:
    """Their own place first; then those of the people whom they stand in for. None: they have no place."""
    refused: Verdict | None = None
    for capacity in case.standing.capacities:
        if _matching(capacity, _seats(case.hold)) is None:
            continue
        found = _in_capacity(case, capacity)
        if found.allowed:
            return found
        refused = refused or found
    return refused


def _in_capacity(case: _Case, capacity: Capacity) -> Verdict:
    """Whoever stands in for somebody inherits the exclusions of both; the actor's own were asked before."""
    why = exclusion(capacity, case.hold, case.past)
    if why is not None:
        return _refused("excluded", why)
    matched = _matching(_as_it_opened(case, capacity), _seats(case.hold))
    if matched is None:
        return _refused(
            "excluded", "whoever started the run became one of its approvers only after it had asked"
        )
    return _as(capacity, matched)


def _as_it_opened(case: _Case, capacity: Capacity) -> Capacity:
    """Of the run's starter, only those groups and roles count that they were in when the hold was opened; and
    they stand in for nobody (section 3, rule 11). What is not known does not count."""
    starter = starter_of(case.hold, case.past)
    if capacity.for_whom is not None and starter in actor_capacity(case.standing).people:
        return Capacity(for_whom=capacity.for_whom)
    if starter not in capacity.people:
        return capacity
    then = case.hold.terms.starter_in or ()
    return msgspec.structs.replace(
        capacity,
        groups=frozenset(key for key in capacity.groups if f"group:{key}" in then),
        roles=frozenset(key for key in capacity.roles if f"role:{key}" in then),
    )


def _agent(case: _Case) -> Verdict | None:
    """Agents do not approve themselves (section 3, rule 13); no right and no override lifts it."""
    actor = case.standing.actor
    own = starter_of(case.hold, case.past) in actor_capacity(case.standing).people
    if actor.is_service and own and not case.hold.terms.allow_services:
        return _refused("excluded", f"{actor.id} started this run, and services do not decide their own")
    says_no = case.decision is not None and rejects(case.hold.options, case.decision)
    if actor.channel in AGENT_CHANNELS and not says_no:
        return _refused("forbidden", "what speaks for an agent may reject or comment, nothing else")
    return None


def _excluded(case: _Case) -> Verdict | None:
    why = exclusion(actor_capacity(case.standing), case.hold, case.past)
    return None if why is None else _refused("excluded", why)


def _override(case: _Case) -> Verdict | None:
    if case.standing.has(OVERRIDE) and case.reason:
        return Verdict(allowed=True, authority="override", flagged=True)
    return None


def _is_claimed(case: _Case) -> bool:
    """By somebody else, and not lapsed. Where several have to decide, a claim keeps nobody from voting."""
    hold = case.hold
    if hold.claimed_by is None or hold.terms.approval.mode != "any":
        return False
    if hold.claim_until is not None and hold.claim_until <= case.now:
        return False
    return person_key(hold.claimed_by) not in actor_capacity(case.standing).people


# ---------------------------------------------------------------------- arranging


def _claims(case: _Case) -> Verdict:
    """An unrouted hold is claimed by admins: it becomes theirs (AS-10)."""
    if case.hold.assignee_type == UNROUTED or case.past.astray:
        refused = _agent(case) or _excluded(case)
        return refused or (_manages(case) if case.standing.has(MANAGE) else _not_theirs(case))
    return _decides(case)


def _releases(case: _Case) -> Verdict:
    claimer = case.hold.claimed_by
    if claimer is not None and person_key(claimer) in actor_capacity(case.standing).people:
        return Verdict(allowed=True, authority="assignee")
    return _manages(case)


def _reassigns(case: _Case) -> Verdict:
    placed = _place(case)
    if placed is not None and placed.allowed and _excluded(case) is None:
        return placed
    return _manages(case)


def _manages(case: _Case) -> Verdict:
    if case.standing.has(MANAGE):
        return Verdict(allowed=True, authority="manage")
    if _owns(case):
        return Verdict(allowed=True, authority="owner")
    return _refused("forbidden", f"{case.standing.actor.id} has no right to {case.action} this hold")


def _unroutes(case: _Case) -> Verdict:
    if case.standing.has(MANAGE):
        return Verdict(allowed=True, authority="manage")
    return _refused("forbidden", "only admins leave a hold without an assignee")


def _owns(case: _Case) -> bool:
    """The flow's owner arranges who decides; that does not make them one who does."""
    return any(case.standing.own.fits(parse_assignee(owner)) for owner in case.past.owners)


# ---------------------------------------------------------------------- places


def _seats(hold: HoldRow) -> tuple[Assignee, ...]:
    return (*seats_of(hold), *(parse_assignee(text) for text in hold.terms.approval.veto))


def _assignee(hold: HoldRow) -> Assignee:
    return Assignee(hold.assignee_type, hold.assignee_value)


def _matching(capacity: Capacity, seats: Iterable[Assignee]) -> Assignee | None:
    return next((each for each in seats if capacity.fits(each)), None)


def _as(capacity: Capacity, matched: Assignee) -> Verdict:
    own = "delegate" if matched.type == DELEGATED else "assignee"
    return Verdict(
        allowed=True,
        authority=own if capacity.for_whom is None else "substitute",
        matched=str(matched),
        on_behalf_of=capacity.for_whom,
    )


def _not_theirs(case: _Case) -> Verdict:
    whom = "admins" if case.hold.assignee_type == UNROUTED or case.past.astray else _assignee(case.hold)
    why = f"this hold waits for {whom}, not for {case.standing.actor.id}"
    silence = case.standing.silence
    return _refused("not_assigned", f"{why}, as far as can be told now: {silence}" if silence else why)


def _refused(code: str, why: str) -> Verdict:
    return Verdict(allowed=False, code=code, why=why)


_Rule = Callable[[_Case], Verdict]
ACTIONS: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("view", "comment", "watch", "snooze", "seen", "draft"), _sees),
    **dict.fromkeys(("resolve", "vote", "place", "ask_back"), _decides),
    **dict.fromkeys(("cancel", "extend"), _manages),
    "claim": _claims,
    "release": _releases,
    "reassign": _reassigns,
    "unroute": _unroutes,
    "reply": _replies,
}
_ERRORS: Final = {"excluded": ExcludedError, "claimed": HoldClaimedError, "not_assigned": NotAssignedError}
_HINTS: Final = {
    "claimed": "Wait until it is released, or override it with a reason where you have that right.",
    "not_assigned": "Whoever has the right to override may decide it with a reason.",
}
