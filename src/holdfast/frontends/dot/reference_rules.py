"""Rules for references in prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.frontends.dot.references import BRANCHES, CONTEXT, FIELDS, references_in
from holdfast.frontends.dot.rule_context import Check, RuleContext, name_list

_JUMPS: Final = ("retry_target", "fallback_retry_target")


def prompt_references(view: RuleContext) -> Iterator[Diagnostic]:
    """A stage that does not exist is an error; one that cannot run before, a warning."""
    for stage in view.stages_with("prompt"):
        for found in references_in(stage.prompt):
            if found.kind == CONTEXT:
                continue
            if found.name not in view.pipeline.stages:
                message = f"{found.text[:80]} in the prompt of {stage.id} names a stage that does not exist"
                yield _at(view, stage, DiagnosticSeverity.error, message, "name a stage of this pipeline")
            elif found.field not in FIELDS:
                message = f"{found.text[:80]} in the prompt of {stage.id}: there is no {found.field[:40]}"
                fix = f"use one of {name_list(FIELDS)}"
                yield _at(view, stage, DiagnosticSeverity.error, message, fix)
            elif found.kind == BRANCHES and not _begins_branch(view, found.name):
                message = f"{found.name} does not begin a branch, so {found.text[:80]} is always empty"
                yield _at(
                    view, stage, DiagnosticSeverity.warning, message, "name the first stage of a branch"
                )
            elif found.name not in _earlier(view, stage.id):
                message = f"{found.name} cannot run before {stage.id}, so {found.text[:80]} is always empty"
                yield _at(view, stage, DiagnosticSeverity.warning, message, "name an earlier stage")


def _begins_branch(view: RuleContext, name: str) -> bool:
    stages = view.pipeline.stages
    return any(
        link.source in stages and kind_of(stages[link.source]) == "parallel"
        for link in view.pipeline.incoming.get(name, ())
    )


def _at(view: RuleContext, stage: Stage, how: DiagnosticSeverity, message: str, fix: str) -> Diagnostic:
    return view.at("prompt_references", how, stage, message, key="prompt", fix=fix)


def _earlier(view: RuleContext, last: str) -> set[str]:
    """The stages from which a path leads to this one; itself only in a loop."""
    pipeline = view.pipeline
    # A jump may come from any stage.
    jumps = {what.text(key) for what in (pipeline, *pipeline.stages.values()) for key in _JUMPS}
    found: set[str] = set()
    todo = [last]
    while todo:
        at = todo.pop()
        links = pipeline.incoming.get(at, ())
        sources = set(pipeline.stages) if at in jumps else {link.source for link in links}
        todo += sources - found
        found |= sources
    return found


REFERENCES: Final[tuple[Check, ...]] = (prompt_references,)
