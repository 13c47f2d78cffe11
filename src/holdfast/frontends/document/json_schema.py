"""The JSON Schema of flow documents, made from the types that read them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from holdfast.frontends.document.document import FORMAT, DocumentFields, Json
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.section_schema import section_schemas
from holdfast.frontends.document.topology import NodeDefaults

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_VERSION: Final = str(FORMAT[0])
"""Of the published schema: the major version of the format. Minor versions only add to it."""
_REF: Final = "#/$defs/{name}"


@cache
def flow_schema() -> Json:
    """Of this major version. It says what can be read; what makes sense together, only a check can say."""
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
            "then": {"properties": {"config": {"description": kind.summary, **config}}},
        }
        for (name, kind), config in zip(types.items(), configs, strict=True)
    ]
    # A config is required where its type has a required key.
    for rule, kind in zip(node["allOf"], kinds, strict=True):
        if any(field.required for field in msgspec.structs.fields(kind)):
            rule["then"]["required"] = ["config"]
        else:
            rule["if"]["properties"]["config"] = {"not": {"type": "null"}}
    components["FlowConfig"]["properties"]["defaults"] = {"$ref": "#/$defs/NodeDefaults"}
    components |= section_schemas()
    components["ReviewConfig"]["properties"]["sections"]["items"] = {"$ref": "#/$defs/FormSection"}
    whole = components.pop(top["$ref"].rpartition("/")[2])
    for each in (whole, node, components["FlowEdge"], *(components[kind.__name__] for kind in kinds)):
        _allow_null(each)
    return {
        "$schema": DIALECT,
        "$id": f"https://holdfast.dev/schemas/flow/{SCHEMA_VERSION}",
        **whole,
        "title": "Holdfast flow document",
        "$defs": components,
    }


def _allow_null(struct: dict[str, Any]) -> None:
    """The reader takes null for absent, for each key that may be absent (CV-32)."""
    for name, shape in struct["properties"].items():
        if name not in struct.get("required", ()):
            struct["properties"][name] = _or_null(shape)


def _or_null(shape: dict[str, Any]) -> dict[str, Any]:
    """The words about it stay outside, where editors look for them."""
    about = {key: shape[key] for key in ("description", "default") if key in shape}
    rest = {key: value for key, value in shape.items() if key not in about}
    choices = rest["anyOf"] if list(rest) == ["anyOf"] else [rest]
    if not rest or {"type": "null"} in choices:
        return shape
    return {**about, "anyOf": [*choices, {"type": "null"}]}
