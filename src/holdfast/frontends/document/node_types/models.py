"""Nodes that ask models and call tools."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from holdfast.errors import VersionMismatchError
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    NOT_EMPTY,
    DocumentNode,
    NodeConfig,
    NodeReport,
    NodeType,
    Template,
    TemplateValue,
    base_node,
)
from holdfast.frontends.document.node_types.http import check_connection
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.names import near_name
from holdfast.model.graph import Node
from holdfast.model.program import NodeHandler
from holdfast.types.status import Effect

ConnectionName = Annotated[str, Meta(pattern=NOT_EMPTY, description="The name of a connection.")]


class LlmConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`schema`: of the answer, as JSON Schema; without it, the answer is text. `model`: instead of the
    connection's. `skills`: those of the run whose instructions it gets; all by default."""

    connection: ConnectionName
    prompt: Template
    system: Template = ""
    model: str | None = None
    schema: Json | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    skills: tuple[str, ...] | None = None


class LlmType(NodeType):
    name = "llm"
    summary = "Asks a model once; its answer is bound."
    config = LlmConfig
    effect = Effect.read
    defaults = True
    rules = ("connection-kind", "connection-unknown", "schema")
    example: ClassVar[Json] = {"connection": "gpt", "prompt": "Summarise {{text}}"}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: LlmConfig = node.config
        check_connection(config.connection, "model", found, site)
        for fault in schema_faults(config.schema) if config.schema is not None else ():
            found.error(("schema",), "schema", str(fault), "write a JSON Schema")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return base_node(node, found, script=True)


class BudgetConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one conversation may use. `money` needs the prices of the connection's model."""

    tokens: Annotated[int, Meta(ge=1)] | None = None
    money: str | float | None = None
    seconds: Annotated[float, Meta(gt=0)] | None = None


class AgentConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`prompt`: its task; without it, the instructions are. `tools`: those that the operator allows.
    `approve`: of these, the ones that a person approves before each call. `skills`: those of the run that it
    uses, all by default. `toolkit`: tools that it has only if a skill provides them."""

    connection: ConnectionName
    instructions: Template
    prompt: Template = ""
    model: str | None = None
    tools: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = None
    toolkit: tuple[str, ...] = ()
    budget: BudgetConfig | None = None
    max_turns: Annotated[int, Meta(ge=1, le=1000)] = 20


class AgentType(NodeType):
    name = "agent"
    summary = "A model with tools works on a task; its answer is bound."
    config = AgentConfig
    effect = Effect.read
    defaults = True
    rules = ("connection-kind", "connection-unknown", "tool-duplicate", "tool-unknown")
    example: ClassVar[Json] = {"connection": "gpt", "instructions": "Find the order.", "tools": ["search"]}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def requires(self, node: DocumentNode) -> tuple[str, ...]:
        return tuple(f"tool:{name}" for name in (*node.config.tools, *node.config.toolkit))

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: AgentConfig = node.config
        check_connection(config.connection, "model", found, site)
        for field, names in (("tools", config.tools), ("toolkit", config.toolkit)):
            self._check_tools(field, names, found, site)
        for index, name in enumerate(config.toolkit):
            if name in config.tools:
                message = f"{name!r} is one of its tools already"
                found.error(("toolkit", index), "tool-duplicate", message, "remove it from tools or toolkit")
        for index, name in enumerate(config.approve):
            if name not in (*config.tools, *config.toolkit):
                message = f"{name!r} is not one of its tools"
                fields = ("tools", "toolkit")
                found.error(("approve", index), "tool-unknown", message, "add it to tools", rests_on=fields)

    def _check_tools(self, field: str, names: tuple[str, ...], found: NodeReport, site: DocumentSite) -> None:
        for index, name in enumerate(names):
            if _unusable(name, site):
                fix = (
                    near_name(name, site.tools or ())
                    or "register it, and list it under tools in the settings"
                )
                message = f"there is no tool {name!r} that documents may use"
                found.error((field, index), "tool-unknown", message, fix)

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return base_node(node, found, script=True)

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler | None:
        for name in (*node.config.tools, *node.config.toolkit):
            require_tool(node, name, site)
        return super().handler(node, site)


class ToolConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tool: Annotated[str, Meta(pattern=NOT_EMPTY, description="The name of a tool that the operator allows.")]
    args: dict[str, TemplateValue] = msgspec.field(default_factory=dict[str, Any])


class ToolType(NodeType):
    name = "tool"
    summary = "Calls a tool that the operator allows; its result is bound. Its effect is that of the tool."
    config = ToolConfig
    effect = Effect.external
    defaults = True
    rules = ("effect-mismatch", "tool-not-allowed")
    example: ClassVar[Json] = {"tool": "grep", "args": {"pattern": "{{word}}"}}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def requires(self, node: DocumentNode) -> tuple[str, ...]:
        return (f"tool:{node.config.tool}",)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: ToolConfig = node.config
        if _unusable(config.tool, site):
            known = ", ".join(sorted(site.tools or ())[:20])
            fix = f"use one of {known}" if known else "the operator lists it under tools in the settings"
            message = f"the tool {config.tool!r} is not allowed here"
            found.error(("tool",), "tool-not-allowed", message, fix)
        elif site.tools and config.tool in site.tools and needs_agent(site.tools[config.tool]):
            message = f"the tool {config.tool!r} asks people, or uses the files of an agent"
            found.error(("tool",), "tool-not-allowed", message, "use it in an agent node")
        elif config.effect is not None and _weaker(Effect(config.effect), self._declared(node, site)):
            message = f"the tool {config.tool!r} has the effect {self._declared(node, site)}"
            found.error(("effect",), "effect-mismatch", message, "remove effect")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        more = {} if node.config.effect is not None else {"effect": self._declared(node, site)}
        return base_node(node, found, **more)

    def _declared(self, node: DocumentNode, site: DocumentSite) -> Effect:
        """Of the tool; `external` where tools are not looked up."""
        tool = (site.tools or {}).get(node.config.tool)
        return self.effect if tool is None else Effect(tool.effect)

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler | None:
        require_tool(node, node.config.tool, site)
        return super().handler(node, site)


def _unusable(name: str, site: DocumentSite) -> bool:
    """Neither registered here, nor one that the operator lists and only workers have."""
    elsewhere = site.functions is None and name in site.listed_tools
    return site.tools is not None and name not in site.tools and not elsewhere


_STRENGTH = tuple(Effect)


def _weaker(given: Effect, declared: Effect) -> bool:
    """A document may say that a call does more than the tool says, never less: a call whose outcome is not
    known would be repeated."""
    return _STRENGTH.index(given) < _STRENGTH.index(declared)


def needs_agent(tool: Any) -> bool:
    return (
        tool.fn is None or tool.script or tool.approval is not None or bool(tool.wants - {"idempotency_key"})
    )


def require_tool(node: DocumentNode, name: str, site: DocumentSite) -> None:
    """Raises VersionMismatchError: another worker may have it."""
    if name not in (site.tools or {}):
        raise VersionMismatchError(
            f"node {node.id!r} uses the tool {name!r}, which is not allowed here.",
            hint="Register it in the worker, and list it under tools in the file of HOLDFAST_CONNECTIONS.",
        )


NODE_TYPES: tuple[NodeType, ...] = (LlmType(), AgentType(), ToolType())
