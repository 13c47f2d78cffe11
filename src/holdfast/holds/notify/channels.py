"""The channels of an instance: those of the operator's file or program, and those that tenants set up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import msgspec

from holdfast.errors import NotFoundError, SettingsError
from holdfast.holds.directory.base import Directory
from holdfast.holds.egress import Egress, target_of
from holdfast.holds.notify.channel import Channel, ChannelScope
from holdfast.holds.notify.settings import (
    AppriseSpec,
    NotifySettings,
    SlackSpec,
    SmtpSpec,
    Spec,
    TeamsSpec,
    TenantSpec,
    tenant_spec,
)
from holdfast.store.hold_protocols import Documents
from holdfast.telemetry import log
from holdfast.types.clock import Clock
from holdfast.types.document import Document
from holdfast.types.redaction import tenant_scope

KIND = "channel"


class HttpChannelOptions(TypedDict):
    """Options that all HTTP channels have."""

    egress: Egress
    scope: ChannelScope
    admin: bool
    clock: Clock


class Channels:
    """`given`: channels that the program created, for all tenants."""

    def __init__(
        self,
        store: Documents,
        clock: Clock,
        *,
        settings: NotifySettings | None = None,
        directory: Directory | None = None,
        given: Sequence[Channel] = (),
    ) -> None:
        self.store = store
        self.clock = clock
        self.settings = settings or NotifySettings()
        # Hosts that the operator allows are for the operator's channels, not for those of tenants.
        self._egress = Egress(allow=self.settings.allow, timeout=self.settings.timeout)
        self._fixed: list[tuple[str | None, Channel]] = [(None, channel) for channel in given]
        # Their secrets are the operator's, also if the first request of a tenant makes them.
        with tenant_scope(None):
            for spec in self.settings.channel:
                self._fixed.append((spec.tenant, make(spec, self._egress, clock, directory)))

    @property
    def are_given(self) -> bool:
        return bool(self._fixed)

    async def of(self, tenant: str) -> list[Channel]:
        """A document that cannot be used is skipped and logged."""
        found = [channel for whose, channel in self._fixed if whose in (None, tenant)]
        for document in await self.store.documents(tenant, KIND):
            try:
                spec = tenant_spec(document.body, document.name)
                with tenant_scope(tenant):
                    found.append(make(spec, Egress(timeout=self.settings.timeout), self.clock, None))
            except SettingsError as error:
                log.warning("a channel of tenant %s cannot be used: %s", tenant, error)
        return found

    async def put(self, tenant: str, spec: TenantSpec) -> Document | None:
        """Set up a channel for a tenant. Raises SettingsError, and EgressError for an internal address."""
        body = msgspec.json.encode(spec)
        with tenant_scope(tenant):
            make(tenant_spec(body, spec.name), Egress(), self.clock, None)
        # Checked when it is set up, so that the tenant sees the error; it is checked again at each message.
        target_of(spec.url, Egress())
        document = Document(tenant=tenant, kind=KIND, name=spec.name, body=body)
        return await self.store.put_document(document)

    async def delete(self, tenant: str, name: str) -> None:
        """Raises NotFoundError if the tenant has no channel of this name."""
        if not await self.store.drop_document(tenant, KIND, name):
            raise NotFoundError(
                f"tenant {tenant} has no channel {name!r}.",
                hint=f"`holdfast notify channels --tenant {tenant}` lists all.",
            )


def make(spec: Spec, egress: Egress, clock: Clock, directory: Directory | None) -> Channel:
    """Raises SettingsError."""
    # Imported here because most programs have no channels.
    if isinstance(spec, SmtpSpec):
        return _mail(spec, clock, directory)
    scope = spec.scope(outcomes=True)
    if isinstance(spec, AppriseSpec):
        from holdfast.holds.notify.apprise_bridge import AppriseChannel

        return AppriseChannel(spec.name, spec.urls, scope=scope, admin=spec.admin)
    return _hook(spec, scope, egress, clock)


def _hook(spec: TenantSpec, scope: ChannelScope, egress: Egress, clock: Clock) -> Channel:
    from holdfast.holds.notify.slack import Slack
    from holdfast.holds.notify.teams import Teams
    from holdfast.holds.notify.webhook import Webhook

    common = HttpChannelOptions(egress=egress, scope=scope, admin=spec.admin, clock=clock)
    if isinstance(spec, SlackSpec):
        return Slack(spec.name, spec.url, buttons=spec.buttons, **common)
    if isinstance(spec, TeamsSpec):
        return Teams(spec.name, spec.url, **common)
    return Webhook(spec.name, spec.url, secrets=spec.secrets, format=spec.format, **common)


def _mail(spec: SmtpSpec, clock: Clock, directory: Directory | None) -> Channel:
    from holdfast.holds.notify.mail import MailServer, Smtp

    fields = ("host", "port", "security", "user", "password", "timeout", "ca")
    server = MailServer(**{name: getattr(spec, name) for name in fields})
    # Mails have no notice of the end: the link in the first mail shows the outcome.
    scope = spec.scope(outcomes=False)
    return Smtp(
        spec.name,
        server,
        spec.sender,
        directory=directory,
        scope=scope,
        admins=spec.admins,
        clock=clock,
        reply=spec.reply,
    )
