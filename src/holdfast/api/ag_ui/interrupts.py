"""Questions of a run as interrupts of AG-UI."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.ag_ui.events import AgUiEvent
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow


def interrupt_of(hold: HoldRow) -> AgUiEvent:
    found: AgUiEvent = {"id": hold.id, "reason": hold.type, "message": hold.prompt}
    found["responseSchema"] = response_schema(hold)
    if hold.expires_at is not None:
        found["expiresAt"] = iso(hold.expires_at)
    found["metadata"] = {"holdfast": {"run": hold.run, "node": hold.node}}
    return found


def response_schema(hold: HoldRow) -> dict[str, Any]:
    """The JSON Schema of the `payload` that answers it."""
    decision: dict[str, Any] = {"type": "string"}
    if hold.options:
        decision = {"oneOf": [{"const": option.id, "title": option.text} for option in hold.options]}
    properties: dict[str, Any] = {"decision": decision, "comment": {"type": "string"}}
    if hold.schema is not None:
        properties["response_data"] = msgspec.json.decode(hold.schema)
    return {"type": "object", "properties": properties, "required": ["decision"]}
