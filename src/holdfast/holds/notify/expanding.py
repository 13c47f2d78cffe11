"""Who is to be told: addresses of people, and of the people in groups and roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.holds.assigning import looks_like_email, person_key
from holdfast.holds.directory.base import Directory, Person
from holdfast.types.terms import Assignee


async def mail_addresses(to: Assignee, tenant: str, directory: Directory | None, now: int) -> Sequence[str]:
    """What looks like an address is one, unchanged (NO-4). Everything else is for the directory to know; with
    none, nobody is written to (NO-5)."""
    if to.type == "user":
        if directory is None or looks_like_email(to.value):
            return (to.value,) if looks_like_email(to.value) else ()
        return await _of_people((to.value,), tenant, directory, now)
    if directory is None or to.type not in ("group", "role"):
        return ()
    ask = directory.group if to.type == "group" else directory.role
    circle = await ask(tenant, to.value)
    return () if circle is None else await _of_people(circle.members, tenant, directory, now)


async def _of_people(refs: Iterable[str], tenant: str, directory: Directory, now: int) -> Sequence[str]:
    """Each once. Who is away is told nothing; their substitute is."""
    found: dict[str, str] = {}
    for ref in refs:
        person = await _present(await directory.person(tenant, ref), tenant, directory, now)
        address = person.email if person is not None else (ref if looks_like_email(ref) else "")
        if looks_like_email(address):
            found.setdefault(person_key(address), address)
    return tuple(found.values())


async def _present(person: Person | None, tenant: str, directory: Directory, now: int) -> Person | None:
    if person is None or person.away is None or not person.away.lasts(now):
        return person
    return await directory.person(tenant, person.away.substitute) or person
