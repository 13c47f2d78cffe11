"""The flows of permissions: each question is a run of its own, and so is the mark that its answer was
used."""

from __future__ import annotations

from typing import Any, Final, TypedDict

from holdfast.app.flow import Flow
from holdfast.integrations.tool_holds import ask_approval
from holdfast.runs.context.context import Context
from holdfast.types.value import thaw


class PermissionState(TypedDict, total=False):
    tool: str
    input: dict[str, Any]
    conversation: str
    hold: dict[str, Any]
    approved: bool
    updated_input: dict[str, Any] | None
    message: str


class UsedState(TypedDict, total=False):
    question: str


permission: Final = Flow("claude-permission", state=PermissionState)
used: Final = Flow("claude-permission-used", state=UsedState)


@permission.script
async def ask(s: Any, ctx: Context) -> dict[str, Any]:
    given = thaw(s["input"])
    context = {"conversation": s["conversation"]}
    decision = await ask_approval(ctx, s["tool"], given, key="ask", hold=thaw(s["hold"]), context=context)
    return {
        "approved": decision.approved,
        "updated_input": decision.arguments,
        "message": decision.message,
    }


@used.node(effect="pure")
async def mark(_state: Any) -> None:
    """Nothing: that the run exists says that the answer was given to a process."""


permission.start(ask)
used.start(mark)
