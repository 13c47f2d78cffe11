"""Separation of duties: people who cannot decide a hold, whatever their rights and memberships."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.holds.permissions.actor import ActorMemberships, Capacity
from holdfast.holds.permissions.assignees import parse_assignee, person_key
from holdfast.types.hold import HoldRow
from holdfast.types.schedule import person_behind
from holdfast.types.terms import Assignee


class PermissionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Earlier events that matter for who may decide, and further people with rights on this hold."""

    initiator: str | None = None  # None: as in the row
    approvers: frozenset[str] = frozenset()  # who took part in approvals of earlier holds of the run
    last_editor: str | None = None
    editors: frozenset[str] = frozenset()  # everyone in the chain of the last editor's credential
    # Who created or changed what gives somebody a place in this decision, by its name: `user:dana`
    # (the person or their address), `group:finance/dana` (a membership), `substitute:dana` (an absence),
    # `seat:user:dana` (the assignment itself).
    grantors: Mapping[str, tuple[Capacity, ...]] = {}
    owners: frozenset[str] = frozenset()  # of the deployment, as assignees
    asked: frozenset[str] = frozenset()  # people who were asked back
    astray: bool = False  # it waits for a delegated user, and the delegation is not in force


def starter_of(hold: HoldRow, past: PermissionFacts) -> str | None:
    named = person_behind(past.initiator or hold.started_by)
    return person_key(named) if named else None


def actor_capacity(standing: ActorMemberships) -> Capacity:
    """The actor, with the person their credential acts for: the exclusions of both count."""
    actor = standing.actor
    named = {person_key(name) for name in (actor.id, actor.on_behalf_of) if name}
    return msgspec.structs.replace(standing.own, people=standing.own.people | named)


def starters_of(hold: HoldRow, past: PermissionFacts) -> frozenset[str]:
    """The starter of the run, everyone in the chain of their credential, and for a fork also those of the
    runs that it was made from."""
    first = starter_of(hold, past)
    return frozenset(person_key(name) for name in (first, *hold.terms.starters) if name)


def exclusion(capacity: Capacity, hold: HoldRow, past: PermissionFacts) -> str | None:
    """Why this person cannot decide; None: they can."""
    for word in (*hold.terms.approval.exclude, *hold.terms.excluded):
        if _is_meant(word, capacity, hold, past):
            return f"{WHO.get(word, word)} cannot decide this hold"
    return None


def excludes_circles(hold: HoldRow) -> bool:
    """Whether memberships matter for its exclusions."""
    words = (*hold.terms.approval.exclude, *hold.terms.excluded)
    return any(parse_assignee(word).type != "user" for word in words if word not in WHO)


def excluded_target(
    assignee: Assignee, hold: HoldRow, past: PermissionFacts, known: Capacity | None = None
) -> str | None:
    """Why a hold cannot be assigned to this person (RA-6); None: it can. `known`: their names in the
    directory. A group or role is not checked here: each member is checked when they decide."""
    if assignee.type != "user":
        return None
    return exclusion(known or Capacity(people=frozenset({assignee.value})), hold, past)


def _is_meant(word: str, capacity: Capacity, hold: HoldRow, past: PermissionFacts) -> bool:
    if word == "initiator":
        return bool(starters_of(hold, past) & capacity.people)
    if word == "earlier_approvers":
        return bool(capacity.people & {person_key(name) for name in past.approvers})
    if word == "last_editor":
        editors = {person_key(name) for name in (past.last_editor, *past.editors) if name}
        return bool(capacity.people & editors)
    return capacity.fits(parse_assignee(word))


WHO = {
    "initiator": "the starter of the run",
    "earlier_approvers": "a person who approved an earlier hold of this run",
    "last_editor": "the last editor",
}
