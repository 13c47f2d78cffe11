"""The incidents of a run, and how each was handled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.checkpoint.visit import AttemptDetail, QuestionDetail, Visit, error_text
from holdfast.runs.history.story import Story, StoryRemark
from holdfast.types.human_time import human_duration

_INCIDENT_REMARKS = frozenset({"fell_back", "damaged", "uncheckpointed", "failing"})
_ALARM = frozenset({"damaged", "failing"})


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """`node` is empty for incidents of the whole run. `ended`: the run failed because of it."""

    at: int
    seq: int
    node: str
    visit: int
    error: str
    handled: str
    ended: bool = False


def find_incidents(story: Story) -> list[Incident]:
    """In the order in which they occurred."""
    found = [t for visit in story.visits for t in _of_visit(visit)]
    found += [_of_remark(remark) for remark in story.remarks if remark.kind in _INCIDENT_REMARKS]
    return sorted(found, key=lambda trouble: (trouble.at, trouble.seq))


def _of_visit(visit: Visit) -> Iterator[Incident]:
    for trial in visit.trials:
        result = _of_attempt(visit, trial)
        if result is not None:
            yield _incident(visit, _failed_at(visit, trial), trial.seq, *result)
    for question in visit.questions:
        if question.why in ("doubt", "doubt_step"):
            yield _incident(visit, question.asked_at, question.seq, question.prompt, _of_doubt(question))
        elif question.status == "expired":
            result = f"{question.prompt!r} was not answered in time"
            yield _incident(
                visit, question.ended_at or question.asked_at, question.seq, result, _after(visit)
            )
    if visit.error is not None or visit.state == "unknown":
        yield _incident(
            visit,
            visit.ended_at or visit.started_at,
            visit.seq,
            error_text(visit.error),
            _of_end(visit),
            ended=visit.halts and not visit.handed_to,
        )
    elif _violated(visit):
        yield _incident(visit, visit.ended_at or 0, visit.seq, *_of_guardrail(visit))


def _failed_at(visit: Visit, trial: AttemptDetail) -> int:
    """A run that had failed may be resumed days later."""
    ends = (wait.since for wait in visit.waits if wait.kind == "failed" and wait.until == trial.at)
    return next(ends, trial.at)


def _incident(visit: Visit, at: int, seq: int, error: str, handled: str, *, ended: bool = False) -> Incident:
    return Incident(
        at=at, seq=seq, node=visit.label, visit=visit.visit, error=error, handled=handled, ended=ended
    )


def _of_attempt(visit: Visit, trial: AttemptDetail) -> tuple[str, str] | None:
    again = f"run again as attempt {trial.attempt}"
    if trial.reason == "retry":
        pause = f" after {human_duration(trial.wake_at - trial.at)}" if trial.wake_at else ""
        return error_text(trial.error), f"retried{pause}, as attempt {trial.attempt}"
    if trial.reason == "restarted":
        # A command or an agent that goes on is waited for: it does not run again.
        return "its worker died while it was running", f"recovered: entered again as attempt {trial.attempt}"
    if trial.reason == "in_doubt":
        return "whether it had taken effect was not known", again
    if trial.reason == "resumed":
        return error_text(trial.error), f"the run failed, and was resumed: {again}"
    return None


def _of_doubt(question: QuestionDetail) -> str:
    if question.status == "pending":
        return "a person was asked, and has not answered"
    if question.decision is None:
        return f"the question was closed: {question.closed}"
    return f"{question.by or 'a person'} decided {question.decision!r}"


def _after(visit: Visit) -> str:
    return visit.followed or ("it failed" if visit.error else f"it continued with {visit.outcome!r}")


def _of_end(visit: Visit) -> str:
    if visit.state == "unknown":
        return "the run was cancelled; whether this took effect is not known"
    if visit.outcome == "skipped":
        return f"skipped after its last attempt{_then(visit)}"
    if not visit.halts:
        return f"its failure was routed{_then(visit)}"
    if visit.handed_to:
        return f"handled by {visit.handed_to} around it"
    return "not handled: the run failed"


def _then(visit: Visit) -> str:
    return f": {visit.followed}" if visit.followed else ""


def _violated(visit: Visit) -> bool:
    notes: dict[str, Any] = visit.notes or {}
    return notes.get("passed") is False


def _of_guardrail(visit: Visit) -> tuple[str, str]:
    notes: dict[str, str] = visit.notes
    return f"guardrail: {notes.get('reason', '')}", f"{notes.get('action', '')}{_then(visit)}"


def _of_remark(remark: StoryRemark) -> Incident:
    handled = {
        "fell_back": "it continued from there",
        "uncheckpointed": "it continued, without effects, until the store was back",
    }.get(remark.kind, "the run failed")
    return Incident(
        at=remark.at,
        seq=remark.seq,
        node="",
        visit=0,
        error=remark.text,
        handled=handled,
        ended=remark.kind in _ALARM,
    )
