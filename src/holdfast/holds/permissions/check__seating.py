"""Who has a place in a decision: by name, group, role or delegation, or standing in for somebody who has."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.holds.permissions.actor import Capacity, Standing
from holdfast.holds.permissions.approvals import voters_of
from holdfast.holds.permissions.assignees import DELEGATED, parse_assignee
from holdfast.holds.permissions.exclusions import Past, actor_capacity, exclusion, starter_of
from holdfast.holds.permissions.verdict import Verdict, refused
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Assignee


def places(standing: Standing, hold: HoldRow, past: Past | None = None) -> tuple[Assignee, ...]:
    """All that somebody has, for themselves or for others, where they are not excluded from it."""
    known = past or Past()
    return tuple(
        seat
        for seat in _seats(hold)
        if any(
            capacity.fits(seat) and _in_capacity(standing, capacity, hold, known, (seat,)).allowed
            for capacity in standing.capacities
        )
    )


def place(standing: Standing, hold: HoldRow, past: Past, *, veto: bool = True) -> Verdict | None:
    """Their own place first; then those of the people whom they stand in for. None: they have none.
    `veto`: whether to have one is a place too."""
    seats, no = _seats(hold) if veto else voters_of(hold), None
    for capacity in standing.capacities:
        if _matching(capacity, seats) is None:
            continue
        found = _in_capacity(standing, capacity, hold, past, seats)
        if found.allowed:
            return found
        no = no or found
    return no


def onlooker(standing: Standing, hold: HoldRow) -> Verdict | None:
    """The same for looking only, from which nobody is excluded."""
    seats = (*_seats(hold), Assignee(hold.assignee_type, hold.assignee_value))
    for capacity in standing.capacities:
        matched = _matching(capacity, seats)
        if matched is not None:
            return _as(capacity, matched)
    return None


def _in_capacity(
    standing: Standing, capacity: Capacity, hold: HoldRow, past: Past, seats: Iterable[Assignee]
) -> Verdict:
    """Whoever stands in for somebody inherits the exclusions of both."""
    for each in (actor_capacity(standing), capacity):
        why = exclusion(each, hold, past)
        if why is not None:
            return refused("excluded", why)
    matched = _matching(_as_it_opened(standing, capacity, hold, past), seats)
    if matched is None:
        return refused("excluded", "whoever started the run became one of its approvers only after it asked")
    return _as(capacity, matched)


def _as_it_opened(standing: Standing, capacity: Capacity, hold: HoldRow, past: Past) -> Capacity:
    """Of the run's starter, only those groups, roles and delegations count that they had when the hold was
    opened; and they stand in for nobody (section 3, rule 11). What is not known does not count."""
    starter = starter_of(hold, past)
    if capacity.for_whom is not None and starter in actor_capacity(standing).people:
        return Capacity(for_whom=capacity.for_whom)
    if starter not in capacity.people:
        return capacity
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


def _as(capacity: Capacity, matched: Assignee) -> Verdict:
    own = "delegate" if matched.type == DELEGATED else "assignee"
    return Verdict(
        allowed=True,
        authority=own if capacity.for_whom is None else "substitute",
        matched=str(matched),
        on_behalf_of=capacity.for_whom,
    )
