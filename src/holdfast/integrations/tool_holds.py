"""Tool calls of other frameworks that a person has to allow or answer, as holds of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

from holdfast.agents.tool_approval import OPTIONS, answer_schema, call_text, edited_arguments, unmasked
from holdfast.errors import HoldExpiredError, InputError
from holdfast.runs.context.context import Context
from holdfast.types.hold import Option

HoldOptions = Mapping[str, Any] | Callable[[str, dict[str, Any]], Mapping[str, Any]] | None
"""Whom a hold goes to and until when, as for `ctx.ask`; or a function of the tool's name and arguments."""

ALWAYS: Final = Option("approve_always", "Approve all calls of this tool")
NO_CHANGES: Final[dict[str, Any]] = {
    "type": ["object", "null"],
    "properties": {},
    "additionalProperties": False,
}
"""The schema of an answer that changes nothing."""


class ToolDecision(NamedTuple):
    """`arguments`: what to call the tool with, None: as it was asked. `message`: for the model. `always`: so
    are later calls of the tool."""

    approved: bool
    arguments: dict[str, Any] | None = None
    message: str = ""
    always: bool = False


async def ask_approval(
    ctx: Context,
    name: str,
    arguments: dict[str, Any],
    *,
    key: str,
    hold: HoldOptions,
    schema: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    editable: bool = True,
    may_allow_always: bool = False,
) -> ToolDecision:
    """One hold for each call, identified by `key`: an answer to one call never allows another. `editable`:
    whether the framework can call the tool with other arguments. `may_allow_always`: whether `hold` may say
    `"always": True`, which lets a person allow the later calls of the tool too."""
    manner = hold_options(hold, name, arguments)
    always = may_allow_always and manner.pop("always", False) is True
    try:
        reply = await ctx.ask(
            f"The agent wants to run {call_text(name, arguments)}. Allow it?",
            options=(OPTIONS[0], ALWAYS, *OPTIONS[1:]) if always else OPTIONS,
            type="approval",
            schema=answer_schema(dict(schema or {"type": "object"})) if editable else NO_CHANGES,
            context={"tool": name, "arguments": arguments, **(context or {})},
            key=key,
            **manner,
        )
    except HoldExpiredError:
        return ToolDecision(False, message="This call was not approved in time, and it was not made.")
    if always and reply.decision == ALWAYS.id:
        return ToolDecision(True, always=True)
    # Compared with the one word that approves: any other answer must not run the tool.
    if reply.decision != "approve":
        why = f": {reply.comment}" if reply.comment else "."
        return ToolDecision(False, message=f"A person refused this call, and it was not made{why}")
    if not editable:
        return ToolDecision(True)
    # The person saw masks in place of secrets: an argument that is still masked was not changed.
    edited = unmasked(edited_arguments(arguments, reply.data), ctx.shown(arguments), arguments)
    return ToolDecision(True, None if edited == arguments else edited)


async def ask_result(
    ctx: Context, name: str, arguments: dict[str, Any], *, key: str, hold: HoldOptions
) -> Any:
    """The answer of the hold is the result of the call. Raises HoldExpiredError."""
    reply = await ctx.ask(
        f"What is the result of {call_text(name, arguments)}?",
        context={"tool": name, "arguments": arguments},
        key=key,
        **hold_options(hold, name, arguments),
    )
    return reply.decision if reply.data is None else reply.data


def hold_options(hold: HoldOptions, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Raises InputError if the function gives something else."""
    found: Any = hold(name, arguments) if callable(hold) else hold
    if found is not None and not isinstance(found, Mapping):
        raise InputError(
            f"hold= gives {found!r} for the tool {name!r}.",
            hint='Give a dict such as {"assignee": "group:finance", "timeout": "2d"}, or a function.',
        )
    return dict(cast("Mapping[str, Any]", found or {}))
