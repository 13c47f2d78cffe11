"""A hold as JSON: the one vocabulary of the API, the command line and the clients."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.actions.conflicts import placed_decision
from holdfast.types.clock import MICROS, iso
from holdfast.types.hold import HoldRow, Option
from holdfast.types.status import HoldStatus


def hold_view(row: HoldRow, *, replay: bool = False) -> dict[str, Any]:
    """JSON values only, without the place where the run's state is stored. `replay`: the same decision was
    made before (RS-6)."""
    shown = {**_asked(row), **_state(row), **_added(row)}
    return {**shown, "idempotent_replay": True} if replay else shown


def _asked(row: HoldRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "run": row.run,
        "flow": row.flow,
        "node": row.node,
        "tenant": row.tenant,
        "deployment": row.deployment,
        "block_index": row.block,
        "instance_key": row.instance_key,
        "type": row.type,
        "prompt": row.prompt,
        "options": None if row.options is None else [_option(each) for each in row.options],
        "assignee": row.assignee,
        "assignee_type": row.assignee_type,
        "assignee_resolved": _assignee(row),
        "context": msgspec.json.decode(row.context),
        "schema": None if row.schema is None else msgspec.json.decode(row.schema),
        "priority": row.priority,
        "tags": list(row.tags),
    }


def _option(option: Option) -> dict[str, Any]:
    return {**msgspec.to_builtins(option), "text": option.text}


def _assignee(row: HoldRow) -> dict[str, Any]:
    found = {"type": row.assignee_type, "value": row.assignee_value}
    return {**found, "reason": row.assignee_reason} if row.assignee_reason else found


def _state(row: HoldRow) -> dict[str, Any]:
    return {
        "status": str(row.status),
        "expires_at": _at(row.expires_at),
        "expiry_action": row.expiry_action,
        "escalation_target": row.escalation_target,
        "notification_sent": row.notification_sent,
        "reminder_count": row.reminder_count,
        "reminder_interval_m": row.reminder_interval,
        "resolution": None if row.resolution is None else msgspec.json.decode(row.resolution),
        "resolved_by": row.resolved_by,
        "resolved_at": _at(row.resolved_at),
    }


def _added(row: HoldRow) -> dict[str, Any]:
    cancelled = row.status is HoldStatus.cancelled
    return {
        "created_at": _at(row.created_at),
        "updated_at": _at(row.updated_at or row.created_at),
        "version": row.version,
        "assignment_epoch": row.epoch,
        "last_notified_at": _at(row.notified_at),
        "claimed_by": row.claimed_by,
        "claim_until": _at(row.claim_until),
        "resumed_at": _at(row.resumed_at),
        "request_hash": row.request_hash,
        "escalation_count": row.escalation_count,
        "original_timeout_s": None if row.original_timeout is None else row.original_timeout / MICROS,
        "message_id": row.message_id,
        "cancelled_by": row.closed_by if cancelled else None,
        "cancelled_at": _at(row.closed_at) if cancelled else None,
        "cancel_reason": row.closed_reason if cancelled else None,
        "placed_by": row.placed_by,
        "placed_decision": placed_decision(row),
        "placed_until": _at(row.placed_until),
        "paused_at": _at(row.paused_at),
        "started_by": row.started_by,
        "terms": _terms(row),
    }


def _terms(row: HoldRow) -> dict[str, Any]:
    """Without the memberships of the person who started the run: no decision needs them."""
    return {name: value for name, value in msgspec.to_builtins(row.terms).items() if name != "starter_in"}


def _at(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)


DOCUMENT_FIELDS = {
    "run": "execution_id",
    "flow": "flow_name",
    "node": "node_id",
    "tenant": "tenant_id",
    "type": "checkpoint_type",
    "assignee": "assignee_raw",
    "message_id": "hitl_message_id",
}
"""Field of a hold, and what the documents call it."""


def checkpoint_view(row: HoldRow, *, replay: bool = False) -> dict[str, Any]:
    """The same JSON as `hold_view`, renamed, with the options as the documents have them; `core_id` is the
    deployment, or the flow itself."""
    shown = {DOCUMENT_FIELDS.get(name, name): value for name, value in hold_view(row, replay=replay).items()}
    del shown["deployment"]
    return {**shown, "options": msgspec.to_builtins(row.options), "core_id": row.core_id}
