"""A person as a tool: the model asks, the run waits, for seconds or months."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from holdfast.agents.tools import Tool, tool
from holdfast.runs.context.context import Context


def ask_person(
    name: str = "ask_person",
    *,
    description: str = "Asks a person, who may take a while to answer.",
    assignee: str | None = None,
    timeout: str | int | float | timedelta | None = None,
    on_timeout: str | None = None,
    max_calls: int | None = None,
) -> Tool:
    """A tool that puts the model's question to a person. At the timeout the model gets a message."""

    async def ask(
        ctx: Context,
        question: Annotated[str, "The question, complete in itself."],
        choices: Annotated[list[str] | None, "The options; leave out for a free answer."] = None,
    ) -> str:
        reply = await ctx.ask(
            question, options=choices or None, assignee=assignee, timeout=timeout, on_timeout=on_timeout
        )
        return f"{reply.decision} ({reply.comment})" if reply.comment else str(reply.decision)

    return tool(name=name, description=description, effect="human", script=True, max_calls=max_calls)(ask)
