"""`status.json`: the outcome of a stage, for people, tools and agents. If the stage itself wrote it, it is
read as its outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.agents.tool_environment import hide_keys
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.verdict import FILE as NAME
from holdfast.attractor.verdict import VerdictError, outcome_of

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
    if outcome.score is not None:
        fields["score"] = outcome.score
    return fields


def forget_status(stage_dir: Path) -> None:
    """Remove the file of an earlier visit: it would be read as the outcome of this one."""
    with suppress(NotADirectoryError):
        (stage_dir / NAME).unlink(missing_ok=True)


def read_status(stage_dir: Path, hide: Callable[[str], str] = hide_keys) -> StageOutcome | None:
    """None if there is no such file. `hide`: takes secrets out of it. Raises VerdictError."""
    try:
        raw = hide((stage_dir / NAME).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise VerdictError(f"{NAME} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise VerdictError(f"{NAME} is not JSON: {error}") from error
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise VerdictError(f"{NAME} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise VerdictError(f"{NAME} is a {type(found).__name__}, not an object")
    return outcome_of(cast("dict[str, Any]", found))
