"""Converts a JSON Schema (2020-12) to a form, and a form to the schema of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
KEY: Final = "x-form"
"""The key under which a hold's schema contains the form itself."""

_FORMATS: Final = {"date": "date", "date-time": "datetime", "time": "time", "duration": "duration"} | {
    "email": "email", "uri": "url",
}  # fmt: skip
_TYPES: Final = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}
_LIMITS: Final = {
    "minimum": "min", "maximum": "max", "multipleOf": "step", "pattern": "pattern",
    "minLength": "min_length", "maxLength": "max_length", "default": "default", "title": "label",
    "description": "help",
}  # fmt: skip
_OUT: Final[dict[str, dict[str, Any]]] = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "percent": {"type": ["number", "string"]},
    "currency": {"type": ["number", "string", "object"]},
    "boolean": {"type": "boolean"},
    "multiselect": {"type": "array", "uniqueItems": True},
    "table": {"type": "array"},
    "file": {"type": "object"},
    "json": {},
}
_NAMES: Final = {kind: name for name, kind in _FORMATS.items()}


def sections_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One input for each property. Raises ValueError for a schema of anything but an object."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), Mapping):
        raise ValueError("the schema of a form must be an object with properties")
    required: Any = schema.get("required", [])
    properties = cast("Mapping[str, Any]", schema["properties"])
    return [_section(name, part, name in required) for name, part in properties.items()]


def _section(name: str, schema: Any, required: bool) -> dict[str, Any]:
    part, optional = _without_null(schema)
    section: dict[str, Any] = {"type": "input", "field": name, **_kind(part)}
    limits = {} if "schema" in section else _LIMITS
    section |= {own: part[key] for key, own in limits.items() if key in part}
    section |= {own: schema[key] for key, own in _LIMITS.items() if key in schema and key in _ANNOTATIONS}
    if section.get("default", 0) is None:
        del section["default"]
    if section["kind"] == "boolean" or (required and not optional):
        section["required"] = required and not optional
    return section


_ANNOTATIONS: Final = ("title", "description", "default")


def _without_null(schema: Any) -> tuple[dict[str, Any], bool]:
    part = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    ways: Any = part.get("anyOf")
    if isinstance(ways, list):
        rest = [each for each in cast("list[Any]", ways) if each != {"type": "null"}]
        if len(rest) == 1 and isinstance(rest[0], dict):
            return cast("dict[str, Any]", rest[0]), True
    return part, False


def _kind(part: Mapping[str, Any]) -> dict[str, Any]:
    if _is_choice(part.get("enum")):
        return {"kind": "select", "options": list(part["enum"])}
    items: Any = part.get("items")
    if part.get("type") == "array" and isinstance(items, Mapping):
        inner = cast("Mapping[str, Any]", items)
        if part.get("uniqueItems") and _is_choice(inner.get("enum")):
            return {"kind": "multiselect", "options": list(inner["enum"])}
    kind = _TYPES.get(str(part.get("type")), "")
    known = {"type", "format", *_LIMITS}
    if kind and not part.keys() - known:
        form: Any = part.get("format")
        return {"kind": _FORMATS.get(form, kind) if kind == "text" else kind}
    return {"kind": "json", "schema": dict(part)}


def _is_choice(values: Any) -> bool:
    items = cast("list[Any]", values) if isinstance(values, list) else []
    return bool(items) and all(isinstance(each, str) and each.strip() for each in items)


def schema_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """For programs that answer. Rules that depend on other fields are not in it: the form itself checks
    them."""
    asked = [each for each in form["sections"] if each["type"] != "context"]
    first = next((each for each in asked if each["type"] == "decision"), None)
    inputs = [each for each in asked if each is not first]
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {each["field"]: _property(each) for each in inputs},
        "required": [each["field"] for each in inputs if _must(each)],
        "additionalProperties": bool(form.get("allow_extra")),
        KEY: form,
    }


def _must(section: Mapping[str, Any]) -> bool:
    if "visible_if" in section or section.get("default") is not None:
        return False
    return section["type"] == "decision" or bool(section.get("required"))


def _property(section: Mapping[str, Any]) -> dict[str, Any]:
    kind = section.get("kind", "select")
    found: dict[str, Any] = dict(section.get("schema", {})) if kind == "json" else {}
    found |= _OUT.get(kind, {"type": "string"})
    if kind in _NAMES:
        found["format"] = _NAMES[kind]
    ids = [each["id"] for each in section.get("options", ())]
    if ids:
        found |= {"items": {"enum": ids}} if kind == "multiselect" else {"enum": ids}
    numeric = kind in ("number", "integer")
    for key, own in _LIMITS.items():
        fits = numeric or key not in ("minimum", "maximum", "multipleOf")
        if own in section and fits and section[own] is not None:
            found[key] = section[own]
    return found
