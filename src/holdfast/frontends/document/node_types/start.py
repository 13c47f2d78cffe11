from __future__ import annotations

from typing import Any

from holdfast.frontends.document.node_type import DocumentNode, NodeType
from holdfast.frontends.document.pass_through import NOTHING
from holdfast.frontends.document.site import DocumentSite
from holdfast.model.program import NodeHandler


class StartType(NodeType):
    name = "start"
    summary = "Where each run begins. A flow has exactly one."

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        if "run" not in node.flow.reads:
            return NOTHING
        return NodeHandler(fn=_begin, is_async=True, takes=("ctx",), code="canvas/1", waits=False)


async def _begin(ctx: Any) -> dict[str, Any]:
    """Texts that people read are filled by the engine from the state alone, so the facts of the run that they
    show are part of it."""
    return {"run": {"id": ctx.run_id, "flow": ctx.flow, "instance_key": ctx.instance_key}}


NODE_TYPES = (StartType(),)
