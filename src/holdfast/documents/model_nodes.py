"""The code of nodes that ask models and call tools. Conversations are recorded turn by turn, as those of
agents in Python are."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import msgspec

from holdfast.agents.agent import Agent
from holdfast.agents.budget import Budget
from holdfast.agents.model import Model
from holdfast.agents.model_http import Retries
from holdfast.agents.prices import Prices
from holdfast.agents.protocols import MODELS
from holdfast.agents.tools import Approval, Tool
from holdfast.documents.connections import Connections, ModelConnection, internal_hosts, secret_text
from holdfast.errors import (
    ConnectionUnknownError,
    ExpressionError,
    ModelReplyError,
    ModelUnavailableError,
    TurnLimitError,
)
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.node_types.models import AgentConfig, LlmConfig, ToolConfig, needs_agent
from holdfast.frontends.document.render import compile_value, resolver_for
from holdfast.holds.egress import Egress
from holdfast.model.program import NodeHandler
from holdfast.model.user_code.boundary import call
from holdfast.types.outcome import FAIL, Outcome
from holdfast.types.text import clean_text

# Of a refusal another attempt changes nothing.
_AGAIN = (ModelUnavailableError, ModelReplyError, TurnLimitError, ConnectionUnknownError, TimeoutError)
_REPAIRS = 3  # turns of an `llm` node whose answer does not fit its schema


def model_of(connections: Connections, tenant: str, name: str, model: str | None) -> Model:
    """Raises ConnectionUnknownError."""
    given = connections.models.get(name)
    if given is not None:
        return given
    spec = connections.model(tenant, name)
    shared: dict[str, Any] = {
        "key": (lambda: secret_text(spec.key, f"the key of {name!r}", tenant)) if spec.key else None,
        "prices": _prices(spec),
        "options": spec.options,
        "timeout": spec.timeout,
        "retries": Retries(attempts=max(1, spec.attempts)),
        "egress": Egress(allow=(*connections.settings.allow, *internal_hosts(spec))),
        **({"base_url": spec.base_url} if spec.base_url else {}),
    }
    return MODELS[spec.protocol](model or spec.model, **shared)


def _prices(spec: ModelConnection) -> Prices | None:
    return Prices(**spec.prices) if spec.prices else None  # pyright: ignore[reportArgumentType]


def llm_handler(node: DocumentNode, connections: Connections) -> NodeHandler:
    config: LlmConfig = node.config

    async def ask(_state: Any, ctx: Any) -> Any:
        agent = Agent(
            node.id,
            model=model_of(connections, ctx.tenant, config.connection, config.model),
            instructions=config.system,
            returns=config.schema,
            max_turns=_REPAIRS if config.schema is not None else 1,
            max_tokens=config.max_tokens,
            skills=config.skills,
        )
        return _bound(node, await agent.run(ctx, ctx.render(config.prompt)))

    return NodeHandler(fn=ask, is_async=True, takes=("state", "ctx"), code="canvas-llm/1", retry_on=_AGAIN)


def agent_handler(node: DocumentNode, connections: Connections, tools: Mapping[str, Tool]) -> NodeHandler:
    config: AgentConfig = node.config
    given, toolkit = (
        [_approved(tools[name], name in config.approve) for name in names if name in tools]
        for names in (config.tools, config.toolkit)
    )
    budget = None if config.budget is None else Budget(**msgspec.structs.asdict(config.budget))

    async def work(_state: Any, ctx: Any) -> Any:
        agent = Agent(
            node.id,
            model=model_of(connections, ctx.tenant, config.connection, config.model),
            instructions=config.instructions if config.prompt else "",
            tools=given,
            budget=budget,
            max_turns=config.max_turns,
            skills=config.skills,
            toolkit=toolkit,
        )
        return _bound(node, await agent.run(ctx, ctx.render(config.prompt or config.instructions)))

    return NodeHandler(fn=work, is_async=True, takes=("state", "ctx"), code="canvas-agent/1", retry_on=_AGAIN)


def _approved(tool: Tool, needed: bool) -> Tool:
    """A tool that asks already keeps its own condition, unless the document asks always."""
    if not needed:
        return tool
    made = copy(tool)
    made.approval = Approval() if tool.approval is None else msgspec.structs.replace(tool.approval, when=True)
    return made


def _bound(node: DocumentNode, result: Any) -> dict[str, Any] | None:
    return {node.bind: result.value} if node.bind else None


def tool_handler(node: DocumentNode, tools: Mapping[str, Tool]) -> NodeHandler:
    config: ToolConfig = node.config
    tool, render = tools.get(config.tool), compile_value(config.args)

    async def use(state: Mapping[str, Any], ctx: Any) -> Any:
        assert tool is not None
        if needs_agent(tool):
            # Nobody is asked here. Where the document was deployed, the tool was not known, or another one.
            return Outcome(
                FAIL,
                reason=f"the tool {config.tool!r} asks people, or uses the files of an agent: only an agent "
                "node can use it",
                final=True,
            )
        assert tool.fn is not None
        try:
            given = _arguments(tool, render(resolver_for(state, ctx)))
        except (ExpressionError, ValueError) as error:
            # Nothing was called.
            return Outcome(FAIL, reason=f"the arguments do not fit: {clean_text(error, 300)}", final=True)
        if "idempotency_key" in tool.wants:
            given["idempotency_key"] = ctx.idempotency_key
        found = await call(tool.fn, **given)
        return {node.bind: msgspec.to_builtins(found)} if node.bind else None

    return NodeHandler(fn=use, is_async=True, takes=("state", "ctx"), code="canvas-tool/1", waits=False)


def _arguments(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """Read by the types of the tool. Raises ValueError."""
    read = tool.read(msgspec.json.encode(given).decode())
    if isinstance(read, dict):
        return dict(read)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {name: getattr(read, name) for name in read.__struct_fields__}
