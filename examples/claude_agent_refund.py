"""Claude Code asks a person before it runs a command, and no process waits for the answer.

It needs the program of Claude Code and its key. Start it, answer the hold, and start it again with the
session that it printed:

python examples/claude_agent_refund.py
holdfast inbox
python examples/claude_agent_refund.py SESSION
"""

from __future__ import annotations

import asyncio
import os
import sys

from claude_agent_sdk import ClaudeAgentOptions

from holdfast import Holdfast
from holdfast.integrations.claude_agent import ClaudeOutcome, PermissionHolds, ask_claude


async def refund(hf: Holdfast, resume: str | None = None, patience: float = 60) -> ClaudeOutcome:
    holds = PermissionHolds(hf, "order-A17", hold={"timeout": "2d"}, poll=0.2)
    # Without cli_path the SDK takes the program that comes with it.
    options = ClaudeAgentOptions(resume=resume, cli_path=os.environ.get("CLAUDE_PROGRAM"))
    prompt = "Order A17 came broken. See to it." if resume is None else "Continue."
    return await ask_claude(prompt, options, holds, patience=patience)


async def main() -> None:
    async with Holdfast() as hf:
        outcome = await refund(hf, sys.argv[1] if len(sys.argv) > 1 else None)
        if outcome.waiting:
            print(f"waits for {', '.join(outcome.waiting)}; resume the session {outcome.session_id}")
        elif outcome.result is not None:
            print(outcome.result.result)


if __name__ == "__main__":
    asyncio.run(main())
