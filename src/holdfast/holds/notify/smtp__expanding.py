"""Who is to be told: addresses of people, and of the people in groups and roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.holds.directory.base import Directory, Person
from holdfast.holds.permissions.assignees import looks_like_email, person_key
from holdfast.types.terms import Assignee


async def mail_addresses(to: Assignee, tenant: str, directory: Directory | None, now: int) -> Sequence[str]:
    """What looks like an address is one, unchanged (NO-4); the substitute of whoever has it is told too.
    Everything else is for the directory to know; with none, nobody is written to (NO-5)."""
    if directory is None:
        return _each_once((to.value,)) if to.type == "user" else ()
    if to.type == "user":
        known = await directory.person(tenant, to.value)
        written = (to.value,) if known is None or known.active else ()
        return _each_once((*written, *await _of_people((to.value,), tenant, directory, now)))
    if to.type not in ("group", "role"):
        return ()
    ask = directory.group if to.type == "group" else directory.role
    circle = await ask(tenant, to.value)
    return () if circle is None else await _of_people(circle.members, tenant, directory, now)


async def _of_people(refs: Iterable[str], tenant: str, directory: Directory, now: int) -> Sequence[str]:
    """Who is away is told nothing, their substitute is. Who is not active any more is told nothing."""
    found: list[str] = []
    for ref in refs:
        person = await _present(await directory.person(tenant, ref), tenant, directory, now)
        if person is None:
            found.append(ref)
        elif person.active:
            found.append(person.email)
    return _each_once(found)


def _each_once(addresses: Iterable[str]) -> Sequence[str]:
    found: dict[str, str] = {}
    for address in addresses:
        if looks_like_email(address):
            found.setdefault(person_key(address), address)
    return tuple(found.values())


async def _present(person: Person | None, tenant: str, directory: Directory, now: int) -> Person | None:
    if person is None or person.away is None or not person.away.lasts(now):
        return person
    return await directory.person(tenant, person.away.substitute) or person
