"""Everybody who took part in an action: the actor, the makers of their credential, and those who gave them
the place in which they act.

A person who made a token in the name of another, or added a colleague to the approving group while the hold
was open, took part in what is decided with it: exclusions and the count of people apply to them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.holds.permissions.actor import ActorMemberships, Capacity
from holdfast.holds.permissions.exclusions import PermissionFacts, exclusion
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Assignee


def behind(
    standing: ActorMemberships,
    past: PermissionFacts,
    capacity: Capacity | None = None,
    seat: Assignee | None = None,
) -> Iterator[Capacity]:
    """The people behind the actor, who acts in this capacity on this seat."""
    yield from standing.makers
    # Also of an actor whom the directory does not know any more.
    for names in (standing.known_names, *([] if capacity is None else [capacity.people])):
        for name in sorted(names):
            yield from past.grantors.get(f"user:{name}", ())
    if capacity is None or seat is None:
        return
    yield from past.grantors.get(f"seat:{seat}", ())
    for name in sorted(capacity.people):
        yield from past.grantors.get(f"{seat}/{name}", ())
        if capacity.for_whom is not None:
            yield from past.grantors.get(f"substitute:{name}", ())


def excluded_by_chain(
    standing: ActorMemberships, hold: HoldRow, past: PermissionFacts, people: Iterable[Capacity]
) -> str | None:
    """Why one of these people, who stand behind the actor, may not take part; None: all may."""
    for each in people:
        why = exclusion(each, hold, past)
        if why is not None:
            name = min(each.people, default="another person")
            return f"{why}, and {standing.actor.id} acts here through {name}"
    return None


def names_behind(
    standing: ActorMemberships, past: PermissionFacts, seats: Iterable[Assignee] = ()
) -> tuple[str, ...]:
    """The names of everybody behind the actor on these seats, for the count of people."""
    found = {name for each in behind(standing, past) for name in each.people}
    for seat in seats:
        for capacity in standing.capacities:
            if capacity.fits(seat):
                found.update(name for each in behind(standing, past, capacity, seat) for name in each.people)
    return tuple(sorted(found - standing.known_names))
