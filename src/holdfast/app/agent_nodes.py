"""How agents become nodes of a flow. The package `agents` is imported with the first of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from holdfast.app.extensions import AGENT_NODES
from holdfast.frontends.python import FlowBuilder, NodeHandle

# What `Flow.agent` accepts, as protocols: the core does not import the classes of `holdfast.agents`.


class AnyAgent(Protocol):
    """A `holdfast.Agent`."""

    name: str
    instructions: str

    def code_text(self) -> str: ...


class AnyModel(Protocol):
    """A `holdfast.Model`."""

    name: str

    async def reply(self, request: Any, emit: Any) -> Any: ...


class AnyBudget(Protocol):
    """A `holdfast.Budget`."""

    tokens: int | None
    ask_at: float
    at_limit: str
    assignee: str | None


class AnySandbox(Protocol):
    """A `holdfast.Sandbox`."""

    kind: str

    async def start(self) -> str: ...

    async def connect(self, id: str) -> Any: ...  # noqa: A002


class AnyApproval(Protocol):
    """A `holdfast.Approval`."""

    def is_needed(self, arguments: Mapping[str, Any]) -> bool: ...


When = bool | str | Callable[[Mapping[str, Any]], bool]


class AgentNodes(FlowBuilder):
    def agent(
        self,
        id: str,  # noqa: A002
        agent: AnyAgent | None = None,
        *,
        prompt: str | Callable[[Any], str] = "{{prompt}}",
        output: str | None = None,
        history: str | None = None,
        uploads: str | None = None,
        files: str | None = None,
        turns: bool | Callable[[Any], bool] = True,
        model: AnyModel | None = None,
        instructions: str = "",
        tools: Sequence[Any] = (),
        returns: Any = None,
        max_turns: int = 20,
        on_max_turns: str = "raise",
        max_repairs: int = 2,
        max_tokens: int | None = None,
        parallel: bool = True,
        budget: AnyBudget | None = None,
        sandbox: AnySandbox | None = None,
        skills: Sequence[str] | None = None,
        toolkit: Sequence[Any] = (),
        approval: When | AnyApproval | None = None,
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
        parts: dict[str, Any] = {
            "model": model, "instructions": instructions, "tools": tools, "returns": returns,
            "max_turns": max_turns, "on_max_turns": on_max_turns, "max_repairs": max_repairs,
            "max_tokens": max_tokens, "parallel": parallel, "budget": budget, "sandbox": sandbox,
            "skills": skills, "toolkit": toolkit, "approval": approval,
        }  # fmt: skip
        fields = {"output": output, "history": history, "uploads": uploads, "files": files}
        add = AGENT_NODES.load()
        return add(self, id, agent, parts=parts, prompt=prompt, turns=turns, fields=fields, policies=policies)
