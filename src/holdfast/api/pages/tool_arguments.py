"""An agent asks whether a tool may run: a field for each argument of the tool, instead of one for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.holds.queries.decided_values import INSTRUCTIONS, tool_arguments
from holdfast.types.hold import HoldRow

_KINDS: Final = {"integer": "integer", "number": "number", "boolean": "boolean"}
_LONG: Final = 80


def argument_sections(row: HoldRow) -> list[Mapping[str, Any]]:
    """Empty if the hold is not about a tool, or the tool does not name its arguments."""
    known = _properties(row)
    if not known:
        return []
    given = tool_arguments(row)
    fields = [_section(name, schema, given.get(name)) for name, schema in known.items()]
    more = {"field": INSTRUCTIONS, "kind": "textarea", "label": "Message to the agent", "type": "input"}
    return [*fields, more]


def _section(name: str, schema: Any, value: Any) -> Mapping[str, Any]:
    label = name.replace("_", " ")
    found = {"field": name, "label": label[:1].upper() + label[1:], "type": "input", "default": value}
    fields = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    choices: Any = fields.get("enum")
    if fields.get("type") == "string" and isinstance(choices, list):
        options = [{"id": str(each), "label": str(each)} for each in cast("list[Any]", choices)]
        return {**found, "kind": "select", "options": options}
    if fields.get("type") == "string" and isinstance(value, str | None):
        long = "\n" in (value or "") or len(value or "") > _LONG
        return {**found, "kind": "textarea" if long else "text"}
    return {**found, "kind": _KINDS.get(str(fields.get("type")), "json")}


def argument_data(row: HoldRow, typed: Mapping[str, Any]) -> dict[str, Any] | None:
    """The data of the answer: only arguments that were changed or added."""
    given = tool_arguments(row)
    instructions = str(typed.get(INSTRUCTIONS) or "").strip()
    edited = {name: value for name, value in given.items() if name not in typed}
    for name, value in typed.items():
        if name == INSTRUCTIONS or (value in (None, "") and given.get(name, "") in (None, "")):
            # An empty field means no change if the agent gave no value either.
            edited |= {name: given[name]} if name in given else {}
        elif value is not None:
            edited[name] = value
    data: dict[str, Any] = {} if edited == given else {"arguments": edited}
    return {**data, **({"modifications": {"instructions": instructions}} if instructions else {})} or None


def _properties(row: HoldRow) -> dict[str, Any]:
    """The schema of the tool's arguments, from the approval of a tool call."""
    if row.schema is None or "tool" not in _context(row):
        return {}
    found: Any = msgspec.json.decode(row.schema)
    for name in ("properties", "arguments", "properties"):
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _context(row: HoldRow) -> dict[str, Any]:
    found: Any = msgspec.json.decode(row.context)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
