"""The digest of unassigned holds: once a day, to the administrators (NO-6)."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.notify.channel import send_notice
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.escape import one_line
from holdfast.holds.notify.notice import DIGEST, Notice
from holdfast.holds.permissions.assignees import DELEGATED, UNROUTED
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import to_datetime
from holdfast.types.document import Document
from holdfast.types.hold import UNASKED, HoldFilter, HoldRow
from holdfast.types.redaction import tenant_scope
from holdfast.types.status import HoldStatus

KIND: Final = "digest"
MOST: Final = 50


class Digest:
    """Any number of processes may run it: the first one of the day sends it."""

    def __init__(self, store: Store, channels: Channels, *, base_url: str = "") -> None:
        self.store = store
        self.channels = channels
        self.base_url = base_url.rstrip("/")

    async def send_all(self) -> int:
        """For every tenant that has holds. Returns how many addresses accepted one."""
        return sum([await self.send(tenant) for tenant in await self.store.audit_tenants()])

    async def send(self, tenant: str) -> int:
        with tenant_scope(tenant):
            return await self._send_to(tenant)

    async def _send_to(self, tenant: str) -> int:
        astray = await Deployments(self.store).astray(tenant, self.store.now())
        where = HoldFilter(
            tenant=tenant,
            status=(HoldStatus.pending,),
            assignees=((UNROUTED, ""), *((DELEGATED, ref) for ref in sorted(astray))),
            not_type=UNASKED,
        )
        found = [row for row, _ in await self.store.list_holds(where, limit=MOST)]
        # `_is_first` last, because it writes today's date: the
        # digest would be lost if no address could receive it.
        if not found or not await self._has_admin_address(tenant) or not await self._is_first(tenant):
            return 0
        return await self._send(tenant, found, await self.store.count_holds(where))

    async def _has_admin_address(self, tenant: str) -> bool:
        return any([await channel.admins() for channel in await self.channels.of(tenant)])

    async def _is_first(self, tenant: str) -> bool:
        """The process that replaces yesterday's date with today's sends it."""
        today = f"{to_datetime(self.store.now()):%Y-%m-%d}".encode()
        before = await self.store.document(tenant, KIND, UNROUTED)
        if before is not None and before.body == today:
            return False
        document = Document(tenant=tenant, kind=KIND, name=UNROUTED, body=today)
        # A conditional write: of several processes, exactly one succeeds.
        expect = 0 if before is None else before.revision
        return await self.store.put_document(document, expect=expect) is not None

    async def _send(self, tenant: str, found: list[HoldRow], count: int) -> int:
        lines = [f"{one_line(row.prompt) or row.node} ({row.flow}): {row.id}" for row in found]
        title = "1 question is unassigned" if count == 1 else f"{count} questions are unassigned"
        more = [f"and {count - len(found)} more"] if count > len(found) else []
        notice = Notice(
            # The same id on every attempt of a day, so that receivers can drop duplicates.
            id=f"{DIGEST}:{tenant}:{to_datetime(self.store.now()):%Y-%m-%d}",
            topic=DIGEST,
            tenant=tenant,
            prompt="\n".join([title, "", *lines, *more]),
            link=f"{self.base_url}/inbox" if self.base_url else "",
        )
        accepted = 0
        for channel in await self.channels.of(tenant):
            for to in await channel.admins():
                delivery = await send_notice(channel, msgspec.structs.replace(notice, to=to))
                accepted += delivery.accepted
                if not delivery.accepted:
                    log.warning("the digest did not reach %s by %s: %s", to, channel.name, delivery.detail)
        return accepted
