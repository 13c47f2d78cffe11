"""The directory in the store: people, groups, roles and absences."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Page
from holdfast.api.routing import ApiCall, Routes
from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Instant
from holdfast.errors import ConflictError, InputError, NotFoundError
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.admin import Registrar
from holdfast.holds.directory.base import Circle, Person
from holdfast.holds.directory.stored import TableDirectory
from holdfast.types.clock import require_moment

routes = Routes("directory", prefix="/v1/directory")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
CHANGING = (InputError, NotFoundError, ConflictError)


class AwayWire(msgspec.Struct, kw_only=True):
    substitute: str
    since: str | None = None
    until: str | None = None


class PersonWire(msgspec.Struct, kw_only=True):
    id: str
    email: str
    name: str
    active: bool
    away: AwayWire | None
    language: str
    zone: str


class CircleWire(msgspec.Struct, kw_only=True):
    key: str
    name: str
    members: list[str]


class PutPerson(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    email: Annotated[str, msgspec.Meta(max_length=320)] = ""
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    active: bool = True
    language: Annotated[str, msgspec.Meta(max_length=35)] = ""
    zone: Annotated[str, msgspec.Meta(max_length=64)] = ""


class PutAway(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`substitute` may act for them meanwhile."""

    substitute: Name
    since: Instant | None = None
    until: Instant | None = None


class PutCircle(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Exactly these members; each must be in the directory."""

    members: Annotated[list[Name], msgspec.Meta(max_length=5000)]
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


def _person(found: Person) -> PersonWire:
    away = None
    if found.away is not None:
        since, until = moment(found.away.since), moment(found.away.until)
        away = AwayWire(substitute=found.away.substitute, since=since, until=until)
    return PersonWire(
        id=found.id,
        email=found.email,
        name=found.name,
        active=found.active,
        away=away,
        language=found.language,
        zone=found.zone,
    )


def _circle(found: Circle) -> CircleWire:
    return CircleWire(key=found.key, name=found.name, members=list(found.members))


async def _tables(call: ApiCall) -> TableDirectory:
    return TableDirectory(await call.hf.open())


async def _registrar(call: ApiCall) -> Registrar:
    return Registrar(await call.hf.open(), by=call.actor.id, people=call.actor.people)


@routes.get("/people", needs=Right.holds_read)
async def list_people(call: ApiCall) -> Page[PersonWire]:
    """All people in the store's directory."""
    return Page(items=[_person(each) for each in await (await _tables(call)).people(call.tenant)])


@routes.get("/people/{person}", needs=Right.holds_read, raises=(NotFoundError,))
async def get_person(call: ApiCall, person: str) -> PersonWire:
    """By id or address."""
    found = await (await _tables(call)).person(call.tenant, person)
    if found is None:
        raise NotFoundError(
            f"{person!r} is not in the directory.", hint="GET /v1/directory/people lists them."
        )
    return _person(found)


@routes.put("/people/{person}", needs=Right.admin, raises=CHANGING)
async def put_person(call: ApiCall, person: str, body: PutPerson) -> PersonWire:
    """Add or change a person. A person who is not `active` has no rights."""
    given = Person(id=person, **msgspec.structs.asdict(body))
    kept = await (await _registrar(call)).put_person(call.tenant, given)
    return _person(await (await _tables(call)).person(call.tenant, kept.id) or kept)


@routes.delete("/people/{person}", needs=Right.admin, raises=(NotFoundError,))
async def delete_person(call: ApiCall, person: str) -> None:
    """Remove a person from the directory and from all groups and roles."""
    if not await (await _registrar(call)).delete_person(call.tenant, person):
        raise NotFoundError(f"{person!r} is not in the directory.")


@routes.put("/people/{person}/away", needs=Right.admin, raises=CHANGING)
async def put_away(call: ApiCall, person: str, body: PutAway) -> None:
    """Set an absence; a substitute acts for them."""
    await _put_away(call, person, body)


async def _put_away(call: ApiCall, person: str, body: PutAway) -> None:
    since = None if body.since is None else require_moment(body.since, "since")
    until = None if body.until is None else require_moment(body.until, "until")
    away = Away(substitute=body.substitute, since=since, until=until, made_by=call.actor.people)
    await (await _registrar(call)).put_away(call.tenant, person, away)


@routes.delete("/people/{person}/away", needs=Right.admin, raises=(NotFoundError,))
async def end_away(call: ApiCall, person: str) -> None:
    """Back again."""
    await (await _registrar(call)).back(call.tenant, person)


@routes.get("/me", needs=Right.holds_read, raises=(NotFoundError,))
async def get_own_person(call: ApiCall) -> PersonWire:
    """Your own entry in the store's directory."""
    return _person(await _own(call))


@routes.put("/me/away", needs=Right.holds_write, raises=CHANGING)
async def put_own_away(call: ApiCall, body: PutAway) -> None:
    """Set your own absence and substitute."""
    await _put_away(call, (await _own(call)).id, body)


@routes.delete("/me/away", needs=Right.holds_write, raises=(NotFoundError,))
async def end_own_away(call: ApiCall) -> None:
    """You are back."""
    await (await _registrar(call)).back(call.tenant, (await _own(call)).id)


async def _own(call: ApiCall) -> Person:
    """Raises NotFoundError: the caller is a program, or not in the store's directory."""
    name = call.actor.id
    found = await (await _tables(call)).person(call.tenant, name) if name.startswith("user:") else None
    if found is None:
        raise NotFoundError(
            f"{name} is not in the directory of this store.",
            hint="An administrator adds people: PUT /v1/directory/people/{person}.",
        )
    return found


@routes.get("/groups", needs=Right.holds_read)
async def list_groups(call: ApiCall) -> Page[CircleWire]:
    """All groups."""
    return Page(items=[_circle(each) for each in await (await _tables(call)).groups(call.tenant)])


@routes.put("/groups/{key}", needs=Right.admin, raises=CHANGING)
async def put_group(call: ApiCall, key: str, body: PutCircle) -> CircleWire:
    """With exactly these members."""
    registrar = await _registrar(call)
    return _circle(await registrar.put_group(call.tenant, key, body.members, name=body.name))


@routes.delete("/groups/{key}", needs=Right.admin, raises=(NotFoundError, InputError))
async def delete_group(call: ApiCall, key: str) -> None:
    """Delete the group."""
    if not await (await _registrar(call)).delete_circle(call.tenant, f"group:{key}"):
        raise NotFoundError(f"there is no group {key!r}.")


@routes.get("/roles", needs=Right.holds_read)
async def list_roles(call: ApiCall) -> Page[CircleWire]:
    """All roles to which holds can be assigned."""
    return Page(items=[_circle(each) for each in await (await _tables(call)).roles(call.tenant)])


@routes.put("/roles/{key}", needs=Right.admin, raises=CHANGING)
async def put_role(call: ApiCall, key: str, body: PutCircle) -> CircleWire:
    """With exactly these members."""
    registrar = await _registrar(call)
    return _circle(await registrar.put_role(call.tenant, key, body.members, name=body.name))


@routes.delete("/roles/{key}", needs=Right.admin, raises=(NotFoundError, InputError))
async def delete_role(call: ApiCall, key: str) -> None:
    """Delete the role."""
    if not await (await _registrar(call)).delete_circle(call.tenant, f"role:{key}"):
        raise NotFoundError(f"there is no role {key!r}.")
