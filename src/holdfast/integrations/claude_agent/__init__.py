"""The Claude Agent SDK (the extra `claude-agent`): `can_use_tool` is answered by holds that survive the
process (docs/how-to/claude-agent.md).
"""

from __future__ import annotations

from holdfast.integrations.partner_versions import require_partner

require_partner("claude-agent-sdk", "0.2.183", "0.3", "claude-agent")

from holdfast.integrations.claude_agent.conversation import ClaudeOutcome, ask_claude  # noqa: E402
from holdfast.integrations.claude_agent.permission_holds import PermissionHolds  # noqa: E402

__all__ = ["ClaudeOutcome", "PermissionHolds", "ask_claude"]
