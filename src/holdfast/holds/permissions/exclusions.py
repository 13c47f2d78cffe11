"""Separation of duties: who cannot decide a hold, whatever they hold or belong to."""

from __future__ import annotations

import msgspec

from holdfast.holds.permissions.actor import ActorMemberships, Capacity
from holdfast.holds.permissions.assignees import parse_assignee, person_key
from holdfast.types.hold import HoldRow
from holdfast.types.schedule import person_behind
from holdfast.types.terms import Assignee


class PermissionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What happened before that bears on who may decide, and who else has a say in this hold."""

    initiator: str | None = None  # none: as the row says
    approvers: frozenset[str] = frozenset()  # who approved earlier holds of the run
    last_editor: str | None = None
    owners: frozenset[str] = frozenset()  # of the deployment, as assignees
    asked: frozenset[str] = frozenset()  # who was asked back
    astray: bool = False  # it waits for a delegated user, and the delegation is not in force


def starter_of(hold: HoldRow, past: PermissionFacts) -> str | None:
    named = person_behind(past.initiator or hold.started_by)
    return person_key(named) if named else None


def actor_capacity(standing: ActorMemberships) -> Capacity:
    """Whoever acts, with those whom their credential speaks for: the exclusions of both count."""
    actor = standing.actor
    named = {person_key(name) for name in (actor.id, actor.on_behalf_of) if name}
    return msgspec.structs.replace(standing.own, people=standing.own.people | named)


def exclusion(capacity: Capacity, hold: HoldRow, past: PermissionFacts) -> str | None:
    """Why this person cannot decide; none: they can."""
    for word in (*hold.terms.approval.exclude, *hold.terms.excluded):
        if _is_meant(word, capacity, hold, past):
            return f"{_WHO.get(word, word)} cannot decide this hold"
    return None


def excludes_circles(hold: HoldRow) -> bool:
    """Whether it matters what somebody belongs to."""
    words = (*hold.terms.approval.exclude, *hold.terms.excluded)
    return any(parse_assignee(word).type != "user" for word in words if word not in _WHO)


def excluded_target(
    assignee: Assignee, hold: HoldRow, past: PermissionFacts, known: Capacity | None = None
) -> str | None:
    """Why a hold cannot go to this person (RA-6); none: it can. `known`: under which names the directory has
    them. A group or role is no person: each of its members is asked when they decide."""
    if assignee.type != "user":
        return None
    return exclusion(known or Capacity(people=frozenset({assignee.value})), hold, past)


def _is_meant(word: str, capacity: Capacity, hold: HoldRow, past: PermissionFacts) -> bool:
    if word == "initiator":
        return starter_of(hold, past) in capacity.people
    if word == "earlier_approvers":
        return bool(capacity.people & {person_key(name) for name in past.approvers})
    if word == "last_editor":
        return past.last_editor is not None and person_key(past.last_editor) in capacity.people
    return capacity.fits(parse_assignee(word))


_WHO = {
    "initiator": "whoever started the run",
    "earlier_approvers": "who has approved earlier in this run",
    "last_editor": "who edited last",
}
