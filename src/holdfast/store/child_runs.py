"""What the end of a run means for the runs that its scripts have started, on every store."""

from __future__ import annotations

import msgspec

from holdfast.errors import RunEndedError
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus


def cancel_message(parent: RunId) -> bytes:
    """What a child is sent when its parent has been cancelled. Not encrypted, as it has no content of a user:
    a store writes it without keys."""
    return msgspec.json.encode({"reason": f"its parent run {parent} was cancelled", "by": "holdfast"})


def require_open_parent(parent: RunId, status: str) -> None:
    """Raises RunEndedError for a parent that was cancelled: its children were told so before."""
    if status == RunStatus.cancelled:
        raise RunEndedError(
            f"run {parent} was cancelled, and starts no further runs.",
            hint="Start it detached if it has to outlive its parent.",
            run=parent,
            status=status,
        )
