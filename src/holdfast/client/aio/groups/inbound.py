"""`client.inbound`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Mapping

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup
from holdfast.client.requests import request_of


class AsyncInbound(AsyncGroup):
    async def click(self, way: str, content: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """A click in Slack: the request URL of the app's interactivity. Signed by Slack
        (`X-Slack-Signature`)."""
        request = request_of(
            "POST",
            "/v1/inbound/slack/{way}",
            {"way": way},
            content=content,
            headers=headers,
            media="application/x-www-form-urlencoded",
        )
        await self._none(request)

    async def drop_chat_person(self, way: str, chat: str) -> None:
        """This chat user decides nothing any more."""
        request = request_of("DELETE", "/v1/inbound/slack/{way}/people/{chat}", {"way": way, "chat": chat})
        await self._none(request)

    async def mail(
        self, way: str, content: bytes, *, headers: Mapping[str, str] | None = None
    ) -> models.MailTaken:
        """A reply to a mail, whole, as the mail server took it, with its Authentication-Results.

        Signed as Standard Webhooks are, by whatever hands it over."""
        request = request_of(
            "POST",
            "/v1/inbound/mail/{way}",
            {"way": way},
            content=content,
            headers=headers,
            media="message/rfc822",
        )
        return await self._json(request, models.MailTaken)

    async def set_chat_person(self, way: str, chat: str, person: str) -> None:
        """Who a chat user is here."""
        request = request_of(
            "PUT",
            "/v1/inbound/slack/{way}/people/{chat}",
            {"way": way, "chat": chat},
            sent={"person": person},
        )
        await self._none(request)

    async def webhook(
        self, way: str, content: bytes, *, headers: Mapping[str, str] | None = None
    ) -> models.WebhookTaken:
        """Another system has the answer to a hold: `{"data": {"correlation_id", "decision", ...}}`.

        Signed as Standard Webhooks are. The same message again changes nothing and is answered with
        200."""
        request = request_of(
            "POST",
            "/v1/inbound/webhooks/{way}",
            {"way": way},
            content=content,
            headers=headers,
            media="application/json",
        )
        return await self._json(request, models.WebhookTaken)
