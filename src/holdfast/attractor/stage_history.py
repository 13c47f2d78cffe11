"""The stages that have ended, kept in the context for the preambles of later stages.

A step writes one note and one count. The number of notes is limited by the slots, so that long runs do not
grow the context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.context import PipelineContext
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.stage_outputs import text_of
from holdfast.attractor.status_file import AUTO_NOTE
from holdfast.types.text import clean_text

PREFIX: Final = "internal.stage."
"""The number of slots: the newest note replaces the oldest."""
COUNTS: Final = "internal.stages"
"""How many stages have ended, by outcome."""
CALLS: Final = "internal.tool_calls"
"""Which tools the last stage's model called."""
FAILURE: Final = "internal.last_failure"
"""The latest failure with its output, until the same stage does not fail any more."""
SLOTS: Final = 40
_NOTES: Final = 500


class StageSummary(msgspec.Struct, frozen=True):
    """The latest end of a stage. `times`: how often it ended. `calls`: of tools, such as `shell x3`."""

    stage: str
    number: int
    outcome: str
    notes: str = ""
    times: int = 1
    failures: int = 0
    calls: str = ""


class LastFailure(msgspec.Struct, frozen=True):
    """`where`: the artifacts that have the whole output. `number`: of its end, in the order of all."""

    stage: str
    visit: int
    reason: str
    output: str = ""
    where: str = ""
    number: int = 0
    size: int = 0
    """Bytes of the whole output, if this is not the whole."""


def failure_updates(visit: StageVisit, outcome: StageOutcome) -> dict[str, Any]:
    """What the end of a stage changes about the latest failure."""
    stage = visit.stage.id
    if str(outcome.status) != "fail":
        known = last_failure(visit.context)
        return {FAILURE: None} if known is not None and known.stage == stage else {}
    found = text_of(visit, outcome, counts_of(visit.context).total + 1)
    failed = LastFailure(
        stage, visit.ctx.visit, found.reason, found.text, found.where, found.number, found.size
    )
    return {FAILURE: msgspec.to_builtins(failed)}


def last_failure(context: PipelineContext) -> LastFailure | None:
    found: Any = context.get(FAILURE)
    return msgspec.convert(found, LastFailure) if isinstance(found, Mapping) else None


def history_updates(visit: StageVisit, outcome: StageOutcome) -> dict[str, Any]:
    """What a stage's end adds to the context."""
    context, stage = visit.context, visit.stage.id
    counts = counts_of(context)
    number, failed = counts.total + 1, str(outcome.status) == "fail"
    ended = StageSummary(
        stage,
        number,
        str(outcome.status),
        clean_text(outcome.failure_reason if failed else notes_of(outcome, stage), _NOTES),
        visit.ctx.visit,
        int(failed) + (_failures(context, stage) if visit.ctx.visit > 1 else 0),
        _calls(context, stage),
    )
    return {
        f"{PREFIX}{number % SLOTS}": msgspec.to_builtins(ended),
        COUNTS: {**counts.outcomes, ended.outcome: counts.outcomes.get(ended.outcome, 0) + 1},
    }


class StageCounts(msgspec.Struct, frozen=True):
    outcomes: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.outcomes.values())


def counts_of(context: PipelineContext) -> StageCounts:
    found: Any = context.get(COUNTS)
    return StageCounts(cast("dict[str, int]", found) if isinstance(found, dict) else {})


def stages_of(context: PipelineContext) -> list[StageSummary]:
    """The latest note of each stage, in the order of their ends."""
    found: dict[str, StageSummary] = {}
    for value in context.beginning_with(PREFIX).values():
        ended = msgspec.convert(value, StageSummary)
        if ended.stage not in found or found[ended.stage].number < ended.number:
            found[ended.stage] = ended
    return sorted(found.values(), key=lambda each: each.number)


def notes_of(outcome: StageOutcome, stage: str) -> str:
    """Its notes; if they only say that it ended, the beginning of its answer."""
    return outcome.notes if is_informative(outcome.notes) else answer_in(outcome.context_updates, stage)


def is_informative(notes: str) -> bool:
    return bool(notes) and notes != AUTO_NOTE and not notes.startswith("Stage completed:")


def answer_in(values: Mapping[str, Any], stage: str = "") -> str:
    """The answer of the last stage; with `stage`, only if it was that one."""
    last = str(values.get("last_stage", ""))
    return str(values.get("last_response", "")) if last == (stage or last) else ""


def _failures(context: PipelineContext, stage: str) -> int:
    return next((each.failures for each in stages_of(context) if each.stage == stage), 0)


def _calls(context: PipelineContext, stage: str) -> str:
    found: Any = context.get(CALLS)
    calls = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return str(calls.get("calls", "")) if calls.get("stage") == stage else ""
