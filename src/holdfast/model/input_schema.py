"""The JSON Schema of a flow's input, from the types of its state as the stored graph names them: no code of
the flow is needed. What a type's text does not say is left open."""

from __future__ import annotations

import ast
from typing import Any, Final

from holdfast.model.graph import GraphSpec
from holdfast.model.syntax_tree import parse_expression

Schema = dict[str, Any]

_PLAIN: Final[dict[str, Schema]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "Decimal": {"type": ["string", "number"]},
    "datetime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "UUID": {"type": "string", "format": "uuid"},
    "list": {"type": "array"},
    "tuple": {"type": "array"},
    "set": {"type": "array"},
    "frozenset": {"type": "array"},
    "dict": {"type": "object"},
}
_ARRAYS: Final = frozenset({"list", "set", "frozenset", "Sequence", "Iterable"})
_OBJECTS: Final = frozenset({"dict", "Mapping"})
_OPEN: Final = {"[": "]", "{": "}", "(": ")"}


def input_schema(spec: GraphSpec) -> Schema:
    """An object; of any shape for a flow whose state has no type."""
    if spec.fields is None:
        return {"type": "object"}
    properties = {name: _field(spec, name, said) for name, said in spec.fields.items()}
    needed = [name for name, said in spec.fields.items() if said.get("required")]
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": needed} if needed else found


def _field(spec: GraphSpec, name: str, said: dict[str, Any]) -> Schema:
    found = type_schema(str(said.get("type", "")))
    return {**found, "default": spec.defaults[name]} if name in spec.defaults else found


def type_schema(text: str) -> Schema:
    """Of one type, as `model.annotations.type_text` writes it."""
    parts = _split(text, " | ")
    if len(parts) > 1:
        return {"anyOf": [type_schema(part) for part in parts]}
    text = text.strip()
    if text in _PLAIN:
        return dict(_PLAIN[text])
    at = min((place for sign in _OPEN if (place := text.find(sign)) > 0), default=-1)
    if at < 0 or not text.endswith(_OPEN[text[at]]):
        return {}
    name, inner = text[:at], text[at + 1 : -1]
    if text[at] == "{":
        return _record(inner)
    return _choices(f"dict({inner})") if text[at] == "(" else _generic(name, inner)


def _record(inner: str) -> Schema:
    fields = [part.partition(": ") for part in _split(inner, ", ") if part]
    return {"type": "object", "properties": {name: type_schema(kind) for name, _, kind in fields}}


def _choices(text: str) -> Schema:
    """The values of a Literal, or of an enum's members."""
    try:
        found = parse_expression(text)
        if isinstance(found, ast.Call):
            return {"enum": [ast.literal_eval(each.value) for each in found.keywords]}
        return {"enum": list(ast.literal_eval(found))}
    except (SyntaxError, ValueError):
        return {}


def _generic(name: str, inner: str) -> Schema:
    if name == "Literal":
        return _choices(f"[{inner}]")
    parts = _split(inner, ", ")
    if name == "Annotated":
        return type_schema(parts[0])
    if name == "tuple" and parts[-1] != "...":
        items = [type_schema(part) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if name in _ARRAYS or name == "tuple":
        return {"type": "array", "items": type_schema(parts[0])}
    if name in _OBJECTS and len(parts) == 2:
        return {"type": "object", "additionalProperties": type_schema(parts[1])}
    return {}


def _split(text: str, separator: str) -> list[str]:
    """At separators that are outside brackets and quoted texts."""
    parts: list[str] = []
    begun, depth, quote, at = 0, 0, "", 0
    while at < len(text):
        sign = text[at]
        if quote:
            at += sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _OPEN:
            depth += 1
        elif sign in _OPEN.values():
            depth -= 1
        elif not depth and text.startswith(separator, at):
            parts.append(text[begun:at])
            begun = at + len(separator)
            at = begun - 1
        at += 1
    return [*parts, text[begun:]]
