"""A person decides whether a tool may run, and with which arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.agents.messages import ToolCall
from holdfast.agents.node_scope import AgentScope
from holdfast.agents.tools import Approval, Tool
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.expr import mapping_resolver
from holdfast.model.template import compile_template
from holdfast.runs.context.questions import HoldExpiredError, Reply
from holdfast.types.hold import Option

OPTIONS = (Option("approve", "Approve", "primary"), Option("reject", "Reject", "danger"))
SHOWN = 200


class ToolApprovalResult(msgspec.Struct, frozen=True):
    """`arguments`: JSON text of what may run; None: it may not, and `said` tells the model why."""

    arguments: str | None
    said: str = ""


async def approve(at: AgentScope, tool: Tool, call: ToolCall, agent: str, turn: int) -> ToolApprovalResult:
    """One hold per call, named by the call's id: an answer to one never lets another run."""
    asked = cast("Approval", tool.approval)
    arguments: dict[str, Any] = msgspec.json.decode(call.arguments)
    try:
        reply = await at.ask(
            "approval",
            _prompt(asked, tool, arguments),
            options=OPTIONS,
            type="approval",
            **asked.manner(),
            schema=answer_schema(tool),
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
        return ToolApprovalResult(
            None, "Nobody answered in time whether this may be done, so it was not done."
        )
    return _verdict(reply, tool, call, arguments)


def _verdict(reply: Reply, tool: Tool, call: ToolCall, arguments: dict[str, Any]) -> ToolApprovalResult:
    why = f": {reply.comment}" if reply.comment else "."
    if reply.decision != "approve":
        return ToolApprovalResult(None, f"A person refused this call, and it was not made{why}")
    edited = edited_arguments(arguments, reply.data)
    adds = instructions_in(reply.data)
    if adds and tool.fn is None:
        # Another agent does it: it is told itself.
        edited, adds = {**edited, "task": f"{edited.get('task', '')}\n\n{adds}"}, ""
    note = f"A person adds: {adds}\n" if adds else ""
    if edited == arguments:
        return ToolApprovalResult(call.arguments, note)
    text = msgspec.json.encode(edited).decode()
    return ToolApprovalResult(text, f"A person approved this call with other arguments, {text}{why}\n{note}")


def edited_arguments(arguments: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """`arguments` in the answer stand for the call's own; `modifications.arguments` (or `tool_args`) change
    some of them."""
    said: dict[str, Any] = cast("Any", data) if isinstance(data, dict) else {}
    if isinstance(said.get("arguments"), dict):
        return dict(said["arguments"])
    changes = _modifications(said)
    return {**arguments, **(changes.get("tool_args") or {}), **(changes.get("arguments") or {})}


def instructions_in(data: Any) -> str:
    """What the model is told beside the result."""
    said: dict[str, Any] = cast("Any", data) if isinstance(data, dict) else {}
    return str(_modifications(said).get("instructions") or "")


def _modifications(said: Mapping[str, Any]) -> dict[str, Any]:
    found: Any = said.get("modifications")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def answer_schema(tool: Tool) -> dict[str, Any]:
    """So that arguments which the tool could not read are refused while the person can still mend them."""
    whole: dict[str, Any] = tool.spec.schema
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
    return f"May {shown_call(tool.name, arguments)} be done?"


def shown_call(name: str, arguments: Mapping[str, Any]) -> str:
    """`pay(amount=250, to="c-9")`, cut where it is long."""
    inside = ", ".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in arguments.items())
    text = f"{name}({inside})"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 2]}…)"
