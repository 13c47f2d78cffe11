"""Changes that an approver makes with the approval: to arguments, an output, or instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

FIELD: Final = "modifications"
KINDS: Final = ("arguments", "output", "instructions")
_TYPES: Final[dict[str, dict[str, Any]]] = {
    "arguments": {"type": "object"},
    "output": {},
    "instructions": {"type": "string"},
}


def modifications_schema(modifies: Mapping[str, str]) -> dict[str, Any]:
    """The schema of what may be changed. Other changes are refused while the person can still correct
    them."""
    return {
        "type": "object",
        "properties": {kind: _TYPES[kind] for kind in modifies if kind in _TYPES},
        "additionalProperties": False,
    }


def data_schema(modifies: Mapping[str, str]) -> dict[str, Any]:
    """The schema of an answer's data, if the hold asks for nothing else."""
    return {"type": ["object", "null"], "properties": {FIELD: modifications_schema(modifies)}}


def section(modifies: Mapping[str, str]) -> dict[str, Any]:
    """The field of a form for these changes."""
    return {
        "type": "input",
        "field": FIELD,
        "label": "Changes",
        "kind": "json",
        "schema": modifications_schema(modifies),
    }


def changes(modifies: Mapping[str, str], data: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(kind, field, value) for each that was changed, in the order in which they are declared."""
    found: Any = data.get(FIELD)
    fields: Mapping[str, Any] = cast("Any", found) if isinstance(found, Mapping) else {}
    for kind, field in modifies.items():
        if fields.get(kind) is not None:
            yield kind, field, fields[kind]


def merged(kind: str, before: Any, value: Any) -> Any:
    """Arguments change one by one; an output and instructions as a whole."""
    if kind == "arguments" and isinstance(before, Mapping) and isinstance(value, Mapping):
        return {**cast("Mapping[str, Any]", before), **cast("Mapping[str, Any]", value)}
    return value
