"""Changes to the directory in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.errors import ConflictError, InputError, NotFoundError
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.base import Circle, Person
from holdfast.holds.directory.changes import (
    DirectoryChanges,
    departed_subject,
    member_subject,
    person_subject,
)
from holdfast.holds.directory.stored import ADDRESS, AWAY, GROUP, PERSON, ROLE, TableDirectory
from holdfast.holds.permissions.assignees import looks_like_email, parse_assignee, person_key
from holdfast.store.protocols import Store
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.document import Document
from holdfast.types.text import clean_text


class Registrar:
    """Adds, changes and removes people, groups, roles and absences. Every call is idempotent. `by`: the
    actor for the audit, which records every change of who may decide. `people`: who makes the change through
    a server, with everyone in the chain of their credential (`directory.changes`)."""

    def __init__(self, store: Store, *, by: str = "user:local", people: Sequence[str] = ()) -> None:
        self._store = store
        self._by = by
        self._people = tuple(people)
        self._changes = DirectoryChanges(store)
        self._known = TableDirectory(store)

    async def put_person(self, tenant: str, person: Person) -> Person:
        """Add or change a person. Raises InputError for an invalid name, ConflictError for a name that
        another person has."""
        key, address = _person_name(person.id), _address(person.email)
        before = await self._known.get(tenant, PERSON, key, Person)
        for name in {key, address} - {""}:
            await self._require_free(tenant, name, key)
        if address and not await self._owns(tenant, address, key):
            raise ConflictError(
                f"another person has the address {address}.", hint="Remove it from them first."
            )
        lost = before.email if before is not None and before.email != address else ""
        if before is None or (before.email, before.active) != (address, person.active):
            await self._note_person(tenant, key, lost)
        if lost:
            await self._store.drop_document(tenant, ADDRESS, lost)
        kept = msgspec.structs.replace(person, id=key, email=address, away=None)
        await self._audit(tenant, "person_kept", person=key, email=address, active=person.active)
        await self._put(tenant, PERSON, key, kept)
        if person.away is not None:
            await self.put_away(tenant, key, person.away)
        return kept

    async def _note_person(self, tenant: str, key: str, lost: str) -> None:
        await self._changes.note(tenant, person_subject(key), self._people, lost=lost)
        if lost:
            # The address may be given to another person: whose it was is known by the address, too.
            await self._changes.note(tenant, person_subject(lost), self._people, lost=key)

    async def _require_free(self, tenant: str, name: str, key: str) -> None:
        """Two people with one name could decide for each other."""
        found = await self._known.person(tenant, name)
        if found is not None and found.id != key:
            raise ConflictError(
                f"{found.id} has the name {name} already.",
                hint="Use another name, or remove it from them first.",
            )

    async def _owns(self, tenant: str, address: str, key: str) -> bool:
        if await self._put(tenant, ADDRESS, address, key, expect=0):
            return True
        return await self._known.get(tenant, ADDRESS, address, str) == key

    async def delete_person(self, tenant: str, ref: str) -> bool:
        """Remove a person from the directory, from every group and role, and as a substitute."""
        person = await self._known.person(tenant, ref)
        if person is None:
            return False
        key = person_key(person.id)
        await self._audit(tenant, "person_dropped", person=key)
        lost = person_key(person.email) if person.email else ""
        await self._note_person(tenant, key, lost)
        # The person is removed first: what a crash leaves behind in groups gives no rights to an unknown
        # person.
        await self._store.drop_document(tenant, PERSON, key)
        await self._store.drop_document(tenant, AWAY, key)
        if person.email:
            await self._store.drop_document(tenant, ADDRESS, person_key(person.email))
        for kind in (GROUP, ROLE):
            for circle in [each async for each in self._known.circles(tenant, kind) if key in each.members]:
                await self._edit(
                    tenant, kind, circle.key, lambda members: [each for each in members if each != key]
                )
        return True

    async def put_group(self, tenant: str, key: str, members: Sequence[str], *, name: str = "") -> Circle:
        """Set exactly these members. Raises NotFoundError for a person who is not in the directory."""
        return await self._put_circle(tenant, GROUP, key, members, name)

    async def put_role(self, tenant: str, key: str, members: Sequence[str], *, name: str = "") -> Circle:
        return await self._put_circle(tenant, ROLE, key, members, name)

    async def join(self, tenant: str, circle: str, ref: str) -> Circle:
        """`circle`: group:finance or role:cfo, created if it does not exist."""
        kind, key = _circle_name(circle)
        member = await self._member(tenant, ref)
        return await self._edit(tenant, kind, key, lambda members: [*members, member], new=True)

    async def leave(self, tenant: str, circle: str, ref: str) -> Circle:
        kind, key = _circle_name(circle)
        person = await self._known.person(tenant, ref)
        gone = person_key(ref if person is None else person.id)
        return await self._edit(tenant, kind, key, lambda members: [each for each in members if each != gone])

    async def delete_circle(self, tenant: str, circle: str) -> bool:
        kind, key = _circle_name(circle)
        await self._audit(tenant, "circle_dropped", circle=f"{kind}:{key}")
        before = await self._known.get(tenant, kind, key, Circle)
        await self._note_members(tenant, kind, key, () if before is None else before.members, ())
        return await self._store.drop_document(tenant, kind, key)

    async def put_away(self, tenant: str, ref: str, away: Away) -> None:
        """Set an absence. Raises NotFoundError for unknown people, InputError for an absence that ends
        before it starts, or whose substitute is the person themselves."""
        person, substitute = await self._member(tenant, ref), await self._member(tenant, away.substitute)
        if person == substitute:
            raise InputError(f"{person} cannot be their own substitute.", hint="Name another person.")
        if away.since is not None and away.until is not None and away.until <= away.since:
            raise InputError("the absence would end before it starts.", hint="Give a later end.")
        facts = {"substitute": substitute, "since": away.since, "until": away.until}
        await self._audit(tenant, "away", person=person, **facts)
        await self._put(tenant, AWAY, person, msgspec.structs.replace(away, substitute=substitute))

    async def back(self, tenant: str, ref: str) -> bool:
        person = await self._member(tenant, ref)
        await self._audit(tenant, "back", person=person)
        return await self._store.drop_document(tenant, AWAY, person)

    # ------------------------------------------------------------------ documents
    async def _member(self, tenant: str, ref: str) -> str:
        person = await self._known.person(tenant, ref)
        if person is None:
            raise NotFoundError(
                f"{clean_text(repr(ref), 80)} is not in the directory.",
                hint="Add them first: holdfast directory add-person.",
            )
        return person_key(person.id)

    async def _put_circle(
        self, tenant: str, kind: str, key: str, members: Sequence[str], name: str
    ) -> Circle:
        kind, key = _circle_name(f"{kind}:{key}")
        keys = [await self._member(tenant, each) for each in members]
        circle = Circle(key=key, name=name, members=tuple(dict.fromkeys(keys)))
        await self._audit(tenant, "circle_kept", circle=f"{kind}:{key}", members=circle.members)
        before = await self._known.get(tenant, kind, key, Circle)
        await self._note_members(tenant, kind, key, () if before is None else before.members, circle.members)
        await self._put(tenant, kind, key, circle)
        return circle

    async def _note_members(
        self, tenant: str, kind: str, key: str, before: Sequence[str], after: Sequence[str]
    ) -> None:
        """Only who joined or left: a member who stays owes the place to nobody here."""
        if not self._people:
            return
        for member in set(after) - set(before):
            await self._changes.note(tenant, member_subject(kind, key, member), self._people)
        for member in set(before) - set(after):
            await self._changes.note(tenant, departed_subject(kind, key, member), self._people)

    async def _edit(
        self,
        tenant: str,
        kind: str,
        key: str,
        change: Callable[[Sequence[str]], Sequence[str]],
        *,
        new: bool = False,
    ) -> Circle:
        while True:
            kept = await self._store.document(tenant, kind, key)
            if kept is None and not new:
                raise NotFoundError(
                    f"there is no {kind} {clean_text(repr(key), 80)}.",
                    hint="`holdfast directory list` lists them.",
                )
            circle = Circle(key=key) if kept is None else msgspec.json.decode(kept.body, type=Circle)
            changed = msgspec.structs.replace(circle, members=tuple(dict.fromkeys(change(circle.members))))
            facts: dict[str, Any] = {"circle": f"{kind}:{key}", "members": changed.members}
            await self._audit(tenant, "circle_kept", **facts)
            await self._note_members(tenant, kind, key, circle.members, changed.members)
            if await self._put(tenant, kind, key, changed, expect=kept.revision if kept else 0):
                return changed

    async def _audit(self, tenant: str, action: str, **facts: Any) -> None:
        """Written before the change: an audit entry may describe a change that failed, but none is ever
        missing."""
        at = self._store.now()
        entry = NewAudit(at=at, actor=self._by, action=action, data=canonical(facts))
        await self._store.append_audit(tenant, [entry])

    async def _put(self, tenant: str, kind: str, name: str, value: Any, *, expect: int | None = None) -> bool:
        document = Document(tenant=tenant, kind=kind, name=name, body=msgspec.json.encode(value))
        return await self._store.put_document(document, expect=expect) is not None


def _person_name(text: str) -> str:
    """Raises InputError for a name that could not be written as an assignee."""
    found = parse_assignee(text)
    if found.type != "user":
        raise InputError(
            f"{clean_text(repr(text), 80)} is not a valid name for a person.",
            hint="Write dana, 42 or dana@acme.",
        )
    return found.value


def _address(text: str) -> str:
    key = person_key(text)
    if key and not looks_like_email(key):
        raise InputError(f"{clean_text(repr(text), 80)} is not an address.", hint="Write name@host.")
    return key


def _circle_name(text: str) -> tuple[str, str]:
    found = parse_assignee(text)
    if found.type not in (GROUP, ROLE):
        raise InputError(
            f"{clean_text(repr(text), 80)} is not a group or role.", hint="Write group:finance or role:cfo."
        )
    return found.type, found.value
