"""The message that asks the question of a hold: its id and its content (QU-3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.model.forms.json_schema import KEY
from holdfast.queues.content import encode_payload
from holdfast.queues.settings import QueueSpec
from holdfast.types.audit import canonical
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow, options_json
from holdfast.types.ids import derived_id
from holdfast.types.queue_message import HITL_REQUEST, NewMessage

MAX_REQUEST: Final = 256 * 1024
"""Bytes: a larger request is sent without the sections of its form."""


def request_id(hold: str) -> str:
    """Derived from the hold, so that a repeat finds the message that was published before."""
    return derived_id(HITL_REQUEST, hold)


def request_payload(hold: HoldRow, base_url: str) -> dict[str, Any]:
    """As the hold was rendered when it was asked."""
    schema: dict[str, Any] = {} if hold.schema is None else msgspec.json.decode(hold.schema)
    return {
        "hold_id": hold.id,
        "run": hold.run,
        "flow": hold.flow,
        "node": hold.node,
        "prompt": hold.prompt,
        "sections": schema.get(KEY, {}).get("sections", []),
        "options": options_json(hold.options),
        "assignee": hold.assignee,
        "priority": hold.priority,
        "expires_at": None if hold.expires_at is None else iso(hold.expires_at),
        "request_hash": hold.request_hash,
        "url": f"{base_url.rstrip('/')}/inbox/{hold.id}" if base_url else None,
    }


def encoded_request(hold: HoldRow, base_url: str) -> bytes:
    payload = request_payload(hold, base_url)
    data = canonical(payload)
    return data if len(data) <= MAX_REQUEST else canonical({**payload, "sections": None})


def with_escalation(payload: bytes, escalation: Any) -> bytes:
    """With what a `queue_escalation` added. Raises ValueTooLargeError."""
    if not escalation:
        return payload
    whole = {**msgspec.json.decode(payload), "escalation": escalation}
    encode_payload(whole)
    return canonical(whole)


def escalation_of(payload: bytes) -> Any:
    return msgspec.json.decode(payload).get("escalation")


def review_request(hold: HoldRow, spec: QueueSpec, base_url: str) -> NewMessage:
    """People may look at it as often as they like, so its attempts are not limited. It has no expiry of its
    own: it ends with its hold."""
    scope, _, queue = (hold.terms.queue or "").partition("/")
    return NewMessage(
        id=request_id(hold.id),
        tenant=hold.tenant,
        scope=scope,
        queue=queue,
        type=HITL_REQUEST,
        correlation_id=hold.id,
        priority=hold.priority,
        payload=encoded_request(hold, base_url),
        digest="",
        hold=hold.id,
        run=hold.run,
        node=hold.node,
        max_attempts=0,
        retention=spec.retention_micros,
    )
