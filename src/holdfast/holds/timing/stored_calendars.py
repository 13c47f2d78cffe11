"""The calendars of a tenant, kept as documents of the store."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import DocumentChangedError, NotFoundError, SettingsError
from holdfast.holds.timing.calendars import Calendar
from holdfast.holds.timing.parse_calendar import calendar_from
from holdfast.store.protocols import Documents
from holdfast.types.document import Document

KIND = "calendar"
DEFAULT = "default"
"""The calendar of holds that name none."""


class Calendars:
    """Looked up at each use: a change counts at once, in every process."""

    def __init__(self, store: Documents) -> None:
        self.store = store

    async def find(self, tenant: str, name: str | None = None) -> Calendar | None:
        """None where there is none. Raises SettingsError for one that cannot be used."""
        named = name or DEFAULT
        document = await self.store.document(tenant, KIND, named)
        return None if document is None else _calendar(document)

    async def named(self, tenant: str, name: str | None = None) -> Calendar:
        """Raises SettingsError: a hold cannot be timed by a calendar that is not there."""
        found = await self.find(tenant, name)
        if found is None:
            raise SettingsError(
                f"there is no calendar {name or DEFAULT!r} to count business time by.",
                hint=f"Write one: holdfast calendars set {name or DEFAULT} FILE.",
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
        """Checked first. Open holds are left as they are: `deadlines.recompute` moves them.

        Raises SettingsError, DocumentChangedError where somebody else wrote it at the same moment."""
        found = calendar_from(name, rules)
        before = await self.store.document(tenant, KIND, name)
        body = msgspec.json.encode(rules)
        written = await self.store.put_document(
            Document(tenant=tenant, kind=KIND, name=name, body=body),
            expect=0 if before is None else before.revision,
        )
        if written is None:
            raise DocumentChangedError(
                f"somebody else changed calendar {name!r} just now.", hint="Try again."
            )
        return found


def _calendar(document: Document) -> Calendar:
    return calendar_from(document.name, msgspec.json.decode(document.body))
