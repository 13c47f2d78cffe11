"""The values of a decision: what a person filled in or confirmed, and what they changed of a proposal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.holds.actions.conflicts import resolution_of
from holdfast.holds.forms.validate_answer import form_of, is_edited, proposal_of
from holdfast.model.approver_edits import FIELD as CHANGES
from holdfast.types.hold import HoldRow

INSTRUCTIONS: Final = "holdfast.instructions"
"""The field for a message to the agent; no argument can have this name."""
_LABELS: Final = {CHANGES: "Changes", INSTRUCTIONS: "Message to the agent"}


class DecidedValue(msgspec.Struct, frozen=True, kw_only=True):
    """`proposed`: what the machine proposed; `edited`: the person decided with another value."""

    field: str
    label: str
    value: Any
    proposed: Any = None
    edited: bool = False


def decided_values(row: HoldRow) -> list[DecidedValue]:
    """In the order of the form. Empty while the hold is open, and for a decision without values."""
    data: Any = resolution_of(row).get("response_data")
    form = form_of(row)
    if not row.resolution or (data is None and form is None and not tool_arguments(row)):
        return []
    if form is not None:
        return list(_of_form(form, _mapping(data)))
    if tool_arguments(row):
        return list(_of_tool(row, data))
    if not isinstance(data, Mapping):
        return [DecidedValue(field="data", label="Data", value=data)]
    return [_value(name, value) for name, value in _mapping(data).items()]


def _of_form(form: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[DecidedValue]:
    sections = [each for each in form["sections"] if each.get("field") in data]
    for section in sections:
        name, value = section["field"], data[section["field"]]
        named = {each["id"]: each.get("label", each["id"]) for each in section.get("options", ())}
        yield DecidedValue(
            field=name,
            label=section.get("label") or _label(name),
            value=_named(value, named),
            proposed=_named(proposal_of(section), named),
            edited=is_edited(section, value),
        )
    known = {section["field"] for section in sections}
    yield from (_value(name, value) for name, value in data.items() if name not in known)


def _named(value: Any, labels: Mapping[str, str]) -> Any:
    """Choices as the person read them."""
    if isinstance(value, str):
        return labels.get(value, value)
    if labels and isinstance(value, list):
        return [_named(each, labels) for each in cast("list[Any]", value)]
    return value


def _of_tool(row: HoldRow, data: Any) -> Iterator[DecidedValue]:
    """Each argument of the tool's call: what it was approved with."""
    given, changed = tool_arguments(row), argument_values(data)
    instructions = changed.pop(INSTRUCTIONS, None)
    for name in dict.fromkeys([*given, *changed]):
        value = changed.get(name, given.get(name))
        yield DecidedValue(
            field=name,
            label=_label(name),
            value=value,
            proposed=given.get(name),
            edited=name not in given or value != given[name],
        )
    if instructions:
        yield _value(INSTRUCTIONS, instructions)


def tool_arguments(row: HoldRow) -> dict[str, Any]:
    """The arguments of a tool's call that the hold asks about; empty if it is not about one."""
    context = _mapping(msgspec.json.decode(row.context))
    return _mapping(context.get("arguments")) if "tool" in context else {}


def argument_values(data: Any) -> dict[str, Any]:
    """The values of an answer or a draft about a tool's call, by field."""
    fields = _mapping(data)
    more = _mapping(fields.get(CHANGES))
    values: dict[str, Any] = {}
    for part in (more.get("tool_args"), more.get("arguments"), fields.get("arguments")):
        values |= _mapping(part)
    return {**values, **({INSTRUCTIONS: more["instructions"]} if more.get("instructions") else {})}


def _value(name: str, value: Any) -> DecidedValue:
    return DecidedValue(field=name, label=_LABELS.get(name) or _label(name), value=value)


def _label(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
