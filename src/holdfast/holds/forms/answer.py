"""The form of a hold, and answers to it, bound by a hash to what was shown."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import FormInvalidError
from holdfast.holds.forms.fill import FieldError, fill
from holdfast.model.forms.json_schema import KEY
from holdfast.types.hold import HoldRow
from holdfast.types.text import clean_text

MAX_SHOWN = 10


def form_of(row: HoldRow) -> dict[str, Any] | None:
    """The snapshot that was stored when the hold opened."""
    schema: Any = None if row.schema is None else msgspec.json.decode(row.schema)
    return schema.get(KEY) if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def filled_in(row: HoldRow, form: dict[str, Any], resolution: dict[str, Any]) -> dict[str, Any]:
    """The resolution with typed values, what was changed, and the hash of what was shown.

    Raises FormInvalidError with every field that does not fit."""
    found = fill(form, msgspec.json.decode(row.context), resolution["decision"], resolution["response_data"])
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
        hint="Correct these fields. Nothing was stored; the hold is still open.",
        hold=row.id,
        problems=texts,
        errors=[msgspec.to_builtins(each) for each in errors],
    )
