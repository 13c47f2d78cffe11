"""An agent: a model with instructions, tools and limits. It has no state of any run."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from copy import copy
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.agents.agent_scope import new_agent_scope
from holdfast.agents.budget import Budget
from holdfast.agents.loop import Conversation, ConversationResult
from holdfast.agents.messages import FINAL, Message, ToolSpec
from holdfast.agents.model import Model
from holdfast.agents.schemas import Read, reader_of, schema_of
from holdfast.agents.tools import Approval, Tool, When, approval_of, as_tool
from holdfast.agents.workspace import MAX_BYTES, Sandbox
from holdfast.errors import InputError
from holdfast.frontends.python.code import code_fingerprint
from holdfast.runs.context.context import Context
from holdfast.types.skill import SkillTool
from holdfast.types.status import Effect
from holdfast.types.text import clean_text

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# The format of recorded conversations: part of `code_text`, because another format would be another agent.
FORM = "agent 1"
TASK: dict[str, Any] = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "The task, complete in itself."}},
    "required": ["task"],
    "additionalProperties": False,
}


Preface = Callable[[Context], Awaitable[str]]


class Agent:
    """Pass it to `flow.agent(...)`, to another agent as a tool, or call `run` in a script node."""

    def __init__(
        self,
        name: str,
        *,
        model: Model,
        instructions: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        returns: Any = None,
        max_turns: int = 20,
        on_max_turns: str = "raise",
        max_repairs: int = 2,
        max_tokens: int | None = None,
        parallel: bool = True,
        budget: Budget | None = None,
        sandbox: Sandbox | None = None,
        max_file_bytes: int = MAX_BYTES,
        skills: Sequence[str] | None = None,
        toolkit: Sequence[Tool | Callable[..., Any]] = (),
        approval: When | Approval | None = None,
        preface: Preface | None = None,
        detect_loops: bool = False,
        window: int | None = None,
        steerable: bool = False,
    ) -> None:
        """`skills`: those of the run that it uses (default: all). `toolkit`: tools that are available only
        if a skill provides them. `preface`: the beginning of the system message, read once and recorded.
        `detect_loops`: a model that repeats its calls is warned once, then AgentLoopError is raised.
        `window`: tokens of its context; default: that of the model, if it is known. `steerable`: it gets
        messages of `holdfast steer`, after its tool calls."""
        self.name = name
        self.model = model
        self.instructions = instructions
        self.tools = tuple(as_tool(each) for each in tools)
        self.returns = returns
        self.max_turns = max_turns
        self.on_max_turns = on_max_turns
        self.max_repairs = max_repairs
        self.max_tokens = max_tokens
        self.parallel = parallel
        self.budget = budget
        # The approval that its answer needs.
        self.approval = approval_of(approval, None, name, ("answer",))
        self.sandbox = sandbox
        self.max_file_bytes = max_file_bytes
        self.skills = None if skills is None else tuple(skills)
        self.toolkit = tuple(as_tool(each) for each in toolkit)
        self.preface = preface
        self.detect_loops = detect_loops
        self.window = window
        self.steerable = steerable
        self._read: Read | None = None if returns is None else reader_of(returns)
        self.tool_specs = self._specs()
        self._by_name = {tool.name: tool for tool in self.tools}
        self._check()

    def _specs(self) -> tuple[ToolSpec, ...]:
        specs = [tool.spec for tool in self.tools]
        if self.returns is not None:
            schema = schema_of(self.returns, f"what agent {self.name!r} returns")
            specs.append(ToolSpec(FINAL, "Hand over the final answer.", schema))
        return tuple(specs)

    def _check(self) -> None:
        if not isinstance(self.model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"agent {self.name!r}: model={clean_text(repr(self.model), 80)} is not a model.",
                hint='Give OpenAI("..."), Anthropic("...") or Scripted(...).',
            )
        names = [*(spec.name for spec in self.tool_specs), *(tool.name for tool in self.toolkit)]
        wrong = [name for name in names if not NAME.fullmatch(name)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if wrong or twice or FINAL in {tool.name for tool in (*self.tools, *self.toolkit)}:
            named = ", ".join(wrong or twice or [FINAL])
            raise InputError(
                f"agent {self.name!r} has tools with invalid names: {named}.",
                hint=f"Use letters, digits, - and _, each name once; {FINAL} is reserved.",
            )
        if self.max_turns < 0:
            raise InputError(
                f"agent {self.name!r}: max_turns={self.max_turns} is not valid.",
                hint="Give 1 or more, or 0 for any number.",
            )
        if self.on_max_turns not in ("raise", "return"):
            raise InputError(
                f"agent {self.name!r}: on_max_turns={self.on_max_turns!r} is not valid.",
                hint='Use "raise" or "return".',
            )
        if self.budget is not None and self.budget.money is not None:
            self._check_prices()

    def _check_prices(self) -> None:
        """Also of its sub-agents: otherwise their cost would not be counted."""
        for agent in self.all_agents():
            if agent.model.prices is None:
                costs = f"the prices of {agent.model.name!r} are not known"
                raise InputError(
                    f"agent {self.name!r} has a budget in money, but {costs}.",
                    hint=f"Give the model of {agent.name!r} prices=Prices(input=..., output=...).",
                )

    def all_agents(self) -> Iterator[Agent]:
        """This agent and its sub-agents."""
        yield self
        for each in (*self.tools, *self.toolkit):
            if isinstance(each, AgentTool):
                yield from each.agent.all_agents()

    def tool(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def with_tools(self, handed_out: Sequence[SkillTool]) -> Agent:
        """This agent with the tools of its toolkit that skills provide, with the skills' descriptions."""
        descriptions = {each.name: each.description for each in handed_out}
        given = [*self.tools, *(tool for tool in self.toolkit if tool.name in descriptions)]
        made = copy(self)
        made.tools = tuple(tool.with_description(descriptions.get(tool.name, "")) for tool in given)
        made.toolkit = tuple(tool for tool in self.toolkit if tool.name not in descriptions)
        made.tool_specs = made._specs()
        made._by_name = {tool.name: tool for tool in made.tools}
        return made

    def read_answer(self, text: str) -> tuple[Any, str]:
        """(the typed answer, "") or (None, the problem)."""
        assert self._read is not None
        try:
            return self._read(text), ""
        except (ValueError, RecursionError) as error:
            return None, clean_text(error, 1000)

    async def run(
        self,
        ctx: Context,
        prompt: str,
        *,
        history: Sequence[Message] = (),
        uploads: Mapping[str, bytes] | None = None,
        listed: bool = True,
        thread: str = "",
    ) -> ConversationResult:
        """Inside a script node: `result = await agent.run(ctx, "Summarise ...")`; it is recorded like any
        sub-step. `thread`: a name that it has in common with conversations of this run that it continues."""
        talk = Conversation(self, new_agent_scope(ctx), listed=listed, uploads=uploads, thread=thread)
        return await talk.run(prompt, history)

    def as_tool(
        self,
        name: str | None = None,
        description: str = "",
        *,
        max_calls: int | None = None,
        approval: When | Approval | None = None,
    ) -> AgentTool:
        """This agent as a tool of another. Without its own budget it shares what the other has left."""
        called = name or self.name
        text = description or f"Gives a task to {called}, which works on it and reports back."
        return AgentTool(
            self, called, text, max_calls, approval_of(approval, None, called, TASK["properties"])
        )

    def code_text(self) -> str:
        """What its behaviour depends on. Without the model and the limits: those may change during a run."""
        parts: list[Any] = [FORM, self.name, self.instructions, self.parallel]
        parts += [_tool_text(tool) for tool in self.tools]
        if self.approval is not None:
            parts.append(_condition_text(self.approval))
        parts.append(
            None if self.returns is None else msgspec.json.encode(self.tool_specs[-1].schema).decode()
        )
        if self.toolkit or self.skills is not None:
            parts += [self.skills, *(_tool_text(tool) for tool in self.toolkit)]
        return repr(parts)


class AgentTool(Tool):
    def __init__(
        self, agent: Agent, name: str, description: str, max_calls: int | None, approval: Approval | None
    ) -> None:
        super().__init__(
            None,
            name=name,
            description=description,
            schema=TASK,
            read=reader_of(TASK),
            effect=Effect.read,
            approval=approval,
            max_calls=max_calls,
        )
        self.agent = agent

    def with_each_tool(self, change: Callable[[Tool], Tool]) -> AgentTool:
        """The same, with another tool in the place of each of its agent."""
        made, agent = copy(self), copy(self.agent)
        agent.tools = tuple(change(tool) for tool in agent.tools)
        agent.toolkit = tuple(change(tool) for tool in agent.toolkit)
        agent._by_name = {tool.name: tool for tool in agent.tools}  # pyright: ignore[reportPrivateUsage]
        made.agent = agent
        return made

    def task(self, arguments: str) -> str:
        return self.read(arguments)["task"]


def _condition_text(approval: Approval | None) -> str:
    """A changed condition would ask about calls that are already made, or skip questions that were asked."""
    if approval is None:
        return "free"
    return code_fingerprint(approval.when) if callable(approval.when) else repr(approval.when)


def _tool_text(tool: Tool) -> str:
    if isinstance(tool, AgentTool):
        return f"{tool.name}: {tool.max_calls} {_condition_text(tool.approval)} {tool.agent.code_text()}"
    schema = sha256(msgspec.json.encode(tool.spec.schema)).hexdigest()[:16]
    code = code_fingerprint(tool.fn) if tool.fn is not None else ""
    asked = _condition_text(tool.approval)
    return (
        f"{tool.name}: {tool.effect} {tool.idempotent} {tool.script} {asked} {tool.max_calls} {schema} {code}"
    )
