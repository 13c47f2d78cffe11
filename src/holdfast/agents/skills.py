"""What an agent gets from the skills of its run: instructions, and tools of its toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.agents.agent_scope import AgentScope
from holdfast.types.skill import Skill, SkillTool

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent


def with_skills(agent: Agent, at: AgentScope) -> tuple[Agent, str]:
    """(the agent with the tools that the skills provide, the instructions of the skills).

    A started conversation has the instructions in its records: there a skill that was deleted since is only
    missing its tools. Before the start a missing skill raises."""
    skills = list(_skills(agent, at))
    if not skills:
        return agent, ""
    tools = [tool for skill in skills for tool in skill.tools]
    _report_unknown(agent, tools, at)
    texts = [
        f"# {skill.name}\n\n{skill.instructions.strip()}" for skill in skills if skill.instructions.strip()
    ]
    return agent.with_tools(tools), "\n\n".join(texts)


def join_texts(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _skills(agent: Agent, at: AgentScope) -> Iterator[Skill]:
    bound = at.ctx.skills
    begun = at.has("prompt")
    for name in bound if agent.skills is None else agent.skills:
        if not (begun and bound.is_gone(name)):
            yield bound[name]


def _report_unknown(agent: Agent, tools: list[SkillTool], at: AgentScope) -> None:
    known = {tool.name for tool in (*agent.tools, *agent.toolkit)}
    missing = [tool.name for tool in tools if tool.name not in known]
    if missing:
        text = "agent %s does not have tools that its skills provide: %s"
        at.ctx.log.warning(text, agent.name, ", ".join(missing))
