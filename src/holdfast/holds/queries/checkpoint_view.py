"""A hold under the names of the documents that Holdfast follows, where it is a checkpoint (CP-2)."""

from __future__ import annotations

from typing import Any

from holdfast.holds.queries.hold_view import hold_view
from holdfast.types.hold import HoldRow

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
    """The same JSON as `hold_view`, renamed; `core_id` is the deployment, or the flow itself."""
    shown = {DOCUMENT_FIELDS.get(name, name): value for name, value in hold_view(row, replay=replay).items()}
    del shown["deployment"]
    return {**shown, "core_id": row.core_id}
