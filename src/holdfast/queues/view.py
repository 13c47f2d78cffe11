"""A message as JSON: the one vocabulary of the API, the command line and the clients."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.types.clock import MICROS, iso
from holdfast.types.queue_message import MessageRow, QueueCounts

_PLAIN = (
    "id", "tenant", "scope", "queue", "type", "correlation_id", "priority", "group_key", "attempts",
    "max_attempts", "claimed_by", "completed_by", "run", "node", "hold", "error",
)  # fmt: skip
_INSTANTS = ("visible_at", "expires_at", "claim_until", "created_at", "updated_at", "ended_at")


def message_view(row: MessageRow, *, token: bool = False) -> dict[str, Any]:
    """`token`: with the token of its claim, for the worker that has claimed it; as text, because JavaScript
    rounds numbers of this size."""
    return {
        **{name: getattr(row, name) for name in _PLAIN},
        "state": str(row.state),
        "payload": msgspec.json.decode(row.payload),
        "result": None if row.result is None else msgspec.json.decode(row.result),
        "claim_token": str(row.claim_token) if token and row.claimed_by is not None else None,
        **{name: _at(getattr(row, name)) for name in _INSTANTS},
    }


def counts_view(counts: QueueCounts) -> dict[str, Any]:
    shown = {name: getattr(counts, name) for name in QueueCounts.__struct_fields__ if name != "oldest"}
    return {**shown, "oldest_seconds": counts.oldest / MICROS}


def _at(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)
