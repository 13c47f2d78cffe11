"""One tool call: parsed, approved, made, recorded, and returned to the model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from holdfast.agents.agent_scope import AgentScope, ScriptContext
from holdfast.agents.digests import tool_digests
from holdfast.agents.messages import ToolCall
from holdfast.agents.tool_approval import approve, shown_call
from holdfast.agents.tools import Tool, ToolOutput
from holdfast.agents.truncation import LIMITS, truncated
from holdfast.agents.workspace import Workspace, WorkspaceChanges, changes_in
from holdfast.errors import InputError, NotDone
from holdfast.model.annotations import is_pydantic
from holdfast.model.user_code.boundary import call as call_code
from holdfast.model.user_code.boundary import call_alone
from holdfast.runs.context.context import Context
from holdfast.runs.context.questions import HoldExpiredError
from holdfast.runs.context.substeps import StepFailedError
from holdfast.types.text import clean_text

KEPT = {"text", "failed", "micros"}
SHOWN = 4096
RESULT = "tool result"
"""Of an artifact: the whole of a result that the model got only in part."""
UNKNOWN_RESULT = "The call was made; its result is not known."


class ToolResult(msgspec.Struct, frozen=True):
    """The result for the model. `malformed`: the call was not valid. `recorded`: it has its own record."""

    text: str
    failed: bool = False
    malformed: bool = False
    recorded: bool = False
    changes: WorkspaceChanges = WorkspaceChanges()


class PlannedCall(msgspec.Struct, frozen=True):
    """A parsed call. `problem`: why it is not made."""

    call: ToolCall
    tool: Tool | None
    problem: str = ""
    malformed: bool = False


SubAgent = Callable[[AgentScope, PlannedCall, str], Awaitable[ToolResult]]


def read_call(tool: Tool, call: ToolCall) -> str:
    """Empty if the arguments fit the tool; else the message to the model."""
    try:
        if not isinstance(msgspec.json.decode(call.arguments), dict):
            return f"the arguments of {tool.name!r} are not a JSON object"
        tool.read(call.arguments)
    except (ValueError, RecursionError) as error:
        return f"the arguments do not fit {tool.name!r}: {clean_text(error, 500)}"
    return ""


async def perform(
    at: AgentScope, plan: PlannedCall, agent: str, turn: int, space: Workspace, ask_agent: SubAgent
) -> ToolResult:
    tool, call = plan.tool, plan.call
    # An invalid call is a result for the model and not an error of the run: it can correct itself.
    if tool is None or plan.problem:
        return ToolResult(f"Error: {plan.problem}.", failed=True, malformed=plan.malformed)
    arguments, note = call.arguments, ""
    if tool.approval is not None and tool.approval.is_needed(msgspec.json.decode(arguments)):
        verdict = await approve(at, tool, call, agent, turn)
        if verdict.arguments is None:
            return ToolResult(verdict.note, failed=True)
        arguments, note = verdict.arguments, verdict.note
        # A person may have changed the arguments, and the record may be of an older version of the tool.
        problem = read_call(tool, msgspec.structs.replace(call, arguments=arguments))
        if problem:
            return ToolResult(f"{note}Error: {problem}.", failed=True)
    if tool.fn is None:
        result = _limited_report(at, tool, await ask_agent(at, plan, arguments))
    elif tool.script:
        result = await _script(at, tool, arguments)
    else:
        result = await _step(at, tool, call, arguments, turn, space)
    return msgspec.structs.replace(result, text=note + result.text, recorded=False) if note else result


async def _script(at: AgentScope, tool: Tool, arguments: str) -> ToolResult:
    """Its code runs again on re-entry; its sub-steps and questions have their own records."""
    given = _given(tool, arguments)
    try:
        value = await call_code(cast("Any", tool.fn), ctx=ScriptContext(at), **given)
    except (NotDone, StepFailedError, HoldExpiredError, InputError) as error:
        return ToolResult(_error_text(error), failed=True)
    return ToolResult(result_text(value))


async def _step(
    at: AgentScope, tool: Tool, call: ToolCall, arguments: str, turn: int, space: Workspace
) -> ToolResult:
    ctx = at.ctx
    shown = msgspec.json.decode(arguments)
    prepared = await _prepared(at, tool, arguments)
    if prepared["problem"]:
        return ToolResult(prepared["problem"], failed=True)

    async def run(idempotency_key: str = "") -> dict[str, Any]:
        ctx.note_digests(**tool_digests(tool, arguments))
        ctx.emit(_call_event(f"{at.label}{tool.name}", call, arguments, turn), "tool")
        # Visible before the call starts: it may take long.
        ctx.flush_chunks()
        started = ctx.now()
        given = _given(tool, arguments)
        if tool.idempotent:
            given["idempotency_key"] = idempotency_key
        if "prepared" in tool.wants:
            given["prepared"] = prepared["value"]
        try:
            text, failed, changes = await _invoke(tool, given, ctx, space)
        finally:
            ctx.spent(micros=ctx.now() - started)
        kept = {"text": text, "failed": failed, "micros": ctx.now() - started, **changes.kept()}
        return {**kept, **_limited(text, tool, at, started)}

    name = shown_call(tool.name, shown)
    kept = await at.step("call", name, run, effect=tool.effect, idempotent=tool.idempotent)
    _keep_whole(at, tool, name, kept)
    return _result_for(kept)


async def _prepared(at: AgentScope, tool: Tool, arguments: str) -> dict[str, Any]:
    """What the tool found out before its call: recorded, so that a repeated call has the same."""
    prepare = tool.prepare
    if prepare is None:
        return {"value": None, "problem": ""}
    given = _given(tool, arguments)
    if "ctx" in inspect.signature(prepare).parameters:
        given["ctx"] = at.ctx

    async def run() -> dict[str, Any]:
        try:
            return {"value": await call_code(prepare, **given), "problem": ""}
        except Exception as error:  # it has changed nothing
            return {"value": None, "problem": _error_text(error)}

    return await at.step("plan", f"plan {tool.name}", run, effect="read")


def _limited(text: str, tool: Tool, at: AgentScope, now: int) -> dict[str, Any]:
    """What the model gets of a long result. The whole is recorded beside it."""
    if tool.limit is None:
        return {}
    shown = truncated(text, tool.limit, artifact_name(at, tool.name))
    return {} if shown is text else {"text": shown, "whole": text, "at": now}


def _limited_report(at: AgentScope, tool: Tool, result: ToolResult) -> ToolResult:
    """The same for the report of a sub-agent, which its own records have."""
    shown = truncated(result.text, LIMITS["sub-agent"], artifact_name(at, tool.name))
    if shown is result.text:
        return result
    _keep_whole(at, tool, tool.name, {"whole": result.text, "at": at.ctx.now()})
    return msgspec.structs.replace(result, text=shown)


def _keep_whole(at: AgentScope, tool: Tool, name: str, kept: Any) -> None:
    """From the record, on every entry of the node: artifacts become visible only when it settles."""
    if isinstance(kept, Mapping) and "whole" in kept:
        found = cast("Mapping[str, Any]", kept)
        stored_at = datetime.fromtimestamp(found["at"] / 1e6, UTC).isoformat()
        value = {"name": name, "stored_at": stored_at, "data": found["whole"], "of": RESULT}
        at.ctx.artifact(artifact_name(at, tool.name), value)


def artifact_name(at: AgentScope, tool: str) -> str:
    """`work.1.agent.3.tool.0.shell`: the first call of the third turn in the first visit of `work`."""
    return f"{at.ctx.node}.{at.ctx.visit}.{at.path.replace('/', '.')}.{tool}"


def _call_event(name: str, call: ToolCall, arguments: str, turn: int) -> dict[str, Any]:
    """Large arguments are left out: the journal has them with the model's reply."""
    head: dict[str, Any] = {"tool": name, "call": call.id, "turn": turn}
    return {**head, "arguments": msgspec.json.decode(arguments)} if len(arguments) <= SHOWN else head


def _result_for(kept: Any) -> ToolResult:
    """The recorded result; or the value that a person entered for an unknown outcome."""
    if isinstance(kept, dict) and set(cast("dict[str, Any]", kept)) >= KEPT:
        whole = cast("dict[str, Any]", kept)
        return ToolResult(whole["text"], failed=whole["failed"], recorded=True, changes=changes_in(whole))
    return ToolResult(UNKNOWN_RESULT if kept is None else result_text(kept))


async def _invoke(
    tool: Tool, given: dict[str, Any], ctx: Context, space: Workspace
) -> tuple[str, bool, WorkspaceChanges]:
    """The model gets an error if it is certain that nothing happened, or if the call may be repeated. Any
    other error leaves the outcome unknown, and the in-doubt policy of the node applies (D-15)."""
    files, used, note = space.open_files(), None, ""
    if "ctx" in tool.wants:
        given["ctx"] = ctx
    if "files" in tool.wants:
        given["files"] = files
    try:
        if "sandbox" in tool.wants:
            given["sandbox"], used, note = await space.session()
        async with asyncio.timeout(tool.timeout):
            invoke = call_code if tool.timeout is None else call_alone
            value = await invoke(cast("Any", tool.fn), **given)
    except Exception as error:
        if not (tool.is_repeatable or isinstance(error, NotDone)):
            raise
        # Files that a tool wrote before it failed are discarded; a sandbox that it started is kept.
        return note + _error_text(error), True, WorkspaceChanges({}, used)
    failed = isinstance(value, ToolOutput) and value.failed
    return note + result_text(value), failed, WorkspaceChanges(files.changes, used)


def _given(tool: Tool, arguments: str) -> dict[str, Any]:
    read = tool.read(arguments)
    return {name: getattr(read, name) for name in read.__struct_fields__}


def _error_text(error: BaseException) -> str:
    text = clean_text(error, 2000)
    if isinstance(error, NotDone):
        return f"Error: {text}"
    return f"Error: {type(error).__name__}: {text}" if text else f"Error: {type(error).__name__}"


def result_text(value: Any) -> str:
    """The result as text for the model: text unchanged, anything else as JSON."""
    if value is None:
        return "Done."
    if isinstance(value, str):
        return value
    if isinstance(value, ToolOutput):
        return value.text
    if is_pydantic(type(value)):
        value = value.model_dump(mode="json")
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)


async def gather_results(work: Iterable[Awaitable[ToolResult]]) -> list[ToolResult]:
    """Waits for all of them, even if one fails: a running effect cannot be undone."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for each in found:
        # Raised only after all have ended and are recorded: a cancelled effect would be in doubt.
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if isinstance(each, ToolResult)]
