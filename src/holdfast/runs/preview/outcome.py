"""What happened in a previewed run, as a list that people read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.checkpoint.visit import QuestionDetail, Visit
from holdfast.errors import MissingNameError
from holdfast.model.shown_names import shown_name
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.preview.stop_effects import StoppedCall
from holdfast.store.rows import RunRow
from holdfast.types.clock import iso
from holdfast.types.hold import BREAKPOINT
from holdfast.types.human_time import clock_time
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, RunStatus

MOST_STEPS: Final = 100
MOST_OTHERS: Final = 200


class PreviewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: `step` (ran, without outside effects), `effect` (would happen; what follows is unknown),
    `question`, `sleep`, `failure`, `end` or `unknown`. `text`: the same as a sentence."""

    kind: str
    text: str
    node: str = ""
    # Of an effect: its class, the sub-step, and the key by which the callee recognises a repetition.
    effect: str = ""
    step: str = ""
    key: str = ""
    # The nodes that may follow the effect.
    then: list[str] = []
    # Of a question.
    assignee: str | None = None
    options: list[str] = []
    # Of a sleep.
    until: str | None = None
    # Of an end.
    status: str = ""

    @classmethod
    def unknown(cls, node: str, why: str) -> PreviewEntry:
        return cls(kind="unknown", node=node, text=f"The preview ends here: {why}.")

    @classmethod
    def depends_on(cls, names: str) -> PreviewEntry:
        return cls(kind="unknown", text=f"Depends on {names}.")


class OptionPreview(msgspec.Struct, frozen=True, kw_only=True):
    option: str
    label: str
    entries: list[PreviewEntry]


async def entries_of(
    runtime: Runtime, run: RunId, stopped: Sequence[StoppedCall], *, known: set[str], late: str
) -> list[PreviewEntry]:
    """`known`: questions that were open before. `late`: why it was ended early."""
    from holdfast.runs.service import RunService

    service = RunService(runtime)
    row = await service.get(run)
    story = await service.story(run)
    found: list[PreviewEntry] = []
    # The first visit is that of the hold itself.
    for visit in (visit for visit in story.visits if visit.run == run):
        here = [call for call in stopped if (call.scope, call.node) == (visit.scope, visit.node)]
        found += _of_visit(visit, here, known)
    found = _shortened(found)
    if late:
        found.append(PreviewEntry.unknown("", late))
    elif row.status in ENDED:
        found.append(_end(row))
    return found


def _shortened(entries: list[PreviewEntry]) -> list[PreviewEntry]:
    """Of a loop or a long map the first entries, and how many more there are. Steps are counted apart: they
    take no place from the effects and questions after them."""
    kept: list[PreviewEntry] = []
    steps = others = 0
    for entry in entries:
        is_step = entry.kind == "step"
        steps, others = steps + is_step, others + (not is_step)
        if steps <= MOST_STEPS if is_step else others <= MOST_OTHERS:
            kept.append(entry)
    if steps > MOST_STEPS:
        more = PreviewEntry(
            kind="step", text=f"Runs {steps - MOST_STEPS} more steps without outside effects."
        )
        last = max(place for place, entry in enumerate(kept) if entry.kind == "step")
        kept.insert(last + 1, more)
    if others > MOST_OTHERS:
        text = f"{others - MOST_OTHERS} more effects, questions and failures are not shown."
        kept.append(PreviewEntry(kind="unknown", text=text))
    return kept


def _of_visit(visit: Visit, stopped: Sequence[StoppedCall], known: set[str]) -> list[PreviewEntry]:
    name = shown_name(visit.label)
    if stopped and visit.state == "running":
        return [_stopped(name, call) for call in stopped]
    if visit.state == "failed":
        return [_failure(name, visit)]
    asked = [question for question in visit.questions if question.hold not in known]
    if any(question.status == "pending" for question in asked):
        return [
            PreviewEntry(
                kind="question",
                node=name,
                text=_asked(question),
                assignee=question.assignee,
                options=question.options,
            )
            for question in asked
            if question.status == "pending"
        ]
    sleeps = [wait for wait in visit.waits if wait.kind != "person" and wait.until is None and wait.wake_at]
    if sleeps:
        wake = sleeps[0].wake_at or 0
        return [
            PreviewEntry(
                kind="sleep", node=name, text=f"Sleeps at {name} until {clock_time(wake)}.", until=iso(wake)
            )
        ]
    if visit.state == "done" and not visit.questions:
        return [PreviewEntry(kind="step", node=name, text=f"Runs {name}.", effect=visit.effect)]
    return []


def _asked(question: QuestionDetail) -> str:
    if question.type == BREAKPOINT:
        return f"Pauses at the {question.prompt[0].lower()}{question.prompt[1:]}."
    return f"Asks {question.assignee or 'a person'}: {question.prompt}"


def _stopped(name: str, call: StoppedCall) -> PreviewEntry:
    if call.why:
        return PreviewEntry.unknown(name, f"{call.why} ({name})")
    what = f"step {call.step!r} of {name}" if call.step else name
    guard = f", key {call.key}" if call.key else ""
    then = f" Next may be: {', '.join(call.then)}." if call.then else ""
    return PreviewEntry(
        kind="effect",
        node=name,
        effect=call.effect,
        step=call.step,
        key=call.key,
        then=list(call.then),
        text=f"Runs {what} ({call.effect}{guard}). The preview ends here: its result is not known.{then}",
    )


def _failure(name: str, visit: Visit) -> PreviewEntry:
    error = visit.error or {}
    if error.get("code") == MissingNameError.code:
        return PreviewEntry(kind="unknown", node=name, text=f"{name}: {error.get('message', '')}")
    return PreviewEntry(kind="failure", node=name, text=f"{name} fails: {visit.error_text}")


def _end(row: RunRow) -> PreviewEntry:
    status = RunStatus(row.status)
    words = {
        RunStatus.completed: "The run completes.",
        RunStatus.failed: "The run fails.",
        RunStatus.cancelled: "The run is cancelled.",
    }
    return PreviewEntry(kind="end", status=status, text=words.get(status, f"The run ends as {status}."))
