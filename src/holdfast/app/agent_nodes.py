"""How agents become nodes of a flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.frontends.python import FlowBuilder, NodeHandle

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent
    from holdfast.agents.budget import Budget
    from holdfast.agents.model import Model
    from holdfast.agents.tools import Approval, When
    from holdfast.agents.workspace import Sandbox


class AgentNodes(FlowBuilder):
    """The room of agents is entered when a flow has one: others need not load it."""

    def agent(
        self,
        id: str,  # noqa: A002
        agent: Agent | None = None,
        *,
        prompt: str | Callable[[Any], str] = "{{prompt}}",
        output: str | None = None,
        history: str | None = None,
        uploads: str | None = None,
        files: str | None = None,
        turns: bool | Callable[[Any], bool] = True,
        model: Model | None = None,
        instructions: str = "",
        tools: Sequence[Any] = (),
        returns: Any = None,
        max_turns: int = 20,
        on_max_turns: str = "raise",
        max_repairs: int = 2,
        max_tokens: int | None = None,
        parallel: bool = True,
        budget: Budget | None = None,
        sandbox: Sandbox | None = None,
        skills: Sequence[str] | None = None,
        toolkit: Sequence[Any] = (),
        approval: When | Approval | None = None,
        **policies: Any,
    ) -> NodeHandle[..., Any]:
        """A node in which a model works with tools until it has an answer. Each turn is a checkpoint.

        `agent`, or what one is made of (`model`, `instructions`, `tools`, ...). `prompt`: a template over the
        state, or a function of it. The answer goes into the field `output`, else it is the node's output.
        `history`: a field with earlier messages; it is read and written. `uploads`: a field with files that
        it may read; `files`: one for those that it wrote. `turns`: whether (as a function of the state: in
        which runs) each turn is listed as a checkpoint. `approval`: who is asked before the answer counts,
        and may change it. Further options are those of a node.
        """
        from holdfast.agents.agent import Agent
        from holdfast.agents.node import AgentFields, handler_of, problems_of

        if agent is None:
            if model is None:
                raise InputError(f"agent node {id!r} has no model.", hint="Give it model=..., or an Agent.")
            agent = Agent(
                id, model=model, instructions=instructions, tools=tools, returns=returns, max_turns=max_turns,
                on_max_turns=on_max_turns, max_repairs=max_repairs, max_tokens=max_tokens, parallel=parallel,
                budget=budget, sandbox=sandbox, skills=skills, toolkit=toolkit, approval=approval,
            )  # fmt: skip
        fields = AgentFields(output, history, uploads, files, self.state is not None)
        if not fields.are_written:
            policies.setdefault("output_as", id)
        for message, fix in problems_of(agent, fields, prompt, self.state):
            self.wrong("agent", message, node=id, fix=fix)
        policies["metadata"] = {"agent": agent.name, **(policies.get("metadata") or {})}
        work = handler_of(agent, fields, prompt=prompt, turns=turns)
        return self.task(work, {"id": id, **policies}, script=True)
