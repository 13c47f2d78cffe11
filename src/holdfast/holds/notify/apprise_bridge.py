"""A bridge to Apprise: a hundred services by one address each (the extra `notify`).

Only the operator can set its addresses: Apprise makes its connections itself, so the rules of `holds.egress`
do not apply to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.errors import SettingsError
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.mail_text import as_text
from holdfast.holds.notify.notice import Notice
from holdfast.types.redaction import redactor
from holdfast.types.terms import Assignee


class AppriseChannel:
    """A channel with a fixed set of readers."""

    personal = False

    def __init__(
        self, name: str, urls: Sequence[str], *, scope: ChannelScope | None = None, admin: bool = False
    ) -> None:
        """Raises SettingsError without the library, and for an address that it does not know."""
        self.name = name
        self.scope = scope or ChannelScope()
        self._admin = admin
        library = _library()
        self._formats = library.NotifyFormat
        self._apprise = library.Apprise()
        for place, url in enumerate(urls):
            redactor.learn(url)
            if not self._apprise.add(url):
                raise SettingsError(
                    f"{name}.urls[{place}] is not an Apprise URL.",
                    hint="The Apprise documentation lists them: kind://...",
                )

    def __repr__(self) -> str:
        return f"Bridge({self.name!r})"

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        return (self.name,)

    async def admins(self) -> Sequence[str]:
        return (self.name,) if self._admin else ()

    async def send(self, notice: Notice) -> Delivery:
        """Apprise reports only success or failure, so every failure is retried."""
        done = await self._apprise.async_notify(
            body=as_text(notice), title=notice.subject, body_format=self._formats.TEXT
        )
        return Delivery(
            accepted=bool(done), retry=not done, detail="" if done else "Apprise could not send it"
        )


def _library() -> Any:
    try:
        import apprise
    except ImportError:
        raise SettingsError(
            "channels of kind apprise require the package apprise, which is not installed.",
            hint="Install the extra `notify`: pip install 'holdfast-flow[notify]'.",
        ) from None
    return apprise
