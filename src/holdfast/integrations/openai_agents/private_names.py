"""What is used of the OpenAI Agents SDK beside its public interface, all in one place (IN-3)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import copy
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agents import Agent, FunctionTool, Handoff
from agents.run_state import CURRENT_SCHEMA_VERSION, SUPPORTED_SCHEMA_VERSIONS
from agents.tool import _FailureHandlingFunctionToolInvoker as Invoker
from agents.tool import set_function_tool_failure_error_function

Invoke = Callable[[Any, str], Awaitable[Any]]
__all__ = ["CURRENT_SCHEMA_VERSION", "SUPPORTED_SCHEMA_VERSIONS", "Invoke", "Invoker"]


class DurableInvoker(Invoker):
    """Calls a decorated function as a recorded step. It is one of the SDK's invokers, so that a function in
    `needs_approval` still gets arguments that were checked."""

    def __init__(self, inner: Invoker, perform: Invoke) -> None:
        super().__init__(inner._invoke_tool_impl, inner._on_handled_error)
        self._perform = perform

    def __agents_bind_function_tool__(self, function_tool: FunctionTool) -> DurableInvoker:
        return self

    async def __call__(self, ctx: Any, input: str) -> Any:  # noqa: A002
        return await self._perform(ctx, input)


def with_invoker(tool: FunctionTool, perform: Invoke) -> FunctionTool:
    """A copy that is called by `perform`, which decides what the model is told about errors: those that it
    raises are raised."""
    made = copy.copy(tool)
    found = tool.on_invoke_tool
    made.on_invoke_tool = DurableInvoker(found, perform) if isinstance(found, Invoker) else perform
    return set_function_tool_failure_error_function(made, None)


def has_default_errors(tool: FunctionTool) -> bool:
    """Whether its user left to the SDK what the model is told about an error."""
    return isinstance(tool.on_invoke_tool, Invoker) and tool._use_default_failure_error_function


def raising(tool: FunctionTool) -> FunctionTool:
    """A copy whose errors are raised, and not told to the model."""
    return set_function_tool_failure_error_function(copy.copy(tool), None)


def nested_agent(tool: FunctionTool) -> Agent[Any] | None:
    """The agent of a tool that was made by `agent.as_tool`."""
    return tool._agent_instance if tool._is_agent_tool else None


def handoff_target(handoff: Handoff[Any, Any]) -> Agent[Any] | None:
    found = None if handoff._agent_ref is None else handoff._agent_ref()
    return cast("Agent[Any] | None", found)


def retarget(handoff: Handoff[Any, Any], target: Agent[Any]) -> None:
    """The target must be kept alive: the SDK refers to it weakly."""
    handoff._agent_ref = weakref.ref(target)


def copied_agent(agent: Agent[Any], kind: type[Agent[Any]]) -> Agent[Any]:
    """A shallow copy of that class, made without the checks of the constructor, which change settings."""
    made = object.__new__(kind)
    made.__dict__.update(agent.__dict__)
    return made
