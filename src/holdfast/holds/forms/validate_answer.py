"""Checks an answer against the form of its hold: returns typed values, or every problem by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.errors import FormInvalidError
from holdfast.holds.forms.field_error import FieldValueError
from holdfast.holds.forms.field_values import is_empty, read_value
from holdfast.holds.forms.json_schema import TOO_MUCH
from holdfast.holds.forms.schema_budget import SchemaBudgetError, schema_budget
from holdfast.model.expressions import compile_expr, mapping_resolver, truthy
from holdfast.model.forms.compile import primary
from holdfast.model.forms.field_kinds import MAX_DEPTH, TEXTS
from holdfast.model.forms.json_schema import KEY
from holdfast.types.hold import HoldRow
from holdfast.types.text import clean_text

MAX_DATA: Final = 256 * 1024
MAX_SHOWN: Final = 10

Section = Mapping[str, Any]


class FieldError(msgspec.Struct, frozen=True):
    field: str
    code: str
    message: str


class Edit(msgspec.Struct, frozen=True):
    field: str
    original: Any
    final: Any


class FilledForm(msgspec.Struct, frozen=True):
    values: dict[str, Any]
    edited: tuple[Edit, ...]
    errors: tuple[FieldError, ...]


def form_of(row: HoldRow) -> dict[str, Any] | None:
    """The snapshot that was stored when the hold opened."""
    schema: Any = None if row.schema is None else msgspec.json.decode(row.schema)
    return schema.get(KEY) if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def filled_in(row: HoldRow, form: dict[str, Any], resolution: dict[str, Any]) -> dict[str, Any]:
    """The resolution with typed values, what was changed, and the hash of what was shown.

    Raises FormInvalidError with every field that does not fit."""
    found = validate_answer(
        form, msgspec.json.decode(row.context), resolution["decision"], resolution["response_data"]
    )
    if found.errors:
        raise invalid(row, list(found.errors))
    edited = [msgspec.to_builtins(each) for each in found.edited]
    bound = {"edited_fields": edited, "request_hash": row.request_hash}
    return {**resolution, "response_data": found.values, **bound}


def invalid(row: HoldRow, errors: list[FieldError]) -> FormInvalidError:
    """Lists every field that does not fit, as text and as facts."""
    texts = [f"{each.field or 'data'}: {each.message}" for each in errors]
    lines = "".join(f"\n  - {clean_text(text, 500)}" for text in texts[:MAX_SHOWN])
    more = len(texts) - MAX_SHOWN
    rest = f"\n  and {more} more" if more > 0 else ""
    return FormInvalidError(
        f"the form has errors:{lines}{rest}",
        hint="Correct these fields. Nothing was decided; the hold is still open.",
        hold=row.id,
        problems=texts,
        errors=[msgspec.to_builtins(each) for each in errors],
    )


def validate_answer(
    form: Mapping[str, Any], context: Mapping[str, Any], decision: str | None, data: Any
) -> FilledForm:
    """`data` is JSON. The first decision is the answer's own; other fields are in `data`."""
    given: Any = {} if data is None else data
    error = _oversize(given)
    if error is not None:
        return FilledForm({}, (), (error,))
    validator = _Validator(form, context, decision, cast("dict[str, Any]", given))
    try:
        with schema_budget():
            for section in form["sections"]:
                if section["type"] != "context":
                    validator.take(section)
    except SchemaBudgetError:
        return FilledForm({}, (), (FieldError("", "size", TOO_MUCH.removeprefix("data: ")),))
    names = {each["field"] for each in form["sections"] if each["type"] != "context"}
    validator.take_rest(names, bool(form.get("allow_extra")))
    return FilledForm(validator.values, tuple(validator.edited), tuple(validator.errors))


def _oversize(given: Any) -> FieldError | None:
    if not isinstance(given, dict):
        return FieldError("", "type", "the data must be an object with the form's fields")
    try:
        size = len(msgspec.json.encode(given))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return FieldError("", "type", f"the data is not JSON: {error}")
    if size > MAX_DATA:
        return FieldError("", "size", f"the data has {size:,} bytes; the maximum is {MAX_DATA:,}")
    if _deeper(given, MAX_DEPTH):
        return FieldError("", "depth", f"the data is nested deeper than {MAX_DEPTH} levels")
    return None


def _deeper(value: Any, left: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner: list[Any] = (
        list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else cast("list[Any]", value)
    )
    return left == 0 or any(_deeper(each, left - 1) for each in inner)


class _Validator:
    def __init__(
        self, form: Mapping[str, Any], context: Mapping[str, Any], decision: str | None, given: dict[str, Any]
    ) -> None:
        self.values: dict[str, Any] = {}
        self.edited: list[Edit] = []
        self.errors: list[FieldError] = []
        self._given = given
        self._primary = primary(form)
        self._decision = decision
        # What conditions read: earlier fields that were shown, and the decision itself.
        self._seen: dict[str, Any] = {"context": context, "decision": decision}
        if self._primary is not None:
            self._seen[self._primary["field"]] = decision

    def take(self, section: Section) -> None:
        name = section["field"]
        if section is self._primary:
            self._chosen(name)
        elif self._holds(section, "visible_if", otherwise=True):
            self._field(section, name)
        elif name in self._given:
            self._wrong(name, "hidden", "is hidden by the form's conditions, so it must be empty")

    def take_rest(self, names: set[str], allowed: bool) -> None:
        for name in sorted(self._given.keys() - names):
            if allowed:
                self.values[name] = self._given[name]
            else:
                self._wrong(name[:100], "unknown", "is not a field of this form")

    def _chosen(self, name: str) -> None:
        if self._given.get(name, self._decision) != self._decision:
            self._wrong(name, "decision", f"differs from the decision of this answer, {self._decision!r}")
        self.values[name] = self._decision

    def _field(self, section: Section, name: str) -> None:
        value = self._given.get(name, section.get("default"))
        if section.get("readonly") or self._holds(section, "readonly_if", otherwise=False):
            self._unchanged(section, name, value)
            return
        if is_empty(value):
            needed = section["type"] == "decision" or section.get("required")
            if needed or self._holds(section, "required_if", otherwise=False):
                self._wrong(name, "required", "is missing")
            else:
                self._keep(section, name, _nothing(section, value))
            return
        try:
            found = _read(section, value)
        except FieldValueError as error:
            self._wrong(name, error.code, error.message)
        else:
            self._keep(section, name, found)

    def _unchanged(self, section: Section, name: str, value: Any) -> None:
        shown = _proposed(section, "default")
        try:
            same = value == section.get("default") or _read(section, value) == shown
        except FieldValueError:
            same = False
        if same:
            self._keep(section, name, shown)
        else:
            self._wrong(name, "readonly", "is read-only and was changed")

    def _keep(self, section: Section, name: str, value: Any) -> None:
        self.values[name] = self._seen[name] = value
        if is_edited(section, value):
            self.edited.append(Edit(name, proposal_of(section), value))

    def _holds(self, section: Section, name: str, *, otherwise: bool) -> bool:
        text = section.get(name)
        if text is None:
            return otherwise
        return truthy(compile_expr(text).lenient(mapping_resolver(self._seen)))

    def _wrong(self, field: str, code: str, message: str) -> None:
        self.errors.append(FieldError(field, code, message))


def _nothing(section: Section, value: Any) -> Any:
    """The value of an empty field: null, except for a text that may be empty and for a proposed value."""
    if value == section.get("default"):
        return value
    return "" if isinstance(value, str) and section.get("kind") in TEXTS else None


def _read(section: Section, value: Any) -> Any:
    return read_value({"kind": "select", **section}, value)


def is_edited(section: Section, value: Any) -> bool:
    """Whether a stored value is another one than was proposed. Nothing was proposed: no."""
    return ("original" in section or "default" in section) and proposal_of(section) != value


def proposal_of(section: Section) -> Any:
    """What the machine proposed: `original`, which a default that somebody changed since does not replace."""
    return _proposed(section, "original" if "original" in section else "default")


def _proposed(section: Section, name: str) -> Any:
    """As it would be stored: 100 and "100" are the same amount."""
    try:
        return None if is_empty(section.get(name)) else _read(section, section[name])
    # A form of an older release may lack what its kind needs today: what was decided stays readable.
    except (FieldValueError, KeyError):
        return section[name]
