"""How many people may vote on a hold: then it is known when a quorum cannot be reached any more."""

from __future__ import annotations

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.actor import capacity_named
from holdfast.holds.permissions.approvals import voters_of
from holdfast.holds.permissions.exclusions import Past, excludes_circles, exclusion
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Assignee


async def electorate(hold: HoldRow, directory: Directory | None, past: Past) -> int | None:
    """Without those who are excluded. None: nobody knows, for a group may be anybody."""
    found: list[str] = []
    try:
        for seat in voters_of(hold):
            people = await _people(seat, hold, directory, past)
            if people is None:
                return None
            found += people
    except DirectoryUnavailableError:
        return None
    return len(set(found)) if hold.terms.approval.distinct_people else len(found)


async def _people(seat: Assignee, hold: HoldRow, directory: Directory | None, past: Past) -> list[str] | None:
    if seat.type == "user":
        return await _voters((seat.value,), hold, directory, past)
    if directory is None or seat.type not in ("group", "role"):
        return None
    ask = directory.group if seat.type == "group" else directory.role
    circle = await ask(hold.tenant, seat.value)
    return None if circle is None else await _voters(circle.members, hold, directory, past)


async def _voters(
    names: tuple[str, ...], hold: HoldRow, directory: Directory | None, past: Past
) -> list[str]:
    found: list[str] = []
    belonging = excludes_circles(hold)
    for name in names:
        capacity = await capacity_named(name, hold.tenant, directory, belonging=belonging)
        if capacity is not None and exclusion(capacity, hold, past) is None:
            found.append(min(capacity.people))
    return found
