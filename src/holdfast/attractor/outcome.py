"""The outcome of a stage, in the terms of the specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.model.pipeline_conditions import OUTCOME_ALIASES


class StageStatus(StrEnum):
    SUCCESS = "success"
    PARTIAL_SUCCESS = "partial_success"
    RETRY = "retry"
    FAIL = "fail"
    SKIPPED = "skipped"


ALIASES = OUTCOME_ALIASES
"""Synonyms of other dialects. Any other word is a separate outcome of the success class (AT-A16)."""


class StageOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is one of `StageStatus`, or a word that the pipeline's conditions use."""

    status: str = StageStatus.SUCCESS
    preferred_label: str = ""
    suggested_next_ids: Sequence[str] = ()
    context_updates: Mapping[str, Any] = {}
    notes: str = ""
    failure_reason: str = ""
    terminal: bool = False
    """A failure that a retry cannot fix: never retried (AT-A3)."""
    score: float | None = None
    """How good it is: a fan-in prefers the branch with the higher score. In the context it is `score`."""
