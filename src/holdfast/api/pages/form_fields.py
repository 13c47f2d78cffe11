"""The fields of a form on a page: how each kind is rendered, and how its text becomes JSON.

A page without a script cannot hide a field while another one is filled in. So every field is shown, fields
with a condition say so, and fields whose condition is not met are removed before the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec
from starlette.datastructures import FormData

from holdfast.api.pages.tool_arguments import argument_data, argument_sections
from holdfast.api.request_body import TYPED_FIELD, single_text
from holdfast.api.strict_json import require_unique_keys
from holdfast.holds.forms.validate_answer import form_of, validate_answer
from holdfast.model.forms import field_kinds
from holdfast.model.forms.compile import primary
from holdfast.model.template import as_text
from holdfast.types.hold import HoldRow

Section = Mapping[str, Any]
DATA: Final = "data"
"""The only field of a hold with a schema but without a form."""
PREFIX: Final = TYPED_FIELD
SPARE: Final = 3
"""Empty rows below the existing rows of a table."""

_WIDGETS: Final = {
    "textarea": "textarea", "markdown": "textarea", "code": "code", "diff": "code", "json": "code",
    "boolean": "boolean", "select": "select", "radio": "radio", "multiselect": "checks", "file": "file",
    "table": "table", "currency": "currency",
}  # fmt: skip
_INPUTS: Final = {
    "email": "email", "url": "url", "phone": "tel", "date": "date", "time": "time",
    "datetime": "datetime-local",
}  # fmt: skip
_HINTS: Final = {
    "datetime": "In UTC.",
    "duration": "For example 90s, 45m, 2h30m or 3d.",
    "percent": "A percentage.",
    "json": "As JSON.",
    "secret-reference": "The name of the secret, never the secret itself.",
    "markdown": "Markdown.",
}
_LIMITS: Final = (("min", "At least"), ("max", "At most"), ("max_length", "Characters at most:"))
_MODES: Final = {"number": "decimal", "integer": "numeric", "percent": "decimal", "currency": "decimal"}
_RULES: Final = (("required_if", "Required"), ("visible_if", "Asked only"), ("readonly_if", "Fixed"))
_ONE_DECISION: Final = re.compile(r"""decision\s*==\s*['"]([^'"]+)['"]""")


class FormField(msgspec.Struct, kw_only=True):
    """One field of a page. `value`: its content; `wrong`: why that is invalid."""

    name: str
    id: str
    label: str
    widget: str
    kind: str
    input: str = "text"
    mode: str | None = None
    required: bool = False
    readonly: bool = False
    help: str = ""
    value: Any = None
    wrong: str = ""
    confidence: float | None = None
    section: Section = {}
    columns: list[FormField] = []
    rows: list[list[FormField]] = []

    @property
    def options(self) -> list[dict[str, str]]:
        return list(self.section.get("options", ()))

    @property
    def notes(self) -> str:
        """The ids of its descriptions, for screen readers."""
        parts = [f"{self.id}-help"] if self.help else []
        parts += [f"{self.id}-wrong"] if self.wrong else []
        return " ".join(parts)


def sections_of(row: HoldRow) -> list[Section]:
    """All sections except the first decision, which becomes the buttons."""
    form = form_of(row)
    if form is not None:
        first = primary(form)
        return [each for each in form["sections"] if each is not first]
    if row.schema is None:
        return []
    arguments = argument_sections(row)
    return arguments or [{"field": DATA, "kind": "json", "label": "Data of the answer", "type": "input"}]


def field_of(
    section: Section, values: Mapping[str, Any], wrong: Mapping[str, str], row: HoldRow | None = None
) -> FormField:
    """`values`: typed or drafted values; else the proposed ones are shown. `row`: has the labels of its
    decisions, for conditions that name them."""
    name = section["field"]
    value = values[name] if name in values else section.get("default")
    made = _plain_field(section, f"{PREFIX}{name}", value)
    labels = {each.id: each.text for each in (row.options if row is not None else None) or ()}
    made.help = " ".join(part for part in (made.help, *_conditions(section, labels)) if part)
    made.wrong = wrong.get(name, "")
    if made.widget == "table":
        made.columns = [_plain_field(column, "", None) for column in section["columns"]]
        made.rows = _rows(section, name, value)
    return made


def _plain_field(section: Section, name: str, value: Any) -> FormField:
    kind = section.get("kind", "radio")  # a second decision has none
    label = str(section.get("label") or section.get("title") or section["field"])
    if kind == "currency" and section.get("currency"):
        label = f"{label} ({section['currency']})"
    return FormField(
        name=name,
        id=name.replace(".", "-"),
        label=label,
        widget=_WIDGETS.get(kind, "input"),
        kind=kind,
        input=_INPUTS.get(kind, "text"),
        mode=_MODES.get(kind),
        required=bool(section.get("required") or section["type"] == "decision"),
        readonly=bool(section.get("readonly")),
        help=_help(section, kind),
        value=_display_value(kind, value),
        confidence=section.get("confidence"),
        section=section,
    )


def _help(section: Section, kind: str) -> str:
    parts = [str(section.get("help") or ""), _HINTS.get(kind, "")]
    parts += [f"{word} {section[limit]}." for limit, word in _LIMITS if section.get(limit) is not None]
    if section.get("accept"):
        parts.append(f"Takes {', '.join(section['accept'])}.")
    return " ".join(part.strip() for part in parts if part.strip())


def _conditions(section: Section, labels: Mapping[str, str]) -> Iterator[str]:
    """Its condition, in words if it is simple: `Required for “Send it back”.`"""
    seen: set[str] = set()
    for rule, word in _RULES:
        text = str(section.get(rule) or "").strip()
        if text and text not in seen:
            seen.add(text)
            found = _ONE_DECISION.fullmatch(text)
            label = None if found is None else labels.get(found[1])
            yield f"{word} for “{label}”." if label else f"{word} when {text}."


def _rows(section: Section, name: str, value: Any) -> list[list[FormField]]:
    given = cast("list[Any]", value) if isinstance(value, list) else []
    rows = [cast("dict[str, Any]", each) for each in given if isinstance(each, dict)]
    if not section.get("readonly"):
        rows += [{} for _ in range(SPARE)]
    return [
        [
            _plain_field(column, f"{PREFIX}{name}.{index}.{column['field']}", row.get(column["field"]))
            for column in section["columns"]
        ]
        for index, row in enumerate(rows)
    ]


def _display_value(kind: str, value: Any) -> Any:
    """The value as text for the field."""
    if kind in ("multiselect", "table", "file", "boolean", "currency"):
        return value
    if kind == "json":
        return value if value is None or isinstance(value, str) else _json(value)
    if kind == "datetime" and isinstance(value, str):
        return _without_zone(value)
    return as_text(value)


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _without_zone(text: str) -> str:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if found.tzinfo else text
    except (ValueError, OverflowError):
        return text


# ---------------------------------------------------------------------- the typed values


def form_values(row: HoldRow, decision: str | None, form: FormData, files: Mapping[str, Any]) -> Any:
    """The data of the answer. `files`: references to uploaded or kept files, by field (`items.0.bill`)."""
    asked = [each for each in sections_of(row) if each["type"] != "context"]
    if form_of(row) is None and argument_sections(row):
        typed = {each["field"]: _value(each, f"{PREFIX}{each['field']}", form, files) for each in asked}
        return argument_data(row, typed)
    if form_of(row) is None:
        text = single_text(form, f"{PREFIX}{DATA}").strip()
        return _decoded(text) if asked and text else None
    values = {
        each["field"]: _value(each, f"{PREFIX}{each['field']}", form, files)
        for each in asked
        if not each.get("readonly")
    }
    return _only_asked(row, decision, values)


def _only_asked(row: HoldRow, decision: str | None, values: dict[str, Any]) -> dict[str, Any]:
    """Without fields whose condition is not met by the other values."""
    form, context = form_of(row), msgspec.json.decode(row.context)
    for _ in range(len(values) + 1):
        found = validate_answer(form or {"sections": []}, context, decision, values)
        left = {each.field for each in found.errors if each.code in ("hidden", "readonly")} & values.keys()
        if not left:
            break
        values = {name: value for name, value in values.items() if name not in left}
    return values


def _value(section: Section, name: str, form: FormData, files: Mapping[str, Any]) -> Any:
    kind = section.get("kind", "radio")
    if kind == "file":
        return files.get(name.removeprefix(PREFIX))
    if kind == "multiselect":
        return [str(each) for each in form.getlist(name)]
    if kind == "table":
        return _table(section, name, form, files)
    text = single_text(form, name).replace("\r\n", "\n")
    if kind in field_kinds.TEXTS:
        return text
    text = text.strip()
    if kind == "currency" and not section.get("currency") and text:
        return {"amount": text, "currency": single_text(form, f"{name}.currency").strip().upper()}
    return _parse_value(kind, text) if text else None


def _parse_value(kind: str, text: str) -> Any:
    """A text that cannot be parsed stays text: the check of the form reports it."""
    if kind in ("number", "integer", "json"):
        return _decoded(text)
    if kind == "boolean":
        return {"yes": True, "no": False}.get(text, text)
    if kind == "datetime":
        return _with_zone(text)
    return text


def _with_zone(text: str) -> str:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if found.tzinfo else f"{found.isoformat()}+00:00"


def _table(section: Section, name: str, form: FormData, files: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Without empty rows."""
    count = single_text(form, f"{name}.rows") or "0"
    rows: list[dict[str, Any]] = []
    for index in range(min(int(count), 1_000) if count.isdecimal() and len(count) < 5 else 0):
        cells = {
            column["field"]: _value(column, f"{name}.{index}.{column['field']}", form, files)
            for column in section["columns"]
        }
        filled = {key: value for key, value in cells.items() if value not in (None, "", [])}
        if filled:
            rows.append(filled)
    return rows


def _decoded(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    require_unique_keys(text, "text")
    return found
