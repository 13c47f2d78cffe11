"""The texts of a post-mortem, shared by all its formats."""

from __future__ import annotations

from html import escape
from typing import Any, cast

import msgspec

from holdfast.checkpoint.value_diff import Change, show, show_text
from holdfast.checkpoint.visit import Alteration, AttemptDetail, CallDetail, QuestionDetail, Visit, error_text
from holdfast.model.forms.visible_text import show_invisible
from holdfast.reports.postmortem import Postmortem
from holdfast.runs.history.decision_text import ended_text
from holdfast.types.clock import to_datetime
from holdfast.types.human_time import clock_time, human_duration
from holdfast.types.redaction import redactor
from holdfast.types.status import label_for

WHOLE = 20_000
"""Characters of a state that are shown in full."""

Row = tuple[str, str]

_OUTPUT_LINES = 60
"""Of a command, from its end."""


def for_html(text: str) -> str:
    """A text of the run, with known secrets masked. Not the document: a secret may be a part of its tags."""
    return escape(redactor.redact(text))


_ATTEMPTS = {
    "retry": "tried again",
    "restarted": "run again, because its worker died",
    "in_doubt": "run again, although it may have taken effect before",
    "resumed": "run again, because the failed run was resumed",
}


def headline(postmortem: Postmortem) -> str:
    """One sentence."""
    spent = human_duration(postmortem.elapsed)
    broken = next((trouble for trouble in reversed(postmortem.troubles) if trouble.ended), None)
    if postmortem.status == "failed" and broken is not None:
        where = f" at {postmortem.name(broken.node)}" if broken.node else ""
        return f"The run failed after {spent}{where}: {broken.error}."
    if postmortem.status in ("completed", "cancelled", "failed"):
        why = f": {postmortem.error}" if postmortem.error else ""
        count = len(postmortem.troubles)
        handled = f" {_many(count, 'problem')} handled." if count else ""
        return f"{ended_text(postmortem.status).capitalize()} after {spent}{why}.{handled}"
    return f"The run is {label_for(str(postmortem.status))}, {spent} after it was created."


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def summary(postmortem: Postmortem) -> list[Row]:
    rows = [
        ("run", postmortem.run),
        ("flow", f"{f'{postmortem.flow} {postmortem.label}'.strip()} ({postmortem.version})"),
        ("status", postmortem.status),
        ("error", postmortem.error),
        ("created", clock_time(postmortem.created_at)),
        ("ended", clock_time(postmortem.ended_at)),
        ("took", human_duration(postmortem.elapsed)),
        ("steps", f"{postmortem.spent.steps:,}, {human_duration(postmortem.spent.duration)} of work"),
        ("tokens", f"{postmortem.spent.tokens:,}" if postmortem.spent.tokens else ""),
        ("cost", f"{postmortem.spent.cost:g}" if postmortem.spent.cost else ""),
        ("waited for people", human_duration(postmortem.waited.people) if postmortem.waited.people else ""),
        (
            "waited before retries",
            human_duration(postmortem.waited.retries) if postmortem.waited.retries else "",
        ),
        ("recoveries", str(postmortem.recoveries) if postmortem.recoveries else ""),
        ("tenant", postmortem.tenant if postmortem.tenant != "default" else ""),
        ("thread", postmortem.thread or ""),
        ("forked from", _source(postmortem)),
        ("superseded by", postmortem.superseded_by or ""),
        ("journal", _journal(postmortem)),
        ("last state", f"not readable: {postmortem.unreadable}" if postmortem.unreadable else ""),
        ("times", _zone(postmortem.created_at)),
    ]
    return [(name, value) for name, value in rows if value]


def _zone(at: int) -> str:
    """Of the machine that made the report."""
    moment = to_datetime(at).astimezone()
    return f"{moment:%Z (UTC%z)}" if moment.utcoffset() else "UTC"


def _source(postmortem: Postmortem) -> str:
    if not postmortem.lineage:
        return postmortem.forked_from or ""
    patched = postmortem.lineage.get("patched")
    changed = f", with {', '.join(f'{k}: {v}' for k, v in _names(patched))} changed" if patched else ""
    return f"{postmortem.lineage.get('run')} after record {postmortem.lineage.get('seq')}{changed}"


def _names(patched: Any) -> list[Row]:
    return [(str(name), ", ".join(map(str, keys))) for name, keys in dict(patched).items()]


def _journal(postmortem: Postmortem) -> str:
    cut = f"; what lies before record {postmortem.horizon} was pruned" if postmortem.horizon else ""
    brought = f"; {_many(postmortem.brought, 'visit')} known only in outline" if postmortem.brought else ""
    return f"{_many(postmortem.records, 'record')}{cut}{brought}"


def visit_facts(visit: Visit) -> list[Row]:
    """When, how often, how long."""
    rows = [
        ("started", clock_time(visit.started_at)),
        ("took", _took(visit)),
        ("effect", visit.effect),
        ("attempts", str(visit.attempts) if visit.attempts > 1 else ""),
        ("tokens", f"{visit.tokens:,}" if visit.tokens else ""),
        ("cost", f"{visit.cost:.6g}" if visit.cost else ""),
        ("live output", _many(visit.emitted, "chunk") if visit.emitted else ""),
        ("error", error_text(visit.error)),
        ("then", visit.followed),
        ("record", f"{visit.seq}" if visit.seq >= 0 else ""),
        ("recorded in run", visit.run if not visit.readable else ""),
    ]
    return [(name, value) for name, value in rows if value]


def _took(visit: Visit) -> str:
    if visit.ended_at is None:
        return "not ended"
    whole = visit.ended_at - visit.started_at
    if not visit.duration:
        return human_duration(whole)
    work = human_duration(visit.duration)
    return f"{work} of work in {human_duration(whole)}" if whole > visit.duration + 1_000 else work


def visit_title(number: int, visit: Visit, name: str) -> str:
    again = f", visit {visit.visit}" if visit.visit > 1 else ""
    return f"{number}. {name}{again}: {outcome(visit)}"


def outcome(visit: Visit) -> str:
    if visit.state in ("abandoned", "running"):
        waits = any(q.status == "pending" for q in visit.questions) and visit.ended_at is None
        return "waiting for input" if waits else visit.state
    return visit.outcome or visit.state


def alteration_text(change: Alteration) -> tuple[str, str]:
    """(kind, text): what a step did to one place of the state."""
    if change.op == "delete":
        return "removed", change.path
    if change.op != "set":
        return "changed", f"{change.path}  {change.op} {show_text(change.after)}"
    if change.before is msgspec.UNSET:
        return "added", f"{change.path}  {show_text(change.after)}"
    return "changed", f"{change.path}  {show_text(change.before)} → {show_text(change.after)}"


def alteration_lines(change: Alteration) -> list[tuple[str, str]]:
    """One line, or one for each part that changed inside a value."""
    return [part_text(part) for part in change.parts] or [alteration_text(change)]


def part_text(change: Change) -> tuple[str, str]:
    sides = {
        "added": lambda: show_text(change.after),
        "removed": lambda: show_text(change.before),
        "changed": lambda: f"{show_text(change.before)} → {show_text(change.after)}",
    }
    return change.kind, f"{change.path}  {sides[change.kind]()}"


def attempt_texts(visit: Visit) -> list[str]:
    """The attempts after the first: why there was one more."""
    return [_attempt_text(trial) for trial in visit.trials if trial.reason in _ATTEMPTS]


def _attempt_text(trial: AttemptDetail) -> str:
    failed = f", after {error_text(trial.error)}" if trial.error else ""
    return f"attempt {trial.attempt} at {clock_time(trial.at)}: {_ATTEMPTS[trial.reason]}{failed}"


def call_text(call: CallDetail) -> str:
    came = f"failed: {error_text(call.error)}" if call.error else show_text(call.value)
    tokens = f" ({call.tokens:,} tokens)" if call.tokens else ""
    effect = f" ({call.effect})" if call.effect else ""
    return f"{call.name}{effect}: {came}{tokens}"


def command_output(call: CallDetail) -> tuple[str, str] | None:
    """Of a command: how it ended, and what it wrote, as it was written. None for other steps."""
    value: Any = call.value
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if not fields.keys() >= {"code", "stdout", "stderr"}:
        return None
    ended = fields.get("why") or f"exit code {fields['code']}"
    parts = [str(fields[name]).rstrip("\n") for name in ("stdout", "stderr")]
    text = "\n".join(part for part in parts if part)
    lines = text.splitlines()
    if len(lines) > _OUTPUT_LINES:
        left = f"[... {len(lines) - _OUTPUT_LINES:,} lines left out ...]"
        text = "\n".join([left, *lines[-_OUTPUT_LINES:]])
    return f"{call.name}: {ended}", show_invisible(text)


def question_text(question: QuestionDetail) -> str:
    whom = f" of {question.assignee}" if question.assignee else ""
    return f"asked{whom}: {_closed_sentence(question.prompt)} {answer_text(question)}"


def _closed_sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", ":", "…")) else f"{text}."


def answer_text(question: QuestionDetail) -> str:
    if question.status == "pending":
        return "(not answered yet)"
    spent = human_duration(question.ended_at - question.asked_at) if question.ended_at else ""
    after = f" after {spent}" if spent else ""
    if question.status == "expired":
        return f"Not answered in time{after}."
    if question.decision is None:
        return f"Closed{after}: {question.closed or question.status}."
    comment = f" ({question.comment})" if question.comment else ""
    return f"{question.by or 'a person'} decided {question.decision!r}{after}{comment}."


DRAWN = 400
"""Nodes that a page still draws."""


def no_drawing_text(postmortem: Postmortem) -> str:
    """The text in place of a graph that is too large to read."""
    count = len(postmortem.picture.nodes)
    if not count:
        return "The graph is too large for a page."
    return f"The graph has {count:,} nodes, too many for a page." if count > DRAWN else ""


def visit_count(postmortem: Postmortem) -> str:
    return "1 visit" if postmortem.visits == 1 else f"{postmortem.visits:,} visits"


def values_text(value: Any) -> str:
    """Indented JSON, cut where it is too long for a page."""
    shown = redactor.redact_json(msgspec.json.encode(show(value, large=10 * WHOLE)))
    text = msgspec.json.format(shown, indent=2).decode()
    more = len(text) - WHOLE
    return text if more <= 0 else f"{text[:WHOLE]}\n… {more:,} characters more"
