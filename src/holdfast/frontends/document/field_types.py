"""The types of the names that a document declares: its input, its variables, what some nodes set for sure.

A comparison with a value that a name never has is a slip; only a type tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypedDict, Union, cast

from holdfast.frontends.document.document import FlowDocument, Variable
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.node_types.holds import DecisionConfig, option_ids
from holdfast.model.template import Placeholder, TemplateSyntaxError, compile_template

_BY_NAME: Final[dict[str, Any]] = {
    "string": str, "number": float, "integer": int, "boolean": bool, "null": None, "array": list,
    "object": dict,
}  # fmt: skip
_MOST_LEVELS: Final = 8
_COMBINED: Final = ("$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if")


def field_types(document: FlowDocument, nodes: Iterable[DocumentNode]) -> dict[str, Any]:
    """Annotations by name; a name that can have any value is left out. A node that sets an input adds its
    type, and each write of a variable is checked against the variable's."""
    found: dict[str, list[Any]] = {}
    given: Any = document.fields.input
    for name, schema in _properties(given).items():
        found[name] = [schema_type(schema)]
    written = list(nodes)
    for node in written:
        for name in (*node.type.writes(node), *node.type.scope_names(node)):
            if name not in document.variables:
                found.setdefault(name, []).append(written_type(node, name))
    for name, variable in document.variables.items():
        found.setdefault(name, []).append(_of_variable(variable))
    return {name: _union(types) for name, types in found.items() if Any not in types}


def schema_type(schema: Any, levels: int = _MOST_LEVELS) -> Any:
    """The annotation of what fits a JSON Schema; Any where it says more than types."""
    if not isinstance(schema, dict) or not levels:
        return Any
    about = cast("dict[str, Any]", schema)
    if "const" in about:
        return _literals([about["const"]])
    if isinstance(about.get("enum"), list):
        return _literals(cast("list[Any]", about["enum"]))
    named: Any = about.get("type")
    kinds = [named] if isinstance(named, str) else named
    if not isinstance(kinds, list) or any(each in about for each in _COMBINED):
        return Any
    types = [_of_kind(each, about, levels) for each in cast("list[Any]", kinds)]
    return Any if Any in types or not types else _union(types)


def _of_kind(kind: Any, schema: dict[str, Any], levels: int) -> Any:
    parts = _properties(schema)
    if kind == "object" and parts:
        inside = {name: schema_type(each, levels - 1) for name, each in parts.items()}
        return cast("Any", TypedDict)("Record", inside)
    if kind == "array":
        return list[schema_type(schema.get("items"), levels - 1)]
    return _BY_NAME.get(kind, Any) if isinstance(kind, str) else Any


def written_type(node: DocumentNode, name: str) -> Any:
    """Of what the node sets there."""
    if isinstance(node.config, DecisionConfig):
        return str | None if name == node.config.decision_bind and option_ids(node) else Any
    kind = node.type.name
    if kind == "llm" and not node.broken:
        return str if node.config.schema is None else schema_type(node.config.schema)
    if kind == "set" and not node.broken:
        return _of_value(node.config.values.get(name))
    return Any


def _of_value(value: Any) -> Any:
    if isinstance(value, str):
        return str if "{{" not in value or not _is_one_placeholder(value) else Any
    return None if value is None else type(value) if isinstance(value, (bool, int, float)) else Any


def _is_one_placeholder(text: str) -> bool:
    """It gives its value as it is."""
    try:
        parts = compile_template(text).parts
    except TemplateSyntaxError:
        return True  # reported
    return len(parts) == 1 and isinstance(parts[0], Placeholder)


def _of_variable(variable: Variable) -> Any:
    """Null is allowed everywhere, and what a reducer makes is its own."""
    if variable.reducer:
        return Any
    declared = schema_type(variable.schema) if variable.schema is not None else Any
    if declared is Any:
        declared = _BY_NAME.get(variable.type, Any)
    return Any if declared is Any else _union([declared, None])


def _properties(schema: Any) -> Mapping[str, Any]:
    found: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _literals(values: list[Any]) -> Any:
    plain = all(value is None or isinstance(value, (str, int, float, bool)) for value in values)
    return Literal[tuple(values)] if plain and values else Any


def _union(types: list[Any]) -> Any:
    return types[0] if len(types) == 1 else Union[tuple(types)]  # noqa: UP007
