"""Copies of agents whose tools, models and handoffs are recorded; the caller's agents stay as they are."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final, cast

from agents import (
    Agent,
    CodeInterpreterTool,
    FileSearchTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    ImageGenerationTool,
    ToolSearchTool,
    WebSearchTool,
)
from agents.handoffs import handoff
from agents.run_context import RunContextWrapper

from holdfast.errors import InputError
from holdfast.integrations.openai_agents.private_names import (
    copied_agent,
    handoff_target,
    nested_agent,
    retarget,
    with_invoker,
)
from holdfast.integrations.openai_agents.recorded import AgentSteps, recorded_model

_HOSTED: Final = (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    ToolSearchTool,
    WebSearchTool,
)
"""They run inside the model call, and are repeated with it."""
_ORIGINAL: Final = "holdfast_original"
_STEPS: Final = "holdfast_steps"


class RecordedAgent(Agent[Any]):
    """An agent whose tools of MCP servers are recorded like its own. They are listed again for each turn."""

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Any]:
        found = await super().get_mcp_tools(run_context)
        steps: AgentSteps = self.__dict__[_STEPS]
        return [_durable(steps, each) if isinstance(each, FunctionTool) else each for each in found]


class AgentCopies:
    """The copies of one agent run. It keeps them alive: the SDK refers to agents weakly."""

    def __init__(self, steps: AgentSteps) -> None:
        self._steps = steps
        self._made: dict[int, Agent[Any]] = {}
        # What calls are recorded by, as far as it is known before a run.
        self._names: set[str] = set()
        self._is_open = False

    def require_names(self, effects: Iterable[str]) -> None:
        """Raises InputError for names of which there is no tool and no handoff. Tools of MCP servers, and of
        agents to which a function leads, are not known yet: then every name may be one of theirs."""
        unknown = sorted(set(effects) - self._names)
        if unknown and not self._is_open:
            raise InputError(
                f"effects= names {', '.join(map(repr, unknown))}, which no agent of this run can call.",
                hint=f"There are: {', '.join(sorted(self._names)) or 'no tools'}.",
            )

    def of(self, agent: Any) -> Agent[Any]:
        """Raises InputError for what cannot be recorded, before anything is called."""
        require_agent(agent)
        # Such as the last agent of an earlier result.
        agent = agent.__dict__.get(_ORIGINAL, agent)
        if id(agent) in self._made:
            return self._made[id(agent)]
        made = self._made[id(agent)] = copied_agent(agent, _recorded_kind(agent))
        made.__dict__.update({_ORIGINAL: agent, _STEPS: self._steps})
        made.model = recorded_model(agent.model, self._steps)
        made.tools = [self._tool(agent, each) for each in agent.tools]
        made.handoffs = [self._handoff(each) for each in agent.handoffs]
        self._is_open = self._is_open or bool(agent.mcp_servers)
        return made

    def named(self, name: str) -> Agent[Any] | None:
        return next((each for each in self._made.values() if each.name == name), None)

    def _tool(self, agent: Agent[Any], tool: Any) -> Any:
        if isinstance(tool, _HOSTED):
            return tool
        if not isinstance(tool, FunctionTool):
            raise InputError(
                f"agent {agent.name!r} has a {type(tool).__name__}, whose calls cannot be recorded.",
                hint="Make a function_tool of it. Function tools, MCP servers and hosted tools are recorded.",
            )
        _require_no_approval_inside(tool)
        self._names.add(tool.qualified_name)
        return _durable(self._steps, tool)

    def _handoff(self, found: Any) -> Handoff[Any, Any]:
        given = cast("Handoff[Any, Any]", found) if isinstance(found, Handoff) else handoff(found)
        target, made = handoff_target(given), copy.copy(given)
        self._names.add(given.tool_name)
        if target is None:
            self._is_open = True
        else:
            retarget(made, self.of(target))

        async def invoke(at: Any, text: str) -> Agent[Any]:
            led: list[Agent[Any]] = []

            async def perform() -> str:
                led.append(await given.on_invoke_handoff(at, text))
                return led[0].name

            name = await self._steps.handoff(given.tool_name, perform)
            known = self.of(target) if target is not None else self.named(name or "")
            if led:
                return self.of(led[0])
            return known or self.of(await given.on_invoke_handoff(at, text))

        made.on_invoke_handoff = invoke
        return made


def _recorded_kind(agent: Agent[Any]) -> type[Agent[Any]]:
    kind = type(agent)
    if kind is Agent:
        return RecordedAgent
    return cast("type[Agent[Any]]", type(f"Recorded{kind.__name__}", (RecordedAgent, kind), {}))


def _durable(steps: AgentSteps, tool: FunctionTool) -> FunctionTool:
    async def perform(at: Any, given: str) -> Any:
        return await steps.tool(tool, at, given)

    return with_invoker(tool, perform)


def require_agent(agent: Any) -> None:
    if isinstance(agent, Agent) and not type(cast("Any", agent)).__module__.startswith("agents.sandbox"):
        return
    kind = type(cast("object", agent))
    where = kind.__module__
    what = next((word for word in ("realtime", "voice", "sandbox") if where.startswith(f"agents.{word}")), "")
    if what:
        raise InputError(
            f"{kind.__name__} is a {what} agent, whose calls cannot be recorded.",
            hint="Give run_agent an Agent with text input.",
        )
    raise InputError(f"run_agent was given {kind.__name__}.", hint="Give it an Agent of the SDK.")


def _require_no_approval_inside(tool: FunctionTool) -> None:
    """An agent that is a tool runs inside one step, where nobody can be asked."""
    inner = nested_agent(tool)
    if inner is None:
        return
    require_agent(inner)
    for each in inner.tools:
        if getattr(each, "needs_approval", False) is not False:
            raise InputError(
                f"tool {tool.name!r} is the agent {inner.name!r}, whose tool "
                f"{getattr(each, 'name', '')!r} needs approval; the agent runs inside one recorded step.",
                hint="Make it a handoff, or give needs_approval to the agent's own tool (as_tool).",
            )
        if isinstance(each, FunctionTool):
            _require_no_approval_inside(each)
