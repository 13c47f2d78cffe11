"""Inbound channels: messages of other systems, each signed with a separate secret."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from holdfast.api.auth.rights import Access, Right
from holdfast.api.inbound.mail import MailReceiver, MailTaken
from holdfast.api.inbound.settings import InboundSettings, MailSource, SlackSource, WebhookSource
from holdfast.api.inbound.slack import ChatUsers, SlackReceiver, payload_of
from holdfast.api.inbound.slack import require_signed as require_slack
from holdfast.api.inbound.webhooks import WebhookReceiver, WebhookTaken, require_signed
from holdfast.api.problems import HttpError
from holdfast.api.routing import ApiCall, Routes
from holdfast.errors import (
    AnswerInvalidError,
    ConflictError,
    ForbiddenError,
    InputError,
    KeyReusedError,
    NotFoundError,
)
from holdfast.holds.egress import Egress
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.types.clock import MICROS
from holdfast.types.redaction import enter_tenant

routes = Routes("inbound")

SIGNED = (NotFoundError, InputError)


@routes.post(
    "/inbound/slack/{way}",
    needs=Access.public,
    raises=SIGNED,
    media=("application/x-www-form-urlencoded",),
)
async def take_click(call: ApiCall, way: str, body: bytes) -> Response:
    """A click in Slack: the request URL of the app's interactivity. Signed by Slack (`X-Slack-Signature`)."""
    found = _settings(call).named(way, SlackSource)
    service = await call.holds()
    require_slack(call.request.headers, body, found, service.ctx.now() // MICROS)
    enter_tenant(found.tenant)
    await SlackReceiver(service, found, Egress(allow=_settings(call).allow)).take(payload_of(body))
    return Response(status_code=200)  # empty, as Slack requires


@routes.post(
    "/inbound/webhooks/{way}",
    needs=Access.public,
    raises=(*SIGNED, ForbiddenError, ConflictError, AnswerInvalidError),
    media=("application/json",),
)
async def take_webhook(call: ApiCall, way: str, body: bytes) -> WebhookTaken:
    """Answer a hold from another system: `{"data": {"correlation_id", "decision", ...}}`.

    Signed as Standard Webhooks. A repeated message has no effect and is answered with 200."""
    found = _settings(call).named(way, WebhookSource)
    service = await call.holds()
    now = service.ctx.now() // MICROS
    message = require_signed(call.request.headers, body, found.secrets, now)
    enter_tenant(found.tenant)
    return await WebhookReceiver(service, found).take(message, body)


@routes.post(
    "/inbound/mail/{way}", needs=Access.public, raises=(*SIGNED, KeyReusedError), media=("message/rfc822",)
)
async def take_mail(call: ApiCall, way: str, body: bytes) -> MailTaken:
    """A reply to a mail: the whole message as the mail server received it, with its Authentication-Results.

    Signed as Standard Webhooks by the system that forwards it."""
    found = _settings(call).named(way, MailSource)
    service = await call.holds()
    message = require_signed(call.request.headers, body, found.secrets, service.ctx.now() // MICROS)
    enter_tenant(found.tenant)
    deliverer = (await call.runs()).runtime.deliverer
    channels = None if deliverer is None else deliverer.channels
    return await MailReceiver(service, found, channels).take_once(message, body)


class ChatPerson(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The person of this chat user: `user:dana@acme`."""

    person: Annotated[str, msgspec.Meta(min_length=6, max_length=200, pattern="^user:.")]


@routes.put("/inbound/slack/{way}/people/{chat}", needs=Right.admin, raises=(InputError, NotFoundError))
async def set_chat_person(call: ApiCall, way: str, chat: str, body: ChatPerson) -> None:
    """Set the person of a chat user."""
    if parse_assignee(body.person).type != "user":
        raise InputError(f"{body.person!r} is not a person.", hint="Write user:dana@acme.")
    await ChatUsers(await call.hf.open()).put(_own(call, way), chat, body.person, by=call.actor)


@routes.delete("/inbound/slack/{way}/people/{chat}", needs=Right.admin, raises=(NotFoundError,))
async def delete_chat_person(call: ApiCall, way: str, chat: str) -> None:
    """Remove this chat user: it can no longer decide."""
    if not await ChatUsers(await call.hf.open()).delete(_own(call, way), chat, by=call.actor):
        raise HttpError(404, "this chat user is unknown.", code="not_found")


def _own(call: ApiCall, way: str) -> SlackSource:
    """A channel of the caller's tenant; those of other tenants are not found."""
    found = _settings(call).named(way, SlackSource)
    if found.tenant != call.tenant:
        raise HttpError(404, "there is no such inbound channel.", code="not_found")
    return found


def _settings(call: ApiCall) -> InboundSettings:
    return call.settings.inbound
