"""The preamble: a summary of the run before a model's prompt, built when the stage runs. Its mode limits its
length, whatever the context contains; if there is enough to tell, it uses that length.

First why the stage runs, then the output of the last failure, other failures, branches, answers, history and
values of the context. Each part has a share of the room; what one does not need is passed on to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.fidelity import COMPACT, FULL, HIGH, LOW, MEDIUM, TRUNCATE
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.preamble_parts import (
    LineList,
    LongText,
    PreamblePart,
    TextPart,
    TextParts,
    clipped,
    filled,
    one_line,
    title_line,
)
from holdfast.attractor.stage_history import (
    LastFailure,
    StageCounts,
    StageSummary,
    answer_in,
    counts_of,
    is_informative,
    last_failure,
    stages_of,
)
from holdfast.attractor.stage_outputs import StageText, texts_of
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.model.pipeline_conditions import as_text

BUDGETS: Final = {TRUNCATE: 300, COMPACT: 1200, LOW: 600, MEDIUM: 1500, HIGH: 3000}
"""Maximum number of tokens."""
_BYTES_A_TOKEN: Final = 4
_LEAST: Final = 1_400
"""Bytes for the output of the last failure, so that its last 1,000 are there."""
_REASON: Final = 600
_LONGEST: Final = 50_000
_RESULTS: Final = "parallel.results"
# Keys that repeat the list of stages, or belong to the engine.
_SILENT: Final = frozenset(
    {"current_node", "outcome", "preferred_label", "last_stage", "tool_stdout", _RESULTS}
)
_OWN: Final = ("internal.", "graph.", "stage.output.")
# Keys that come first if not all fit.
_FIRST: Final = ("failure_reason", "last_response", "human.", "parallel.", "tool.")
# What commands wrote: its end says how they ended.
_OUTPUT: Final = "tool."
FAN_IN: Final = "parallel.fan_in"
_PASSED: Final = frozenset({"success", "partial_success"})


class _Depth(msgspec.Struct, frozen=True):
    """How much a mode includes: stages, characters of a note and of a value, if there is much of them."""

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
    """Empty for `full`, which carries the conversation itself (`since_last_turn`)."""
    if mode == FULL:
        return ""
    budget = BUDGETS[mode] * _BYTES_A_TOKEN
    run = f"Run: {visit.ctx.run_id}"
    if mode == TRUNCATE:
        return "\n".join([*_goal(visit, budget - len(run) - 2), run])
    head = [*_goal(visit, budget // 4), run, *_reason(visit)]
    return filled(head, _parts(visit, mode), budget)


def since_last_turn(visit: StageVisit, number: int | None) -> str:
    """What happened outside a conversation since its last turn, which was that of the stage with this number;
    None: it begins here, and only a failure is told."""
    failure = last_failure(visit.context)
    depth, budget = _DEPTHS[HIGH], BUDGETS[HIGH] * _BYTES_A_TOKEN
    if number is None:
        failed = [] if failure is None else [_failure(failure, budget)]
        return filled(_reason(visit), failed, budget) if failed else ""
    stages = [each for each in stages_of(visit.context) if each.number > number]
    if not stages:
        return ""
    texts = [each for each in texts_of(visit.context) if each.number > number]
    parts: list[PreamblePart] = []
    if failure is not None and failure.number > number:
        parts.append(_failure(failure, budget))
    others, answers = _texts(texts, failure, stages, depth)
    results = visit.context.get(_RESULTS) if _have_joined(visit, stages) else None
    parts += [others, _branches(results, depth), answers, _history(stages, depth)]
    return filled(["Since your last turn in this conversation:", *_reason(visit)], parts, budget)


def _have_joined(visit: StageVisit, stages: Iterable[StageSummary]) -> bool:
    known = visit.pipeline.stages
    return any(kind_of(known[each.stage]) == FAN_IN for each in stages if each.stage in known)


def _parts(visit: StageVisit, mode: str) -> list[PreamblePart]:
    context, depth = visit.context, _DEPTHS[mode]
    stages, counts, failure = stages_of(context), counts_of(context), last_failure(context)
    budget = BUDGETS[mode] * _BYTES_A_TOKEN
    listed = stages if mode == COMPACT else stages[-depth.stages :]
    failures, answers = _texts(texts_of(context), failure, listed, depth)
    first = [] if failure is None else [_failure(failure, budget)]
    parts: list[PreamblePart] = [*first, failures, _branches(context.get(_RESULTS), depth), answers]
    if mode != COMPACT:
        parts.append(title_line(_counted(counts)))
    parts.append(_history(listed, depth, "Last stage:" if mode == LOW else "Completed stages:"))
    if mode == LOW:
        return parts
    if mode != COMPACT:
        parts.append(LineList("Notable:", lambda _: _notable(stages), share=0.05))
    values = _values(context.snapshot())
    parts.append(LineList("Context:", lambda clip: _value_lines(values, clip), depth.value, share=0.2))
    return parts


def _goal(visit: StageVisit, room: int) -> list[str]:
    goal = visit.pipeline.goal
    return [_bytes_clipped(f"Goal: {goal}", room)] if goal else []


# ---------------------------------------------------------------------- why, and failures
def _reason(visit: StageVisit) -> list[str]:
    """Why the stage runs: the edge that led here with the verdict before it, or the gate that failed."""
    came, stage = visit.came_by, visit.stage.id
    if came is None:
        return [_bytes_clipped(text, _REASON) for text in _jump(visit) if text]
    how = [f'"{came.label}"'] if came.label else []
    how += [f"because {came.condition}"] if came.condition else []
    if not how:
        return []
    found = [f"{stage} follows {came.source}, by the edge {' '.join(how)}."]
    before = next((each for each in stages_of(visit.context) if each.stage == came.source), None)
    if before is not None and before.notes:
        found.append(f"The verdict of {came.source}: {before.outcome}: {one_line(before.notes)}")
    return [_bytes_clipped(text, _REASON) for text in found]


def _jump(visit: StageVisit) -> list[str]:
    """A stage without an edge before it: a goal gate was not satisfied at the end, or a stage failed."""
    stage = visit.stage.id
    gates = [
        each
        for each in stages_of(visit.context)
        if each.stage in visit.pipeline.stages
        and visit.pipeline.stages[each.stage].flag("goal_gate")
        and each.outcome not in _PASSED
    ]
    failure = last_failure(visit.context)
    if gates:
        found = [f"{stage} runs again because the goal gate {gates[-1].stage} is not satisfied."]
        return [*found, *(f"{each.stage}: {each.outcome}: {one_line(each.notes)}" for each in gates)]
    return [f"{stage} runs again because {failure.stage} failed."] if failure is not None else []


def _failure(failure: LastFailure, budget: int) -> PreamblePart:
    again = f" (visit {failure.visit})" if failure.visit > 1 else ""
    said = _bytes_clipped(f"Last failure, of {failure.stage}{again}: {one_line(failure.reason)}", _REASON)
    title = f"{said}\nIts output:" if failure.output else said
    room = max(_LEAST + len(title.encode()), int(budget * 0.35))
    return TextPart(title, LongText(failure.output, failure.where, failure.size), least=room)


def _texts(
    texts: Iterable[StageText], failure: LastFailure | None, listed: Sequence[StageSummary], depth: _Depth
) -> tuple[PreamblePart, PreamblePart]:
    """Other failures, then answers that the list of stages does not have in full."""
    noted = {each.stage: each.notes for each in listed}
    others: list[tuple[str, LongText]] = []
    answers: list[tuple[str, LongText]] = []
    for each in texts:
        text = LongText(each.text, each.where, each.size)
        if each.failed and (failure is None or failure.stage != each.stage):
            others.append((f"{each.stage}: {one_line(each.reason)}", text))
        elif not each.failed and len(one_line(each.text)) > min(depth.note, len(noted.get(each.stage, ""))):
            title = f"{each.stage} (visit {each.visit}):" if each.visit > 1 else f"{each.stage}:"
            answers.append((title, text))
    return (
        TextParts("Other failures:", others, share=0.1),
        TextParts("Answers, the latest first:", answers, share=0.2),
    )


# ---------------------------------------------------------------------- stages, branches, values
def _history(stages: Sequence[StageSummary], depth: _Depth, title: str = "Completed stages:") -> PreamblePart:
    def lines(clip: int) -> list[str]:
        return [_stage_line(each, depth, clip) for each in stages]

    return LineList(title, lines, depth.note, share=0.15, newest_last=True)


def tokens(text: str) -> int:
    """An estimate: four bytes per token."""
    return -(-len(text.encode()) // _BYTES_A_TOKEN)


def _stage_line(ended: StageSummary, depth: _Depth, clip: int) -> str:
    times = f" ({ended.times} times)" if ended.times > 1 else ""
    notes = f": {clipped(one_line(ended.notes), clip)}" if ended.notes else ""
    calls = f" [{clipped(ended.calls, 120)}]" if ended.calls and depth.calls else ""
    return f"- {ended.stage}{times}: {ended.outcome}{calls}{notes}"


def _counted(counts: StageCounts) -> str:
    if not counts.total:
        return "No stage has ended yet."
    most = Counter(counts.outcomes).most_common(6)
    text = ", ".join(f"{count} {clipped(outcome, 40)}" for outcome, count in most)
    return f"Stages that have ended: {counts.total} ({text})."


def _notable(stages: Iterable[StageSummary]) -> list[str]:
    """Stages that failed, even if they succeeded later."""
    failed = [each for each in stages if each.failures]
    return [f"- {each.stage} failed {each.failures} of {each.times} times" for each in failed[-10:]]


def _branches(results: Any, depth: _Depth) -> PreamblePart:
    """Each branch with an equal share: how it ended, then the end of what it left."""
    items = cast("list[Any]", results) if isinstance(results, list) else []
    found: list[tuple[str, LongText]] = []
    for item in items:
        if isinstance(item, Mapping):
            branch = cast("Mapping[str, Any]", item)
            notes = one_line(_of_branch(branch))
            text = f": {clipped(notes, depth.note)}" if notes else ""
            said: Any = branch.get("said") or {}
            left = str(said.get("text", ""))
            whole = one_line(left) in clipped(notes, depth.note)
            line = f"- {branch.get('id', '')}: {branch.get('outcome', '')}{text}"
            size = int(said.get("size", 0))
            found.append((line, LongText("" if whole else left, str(said.get("where", "")), size)))
    return TextParts("Branches:", found, share=0.2, tails=True)


def _of_branch(branch: Mapping[str, Any]) -> str:
    notes, updates = str(branch.get("notes") or ""), branch.get("context_updates")
    if branch.get("failure_reason"):
        return str(branch["failure_reason"])
    if is_informative(notes) or not isinstance(updates, Mapping):
        return notes
    return answer_in(cast("Mapping[str, Any]", updates))


def _values(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the context has for people and models, the most important first; each as one line."""
    keys = [key for key in values if key not in _SILENT and not key.startswith(_OWN)]
    found = ((key, values[key]) for key in sorted(keys, key=_order))
    # Cut before it is made one line: a value may have millions of characters.
    return [(key, one_line(_longest(key, _plain(value)))) for key, value in found if not _empty(value)]


def _longest(key: str, text: str) -> str:
    return text[-_LONGEST:] if key.startswith(_OUTPUT) else text[:_LONGEST]


def _value_lines(values: Iterable[tuple[str, str]], clip: int) -> list[str]:
    return [f"- {clipped(key, 80)}: {_value(key, text, clip)}" for key, text in values]


def _value(key: str, text: str, clip: int) -> str:
    if not key.startswith(_OUTPUT) or len(text) <= clip:
        return clipped(text, clip)
    return f"…{text[-max(1, clip - 1) :]}"


def _order(key: str) -> tuple[int, str]:
    rank = next((place for place, start in enumerate(_FIRST) if key.startswith(start)), len(_FIRST))
    return rank, key


def _empty(value: Any) -> bool:
    return value is None or value == ""


def _plain(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, (dict, list)) else as_text(value)


def _bytes_clipped(text: str, room: int) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= room else raw[: max(0, room - 3)].decode("utf-8", "ignore") + "…"
