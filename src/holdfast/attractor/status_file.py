"""`status.json`: what a stage came to, for people, tools and agents. Whoever finds one written by the stage
itself reads it as its outcome."""

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
    """As Appendix C names them; besides, the reason of a failure, and whether trying again cannot mend it."""
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
    """A status file that says nothing usable."""


def forget_status(stage_dir: Path) -> None:
    """One of an earlier visit says nothing about the next. Where there can be no such file there is none."""
    with suppress(NotADirectoryError):
        (stage_dir / NAME).unlink(missing_ok=True)


def read_status(stage_dir: Path) -> StageOutcome | None:
    """None where there is no such file. Raises StatusFault."""
    try:
        raw = (stage_dir / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StatusFileError(f"{NAME} cannot be read: {error.strerror}") from error
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StatusFileError(f"{NAME} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise StatusFileError(f"{NAME} is a {type(found).__name__}, not an object")
    return outcome_of(cast("dict[str, Any]", found))


def outcome_of(fields: Mapping[str, Any]) -> StageOutcome:
    """Both versions of the specification: `preferred_label` and `preferred_next_label`, `outcome` or
    `status`. Raises StatusFault."""
    said = fields.get("outcome", fields.get("status"))
    if not isinstance(said, str) or not said.strip():
        raise StatusFileError(f"{NAME} has no outcome")
    label = fields.get("preferred_label") or fields.get("preferred_next_label") or ""
    suggested = fields.get("suggested_next_ids") or ()
    updates: Any = fields.get("context_updates") or {}
    notes, reason = fields.get("notes") or "", fields.get("failure_reason") or ""
    if not isinstance(label, str) or not isinstance(updates, dict):
        raise StatusFileError(f"{NAME}: preferred_label is text, context_updates is an object")
    if not isinstance(suggested, (list, tuple)) or not all(
        isinstance(name, str) for name in cast("list[Any]", suggested)
    ):
        raise StatusFileError(f"{NAME}: suggested_next_ids is a list of node ids")
    return StageOutcome(
        status=outcome_word(said.strip()),
        preferred_label=label,
        suggested_next_ids=tuple(cast("list[str]", suggested)),
        context_updates=cast("dict[str, Any]", updates),
        notes=str(notes),
        failure_reason=str(reason),
        terminal=fields.get("terminal") is True,
    )
