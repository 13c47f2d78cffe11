from __future__ import annotations

from typing import Any

from holdfast.errors import StateError
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.node_type import DocumentNode, NodeType
from holdfast.frontends.document.pass_through import NOTHING
from holdfast.model.program import NodeHandler


class StartType(NodeType):
    name = "start"
    summary = "Where each run begins. A flow has exactly one."
    rules = ("start-count",)

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        schema, shows_run = node.flow.input, "run" in node.flow.reads
        if schema is None and not shows_run:
            return NOTHING

        async def begin(ctx: Any) -> dict[str, Any] | None:
            # The input of a run was checked before it started; that of a sub-flow is known only now.
            wrong = site.validate(schema, ctx.input) if ctx.scope and schema and site.validate else []
            if wrong:
                raise StateError(f"the input does not fit: {'; '.join(wrong)}.")
            if not shows_run:
                return None
            # Texts that people read are filled by the engine from the state alone, so the facts of the run
            # that they show are part of it.
            return {"run": {"id": ctx.run_id, "flow": ctx.flow, "instance_key": ctx.instance_key}}

        return NodeHandler(fn=begin, is_async=True, takes=("ctx",), code="canvas/1", waits=False)


NODE_TYPES = (StartType(),)
