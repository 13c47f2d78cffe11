"""The JSON Schema of flow documents, made from the types that read them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from holdfast.frontends.document.document import DocumentFields, Json
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.topology import NodeDefaults

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"


@cache
def flow_schema() -> Json:
    """Of format version 1. It says what can be read; what makes sense together, only a check can say."""
    types = node_types()
    kinds = [each.config for each in types.values()]
    (top, _, *configs), found = msgspec.json.schema_components(
        [DocumentFields, NodeDefaults, *kinds], ref_template=_REF
    )
    components: dict[str, Any] = dict(found)
    node = components["FlowNode"]
    node["properties"]["type"] = {"enum": list(types)}
    node["allOf"] = [
        {
            "if": {"properties": {"type": {"const": name}}},
            "then": {"properties": {"config": config}},
        }
        for name, config in zip(types, configs, strict=True)
    ]
    # A config is required where its type has a required key.
    for rule, kind in zip(node["allOf"], kinds, strict=True):
        if any(field.required for field in msgspec.structs.fields(kind)):
            rule["then"]["required"] = ["config"]
    components["FlowConfig"]["properties"]["defaults"] = {"$ref": "#/$defs/NodeDefaults"}
    whole = components.pop(top["$ref"].rpartition("/")[2])
    return {
        "$schema": DIALECT,
        "$id": "https://holdfast.dev/schemas/flow/1",
        **whole,
        "title": "Holdfast flow document",
        "$defs": components,
    }
