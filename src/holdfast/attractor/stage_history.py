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
from holdfast.attractor.status_file import AUTO_NOTE
from holdfast.model.pipeline_conditions import as_text
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
_OUTPUT: Final = 12_000
"""Bytes of a failure's output."""


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
    """`where`: the folder of the stage, which has the whole output."""

    stage: str
    visit: int
    reason: str
    output: str = ""
    where: str = ""


def failure_updates(visit: StageVisit, outcome: StageOutcome, answer: str) -> dict[str, Any]:
    """What the end of a stage changes about the latest failure. `answer`: what its model said."""
    context, updates, stage = visit.context, outcome.context_updates, visit.stage.id
    if str(outcome.status) != "fail":
        known = last_failure(context)
        return {FAILURE: None} if known is not None and known.stage == stage else {}
    streams = (as_text(updates.get(f"tool.{name}", "")) for name in ("output", "stderr"))
    output = "\n".join(filter(None, (text.strip() for text in streams))) or answer.strip()
    where = visit.folder.relative_to(visit.logs) if visit.folder.is_relative_to(visit.logs) else visit.folder
    failed = LastFailure(
        stage,
        visit.ctx.visit,
        clean_text(outcome.failure_reason, _NOTES),
        clean_text(middle_cut(output, _OUTPUT, str(where)), _OUTPUT),
        str(where),
    )
    return {FAILURE: msgspec.to_builtins(failed)}


def last_failure(context: PipelineContext) -> LastFailure | None:
    found: Any = context.get(FAILURE)
    return msgspec.convert(found, LastFailure) if isinstance(found, Mapping) else None


def middle_cut(text: str, limit: int, where: str = "") -> str:
    """Within a number of bytes: a fifth of it from the beginning, four fifths from the end."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    note = f"\n[... {{}} bytes left out{f'; the whole is in {where}' if where else ''} ...]\n"
    room = max(0, limit - len(note.encode()) - 8)
    head, tail = raw[: room // 5], raw[len(raw) - (room - room // 5) :]
    left = len(raw) - len(head) - len(tail)
    return f"{head.decode('utf-8', 'ignore')}{note.format(left)}{tail.decode('utf-8', 'ignore')}"


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
