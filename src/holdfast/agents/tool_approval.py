"""A person decides whether a tool may run, and with which arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.messages import ToolCall
from holdfast.agents.tools import Approval, Tool
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.expressions import mapping_resolver
from holdfast.model.template import compile_template
from holdfast.runs.context.questions import HoldExpiredError, Reply
from holdfast.types.hold import Option

OPTIONS = (Option("approve", "Approve", "primary"), Option("reject", "Reject", "danger"))
SHOWN = 200


class ToolApprovalResult(msgspec.Struct, frozen=True):
    """`arguments`: JSON text of the approved arguments; None: refused. `note`: a message to the model."""

    arguments: str | None
    note: str = ""


async def approve(at: AgentScope, tool: Tool, call: ToolCall, agent: str, turn: int) -> ToolApprovalResult:
    """One hold per call, identified by the call's id: an answer to one call never allows another."""
    asked = cast("Approval", tool.approval)
    arguments: dict[str, Any] = msgspec.json.decode(call.arguments)
    try:
        reply = await at.ask(
            "approval",
            # A question that was answered before keeps its text: another one would be a replay mismatch.
            at.asked("approval") or _prompt(asked, tool, arguments),
            options=OPTIONS,
            type="approval",
            **asked.manner(),
            schema=answer_schema(tool.spec.schema),
            context={
                "entity_id": call.id,
                "tool": tool.name,
                "arguments": arguments,
                "effect": str(tool.effect),
                "agent": agent,
                "turn": turn,
            },
        )
    except HoldExpiredError:
        return ToolApprovalResult(None, "This call was not approved in time, and it was not made.")
    return _verdict(reply, tool, call, arguments, at.ctx.shown(arguments))


def _verdict(
    reply: Reply, tool: Tool, call: ToolCall, arguments: dict[str, Any], shown: dict[str, Any]
) -> ToolApprovalResult:
    why = f": {reply.comment}" if reply.comment else "."
    # Compared with the one word that approves: any other answer must not run the tool.
    if reply.decision != "approve":
        return ToolApprovalResult(None, f"A person refused this call, and it was not made{why}")
    # The person saw masks in place of secrets: an argument that is still masked was not changed.
    edited = unmasked(edited_arguments(arguments, reply.data), shown, arguments)
    adds = instructions_in(reply.data)
    if adds and tool.fn is None:
        # A sub-agent gets the instructions itself, as part of its task.
        edited, adds = {**edited, "task": f"{edited.get('task', '')}\n\n{adds}"}, ""
    note = f"A person adds: {adds}\n" if adds else ""
    if edited == arguments:
        return ToolApprovalResult(call.arguments, note)
    text = msgspec.json.encode(edited).decode()
    return ToolApprovalResult(text, f"A person approved this call with other arguments, {text}{why}\n{note}")


def unmasked(edited: Any, shown: Any, given: Any) -> Any:
    """`edited` with the values of `given` wherever it still has what was shown for them."""
    if edited == shown:
        return given
    if not all(isinstance(each, dict) for each in (edited, shown, given)):
        return edited
    named, before, real = (cast("dict[str, Any]", each) for each in (edited, shown, given))
    return {
        name: unmasked(value, before[name], real[name]) if name in before and name in real else value
        for name, value in named.items()
    }


def edited_arguments(arguments: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """`arguments` in the answer replace those of the call; `modifications.arguments` (or `tool_args`) change
    some of them."""
    fields: dict[str, Any] = cast("Any", data) if isinstance(data, dict) else {}
    if isinstance(fields.get("arguments"), dict):
        return dict(fields["arguments"])
    changes = _modifications(fields)
    return {**arguments, **(changes.get("tool_args") or {}), **(changes.get("arguments") or {})}


def instructions_in(data: Any) -> str:
    """A message to the model besides the result."""
    fields: dict[str, Any] = cast("Any", data) if isinstance(data, dict) else {}
    return str(_modifications(fields).get("instructions") or "")


def _modifications(fields: Mapping[str, Any]) -> dict[str, Any]:
    found: Any = fields.get("modifications")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def answer_schema(whole: dict[str, Any]) -> dict[str, Any]:
    """Arguments that do not fit the schema of the tool are refused while the person can still correct
    them."""
    # A tool may declare a schema that our checker does not
    # support; the arguments are checked again before the call.
    if schema_faults(whole):
        whole = {"type": "object"}
    some = {key: value for key, value in whole.items() if key != "required"}
    return {
        "type": ["object", "null"],
        "properties": {
            "arguments": whole,
            "modifications": {
                "type": "object",
                "properties": {"arguments": some, "tool_args": some, "instructions": {"type": "string"}},
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    }


def _prompt(asked: Approval, tool: Tool, arguments: dict[str, Any]) -> str:
    if asked.prompt is not None:
        return str(compile_template(asked.prompt).render(mapping_resolver(arguments)).value)
    return f"The agent wants to run {call_text(tool.name, arguments)}. Allow it?"


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """`refund: order A17, amount 250`, for people; shortened if it is long."""
    parts = [
        f"{key.removesuffix('_id').replace('_', ' ')} {_plain(value)}" for key, value in arguments.items()
    ]
    text = f"{name}: {', '.join(parts)}" if parts else name
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def shown_call(name: str, arguments: Mapping[str, Any]) -> str:
    """`pay(amount=250, to="c-9")`, shortened if it is long. It names a recorded sub-step: it must not
    change."""
    inside = ", ".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in arguments.items())
    text = f"{name}({inside})"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 2]}…)"
