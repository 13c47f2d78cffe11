"""Reads an answer to a hold from either form of the request body, checks it, and fills it into the form."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, cast

import msgspec

from holdfast.errors import AnswerInvalidError, ValueTooLargeError
from holdfast.holds.forms.json_schema import problems_in
from holdfast.types.hold import CONSUME, HoldRow, Option
from holdfast.types.text import clean_text, require_text

MAX_TEXT: Final = 200
MAX_COMMENT: Final = 10_000
MAX_DATA: Final = 256 * 1024
MAX_DEPTH: Final = 20
MAX_SHOWN: Final = 10

_FORM = "Send data that fits the hold's schema."
_FORMS = {"in_doubt": 'Write {"update": {FIELD: VALUE}} for a node, {"value": VALUE} for a step of one.'}
_PARTS = ("decision", "response_data", "comment", "request_hash")
_KNOWN = (*_PARTS, "resolution")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a hold as it was sent. `request_hash`: of what the sender was shown."""

    decision: Any = None
    response_data: Any = None
    comment: Any = None
    request_hash: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.decision is None and self.response_data is None and self.comment is None


def read_body(body: Mapping[str, Any]) -> Submission:
    """From `{decision, response_data, comment}` or `{resolution, comment}`, where `resolution` is the
    decision or an object that has it (RS-1). Raises AnswerInvalidError if two of them differ or none is
    given."""
    submission = read_draft(body)
    if submission.decision is None:
        raise AnswerInvalidError(
            "the body has no decision.", hint='Send {"decision": ...} or {"resolution": ...}.'
        )
    return submission


def read_draft(body: Mapping[str, Any]) -> Submission:
    """The same, but the decision may be missing."""
    outer = _known(body, _KNOWN)
    found = outer.get("resolution")
    inner = _known(found, _PARTS) if isinstance(found, Mapping) else {"decision": found}
    return Submission(**{name: _one(name, outer.get(name), inner.get(name)) for name in _PARTS})


def _known(body: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Raises AnswerInvalidError if the body is not an object, or has other fields: a misspelled field must
    not be ignored silently."""
    if not isinstance(body, Mapping):
        raise AnswerInvalidError(
            f"an answer must be an object or the text of a decision, not {type(body).__name__}.",
            hint='Send {"decision": ...}.',
        )
    given = cast("Mapping[str, Any]", body)
    unknown = sorted(str(key) for key in given if key not in names)
    if unknown:
        raise AnswerInvalidError(
            f"unknown fields in the answer: {clean_text(', '.join(map(repr, unknown)), 200)}.",
            hint=f"Known: {', '.join(names)}.",
        )
    return given


def _one(name: str, outer: Any, inner: Any) -> Any:
    if outer is not None and inner is not None and outer != inner:
        raise AnswerInvalidError(
            f"the {name} is given twice, as {clean_text(outer, 50)!r} and as {clean_text(inner, 50)!r}.",
            hint="Send it once.",
        )
    return inner if outer is None else outer


def check(row: HoldRow, submission: Submission) -> Submission:
    """The submission with its comment trimmed. Raises AnswerInvalidError and ValueTooLargeError; only what
    the hold asks for is accepted as an answer."""
    for name, value in (("decision", submission.decision), ("comment", submission.comment)):
        if value is not None and not isinstance(value, str):
            raise AnswerInvalidError(
                f"the {name} of an answer must be text, not {type(value).__name__}.",
                hint="Put other content into data=.",
            )
    # Only to check them: text with lone surrogates cannot be
    # stored, and is refused before anything else is done.
    encoded([submission.decision, submission.comment])
    option = _chosen(row, submission.decision)
    comment = _comment(submission.comment, option)
    if row.type != CONSUME:
        # A message has the limits of queues. One over those of people would never be taken by any run.
        require_small(submission.response_data)
    return msgspec.structs.replace(submission, comment=comment)


def require_name(by: Any) -> str:
    """Raises InputError if `by` is not text."""
    return require_text(by, "the resolved_by of an answer")


def _chosen(row: HoldRow, decision: str | None) -> Option | None:
    if row.options:
        for option in row.options:
            if option.id == decision:
                return option
        raise _no_option(decision, [option.id for option in row.options])
    if not decision or not decision.strip():
        raise AnswerInvalidError("an answer must not be empty.", hint="An empty reply never approves.")
    if len(decision) > MAX_TEXT:
        raise AnswerInvalidError(
            f"a decision has at most {MAX_TEXT} characters, not {len(decision):,}.",
            hint="Put longer text into the comment.",
        )
    return None


def _no_option(decision: str | None, ids: list[str]) -> AnswerInvalidError:
    return AnswerInvalidError(
        f"{clean_text(repr(decision), 100)} is not one of the answers to this hold.",
        hint=f"Choose one of: {', '.join(ids)}.",
        options=ids,
    )


def _comment(text: str | None, option: Option | None) -> str | None:
    trimmed = text.strip() if text else None
    if not trimmed and option is not None and option.requires_comment is True:
        raise AnswerInvalidError(
            f"{option.id!r} requires a comment.",
            hint="Send the answer again with a comment.",
            field="comment",
        )
    return require_comment(trimmed) if trimmed else None


def require_comment(text: Any) -> str:
    """Raises InputError if it is not text, ValueTooLargeError."""
    size = len(require_text(text, "a comment").encode())
    if size > MAX_COMMENT:
        raise _too_large("a comment", size, MAX_COMMENT)
    return text


def require_small(data: Any) -> None:
    """Raises ValueTooLargeError over the limits of size and depth, AnswerInvalidError if it is not JSON."""
    size = len(encoded(data))
    if size > MAX_DATA:
        raise _too_large("the data of an answer", size, MAX_DATA)
    if is_deeper(data, MAX_DEPTH):
        raise ValueTooLargeError(
            f"the data of an answer is nested deeper than {MAX_DEPTH} levels.", hint="Send it flatter."
        )
    if not _is_finite(data):
        # They would be stored as null, which is not what was sent.
        problem = "data: JSON has no NaN and no infinity"
        raise AnswerInvalidError(f"{problem}.", hint="Send a number, or null.", problems=[problem])


def _too_large(what: str, size: int, limit: int) -> ValueTooLargeError:
    return ValueTooLargeError(
        f"{what} of {size:,} bytes is over the limit of {limit:,}.",
        hint="Put the content elsewhere and answer with a reference to it.",
        size=size,
        limit=limit,
    )


def _inside(value: Any) -> list[Any] | None:
    """Of a list or an object; else none."""
    if isinstance(value, Mapping):
        return list(cast("Mapping[Any, Any]", value).values())
    return list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else None


def is_deeper(value: Any, levels: int) -> bool:
    inner = _inside(value)
    return inner is not None and (levels <= 0 or any(is_deeper(each, levels - 1) for each in inner))


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return all(_is_finite(each) for each in _inside(value) or ())


def encoded(value: Any) -> bytes:
    """As it is stored. Raises AnswerInvalidError if it is not JSON."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AnswerInvalidError(
            f"the data of an answer must be JSON: {error}.", hint="Send text, numbers, lists and objects."
        ) from error


def fit_resolution(row: HoldRow, resolution: dict[str, Any]) -> dict[str, Any]:
    """The resolution as it is stored: checked against the hold's schema, or filled into its form.

    Raises AnswerInvalidError with every problem, FormInvalidError with every field."""
    if row.schema is None:
        _require_object(resolution["response_data"])
        return resolution
    # Imported here because most programs only open holds, or have none with a form.
    from holdfast.holds.forms.validate_answer import filled_in, form_of

    # As it would be read back: the caller's types have become JSON. No data is null.
    submission = msgspec.json.decode(encoded(resolution))
    form = form_of(row)
    if form is not None:
        return filled_in(row, form, submission)
    problems = problems_in(submission["response_data"], msgspec.json.decode(row.schema))
    if problems:
        raise _misfit(row, problems)
    return submission


async def fitted(row: HoldRow, resolution: dict[str, Any]) -> dict[str, Any]:
    """As `fit_resolution`; in a thread if that may take long. Raises RateLimitedError too."""
    if row.schema is None:
        return fit_resolution(row, resolution)
    from holdfast.holds.forms.schema_threads import compare, is_slow

    slow = is_slow(row, resolution["response_data"])
    return await compare(row.tenant, slow, fit_resolution, row, resolution)


def _require_object(data: Any) -> None:
    """Without a schema or form, the data may be any object (RS-4)."""
    if data is not None and not encoded(data).startswith(b"{"):
        raise AnswerInvalidError(
            f"the data of an answer must be an object, not {type(data).__name__}.",
            hint='Send {"NAME": VALUE}.',
        )


def _misfit(row: HoldRow, problems: list[str]) -> AnswerInvalidError:
    lines = "".join(f"\n  - {clean_text(problem, 500)}" for problem in problems[:MAX_SHOWN])
    more = len(problems) - MAX_SHOWN
    rest = f"\n  and {more} more" if more > 0 else ""
    return AnswerInvalidError(
        f"the data of this answer does not fit the hold:{lines}{rest}",
        hint=f"{_FORMS.get(row.type, _FORM)} Nothing was decided; the hold is still open.",
        hold=row.id,
        problems=problems,
        errors=[_field_error(problem) for problem in problems],
    )


def _field_error(problem: str) -> dict[str, str]:
    """`data.arguments.amount: is missing`, as the errors of a form are."""
    place, _, message = problem.partition(": ")
    return {"field": place.removeprefix("data").removeprefix("."), "code": "schema", "message": message}


def needs_input(row: HoldRow) -> bool:
    """Whether a field must be filled in before it can be decided."""
    if row.schema is None:
        return False
    try:
        fit_resolution(row, {"decision": _first(row), "response_data": None, "comment": None})
    except AnswerInvalidError:
        return True
    return False


def _first(row: HoldRow) -> str | None:
    return row.options[0].id if row.options else None
