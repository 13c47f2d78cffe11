"""The JSON Schema of a section of a form, as `model/forms/compile.py` reads it."""

from __future__ import annotations

from typing import Any, Final

from holdfast.model.forms import field_kinds

_TEXT: Final[dict[str, Any]] = {"type": ["string", "null"]}
_COUNT: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
_LIMIT: Final[dict[str, Any]] = {"type": ["number", "string", "null"]}
_FLAG: Final[dict[str, Any]] = {"type": "boolean"}
_OPTIONS: Final[dict[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "minLength": 1},
                    "label": {"type": "string", "minLength": 1},
                    "variant": {"type": "string", "minLength": 1},
                    "default": _FLAG,
                    "requires_comment": _FLAG,
                },
                "required": ["id"],
                "additionalProperties": False,
            },
        ]
    },
}
_KEYS: Final[dict[str, dict[str, Any]]] = {
    "title": {**_TEXT, "description": "Heading; text with {{placeholders}}."},
    "help": {**_TEXT, "description": "A line of explanation; text with {{placeholders}}."},
    "label": {**_TEXT, "description": "What the field is called; text with {{placeholders}}."},
    "content": {"description": "What is shown; its texts may have {{placeholders}}."},
    "visible_if": {**_TEXT, "description": "An expression over the fields above it."},
    "required_if": {**_TEXT, "description": "An expression over the fields above it."},
    "readonly_if": {**_TEXT, "description": "An expression over the fields above it."},
    "field": {
        "type": "string",
        "pattern": "^(?!__)[A-Za-z_][A-Za-z0-9_]{0,63}$",
        "description": "The name of the answer.",
    },
    "kind": {
        "anyOf": [{"enum": sorted(field_kinds.KINDS)}, {}],
        "description": "The kind of the field; one that is not known is asked as text.",
    },
    "required": _FLAG,
    "readonly": _FLAG,
    "min": _LIMIT,
    "max": _LIMIT,
    "step": {"type": ["number", "null"], "exclusiveMinimum": 0},
    "pattern": {"type": "string", "description": "A regular expression that the answer matches."},
    "min_length": _COUNT,
    "max_length": _COUNT,
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "max_size": {**_COUNT, "description": "Bytes of a file."},
    "currency": {"type": ["string", "null"], "pattern": "^[A-Z]{3}$"},
    "locale": {"type": "string"},
    "accept": {"type": "array", "items": {"type": "string"}, "description": "Media types of a file."},
    "options": _OPTIONS,
    "columns": {
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/FormColumn"}]},
        "description": "Of a table, and only of one.",
    },
    "schema": {"type": ["object", "boolean"], "description": "JSON Schema of the answer."},
}
_ALIASES: Final = {"min_length": "minLength", "max_length": "maxLength"}
_REQUIRED: Final = {"context": [], "input": ["field"], "decision": ["options"]}


def section_schemas() -> dict[str, Any]:
    """By name, for `$defs`."""
    names = {
        "context": field_kinds.CONTEXT,
        "input": field_kinds.INPUT,
        "decision": field_kinds.DECISION,
    }
    return {
        "FormSection": {
            "title": "FormSection",
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": list(field_kinds.SECTIONS)}},
            "allOf": [
                {
                    "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
                    "then": _keys(allowed, _REQUIRED[kind]),
                }
                for kind, allowed in names.items()
            ],
        },
        "FormColumn": {
            "title": "FormColumn",
            "type": "object",
            **_keys(field_kinds.INPUT - {*field_kinds.CONDITIONS, "columns"}, ["field"]),
        },
    }


def _keys(allowed: frozenset[str], required: list[str]) -> dict[str, Any]:
    names = [name for name in _KEYS if name in allowed]
    names += [_ALIASES[name] for name in names if name in _ALIASES]
    properties = {name: _KEYS[name] for name in names}
    properties |= {name: {} for name in sorted(allowed - {*names})}
    return {"properties": properties, "required": required, "additionalProperties": False}
