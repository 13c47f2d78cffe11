"""`status.json`: the outcome of a stage, for people, tools and agents. If the stage itself wrote it, it is
read as its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.attractor.outcome import StageOutcome
from holdfast.model.pipeline_conditions import outcome_word

NAME = "status.json"
AUTO_NOTE = "auto-status: handler completed without writing status"


def status_fields(outcome: StageOutcome) -> dict[str, Any]:
    """The fields of Appendix C, and the reason of a failure and whether a retry cannot fix it."""
    fields: dict[str, Any] = {
        "outcome": str(outcome.status),
        "preferred_label": outcome.preferred_label,
        "suggested_next_ids": list(outcome.suggested_next_ids),
        "context_updates": dict(outcome.context_updates),
        "notes": outcome.notes,
    }
    if outcome.failure_reason:
        fields["failure_reason"] = outcome.failure_reason
    if outcome.terminal:
        fields["terminal"] = True
    return fields


class StatusFileError(ValueError):
    """The status file cannot be used."""


def forget_status(stage_dir: Path) -> None:
    """Remove the file of an earlier visit: it would be read as the outcome of this one."""
    with suppress(NotADirectoryError):
        (stage_dir / NAME).unlink(missing_ok=True)


def read_status(stage_dir: Path) -> StageOutcome | None:
    """None if there is no such file. Raises StatusFileError."""
    try:
        raw = (stage_dir / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StatusFileError(f"{NAME} cannot be read: {error.strerror}") from error
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StatusFileError(f"{NAME} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise StatusFileError(f"{NAME} is a {type(found).__name__}, not an object")
    return outcome_of(cast("dict[str, Any]", found))


def outcome_of(fields: Mapping[str, Any]) -> StageOutcome:
    """Both versions of the specification: `preferred_label` and `preferred_next_label`, `outcome` or
    `status`. Raises StatusFileError."""
    status = fields.get("outcome", fields.get("status"))
    if not isinstance(status, str) or not status.strip():
        raise StatusFileError(f"{NAME} has no outcome")
    label = fields.get("preferred_label") or fields.get("preferred_next_label") or ""
    suggested = fields.get("suggested_next_ids") or ()
    updates: Any = fields.get("context_updates") or {}
    notes, reason = fields.get("notes") or "", fields.get("failure_reason") or ""
    if not isinstance(label, str) or not isinstance(updates, dict):
        raise StatusFileError(f"{NAME}: preferred_label must be text, context_updates must be an object")
    if not isinstance(suggested, (list, tuple)) or not all(
        isinstance(name, str) for name in cast("list[Any]", suggested)
    ):
        raise StatusFileError(f"{NAME}: suggested_next_ids must be a list of node ids")
    return StageOutcome(
        status=outcome_word(status.strip()),
        preferred_label=label,
        suggested_next_ids=tuple(cast("list[str]", suggested)),
        context_updates=cast("dict[str, Any]", updates),
        notes=str(notes),
        failure_reason=str(reason),
        terminal=fields.get("terminal") is True,
    )
