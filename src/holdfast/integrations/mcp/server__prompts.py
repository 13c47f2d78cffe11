"""Prompts that a person can choose in their own client."""

from __future__ import annotations

from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

_ASK_FIRST: Final = types.Prompt(
    name="ask_first",
    title="Ask a person first",
    description="Do a task, and ask a person before every step that cannot be undone.",
    arguments=[
        types.PromptArgument(name="task", description="What is to be done.", required=True),
        types.PromptArgument(name="assignee", description="Who is asked: user:NAME, group:NAME, role:NAME."),
    ],
)
_WORDS: Final = """\
{task}

Before each step that cannot be undone, or that others will notice, ask a person with ask_people{whom}: say \
what you are about to do and what hangs on it, and give the choices. Wait with check_answer. Only the status \
`resolved` with an agreeing decision lets you go on; withdrawn or expired does not. Withdraw a question that \
no longer matters."""


async def list_prompts() -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[_ASK_FIRST])


async def get_prompt(params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    if params.name != _ASK_FIRST.name:
        raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name[:100]!r}; there is ask_first.")
    if not given.get("task"):
        raise MCPError(types.INVALID_PARAMS, "ask_first needs a task.")
    whom = f" (assignee {given['assignee']})" if given.get("assignee") else ""
    text = types.TextContent(type="text", text=_WORDS.format(task=given["task"], whom=whom))
    return types.GetPromptResult(
        description=_ASK_FIRST.description, messages=[types.PromptMessage(role="user", content=text)]
    )
