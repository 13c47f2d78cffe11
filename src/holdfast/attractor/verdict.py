"""The verdict of a stage: one form for every backend, where it is read, and which of several counts.

Sources, in this order: the `StageOutcome` of the backend, a failed process or a reported error, the
`status.json` of this attempt, structured output, the last fenced block of the answer. The first one decides;
a later one that says worse lowers the result, because a false success costs more than a false failure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, cast

import msgspec

from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.verdict_id import VerdictRequest
from holdfast.model.pipeline_conditions import OUTCOMES, outcome_word

FILE: Final = "status.json"
CLASS: Final = "verdict"
"""The failure class of a verdict that cannot be read."""
SCORE: Final = "score"
"""In the context: by it a fan-in ranks branches of equal outcome."""
PLACEHOLDER: Final = "<outcome>"
"""The outcome in the form that is asked for. Programs repeat what they are asked: the form is no verdict."""
# A line inside JSON text cannot begin with a fence: line breaks in its strings are escaped.
_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_LANGUAGES: Final = frozenset({"", "json", "verdict"})
_RANK: Final[Mapping[str, int]] = {
    StageStatus.PARTIAL_SUCCESS: 1,
    StageStatus.SKIPPED: 2,
    StageStatus.RETRY: 3,
    StageStatus.FAIL: 4,
}


def _field(text: str, **more: Any) -> Any:
    return msgspec.Meta(description=text, **more)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage reports about itself. Only `outcome` is required."""

    outcome: Annotated[
        str,
        _field(
            "success, partial_success, retry, fail or skipped; or a word that conditions of the pipeline "
            "compare, which counts as a success.",
            min_length=1,
        ),
    ]
    preferred_label: Annotated[str, _field("The label of the edge to follow, or empty.")] = ""
    suggested_next_ids: Annotated[list[str], _field("Ids of next stages, the preferred one first.")] = []
    notes: Annotated[str, _field("What was done, for people and later stages.")] = ""
    failure_reason: Annotated[str, _field("Why it failed or has to be retried.")] = ""
    context_updates: Annotated[dict[str, Any], _field("Values for the context of later stages.")] = {}
    score: Annotated[float | None, _field("How good it is: a fan-in prefers the higher score.")] = None
    verdict_id: Annotated[
        str,
        _field(
            "The id in the request. With another one it is a copy of another stage's, and does not count."
        ),
    ] = ""


_FIELDS: Final = frozenset({*Verdict.__struct_fields__, "status", "preferred_next_label", "terminal"})


class VerdictError(ValueError):
    """The verdict cannot be used; the message names the source and the field."""


def verdict_schema() -> dict[str, Any]:
    """The published JSON Schema (docs/reference/verdict.schema.json)."""
    (_,), parts = msgspec.json.schema_components([Verdict])
    found = dict(parts[Verdict.__name__])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def outcome_of(fields: Mapping[str, Any], source: str = FILE) -> StageOutcome:
    """Both versions of the specification: `preferred_label` and `preferred_next_label`, `outcome` or
    `status`. Null is taken as absent. Raises VerdictError."""
    given = {name: value for name, value in fields.items() if value is not None and value != ""}
    given.setdefault("outcome", given.get("status", ""))
    given["preferred_label"] = given.get("preferred_label") or given.get("preferred_next_label") or ""
    for name in ("notes", "failure_reason"):
        # Only shown: a list of notes is no reason to lose the outcome.
        if name in given and not isinstance(given[name], str):
            given[name] = msgspec.json.encode(given[name]).decode()
    if not isinstance(given["outcome"], str) or not given["outcome"].strip():
        raise VerdictError(f"{source} has no outcome")
    if given["outcome"].strip() == PLACEHOLDER:
        raise VerdictError(f"{source} is the template of a verdict, not filled in")
    try:
        found = msgspec.convert(given, Verdict)
    except msgspec.ValidationError as error:
        raise VerdictError(f"{source}: {_at_path(error)}") from None
    if found.score is not None and not math.isfinite(found.score):
        raise VerdictError(f"{source}: score is not a finite number")
    return StageOutcome(
        status=outcome_word(found.outcome.strip()),
        preferred_label=found.preferred_label,
        suggested_next_ids=tuple(found.suggested_next_ids),
        context_updates=found.context_updates,
        notes=found.notes,
        failure_reason=found.failure_reason,
        terminal=given.get("terminal") is True,
        score=found.score,
    )


def _at_path(error: msgspec.ValidationError) -> str:
    """`preferred_label: Expected ...` for "Expected ... - at `$.preferred_label`"."""
    what, _, path = str(error).partition(" - at `$.")
    return f"{path.rstrip('`')}: {what}" if path else what


# ---------------------------------------------------------------------- where it is read
_UNASKED: Final = VerdictRequest()


def block_in(text: str, request: VerdictRequest = _UNASKED) -> tuple[Mapping[str, Any] | None, str]:
    """(the verdict in the last fenced block, "") or (None, why it cannot be read); (None, "") if that block
    is none, or a copy from the request."""
    language, body, closed, start = _last_block(text)
    if language not in _LANGUAGES or not body.lstrip().startswith("{"):
        return None, ""
    where = "the verdict at the end of the answer"
    fields = _object(body)
    if fields is None:
        if '"outcome"' not in body:
            return None, ""
        return None, f"{where} is not JSON" if closed else f"{where} is cut off"
    return _own(checked(fields, where), text[:start], body, request)


def structured_in(text: str, request: VerdictRequest = _UNASKED) -> tuple[Mapping[str, Any] | None, str]:
    """The same for an answer that is one JSON object and nothing else."""
    fields = _object(text.strip()) if text.lstrip().startswith("{") else None
    return (None, "") if fields is None else _own(checked(fields), "", text, request)


def stray_in(text: str, request: VerdictRequest = _UNASKED) -> tuple[Mapping[str, Any] | None, str]:
    """The same for a verdict at another place than the last fenced block: in a block before it, or without a
    fence at the end. Only one that is no success counts: an example in the text proves nothing."""
    bodies = [(body, start) for _, body, _, start in reversed(_blocks(text))]
    at = text.rstrip().rfind("\n{")
    for body, start in ((text[at + 1 :], at + 1) if at >= 0 else ("", 0), *bodies):
        fields = _object(body.strip()) if body.lstrip().startswith("{") else None
        read = (None, "") if fields is None else checked(fields, "a verdict inside the answer")
        found, fault = _own(read, text[:start], body, request)
        if fault or (found is not None and severity(outcome_of(found)) > 0):
            return found, fault
        if found is not None:
            break
    return None, ""


def _own(
    read: tuple[Mapping[str, Any] | None, str], before: str, body: str, request: VerdictRequest
) -> tuple[Mapping[str, Any] | None, str]:
    """Without a verdict that the answer only repeats. One that is no success counts nevertheless, unless it
    is in the request, word for word: the agent may have given a wrong id."""
    fields, _ = read
    if fields is None or request.is_own(fields, before, body):
        return read
    is_success = severity(outcome_of(fields)) == 0
    return (None, "") if is_success or request.is_copy(fields, body) else read


def is_verdict(fields: Mapping[str, Any]) -> bool:
    """`status` in place of `outcome` only as a word of verdicts, and beside nothing else: it is a common
    field of other answers."""
    if "outcome" in fields:
        return fields["outcome"] != PLACEHOLDER
    word = fields.get("status")
    return isinstance(word, str) and outcome_word(word.strip()) in OUTCOMES and fields.keys() <= _FIELDS


def checked(
    fields: Mapping[str, Any], where: str = "the structured answer"
) -> tuple[Mapping[str, Any] | None, str]:
    if not is_verdict(fields):
        return None, ""
    try:
        outcome_of(fields, where)
    except VerdictError as fault:
        return None, str(fault)
    return fields, ""


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _last_block(text: str) -> tuple[str, str, bool, int]:
    """(language, body, whether it is closed, where the body starts) of the last fenced block, if any."""
    found = _blocks(text)
    return found[-1] if found else ("", "", True, 0)


def _blocks(text: str) -> list[tuple[str, str, bool, int]]:
    found: list[tuple[str, str, bool, int]] = []
    opened = None
    # The search for marks is a hundred times as fast as that for lines with them.
    fences = _FENCE.finditer(text) if "```" in text or "~~~" in text else ()
    for fence in fences:
        mark, info = fence.group(1), fence.group(2).strip()
        if opened is None:
            opened = fence
        elif mark.startswith(opened.group(1)) and not info:
            found.append(_block(text, opened, fence.start(), closed=True))
            opened = None
    if opened is not None:
        found.append(_block(text, opened, len(text), closed=False))
    return found


def _block(text: str, opened: re.Match[str], end: int, *, closed: bool) -> tuple[str, str, bool, int]:
    return opened.group(2).strip().lower(), text[opened.end() : end], closed, opened.end()


# ---------------------------------------------------------------------- which one counts
class VerdictSource(NamedTuple):
    """`failure`: a failed process or a reported error, which a written verdict may explain."""

    name: str
    outcome: StageOutcome
    failure: bool = False


def unreadable(name: str, fault: str) -> VerdictSource:
    failed = StageOutcome(
        status=StageStatus.FAIL, failure_reason=fault, context_updates={"failure_class": CLASS}
    )
    return VerdictSource(name, failed)


def judge(sources: Sequence[VerdictSource]) -> StageOutcome | None:
    """The first source, lowered by later ones that say worse. None without any."""
    if not sources:
        return None
    first, *later = sources
    result = first.outcome
    for source in later:
        if severity(source.outcome) > severity(result):
            note = (
                f"{source.name} says {source.outcome.status}, {first.name} {result.status}: the worse counts"
            )
            result = _lowered(result, source.outcome, note)
        elif first.failure and source.outcome.failure_reason and severity(source.outcome) == _RANK["fail"]:
            result = _lowered(result, source.outcome, "")
    return result


def severity(outcome: StageOutcome) -> int:
    """A word that only the pipeline knows counts as a success (AT-A16)."""
    return _RANK.get(outcome_word(str(outcome.status)), 0)


def _lowered(result: StageOutcome, worse: StageOutcome, note: str) -> StageOutcome:
    return msgspec.structs.replace(
        worse,
        notes="; ".join(filter(None, (worse.notes, note))),
        failure_reason=worse.failure_reason or note,
        context_updates={**worse.context_updates, **_class_of(result), **_class_of(worse)},
        terminal=result.terminal or worse.terminal,
    )


def _class_of(outcome: StageOutcome) -> dict[str, Any]:
    found = outcome.context_updates.get("failure_class")
    return {"failure_class": found} if found else {}
