"""The OpenAI Agents SDK (the extra `openai-agents`): agents whose model and tool calls are recorded steps of
a run, and whose approvals are holds (docs/how-to/openai-agents.md).
"""

from __future__ import annotations

from holdfast.integrations.partner_versions import require_partner

require_partner("openai-agents", "0.24", "0.25", "openai-agents")

from holdfast.integrations.openai_agents.run import run_agent  # noqa: E402

__all__ = ["run_agent"]
