"""The calendars of a tenant, stored as documents."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import DocumentChangedError, NotFoundError, SettingsError
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.parse_calendar import calendar_from
from holdfast.store.hold_protocols import Documents
from holdfast.types.document import Document

KIND = "calendar"
DEFAULT = "default"
"""The calendar of holds that name none."""


class Calendars:
    """Read at each use, so that a change applies at once in every process."""

    def __init__(self, store: Documents) -> None:
        self.store = store

    async def find(self, tenant: str, name: str | None = None) -> Calendar | None:
        """None if there is none. Raises SettingsError for an invalid one."""
        named = name or DEFAULT
        document = await self.store.document(tenant, KIND, named)
        return None if document is None else _calendar(document)

    async def named(self, tenant: str, name: str | None = None) -> Calendar:
        """Raises SettingsError if there is none."""
        found = await self.find(tenant, name)
        if found is None:
            raise SettingsError(
                f"there is no calendar {name or DEFAULT!r} for business time.",
                hint=f"Create one: holdfast calendars set {name or DEFAULT} FILE.",
                calendar=name or DEFAULT,
            )
        return found

    async def rules(self, tenant: str, name: str) -> Any:
        """As they were written. Raises NotFoundError."""
        document = await self.store.document(tenant, KIND, name)
        if document is None:
            raise NotFoundError(
                f"there is no calendar {name!r}.", hint="`holdfast calendars list` shows all."
            )
        return msgspec.json.decode(document.body)

    async def all(self, tenant: str) -> list[Calendar]:
        return [_calendar(document) for document in await self.store.documents(tenant, KIND)]

    async def put(self, tenant: str, name: str, rules: Any) -> Calendar:
        """Validated first. Open holds do not change: `reschedule` moves their deadlines.

        Raises SettingsError, DocumentChangedError if another writer was first."""
        found = calendar_from(name, rules)
        before = await self.store.document(tenant, KIND, name)
        body = msgspec.json.encode(rules)
        written = await self.store.put_document(
            Document(tenant=tenant, kind=KIND, name=name, body=body),
            expect=0 if before is None else before.revision,
        )
        if written is None:
            raise DocumentChangedError(
                f"calendar {name!r} was just changed by another writer.", hint="Try again."
            )
        return found


def _calendar(document: Document) -> Calendar:
    return calendar_from(document.name, msgspec.json.decode(document.body))
