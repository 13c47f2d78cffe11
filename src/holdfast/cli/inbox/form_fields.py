"""The fields of a form, one by one: which comes next, what the typed text means, and whether it fits.

Whether it fits is asked of the validator that decides when the answer is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.holds.forms.validate_answer import FieldError, form_of, validate_answer
from holdfast.model.forms.compile import primary
from holdfast.model.template import as_text
from holdfast.types.hold import HoldRow

Field = Mapping[str, Any]
FILE: Final = "file"
DATA: Final = "data"
"""The one field of a hold that has a schema and no form."""
_YES: Final = ("yes", "y", "true", "1", "on")
_NO: Final = ("no", "n", "false", "0", "off")
_WORDS: Final = {"boolean": "yes or no", FILE: "the path of a file"}
_PROBE: Final = {"\0": "probe"}
"""Fits no kind of field; what is hidden or only shown says so first."""


def next_field(row: HoldRow, decision: str, values: Mapping[str, Any], after: str | None) -> Field | None:
    """The first field behind `after` that is asked for, as the form is filled in so far."""
    fields = _fields(row)
    names = [each["field"] for each in fields]
    start = names.index(after) + 1 if after in names else 0
    return next((each for each in fields[start:] if _is_asked(row, decision, values, each)), None)


def field_named(row: HoldRow, name: str | None) -> Field | None:
    return next((each for each in _fields(row) if each["field"] == name), None)


def _fields(row: HoldRow) -> list[Field]:
    form = form_of(row)
    if form is not None:
        first = primary(form)
        return [each for each in form["sections"] if each["type"] != "context" and each is not first]
    if row.schema is None:
        return []
    return [{"field": DATA, "kind": "json", "label": "the data of the answer, as JSON", "type": "input"}]


def _is_asked(row: HoldRow, decision: str, values: Mapping[str, Any], field: Field) -> bool:
    form = form_of(row)
    if form is None:
        return True
    probed = _errors(row, decision, {**values, field["field"]: _PROBE})
    return all(each.code not in ("hidden", "readonly") for each in probed if each.field == field["field"])


def _errors(row: HoldRow, decision: str, values: Mapping[str, Any]) -> tuple[FieldError, ...]:
    form = form_of(row)
    if form is None:
        return ()
    return validate_answer(form, msgspec.json.decode(row.context), decision, dict(values)).errors


def field_problem(row: HoldRow, decision: str, values: Mapping[str, Any], name: str) -> str:
    """Why this field does not take what is filled in; empty where it does."""
    return "; ".join(each.message for each in _errors(row, decision, values) if each.field == name)


def with_value(values: Mapping[str, Any], field: Field, text: str) -> dict[str, Any]:
    """An empty line leaves a field as it was proposed, or without a value; a file that is attached stays."""
    if not text.strip() and field.get("kind") == FILE:
        return dict(values)
    rest = {name: value for name, value in values.items() if name != field["field"]}
    return rest if not text.strip() else {**rest, field["field"]: parsed_value(field, text.strip())}


def parsed_value(field: Field, text: str) -> Any:
    """The typed text as the JSON that the field takes. What cannot be read stays text: the form says so."""
    kind = field.get("kind", "select")
    if kind in ("json", "table") or kind in ("number", "integer"):
        return _json(text)
    if kind == "boolean":
        return True if text.lower() in _YES else False if text.lower() in _NO else text
    if kind == "multiselect":
        return [_choice(field, part.strip()) for part in text.split(",") if part.strip()]
    return _choice(field, text) if field.get("options") else text


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _choice(field: Field, text: str) -> str:
    """By its id, or its number."""
    ids = [cast("str", each["id"]) for each in field.get("options", ())]
    if text not in ids and text.isdigit() and 1 <= int(text) <= len(ids):
        return ids[int(text) - 1]
    return text


def label_of(field: Field) -> str:
    named = field.get("label") or field["field"]
    must = field.get("required") and field.get("default") is None
    return f"{named}{' (required)' if must else ''}"


def hint_of(field: Field) -> str:
    """What it takes, and what an empty line means."""
    kind = field.get("kind", "select")
    choices = " ".join(f"{i}={each['id']}" for i, each in enumerate(field.get("options", ()), 1))
    parts = [choices or _WORDS.get(kind, kind), field.get("currency", "")]
    parts += ["several by comma"] if kind == "multiselect" else []
    if field.get("default") is not None:
        parts.append(f"empty: {as_text(field['default'])}")
    if "confidence" in field:
        parts.append(f"{field['confidence']:.0%} sure")
    parts += [str(field["help"])] if field.get("help") else []
    return " · ".join(part for part in parts if part)


def text_of(field: Field, values: Mapping[str, Any]) -> str:
    """What stands in the field when it is asked for again: of a draft, or after a slip."""
    value = values.get(field["field"])
    if value is None or (field.get("kind") == FILE and not isinstance(value, str)):
        return ""
    if isinstance(value, list) and field.get("kind") == "multiselect":
        return ", ".join(map(str, cast("list[Any]", value)))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
