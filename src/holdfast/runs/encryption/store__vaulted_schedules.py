"""The part of an encrypted store that is about schedules: what one starts, and with what, is content."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.errors import KeyMissingError
from holdfast.runs.encryption.cipher import Vault
from holdfast.store.protocols import Store
from holdfast.types.schedule import ScheduleRow


class VaultedSchedules:
    inner: Store
    vault: Vault

    async def put_schedule(self, row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        place = ("schedule", row.tenant, row.name)
        closed = replace(row, body=self.vault.close(row.body, row.tenant, *place))
        written = await self.inner.put_schedule(closed, expect=expect)
        return None if written is None else replace(written, body=row.body)

    async def schedule(self, tenant: str, name: str) -> ScheduleRow | None:
        found = await self.inner.schedule(tenant, name)
        return None if found is None else self._opened(found)

    async def schedules(
        self, tenant: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 1000
    ) -> list[ScheduleRow]:
        return [self._leniently(row) for row in await self.inner.schedules(tenant, after=after, limit=limit)]

    async def due_schedules(self, flows: tuple[str, ...], *, limit: int) -> list[ScheduleRow]:
        return [self._leniently(row) for row in await self.inner.due_schedules(flows, limit=limit)]

    def _opened(self, row: ScheduleRow) -> ScheduleRow:
        return replace(row, body=self.vault.open(row.body, "schedule", row.tenant, row.name))

    def _leniently(self, row: ScheduleRow) -> ScheduleRow:
        """Of several, those whose key is not here stay closed: the others must not wait for them."""
        try:
            return self._opened(row)
        except KeyMissingError:
            return row
