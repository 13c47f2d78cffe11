"""A decision from a form: its values, its files, and the errors of its fields."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from starlette.datastructures import FormData, UploadFile

from holdfast.api.auth import csrf
from holdfast.api.pages.form_fields import (
    DATA,
    PREFIX,
    FormField,
    Section,
    field_of,
    form_values,
    sections_of,
)
from holdfast.api.pages.tool_arguments import argument_sections
from holdfast.api.request_body import require_single_field
from holdfast.errors import AnswerInvalidError, FormInvalidError, HoldfastError
from holdfast.holds.actions.submission import Submission
from holdfast.holds.forms.schema_threads import SHORT, compare
from holdfast.holds.queries.decided_values import argument_values
from holdfast.holds.service import HoldService
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Actor
from holdfast.types.text import one_line

KEPT_PREFIX: Final = "kept."
_OF_PAGE: Final = (csrf.FIELD, "act", "answer", "comment", "decision", "key", "request_hash", "who")
"""Fields of the page itself, beside those of the question."""
"""Prefix of the form field with the reference to an attached file."""


class FormDraft(msgspec.Struct, kw_only=True):
    """The content of the form. `wrong`: errors by field; `""` is the whole form."""

    decision: str | None = None
    values: dict[str, Any] = {}
    comment: str = ""
    wrong: dict[str, str] = {}

    @property
    def is_empty(self) -> bool:
        return not self.values and not self.comment


class FormSection(msgspec.Struct, kw_only=True):
    """A section of the form: a text, or a field."""

    section: Section
    field: FormField | None = None


def form_sections(row: HoldRow, draft: FormDraft) -> list[FormSection]:
    return [
        FormSection(
            section=each,
            field=None if each["type"] == "context" else field_of(each, draft.values, draft.wrong, row),
        )
        for each in sections_of(row)
    ]


async def submission(
    service: HoldService, actor: Actor, row: HoldRow, form: FormData
) -> tuple[Submission, FormDraft]:
    """Files first: they stay attached even if the rest is invalid. Raises FormInvalidError for a file that is
    not accepted."""
    decision = str(form.get("decision") or form.get("answer") or "").strip() or None
    comment = str(form.get("comment") or "").replace("\r\n", "\n").strip()
    files, wrong = await _files(service, actor, row, form)
    data = await compare(row.tenant, _is_slow(row, form), form_values, row, decision, form, files)
    draft = FormDraft(decision=decision, values=_by_field(row, data), comment=comment, wrong=wrong)
    answer = Submission(
        decision=decision,
        response_data=data if data != {} else None,
        comment=comment or None,
        request_hash=str(form.get("request_hash") or "") or None,
    )
    return answer, draft


def _is_slow(row: HoldRow, form: FormData) -> bool:
    """A field may be a JSON text with many values: texts count as schemas do."""
    typed = sum(len(value) for _, value in form.multi_items() if isinstance(value, str))
    return len(row.schema or b"") + typed > SHORT


def require_known_fields(row: HoldRow, form: FormData) -> None:
    """Raises AnswerInvalidError for a field that the form of the question does not have, as the API does."""
    asked = [each for each in sections_of(row) if each["type"] != "context"]
    for name in form:
        typed = name.removeprefix(PREFIX if name.startswith(PREFIX) else KEPT_PREFIX)
        if name not in _OF_PAGE and (typed == name or not any(_has(each, typed) for each in asked)):
            raise AnswerInvalidError(
                f"the form has no field {one_line(typed, 100)!r}. Nothing was decided.",
                hint="Check what is below, and send it again.",
            )


def _has(section: Section, name: str) -> bool:
    """Whether the field of the section, or a part of it, is sent under this name."""
    field, parts = section["field"], ("", ".currency")
    if name in {f"{field}{part}" for part in parts}:
        return True
    if section.get("kind") != "table" or not name.startswith(f"{field}."):
        return False
    number, _, cell = name.removeprefix(f"{field}.").partition(".")
    cells = {f"{column['field']}{part}" for column in section["columns"] for part in parts}
    return (number == "rows" and not cell) or (number.isdecimal() and cell in cells)


async def _files(
    service: HoldService, actor: Actor, row: HoldRow, form: FormData
) -> tuple[dict[str, Any], dict[str, str]]:
    """References by field, and the errors of files that were not accepted."""
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, value in form.multi_items():
        if name.startswith(KEPT_PREFIX) and isinstance(value, str):
            found.setdefault(name.removeprefix(KEPT_PREFIX), _reference(value))
        elif name.startswith(PREFIX) and isinstance(value, UploadFile) and value.filename:
            require_single_field(form, name)
            field = name.removeprefix(PREFIX)
            place = ".".join(part for part in field.split(".") if not part.isdecimal())
            try:
                found[field] = await service.attach(
                    actor, row.id, place, value.filename, await value.read(), media_type=None
                )
            except FormInvalidError as error:
                wrong[place.partition(".")[0]] = _error_text(error)
    return found, wrong


def _reference(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _error_text(error: FormInvalidError) -> str:
    listed: Any = error.facts.get("errors") or ()
    return "; ".join(str(each["message"]) for each in listed) or error.message


def draft_with_errors(draft: FormDraft, error: HoldfastError) -> FormDraft:
    """With the error beside each field, and other errors above the form."""
    listed: Any = error.facts.get("errors") or ()
    named = {str(each["field"]): str(each["message"]) for each in listed if each["field"]}
    return msgspec.structs.replace(draft, wrong={**named, **draft.wrong})


def draft_from(row: HoldRow, submission: Submission | None) -> FormDraft:
    """The person's saved draft."""
    if submission is None:
        return FormDraft()
    values = _by_field(row, submission.response_data)
    return FormDraft(decision=submission.decision, values=values, comment=submission.comment or "")


def _by_field(row: HoldRow, data: Any) -> dict[str, Any]:
    if argument_sections(row):
        return argument_values(data)
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    return {} if data is None else {DATA: data}
