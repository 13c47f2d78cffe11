"""Signed webhooks, as Standard Webhooks defines them: `webhook-id`, `webhook-timestamp`,
`webhook-signature`."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from holdfast.errors import SettingsError
from holdfast.holds.egress import Egress
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.http_post import HttpChannel
from holdfast.holds.notify.notice import Notice
from holdfast.types.clock import MICROS, Clock, iso
from holdfast.types.ids import derived_id
from holdfast.types.redaction import redactor

PREFIX: Final = "whsec_"
SHORTEST: Final = 24  # bytes
TOLERANCE: Final = 300  # seconds

WebhookFormat = Literal["json", "cloudevents", "cloudevents-binary"]


class Webhook(HttpChannel):
    """Posts every notice as JSON to a program. `secrets`: each signs; to rotate, add the new one beside the
    old until the receiver has it. `format`: Holdfast's own JSON, or a CloudEvents 1.0 event."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secrets: Sequence[str],
        egress: Egress | None = None,
        scope: ChannelScope | None = None,
        admin: bool = False,
        clock: Clock | None = None,
        format: WebhookFormat = "json",  # noqa: A002
    ) -> None:
        super().__init__(name, url, egress=egress, scope=scope, admin=admin, clock=clock)
        self._secrets = [secret_of(text, f"{name}.secrets[{place}]") for place, text in enumerate(secrets)]
        self._format: WebhookFormat = format
        if not self._secrets:
            raise SettingsError(
                f"the webhook {name} has no secret to sign with.", hint="Give secrets = [...]."
            )

    async def send(self, notice: Notice) -> Delivery:
        # Derived and not random: a message that is sent again after
        # a crash has the same id, so that the receiver can drop it.
        message = f"msg_{derived_id(notice.id, notice.to).replace('-', '')}"
        body, headers = formatted(self._format, message, notice, self._clock.now())
        signature = signed(message, self._clock.now() // MICROS, body, self._secrets)
        return await self._post(body, {**headers, **signature})


def secret_of(text: str, where: str) -> bytes:
    """Raises SettingsError for a text that is no secret; the error does not contain the text."""
    redactor.learn(text)
    try:
        raw = b64decode(text.removeprefix(PREFIX), validate=True)
    except (NotBase64, ValueError):
        raw = b""
    if len(raw) < SHORTEST:
        raise SettingsError(
            f"{where} is not a secret: whsec_ and at least {SHORTEST} bytes in base64 are.",
            hint="Make one: holdfast notify secret.",
        )
    return raw


def signed(message: str, at: int, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """The three headers. `at`: seconds."""
    content = f"{message}.{at}.".encode() + body
    macs = [b64encode(hmac.digest(secret, content, sha256)).decode() for secret in secrets]
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{mac}" for mac in macs),
    }


def is_signed(headers: dict[str, str], body: bytes, secrets: Sequence[bytes], now: int) -> bool:
    """For receivers (`now` in seconds): whether it is signed by one of the secrets, and recent. Names of
    headers are in lower case. The receiver must reject repeated ids itself."""
    stamp = headers.get("webhook-timestamp", "")
    # The length first: int() raises for very long texts, and the header is the sender's choice.
    if not (stamp.isascii() and stamp.isdecimal()) or len(stamp) > 15 or abs(now - int(stamp)) > TOLERANCE:
        return False
    expected = signed(headers.get("webhook-id", ""), int(stamp), body, secrets)["webhook-signature"].split()
    given = headers.get("webhook-signature", "").split()
    # Constant-time, as an attacker may measure how much of a guess was right. Every pair is compared,
    # because either side may be rotating its secrets.
    return any(hmac.compare_digest(a.encode(), b.encode()) for a in expected for b in given)


def event_of(notice: Notice, now: int) -> dict[str, Any]:
    """The texts are not escaped: a program that shows them has to do that."""
    data = {
        "notification_id": notice.id,
        "checkpoint_id": notice.hold,
        "execution_id": notice.run,
        "flow_name": notice.flow,
        "node_id": notice.node,
        "checkpoint_type": notice.type,
        "prompt": notice.prompt,
        "options": [{"id": option.id, "label": option.label} for option in notice.options],
        "assignee": {"type": notice.assignee.type, "value": notice.assignee.value},
        "priority": notice.priority,
        "expires_at": iso(notice.expires_at) if notice.expires_at is not None else None,
        "number": notice.number,
        "outcome": notice.outcome or None,
        "link": notice.link or None,
    }
    return {"type": notice.topic, "timestamp": iso(now), "tenant": notice.tenant, "data": data}


# ---------------------------------------------------------------------- CloudEvents


def formatted(form: WebhookFormat, message: str, notice: Notice, now: int) -> tuple[bytes, dict[str, str]]:
    """The body of a message, and the headers that belong to its form."""
    if form == "json":
        return msgspec.json.encode(event_of(notice, now)), {}
    attributes, data = cloud_event(message, notice, now)
    if form == "cloudevents":
        whole = {**attributes, "datacontenttype": "application/json", "data": data}
        return msgspec.json.encode(whole), {"Content-Type": "application/cloudevents+json"}
    headers = {f"ce-{name}": _header(value) for name, value in attributes.items()}
    return msgspec.json.encode(data), {"Content-Type": "application/json", **headers}


def cloud_event(message: str, notice: Notice, now: int) -> tuple[dict[str, str], dict[str, Any]]:
    """The attributes and the data of the event. The id is the same when it is sent again."""
    event = event_of(notice, now)
    run = f"/runs/{quote(notice.run, safe='')}" if notice.run else ""
    attributes = {
        "specversion": "1.0",
        "id": message,
        "source": f"/tenants/{quote(notice.tenant, safe='')}{run}",
        "type": f"dev.holdfast.{notice.topic}",
        "time": event["timestamp"],
        "tenant": notice.tenant,  # an extension
    }
    if notice.hold:
        attributes["subject"] = notice.hold
    return attributes, event["data"]


def _header(value: str) -> str:
    """As the HTTP binding writes it: everything but printable ASCII is percent-encoded, and so are a space, a
    quotation mark and a percent sign."""
    return quote(value, safe="!#$&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~")
