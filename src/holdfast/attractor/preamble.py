"""The preamble: a summary of the run before a model's prompt, built when the stage runs. Its mode limits its
length, whatever the context contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.fidelity import COMPACT, FULL, HIGH, LOW, MEDIUM, TRUNCATE
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.stage_history import (
    StageCounts,
    StageSummary,
    answer_in,
    counts_of,
    is_informative,
    last_failure,
    middle_cut,
    stages_of,
)
from holdfast.model.pipeline_conditions import as_text

BUDGETS: Final = {TRUNCATE: 300, COMPACT: 1200, LOW: 600, MEDIUM: 1500, HIGH: 3000}
"""Maximum number of tokens."""
_BYTES_A_TOKEN: Final = 4
_LEAST: Final = 1_400
"""Bytes for the output of the last failure, so that its last 1,000 are there."""
_LEFT_OUT: Final = "- ({} more left out)"
_RESULTS: Final = "parallel.results"
# Keys that repeat the list of stages, or belong to the engine.
_SILENT: Final = frozenset(
    {"current_node", "outcome", "preferred_label", "last_stage", "tool_stdout", _RESULTS}
)
_OWN: Final = ("internal.", "graph.", "stage.output.")
# Keys that come first if not all fit.
_FIRST: Final = ("failure_reason", "last_response", "human.", "parallel.", "tool.")


class _Depth(msgspec.Struct, frozen=True):
    """How much a mode includes: stages, characters of a note and of a value."""

    stages: int
    note: int
    value: int
    calls: bool = False


_DEPTHS: Final = {
    COMPACT: _Depth(40, 120, 160),
    LOW: _Depth(1, 160, 0),
    MEDIUM: _Depth(10, 200, 300),
    HIGH: _Depth(40, 500, 1500, calls=True),
}


def preamble(visit: StageVisit, mode: str) -> str:
    """Empty for `full`, which carries the conversation itself."""
    if mode == FULL:
        return ""
    page = _Page(BUDGETS[mode])
    page.add(_clipped(f"Goal: {visit.pipeline.goal}", page.room() // 2) if visit.pipeline.goal else "")
    page.add(f"Run: {visit.ctx.run_id}")
    if mode == TRUNCATE:
        return page.text()
    _add_reason(page, visit)
    stages, counts, depth = stages_of(visit.context), counts_of(visit.context), _DEPTHS[mode]
    if mode == LOW:
        page.add(_counted(counts))
        page.section("Last stage:", [_stage_line(each, depth) for each in stages[-1:]])
        return page.text()
    if mode != COMPACT:
        page.add(_counted(counts))
    listed = stages if mode == COMPACT else stages[-depth.stages :]
    share = page.room() // 2
    page.section("Completed stages:", [_stage_line(each, depth) for each in listed], share, newest_last=True)
    if mode != COMPACT:
        page.section("Notable:", _notable(stages))
    page.section("Branches:", _branches(visit.context.get(_RESULTS), depth))
    page.section("Context:", _values(visit.context.snapshot(), depth))
    return page.text()


def _add_reason(page: _Page, visit: StageVisit) -> None:
    """Why the stage runs, then the last failure with the end of its output."""
    page.add(_reason(visit))
    failure = last_failure(visit.context)
    if failure is None:
        return
    again = f" (visit {failure.visit})" if failure.visit > 1 else ""
    page.add(_clipped(f"Last failure, of {failure.stage}{again}: {_one_line(failure.reason)}", 600))
    room = max(_LEAST, page.room() // 2)
    if failure.output and page.room() > _LEAST:
        page.add(f"Its output:\n{middle_cut(failure.output, min(room, page.room() - 20), failure.where)}")


def _reason(visit: StageVisit) -> str:
    came, stage = visit.came_by, visit.stage.id
    failure = last_failure(visit.context)
    if came is None:
        return f"{stage} runs again because {failure.stage} failed." if failure is not None else ""
    how = [f'"{came.label}"'] if came.label else []
    how += [f"because {came.condition}"] if came.condition else []
    return f"{stage} follows {came.source}, by the edge {' '.join(how)}." if how else ""


def tokens(text: str) -> int:
    """An estimate: four bytes per token."""
    return -(-len(text.encode()) // _BYTES_A_TOKEN)


class _Page:
    """Lines within a budget."""

    def __init__(self, budget: int) -> None:
        self._left = budget * _BYTES_A_TOKEN
        self._lines: list[str] = []

    def room(self) -> int:
        return max(0, self._left)

    def add(self, line: str) -> bool:
        size = len(line.encode()) + 1
        if not line or size > self._left:
            return not line
        self._lines.append(line)
        self._left -= size
        return True

    def section(
        self, title: str, lines: Sequence[str], room: int | None = None, *, newest_last: bool = False
    ) -> None:
        """As many lines as fit; of lists that grow with the run, the latest."""
        size = len(title.encode()) + 2 + len(_LEFT_OUT.encode()) + 8
        allowed = min(self._left, self._left if room is None else room) - size
        kept: list[str] = []
        for line in reversed(lines) if newest_last else lines:
            allowed -= len(line.encode()) + 1
            if allowed < 0:
                break
            kept.append(line)
        if not kept:
            return
        more = len(lines) - len(kept)
        left_out = [_LEFT_OUT.format(more)] if more else []
        shown = [*left_out, *reversed(kept)] if newest_last else [*kept, *left_out]
        for line in (title, *shown):
            self.add(line)

    def text(self) -> str:
        return "\n".join(self._lines)


def _stage_line(ended: StageSummary, depth: _Depth) -> str:
    times = f" ({ended.times} times)" if ended.times > 1 else ""
    notes = f": {_clipped(_one_line(ended.notes), depth.note)}" if ended.notes else ""
    calls = f" [{_clipped(ended.calls, 120)}]" if ended.calls and depth.calls else ""
    return f"- {ended.stage}{times}: {ended.outcome}{calls}{notes}"


def _counted(counts: StageCounts) -> str:
    if not counts.total:
        return "No stage has ended yet."
    most = Counter(counts.outcomes).most_common(6)
    text = ", ".join(f"{count} {_clipped(outcome, 40)}" for outcome, count in most)
    return f"Stages that have ended: {counts.total} ({text})."


def _notable(stages: Iterable[StageSummary]) -> list[str]:
    """Stages that failed, even if they succeeded later."""
    failed = [each for each in stages if each.failures]
    return [f"- {each.stage} failed {each.failures} of {each.times} times" for each in failed[-10:]]


def _branches(results: Any, depth: _Depth) -> list[str]:
    items = cast("list[Any]", results) if isinstance(results, list) else []
    found: list[str] = []
    for item in items:
        if isinstance(item, Mapping):
            branch = cast("Mapping[str, Any]", item)
            notes = _one_line(_of_branch(branch))
            text = f": {_clipped(notes, depth.note)}" if notes else ""
            found.append(f"- {branch.get('id', '')}: {branch.get('outcome', '')}{text}")
    return found


def _of_branch(branch: Mapping[str, Any]) -> str:
    notes, updates = str(branch.get("notes") or ""), branch.get("context_updates")
    if branch.get("failure_reason"):
        return str(branch["failure_reason"])
    if is_informative(notes) or not isinstance(updates, Mapping):
        return notes
    return answer_in(cast("Mapping[str, Any]", updates))


def _values(values: Mapping[str, Any], depth: _Depth) -> list[str]:
    keys = [key for key in values if key not in _SILENT and not key.startswith(_OWN)]
    return [
        _value_line(key, values[key], depth) for key in sorted(keys, key=_order) if not _empty(values[key])
    ]


def _order(key: str) -> tuple[int, str]:
    rank = next((place for place, start in enumerate(_FIRST) if key.startswith(start)), len(_FIRST))
    return rank, key


def _empty(value: Any) -> bool:
    return value is None or value == ""


def _value_line(key: str, value: Any, depth: _Depth) -> str:
    if isinstance(value, (dict, list)):
        text = msgspec.json.encode(value).decode()
    else:
        text = as_text(value)
    return f"- {_clipped(key, 80)}: {_clipped(_one_line(text), depth.value)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(1, limit - 1)]}…"
