"""What the context keeps of the stages that have ended, for whoever has to be told of them later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.context import PipelineContext
from holdfast.attractor.outcome import Outcome
from holdfast.attractor.statusfile import AUTO_NOTE
from holdfast.types.wording import told

PREFIX: Final = "internal.stage."
"""One key a stage: a step writes what it changes, however long the run is."""
_NOTES: Final = 500
CALLS: Final = "internal.tool_calls"
"""Which tools the last stage's model called."""


class Ended(msgspec.Struct, frozen=True):
    """The last time that a stage ended, and how often it did."""

    stage: str
    number: int
    outcome: str
    notes: str = ""
    times: int = 1
    failures: int = 0
    calls: str = ""
    """Tools that its model called, and how often: `shell x3`."""


def remember(context: PipelineContext, stage: str, outcome: Outcome) -> dict[str, Any]:
    """What a stage's end adds to the context."""
    stages = stages_of(context)
    known = next((each for each in stages if each.stage == stage), None)
    failed = str(outcome.status) == "fail"
    kept: dict[str, Any] = {
        "number": stages[-1].number + 1 if stages else 1,
        "outcome": str(outcome.status),
        "notes": told(outcome.failure_reason if failed else said_of(outcome, stage), _NOTES),
        "times": 1 + (known.times if known else 0),
        "failures": int(failed) + (known.failures if known else 0),
    }
    calls: Any = context.get(CALLS)
    if isinstance(calls, dict) and cast("dict[str, Any]", calls).get("stage") == stage:
        kept["calls"] = str(cast("dict[str, Any]", calls).get("calls", ""))
    return {PREFIX + stage: kept}


def said_of(outcome: Outcome, stage: str) -> str:
    """Its notes; where they say no more than that it ended, how its answer began."""
    return outcome.notes if says_something(outcome.notes) else answer_in(outcome.context_updates, stage)


def says_something(notes: str) -> bool:
    return bool(notes) and notes != AUTO_NOTE and not notes.startswith("Stage completed:")


def answer_in(values: Mapping[str, Any], stage: str = "") -> str:
    """What the last stage answered; `stage`: only if it was that one."""
    last = str(values.get("last_stage", ""))
    return str(values.get("last_response", "")) if last == (stage or last) else ""


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
        str(fields.get("calls", "")),
    )
