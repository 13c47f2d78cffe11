"""Pydantic AI (the extra `pydantic-ai`): agents whose model requests and tool calls are recorded steps of a
run, and whose approvals are holds (docs/how-to/pydantic-ai.md).
"""

from __future__ import annotations

from holdfast.integrations.partner_versions import require_partner

require_partner("pydantic-ai-slim", "2.66", "3", "pydantic-ai")

from holdfast.integrations.pydantic_ai.durability import HoldfastDurability  # noqa: E402
from holdfast.integrations.pydantic_ai.event_stream import emit_events  # noqa: E402

__all__ = ["HoldfastDurability", "emit_events"]
