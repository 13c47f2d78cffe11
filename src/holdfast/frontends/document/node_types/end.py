from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from holdfast.errors import OutputInvalidError
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    DocumentNode,
    NodeConfig,
    NodeReport,
    NodeType,
    TemplateValue,
)
from holdfast.frontends.document.render import compile_value, resolver_for
from holdfast.model.program import NodeHandler
from holdfast.types.outcome import FAIL, Outcome


class EndConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`output`: the artifacts of the run, by name; without it, all variables."""

    output: dict[str, TemplateValue] | None = None
    status: Literal["completed", "failed"] = "completed"


class EndType(NodeType):
    name = "end"
    summary = "Where a run ends, with its output."
    config = EndConfig
    rules = ("end-edge",)
    example: ClassVar[Json] = {"output": {"id": "{{pay.id}}"}}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        for edge in node.leaving:
            found.error((), "end-edge", f"the edge to {edge.target!r} leaves an end", "remove the edge")

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        config: EndConfig = node.config
        render = None if config.output is None else compile_value(config.output)
        schema = node.flow.output
        hidden = {"run", *node.flow.secrets}

        async def finish(state: Mapping[str, Any], ctx: Any) -> Outcome | None:
            output = (
                {name: value for name, value in state.items() if name not in hidden}
                if render is None
                else render(resolver_for(state, ctx))
            )
            if config.status == "failed":
                return Outcome(
                    FAIL, reason=f"the run reached the end {node.id!r}, which fails it", halts=True
                )
            wrong = site.validate(schema, output) if schema is not None and site.validate else []
            if wrong:
                raise OutputInvalidError(f"the output does not fit: {'; '.join(wrong)}.")
            for name, value in output.items():
                ctx.artifact(name, value)
            return None

        return NodeHandler(fn=finish, is_async=True, takes=("state", "ctx"), code="canvas/1", waits=False)


NODE_TYPES = (EndType(),)
