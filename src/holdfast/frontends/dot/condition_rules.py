"""Rules for what conditions read: a missing key is the empty text, so a misspelt one decides silently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.rule_context import Check, RuleContext
from holdfast.frontends.dot.values import as_text
from holdfast.model.pipeline_conditions import OUTCOME_ALIASES, OUTCOMES, Clause

_OF_THE_STEP: Final = frozenset({"outcome", "preferred_label", "current_node", "last_stage", "last_response"})
_BUILT_IN: Final = (
    "graph.", "human.gate.", "internal.", "parallel.", "stack.", "tool.", "manager.",
)  # fmt: skip
"""What handlers of the product set begins with one of these."""
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


CONDITIONS: Final[tuple[Check, ...]] = (condition_names, outcome_words)
