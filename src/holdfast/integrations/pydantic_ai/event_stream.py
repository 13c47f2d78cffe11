"""Events of an agent as live output of its run (IN-55, D-23)."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextvars import ContextVar
from typing import Any

from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.tools import RunContext

from holdfast.runs.context.context import Context

emitter: ContextVar[Context | None] = ContextVar("the context that an agent's events go to", default=None)


async def emit_events(_run: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
    """Pass it as `event_stream_handler`: text is emitted with the kind `text`, thoughts with `thinking`, tool
    calls and results with `tool`. Outside a run it reads the events and does nothing."""
    async for event in events:
        ctx = emitter.get()
        shown = _shown(event)
        if ctx is not None and shown is not None:
            ctx.emit(*shown)


def _shown(event: AgentStreamEvent) -> tuple[Any, str] | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return text, "text"
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return text, "text"
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return text, "thinking"
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
            return text, "thinking"
        case FunctionToolCallEvent(part=part):
            return {"tool": part.tool_name, "call": part.tool_call_id}, "tool"
        case FunctionToolResultEvent(part=part):
            return {"tool": part.tool_name, "call": part.tool_call_id, "done": True}, "tool"
        case _:
            return None
