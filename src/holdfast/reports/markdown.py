"""A post-mortem as Markdown: read in a terminal, a pull request, an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.checkpoint.visit import Visit
from holdfast.drawing import to_text
from holdfast.model.forms.visible_text import show_invisible
from holdfast.reports import text as sections
from holdfast.reports.postmortem import Gap, Postmortem
from holdfast.types.human_time import clock_time
from holdfast.types.redaction import redactor

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
# Characters that would be markup if they were not escaped.
_MARKUP = re.compile(r"([\\`*_\[\]<|&])")


def to_markdown(postmortem: Postmortem) -> str:
    parts = (_top, _drawing, _incidents, _visits, _questions, _remarks, _values)
    return show_invisible("\n".join(line for part in parts for line in part(postmortem)).rstrip() + "\n")


def escape(text: str) -> str:
    """In one line, with all Markdown characters escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(redactor.redact(text).split()))


def code(text: str) -> str:
    """As inline code, whatever it contains."""
    text = " ".join(redactor.redact(text).split()).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fence(text: str, language: str = "") -> list[str]:
    text = redactor.redact(text)
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return [f"{ticks}{language}", text.rstrip("\n"), ticks, ""]


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(heads)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    return [*lines, *(f"| {' | '.join(cells)} |" for cells in rows), ""]


def _top(postmortem: Postmortem) -> Iterator[str]:
    yield f"# Post-mortem of {escape(postmortem.flow)}, run {postmortem.run[:8]}"
    yield ""
    yield escape(sections.headline(postmortem))
    yield ""
    yield from table(("", ""), ((name, escape(value)) for name, value in sections.summary(postmortem)))


def _drawing(postmortem: Postmortem) -> Iterator[str]:
    yield "## The graph"
    yield ""
    undrawn = sections.no_drawing_text(postmortem)
    yield from [undrawn, ""] if undrawn else fence(to_text(postmortem.picture, width=100).plain, "text")
    if postmortem.skipped:
        yield f"Skipped: {', '.join(code(postmortem.name(label)) for label in postmortem.skipped)}."
        yield ""


def _incidents(postmortem: Postmortem) -> Iterator[str]:
    yield "## What went wrong, and how it was handled"
    yield ""
    if not postmortem.troubles:
        yield "Nothing went wrong."
        yield ""
        return
    rows = (
        (
            clock_time(trouble.at),
            code(postmortem.name(trouble.node)) if trouble.node else "the run",
            escape(trouble.error),
            f"**{escape(trouble.handled)}**" if trouble.ended else escape(trouble.handled),
        )
        for trouble in postmortem.troubles
    )
    yield from table(("when", "where", "what", "how it was handled"), rows)


def _visits(postmortem: Postmortem) -> Iterator[str]:
    yield f"## Every node in order ({sections.visit_count(postmortem)})"
    yield ""
    number = 0
    for visit in postmortem.chapters:
        if isinstance(visit, Gap):
            number += visit.left_out
            yield f"*{visit.left_out:,} visits at which nothing went wrong are left out here.*"
            yield ""
        else:
            number += 1
            yield from _visit(number, visit, postmortem.name(visit.label))


def _visit(number: int, visit: Visit, name: str) -> Iterator[str]:
    yield f"### {escape(sections.visit_title(number, visit, name))}"
    yield ""
    for name, value in sections.visit_facts(visit):
        yield f"- {name}: {escape(value)}"
    for text in sections.attempt_texts(visit):
        yield f"- {escape(text)}"
    outputs: list[str] = []
    for call in visit.calls:
        output = sections.command_output(call)
        yield f"- step {code(sections.call_text(call) if output is None else output[0])}"
        outputs += [] if output is None or not output[1] else [output[1]]
    for question in visit.questions:
        yield f"- {escape(sections.question_text(question))}"
    yield ""
    for text in outputs:
        yield from fence(text, "text")
    if visit.traceback:
        yield from fence(visit.traceback.rstrip("\n"), "text")
    lines = [line for change in visit.changes for line in sections.alteration_lines(change)]
    if lines:
        yield from fence("\n".join(f"{_SIGNS[kind]} {text}" for kind, text in lines), "text")


def _questions(postmortem: Postmortem) -> Iterator[str]:
    if not postmortem.questions:
        return
    yield "## Questions"
    yield ""
    rows = (
        (
            clock_time(question.asked_at),
            code(postmortem.name(node)) if node else "the run",
            escape(question.prompt),
            escape(question.assignee or ""),
            escape(sections.answer_text(question)),
        )
        for node, question in postmortem.questions
    )
    yield from table(("asked", "node", "question", "of", "answer"), rows)


def _remarks(postmortem: Postmortem) -> Iterator[str]:
    if not postmortem.remarks:
        return
    yield "## Workers and the journal"
    yield ""
    for remark in postmortem.remarks:
        term = f" (term {remark.term})" if remark.term else ""
        yield f"- {clock_time(remark.at)}, record {remark.seq}: {escape(remark.text)}{term}"
    yield ""


def _values(postmortem: Postmortem) -> Iterator[str]:
    for name in ("input", "state", "artifacts"):
        value = getattr(postmortem, name)
        if value:
            yield f"## {name.capitalize()}"
            yield ""
            yield from fence(sections.values_text(value), "json")
