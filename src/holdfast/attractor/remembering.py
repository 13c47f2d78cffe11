"""What the context keeps of the stages that have ended, for whoever has to be told of them later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.context import PipelineContext
from holdfast.attractor.outcome import Outcome
from holdfast.types.wording import told

PREFIX: Final = "internal.stage."
"""One key a stage: a step writes what it changes, however long the run is."""
_NOTES: Final = 500


class Ended(msgspec.Struct, frozen=True):
    """The last time that a stage ended, and how often it did."""

    stage: str
    number: int
    outcome: str
    notes: str = ""
    times: int = 1
    failures: int = 0


def remember(context: PipelineContext, stage: str, outcome: Outcome) -> dict[str, Any]:
    """What a stage's end adds to the context."""
    stages = stages_of(context)
    known = next((each for each in stages if each.stage == stage), None)
    failed = str(outcome.status) == "fail"
    notes = outcome.failure_reason if failed else outcome.notes
    return {
        PREFIX + stage: {
            "number": stages[-1].number + 1 if stages else 1,
            "outcome": str(outcome.status),
            "notes": told(notes, _NOTES),
            "times": 1 + (known.times if known else 0),
            "failures": int(failed) + (known.failures if known else 0),
        }
    }


def stages_of(context: PipelineContext) -> list[Ended]:
    """In the order in which they last ended."""
    found = (
        _ended(key.removeprefix(PREFIX), value)
        for key, value in context.beginning_with(PREFIX).items()
        if isinstance(value, Mapping)
    )
    return sorted(found, key=lambda each: each.number)


def _ended(stage: str, value: Any) -> Ended:
    fields = cast("Mapping[str, Any]", value)
    return Ended(
        stage,
        int(fields.get("number", 0)),
        str(fields.get("outcome", "")),
        str(fields.get("notes", "")),
        int(fields.get("times", 1)),
        int(fields.get("failures", 0)),
    )
