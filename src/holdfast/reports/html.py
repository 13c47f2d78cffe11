"""A post-mortem as one HTML file: with its style and its drawing, without scripts, printable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.checkpoint.visit import CallDetail, Visit
from holdfast.drawing import to_svg
from holdfast.model.forms.visible_text import show_invisible
from holdfast.reports import text
from holdfast.reports.postmortem import Gap, Postmortem
from holdfast.reports.style import STYLE
from holdfast.reports.text import for_html as escape
from holdfast.types.human_time import clock_time

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
# Nothing is fetched or run, even if a text of the run contains markup.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CLOSED = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
_BAD = frozenset({"failed", "unknown", "cancelled", "fail"})


def to_html(postmortem: Postmortem) -> str:
    title = f"Post-mortem of {postmortem.flow}, run {postmortem.run[:8]}"
    parts = (_top, _drawing, _incidents, _visits, _questions, _remarks, _values)
    body = "\n".join(line for part in parts for line in part(postmortem))
    return show_invisible(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_CLOSED}\n"
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _word(text: str) -> str:
    kind = "bad" if text in _BAD else "good" if text in ("completed", "success", "done") else "plain"
    return f'<span class="word {kind}">{escape(text)}</span>'


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"<table><thead><tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr></thead><tbody>"
    for cells in rows:
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</tbody></table>"


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(n)}</dt><dd>{escape(v)}</dd>" for n, v in rows) + "</dl>"


def _top(postmortem: Postmortem) -> Iterator[str]:
    yield f'<p class="headline">{_word(postmortem.status)} {escape(text.headline(postmortem))}</p>'
    yield _facts(text.summary(postmortem))


def _drawing(postmortem: Postmortem) -> Iterator[str]:
    yield "<h2>The graph</h2>"
    undrawn = text.no_drawing_text(postmortem)
    drawn = f'<figure class="graph">{_inline(to_svg(postmortem.picture))}</figure>' if not undrawn else ""
    yield drawn or f"<p>{escape(undrawn)}</p>"
    if postmortem.skipped:
        names = ", ".join(f"<code>{escape(postmortem.name(label))}</code>" for label in postmortem.skipped)
        yield f"<p>Skipped: {names}.</p>"


def _inline(svg: str) -> str:
    """Without the attributes that only a separate file needs."""
    return svg[svg.index("<svg") :]


def _incidents(postmortem: Postmortem) -> Iterator[str]:
    yield "<h2>What went wrong, and how it was handled</h2>"
    if not postmortem.troubles:
        yield "<p>Nothing went wrong.</p>"
        return
    rows = (
        (
            escape(clock_time(trouble.at)),
            f"<code>{escape(postmortem.name(trouble.node))}</code>" if trouble.node else "the run",
            escape(trouble.error),
            f"<strong>{escape(trouble.handled)}</strong>" if trouble.ended else escape(trouble.handled),
        )
        for trouble in postmortem.troubles
    )
    yield from _table(("when", "where", "what", "how it was handled"), rows)


def _visits(postmortem: Postmortem) -> Iterator[str]:
    yield f"<h2>Every node in order ({text.visit_count(postmortem)})</h2>"
    number = 0
    for visit in postmortem.chapters:
        if isinstance(visit, Gap):
            number += visit.left_out
            left_out = f"{visit.left_out:,} visits at which nothing went wrong are left out here."
            yield f'<p class="gap">{left_out}</p>'
        else:
            number += 1
            yield from _visit(number, visit, postmortem.name(visit.label))


def _visit(number: int, visit: Visit, name: str) -> Iterator[str]:
    bad = " bad" if visit.error or visit.state in _BAD else ""
    again = f" <small>visit {visit.visit}</small>" if visit.visit > 1 else ""
    yield f'<section class="chapter{bad}">'
    yield f"<h3>{number}. {escape(name)}{again} {_word(text.outcome(visit))}</h3>"
    yield _facts(text.visit_facts(visit))
    if visit.traceback:
        yield f"<pre>{escape(visit.traceback)}</pre>"
    yield from _list("Attempts", (escape(text) for text in text.attempt_texts(visit)))
    yield from _list("Steps and tool calls", map(_call, visit.calls))
    yield from _list("Questions", (escape(text.question_text(q)) for q in visit.questions))
    lines = [line for change in visit.changes for line in text.alteration_lines(change)]
    if lines:
        result = "".join(f'<li class="{kind}">{_SIGNS[kind]} {escape(text)}</li>' for kind, text in lines)
        yield f'<h4>What it changed</h4><ul class="changes">{result}</ul>'
    yield "</section>"


def _call(call: CallDetail) -> str:
    output = text.command_output(call)
    if output is None:
        return escape(text.call_text(call))
    return escape(output[0]) + (f"<pre>{escape(output[1])}</pre>" if output[1] else "")


def _list(name: str, items: Iterable[str]) -> Iterator[str]:
    lines = [f"<li>{item}</li>" for item in items]
    if lines:
        yield f"<h4>{name}</h4><ul>{''.join(lines)}</ul>"


def _questions(postmortem: Postmortem) -> Iterator[str]:
    if not postmortem.questions:
        return
    yield "<h2>Questions</h2>"
    rows = (
        (
            escape(clock_time(question.asked_at)),
            f"<code>{escape(postmortem.name(node))}</code>" if node else "the run",
            escape(question.prompt),
            escape(question.assignee or ""),
            escape(text.answer_text(question)),
        )
        for node, question in postmortem.questions
    )
    yield from _table(("asked", "node", "question", "of", "answer"), rows)


def _remarks(postmortem: Postmortem) -> Iterator[str]:
    lines = (
        f"{escape(clock_time(r.at))}, record {r.seq}: {escape(r.text)}{f' (term {r.term})' if r.term else ''}"
        for r in postmortem.remarks
    )
    if postmortem.remarks:
        yield "<h2>Workers and the journal</h2>"
        yield f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def _values(postmortem: Postmortem) -> Iterator[str]:
    for name in ("input", "state", "artifacts"):
        value = getattr(postmortem, name)
        if value:
            yield f"<h2>{name.capitalize()}</h2>"
            yield f"<pre>{escape(text.values_text(value))}</pre>"
