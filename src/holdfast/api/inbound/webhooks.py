"""Webhooks of other systems (section 3, rule 6): signed as Standard Webhooks, processed once by their id, and
matched to a hold by its id (`correlation_id`). An answer to a closed hold is accepted without effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.api.inbound.settings import InboundSource, WebhookSource
from holdfast.api.problems import HttpError
from holdfast.api.strict_json import decode_strictly
from holdfast.errors import KeyReusedError
from holdfast.holds.notify.webhook import is_signed, secret_of
from holdfast.holds.service import HoldService
from holdfast.queues.completions import Completion, Completions
from holdfast.store.hold_protocols import Documents
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.terms import OPERATOR, Actor, ChainLink

SEEN: Final = "inbound_seen"
RETENTION: Final = 7 * 86_400 * MICROS
"""How long an id is remembered; senders retry for days."""
_SWEEP: Final = 200


class WebhookResult(msgspec.Struct, kw_only=True):
    decision: str | None = None
    resolution: str | dict[str, Any] | None = None
    response_data: Any = None
    comment: str | None = None
    request_hash: str | None = None


class WebhookAnswer(WebhookResult, kw_only=True):
    """`correlation_id` or `checkpoint_id`: the hold. `completed_by`: the person who decided. The answer is in
    `result`, as a queue's completion event has it, or here."""

    correlation_id: str | None = None
    checkpoint_id: str | None = None
    message_id: str | None = None
    completed_by: str | None = None
    result: WebhookResult | None = None


class WebhookEvent(msgspec.Struct, kw_only=True):
    type: str = ""
    tenant: str | None = None
    data: WebhookAnswer


class WebhookTaken(msgspec.Struct, kw_only=True):
    """`outcome`: resolved, voted (more votes are needed), already_decided, late (the hold was cancelled or
    expired), kept (the hold does not exist yet), duplicate or ignored."""

    outcome: str
    checkpoint_id: str | None = None
    status: str | None = None


def require_signed(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: int) -> str:
    """The id of the message. `now`: seconds. Raises HttpError 401."""
    keys = [secret_of(each, "a secret") for each in secrets]
    name = headers.get("webhook-id", "")
    if not 0 < len(name) <= 200 or not is_signed(dict(headers), body, keys, now):
        raise HttpError(
            401,
            "the signature is invalid, or older than five minutes.",
            code="signature_invalid",
            hint="See standardwebhooks.com for webhook-id, webhook-timestamp and webhook-signature.",
        )
    return name


def event_in(body: bytes) -> WebhookEvent:
    try:
        return decode_strictly(body, WebhookEvent)
    except msgspec.ValidationError as error:
        raise HttpError(422, f"the event does not fit: {error}.", code="invalid_input") from error


class WebhookReceiver:
    def __init__(self, service: HoldService, way: WebhookSource) -> None:
        self.service = service
        self.way = way
        self.seen = ReceivedWebhooks(service.store, way)

    async def take(self, message: str, body: bytes) -> WebhookTaken:
        """Raises what `resolve` raises for an invalid answer: the hold stays open (QB-8)."""
        if await self.seen.knows(message, body, self.service.ctx.now()):
            return WebhookTaken(outcome="duplicate")
        event = event_in(body)
        done = await self._complete(message, event)
        # Written last: after a crash the sender repeats it, and the hold's key prevents a second effect.
        await self.seen.note(message, body, self.service.ctx.now())
        return done

    async def _complete(self, message: str, event: WebhookEvent) -> WebhookTaken:
        answer = event.data
        result = answer.result if answer.result is not None else answer
        names = ("decision", "resolution", "response_data", "comment", "request_hash")
        completion = Completion(
            correlation_id=answer.correlation_id or answer.checkpoint_id,
            answer={name: value for name in names if (value := getattr(result, name)) is not None},
            key=f"webhook:{message}",
            tenant=event.tenant,
            message_id=answer.message_id,
            completed_by=answer.completed_by,
        )
        done = await Completions(self.service).apply(completion, self._actor(answer))
        return WebhookTaken(outcome=done.outcome, checkpoint_id=done.hold, status=done.status)

    def _actor(self, answer: WebhookAnswer) -> Actor:
        """The named person, if this sender may name one; else the sender."""
        # Any sender could otherwise decide in the name of a person whom it merely names.
        named = answer.completed_by if self.way.trusted else None
        if named is not None and not named.startswith("user:"):
            raise HttpError(422, "completed_by is not a person.", code="invalid_input", hint="user:dana@acme")
        person = named or self.way.actor
        return Actor(
            id=person,
            # The operator's settings say who this sender is, and whom it may name.
            chain=(ChainLink(kind="webhook", by=OPERATOR, to=person),),
            tenant=self.way.tenant,
            rights=frozenset(self.way.rights),
            channel="queue",
            auth_method="webhook",
        )


class ReceivedWebhooks:
    """The ids of processed messages, with a digest of each, for a week."""

    def __init__(self, store: Documents, way: InboundSource) -> None:
        self._store = store
        self._way = way

    async def knows(self, message: str, body: bytes, now: int) -> bool:
        """Raises KeyReusedError for an id of another message."""
        kept = await self._store.document(self._way.tenant, SEEN, self._name(message))
        if kept is None or kept.updated_at + RETENTION < now:
            return False
        if kept.body != _digest(body):
            raise KeyReusedError("another message had this webhook-id.", hint="Give each message its own id.")
        return True

    async def note(self, message: str, body: bytes, now: int) -> None:
        name = self._name(message)
        document = Document(tenant=self._way.tenant, kind=SEEN, name=name, body=_digest(body))
        await self._store.put_document(document)
        if name.endswith("00"):  # one in 256: expired entries are deleted
            await self._sweep(now)

    async def _sweep(self, now: int) -> None:
        after = ""
        while page := await self._store.documents(self._way.tenant, SEEN, after=after, limit=_SWEEP):
            for each in page:
                if each.updated_at + RETENTION < now:
                    await self._store.drop_document(self._way.tenant, SEEN, each.name)
            after = page[-1].name

    def _name(self, message: str) -> str:
        # Hashed: the sender chooses its ids, which may be long or contain any character.
        kind = "" if isinstance(self._way, WebhookSource) else f"{type(self._way).__name__}/"
        return f"{kind}{self._way.name}/{sha256(message.encode()).hexdigest()}"


def _digest(body: bytes) -> bytes:
    return msgspec.json.encode(sha256(body).hexdigest())
