from __future__ import annotations

import json
import re
from typing import Annotated, Any, ClassVar, Final, cast

import msgspec
from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite, FoundFlow, UnusableFlow
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.limits import MAX_GRAPH_BYTES, MAX_GRAPH_NODES
from holdfast.frontends.document.node_type import (
    NOT_EMPTY,
    DocumentNode,
    FieldName,
    NodeConfig,
    NodeReport,
    NodeType,
    TemplateValue,
    base_node,
    is_expression,
)
from holdfast.model.graph import GraphSpec, Node, NodeKind, SubflowSpec

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_RESULT: Final = ("artifacts", "state", "output")


class SubflowConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`version`: without it the current one, which is pinned when the document is compiled. `inputs`: the
    input of the flow, each one placeholder or a plain value; without it, all variables. `outputs`: by
    variable, what it gets of the flow's output; without it, `bind` gets all of it."""

    flow: Annotated[str, Meta(pattern=NOT_EMPTY, description="The name of a deployed flow.")]
    version: str = ""
    inputs: dict[str, TemplateValue] | None = None
    outputs: dict[FieldName, str] | None = None


class SubflowType(NodeType):
    name = "subflow"
    summary = "Runs another flow inside of the run, pinned to a version."
    config = SubflowConfig
    kind = NodeKind.subflow
    rules = ("flow-unknown", "subflow-cycle", "subflow-input", "subflow-invalid", "subflow-size")
    example: ClassVar[Json] = {"flow": "kyc", "inputs": {"customer": "{{customer}}"}}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        config: SubflowConfig = node.config
        return tuple(config.outputs) if config.outputs is not None else (node.bind,) if node.bind else ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: SubflowConfig = node.config
        child = _named_flow(node, site)
        if config.flow == node.flow.name:
            found.error(("flow",), "subflow-cycle", f"the flow {config.flow!r} contains itself", "use a loop")
        elif isinstance(child, UnusableFlow):
            fixes = {"subflow-cycle": "use a loop", "subflow-invalid": "correct that flow first"}
            found.error(("flow",), child.rule, child.why, fixes[child.rule])
        elif child is not None and _contains(child.spec, node.flow.name):
            message = f"the flow {config.flow!r} contains this one, {node.flow.name!r}"
            found.error(("flow",), "subflow-cycle", message, "use a loop")
        elif child is None:
            named = f"{config.flow}@{config.version}" if config.version else config.flow
            message = f"there is no flow {named!r} here"
            found.error(
                ("flow",),
                "flow-unknown",
                message,
                "deploy it first; for check and run, its file may be beside this one",
            )
        elif config.inputs is not None:
            _check_required(config.flow, config.inputs, child.spec, found)
        for name, value in (config.inputs or {}).items():
            if expression_of(value) is None:
                message = f"the input {name!r} is neither one placeholder nor a plain value"
                found.error(("inputs", name), "subflow-input", message, "compute it in a set node before")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        config: SubflowConfig = node.config
        inputs = None if config.inputs is None else {
            name: expression_of(value) or "null" for name, value in config.inputs.items()
        }  # fmt: skip
        child = flow_of(node, site)
        body = config.flow if child is None else body_name(config, child)
        spec = SubflowSpec(body=body, inputs=inputs, outputs=self._outputs(node))
        return base_node(node, found, subflow=spec)

    def _outputs(self, node: DocumentNode) -> dict[str, str]:
        config: SubflowConfig = node.config
        if config.outputs is None:
            return {node.bind: "artifacts"} if node.bind else {}
        return {
            name: path if path.partition(".")[0] in _RESULT else f"artifacts.{path}"
            for name, path in config.outputs.items()
        }

    def subgraph(self, node: DocumentNode, site: DocumentSite) -> GraphSpec | None:
        child = flow_of(node, site)
        return (
            None if child is None else msgspec.structs.replace(child.spec, name=body_name(node.config, child))
        )


class GraphRoom:
    """What the graph of a document may hold. A sub-flow is a copy with its own sub-flows in it: a few
    documents that name each other would else make a graph of any size."""

    def __init__(self, nodes: int) -> None:
        self._nodes, self._bytes = nodes, 0

    def has(self, child: GraphSpec, found: NodeReport) -> bool:
        """Whether there is room for it, which is taken. Reports where there is none."""
        self._nodes += _count_nodes(child)
        self._bytes += len(msgspec.msgpack.encode(child)) if self._nodes <= MAX_GRAPH_NODES else 0
        if self._nodes <= MAX_GRAPH_NODES and self._bytes <= MAX_GRAPH_BYTES:
            return True
        most = f"{MAX_GRAPH_NODES:,} nodes" if self._nodes > MAX_GRAPH_NODES else f"{MAX_GRAPH_BYTES:,} bytes"
        message = f"with its sub-flows, and those inside of them, the flow has more than {most}"
        found.error(("flow",), "subflow-size", message, "use fewer or smaller sub-flows")
        return False


def _count_nodes(spec: GraphSpec) -> int:
    return len(spec.nodes) + sum(_count_nodes(inner) for inner in spec.subgraphs)


def flow_of(node: DocumentNode, site: DocumentSite) -> FoundFlow | None:
    found = _named_flow(node, site)
    return found if isinstance(found, FoundFlow) else None


def _check_required(flow: str, inputs: Json, spec: GraphSpec, found: NodeReport) -> None:
    """Inputs that the other document requires. Whether a value fits is seen when the run gets there."""
    schema: Any = (spec.document or {}).get("source", {}).get("input")
    if not isinstance(schema, dict):
        return
    given = cast("Json", schema)
    taken: Json = given.get("properties") or {}
    for name in given.get("required") or ():
        if name not in inputs:
            unknown = [each for each in inputs if each not in taken]
            fix = next((f"{each!r} is not one of its inputs: rename it" for each in unknown), f"add {name!r}")
            message = f"the flow {flow!r} requires the input {name!r}"
            found.error(("inputs",), "subflow-input", message, fix)


def _contains(spec: GraphSpec, name: str) -> bool:
    """Whether a flow of this name is a part of it. Versions are pinned, so it would end; but each deployment
    of one would make the other one deeper."""
    return any(
        (inner.document or {}).get("source", {}).get("name") == name or _contains(inner, name)
        for inner in spec.subgraphs
    )


def _named_flow(node: DocumentNode, site: DocumentSite) -> FoundFlow | UnusableFlow | None:
    config: SubflowConfig = node.config
    if site.flows is None or config.flow in ("", node.flow.name):
        return None
    return site.flows(config.flow, config.version)


def body_name(config: SubflowConfig, child: FoundFlow) -> str:
    """Of two versions of a flow in one graph, each has a name of its own."""
    return f"{config.flow}@{child.version}" if config.version else config.flow


def expression_of(value: Any) -> str | None:
    """As an expression: one placeholder, or a plain value."""
    if isinstance(value, str):
        placeholder = _PLACEHOLDER.fullmatch(value.strip())
        if placeholder is not None:
            return placeholder[1] if is_expression(placeholder[1]) else None
        return None if "{{" in value else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return None


NODE_TYPES = (SubflowType(),)
