from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    RESERVED,
    DocumentNode,
    NodeConfig,
    NodeReport,
    NodeType,
    TemplateValue,
)
from holdfast.frontends.document.render import compile_value, resolver_for
from holdfast.model.program import NodeHandler


class SetConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    values: dict[str, TemplateValue]


class SetType(NodeType):
    name = "set"
    summary = "Sets variables. All values are read before the first is set."
    config = SetConfig
    rules = ("variable-name",)
    example: ClassVar[Json] = {"values": {"total": "{{amount}}"}}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        config: SetConfig = node.config
        return tuple(config.values)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: SetConfig = node.config
        for name in config.values:
            if not (name.isidentifier() and name.isascii()) or name in RESERVED:
                why = "is reserved" if name in RESERVED else "cannot be the name of a variable"
                found.error(("values", name), "variable-name", f"{name!r} {why}", "choose another name")

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        config: SetConfig = node.config
        render = compile_value(config.values)

        async def assign(state: Mapping[str, Any], ctx: Any) -> dict[str, Any]:
            return render(resolver_for(state, ctx))

        return NodeHandler(fn=assign, is_async=True, takes=("state", "ctx"), code="canvas/1", waits=False)


NODE_TYPES = (SetType(),)
