"""What went wrong in a run, each time, and how it was handled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.runs.history.story import AttemptDetail, QuestionDetail, Story, StoryRemark, VisitDetail
from holdfast.types.human_time import human_duration

_INCIDENT_REMARKS = frozenset({"fell_back", "damaged", "uncheckpointed", "failing"})
_ALARM = frozenset({"damaged", "failing"})


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """`node` is empty for what befell the run as a whole. `ended`: the run failed by it."""

    at: int
    seq: int
    node: str
    visit: int
    error: str
    handled: str
    ended: bool = False


def find_incidents(story: Story) -> list[Incident]:
    """In the order in which they came."""
    found = [t for chapter in story.chapters for t in _of_visit(chapter)]
    found += [_of_remark(remark) for remark in story.remarks if remark.kind in _INCIDENT_REMARKS]
    return sorted(found, key=lambda trouble: (trouble.at, trouble.seq))


def error_text(error: dict[str, str] | None) -> str:
    return f"{error['type']}: {error['message']}" if error else ""


def _of_visit(chapter: VisitDetail) -> Iterator[Incident]:
    for trial in chapter.trials:
        told = _of_attempt(chapter, trial)
        if told is not None:
            yield _incident(chapter, trial.at, trial.seq, *told)
    for question in chapter.questions:
        if question.why in ("doubt", "doubt_step"):
            yield _incident(chapter, question.asked_at, question.seq, question.prompt, _of_doubt(question))
        elif question.status == "expired":
            told = f"nobody answered {question.prompt!r} in time"
            yield _incident(
                chapter, question.ended_at or question.asked_at, question.seq, told, _after(chapter)
            )
    if chapter.error is not None or chapter.state == "unknown":
        yield _incident(
            chapter,
            chapter.ended_at or chapter.started_at,
            chapter.seq,
            error_text(chapter.error),
            _of_end(chapter),
            ended=chapter.halts and not chapter.handed_to,
        )
    elif _violated(chapter):
        yield _incident(chapter, chapter.ended_at or 0, chapter.seq, *_of_guardrail(chapter))


def _incident(
    chapter: VisitDetail, at: int, seq: int, error: str, handled: str, *, ended: bool = False
) -> Incident:
    return Incident(
        at=at, seq=seq, node=chapter.label, visit=chapter.visit, error=error, handled=handled, ended=ended
    )


def _of_attempt(chapter: VisitDetail, trial: AttemptDetail) -> tuple[str, str] | None:
    again = f"run again as attempt {trial.attempt}"
    if trial.reason == "retry":
        pause = f" after {human_duration(trial.wake_at - trial.at)}" if trial.wake_at else ""
        return error_text(trial.error), f"tried again{pause}, as attempt {trial.attempt}"
    if trial.reason == "restarted":
        return "its worker was gone while it was under way", f"recovered: {again}"
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


def _after(chapter: VisitDetail) -> str:
    return chapter.followed or ("it failed" if chapter.error else f"it went on with {chapter.outcome!r}")


def _of_end(chapter: VisitDetail) -> str:
    if chapter.state == "unknown":
        return "the run was cancelled; whether this took effect is not known"
    if chapter.outcome == "skipped":
        return f"given up and passed by{_then(chapter)}"
    if not chapter.halts:
        return f"given up; its failure was routed{_then(chapter)}"
    if chapter.handed_to:
        return f"given up; {chapter.handed_to} around it coped with that"
    return "nothing coped with it: the run failed"


def _then(chapter: VisitDetail) -> str:
    return f": {chapter.followed}" if chapter.followed else ""


def _violated(chapter: VisitDetail) -> bool:
    notes: dict[str, Any] = chapter.notes or {}
    return notes.get("passed") is False


def _of_guardrail(chapter: VisitDetail) -> tuple[str, str]:
    notes: dict[str, str] = chapter.notes
    return f"guardrail: {notes.get('reason', '')}", f"{notes.get('action', '')}{_then(chapter)}"


def _of_remark(remark: StoryRemark) -> Incident:
    handled = {
        "fell_back": "it went on from there",
        "uncheckpointed": "it went on, without effects, until the store was back",
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
