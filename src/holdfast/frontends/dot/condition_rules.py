"""Rules for what conditions read: a missing key is the empty text, so a misspelt one decides silently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.rule_context import Check, RuleContext
from holdfast.frontends.dot.values import as_text
from holdfast.model.edge_labels import split_label
from holdfast.model.pipeline_conditions import OUTCOME_ALIASES, OUTCOMES, Clause

_OF_THE_STEP: Final = frozenset({"outcome", "preferred_label", "current_node", "last_stage", "last_response"})
_BUILT_IN: Final = (
    "graph.", "human.gate.", "internal.", "parallel.", "stack.", "tool.", "manager.",
)  # fmt: skip
"""What handlers of the product set begins with one of these."""
_GATE: Final = "human.gate."
_OF_A_GATE: Final = ("selected", "label", "by", "comment", "text")
_WORD: Final = re.compile(r"\w+(?:[.:-]\w+)*")


def condition_names(view: RuleContext) -> Iterator[Diagnostic]:
    """Keys that a condition reads, and that the pipeline names nowhere else."""
    words = _words(view) if view.conditions else set[str]()
    for condition, links in view.conditions.items():
        for key in _keys(view, condition):
            if key in words:
                continue
            message = (
                f"the condition reads {key}, which nothing in this pipeline is known to set: while it is "
                "missing it is the empty text"
            )
            fix = "correct the name, or name the key in the prompt of the stage that sets it"
            for link in links:
                yield view.at(
                    "condition_names", DiagnosticSeverity.warning, link, message, key="condition", fix=fix
                )


def outcome_words(view: RuleContext) -> Iterator[Diagnostic]:
    """A pipeline may have outcomes of its own; one that looks like a known word is a slip."""
    words = [*OUTCOMES, *OUTCOME_ALIASES]
    for condition, links in view.conditions.items():
        for clause in _clauses(view, condition):
            if clause.key not in ("outcome", "context.outcome") or clause.literal.lower() in words:
                continue
            near = get_close_matches(clause.literal.lower(), words, n=1, cutoff=0.75)
            if near:
                message = f"the condition compares outcome with {clause.literal}, which no built-in stage has"
                fix = f"did you mean {near[0]}?"
                for link in links:
                    yield view.at(
                        "outcome_words", DiagnosticSeverity.warning, link, message, key="condition", fix=fix
                    )


def gate_answers(view: RuleContext) -> Iterator[Diagnostic]:
    """What a gate sets: the key of the chosen edge, and its label as it is written. Compared with anything
    else, a refusal takes the other edge."""
    answers: dict[str, set[str]] = {"selected": set(), "label": set()}
    for stage in view.of_kind("wait.human"):
        for link in view.leaving(stage):
            label = link.label or link.target
            answers["label"].add(label)
            answers["selected"].add((split_label(label)[0] or label.strip()[:1]).upper())
    for condition, links in view.conditions.items():
        for clause in _clauses(view, condition):
            wrong = _wrong_answer(clause, answers)
            if wrong is None:
                continue
            what, fix = wrong
            message = f"the condition reads {clause.key}, {what}"
            for link in links:
                yield view.at(
                    "gate_answers", DiagnosticSeverity.warning, link, message, key="condition", fix=fix
                )


def _wrong_answer(clause: Clause, answers: dict[str, set[str]]) -> tuple[str, str] | None:
    """What is wrong with it, and what to do."""
    key = clause.key.removeprefix("context.")
    if not key.startswith(_GATE):
        return None
    part = key.removeprefix(_GATE)
    if part not in _OF_A_GATE:
        near = get_close_matches(part, _OF_A_GATE, n=1)
        fix = f"did you mean {_GATE}{near[0]}?" if near else f"use one of {', '.join(sorted(_OF_A_GATE))}"
        return "which no gate sets", fix
    known = answers.get(part)
    if not known or clause.operator not in ("=", "!=") or clause.literal in known | {""}:
        return None
    listed = ", ".join(sorted(known)[:20])
    return f"which is never {clause.literal}", f"compare it with one of {listed}"


def _clauses(view: RuleContext, condition: str) -> list[Clause]:
    return [clause for clauses in view.reading(condition).alternatives for clause in clauses]


def _keys(view: RuleContext, condition: str) -> list[str]:
    keys = {clause.key.removeprefix("context.") for clause in _clauses(view, condition)}
    return sorted(key for key in keys - _OF_THE_STEP if key and not key.startswith(_BUILT_IN))


def _words(view: RuleContext) -> set[str]:
    """The words of every text that may tell a model or a command to set a key."""
    whole = [view.pipeline, *view.pipeline.stages.values()]
    found = {
        word for what in whole for value in what.attrs.values() for word in _WORD.findall(as_text(value))
    }
    return found | {word.removeprefix("context.") for word in found}


CONDITIONS: Final[tuple[Check, ...]] = (condition_names, outcome_words, gate_answers)
