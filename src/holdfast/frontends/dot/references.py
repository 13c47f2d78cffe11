"""References in prompts to what earlier stages left: `{{stages.test.stdout | tail(4000)}}`.

`stages.ID.FIELD`, `branches.ID.FIELD` and `context.KEY`, with `head(N)` or `tail(N)` characters. What a
reference is replaced by is not read again, and every other `{{` stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.frontends.dot.rule_context import Check, RuleContext, name_list

FIELDS: Final = ("response", "stdout", "stderr", "notes", "failure_reason", "verdict", "diff", "outcome")
STAGES, BRANCHES, CONTEXT = "stages", "branches", "context"
_REFERENCE: Final = re.compile(
    r"\{\{[ \t]*(stages|branches|context)\.([^\s{}|]+)[ \t]*"
    r"(?:\|[ \t]*(head|tail)\([ \t]*(\d{1,9})[ \t]*\)[ \t]*)?\}\}"
)


class Reference(NamedTuple):
    """`name`: the id of a stage or branch, or the key. `field`: empty for a key of the context."""

    kind: str
    name: str
    field: str
    text: str
    cut: str = ""
    length: int = 0

    def shortened(self, value: str) -> str:
        if not self.cut or len(value) <= self.length:
            return value
        if self.cut == "head":
            return value[: self.length]
        return value[len(value) - self.length :]


def references_in(text: str) -> Iterator[Reference]:
    return (_reference(found) for found in _REFERENCE.finditer(text))


def expanded(text: str, value_of: Callable[[Reference], str]) -> str:
    """Each reference replaced by its value, in one pass."""

    def value(found: re.Match[str]) -> str:
        reference = _reference(found)
        return reference.shortened(value_of(reference))

    return _REFERENCE.sub(value, text) if "{{" in text else text


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The same references, to stages with other ids."""

    def renamed(found: re.Match[str]) -> str:
        reference = _reference(found)
        if reference.kind == CONTEXT or reference.name not in names:
            return reference.text
        start, end = (place - found.start() for place in found.span(2))
        path = f"{names[reference.name]}.{reference.field}"
        return f"{reference.text[:start]}{path}{reference.text[end:]}"

    return _REFERENCE.sub(renamed, text) if "{{" in text else text


def _reference(found: re.Match[str]) -> Reference:
    kind, path, cut, length = found.groups()
    # Keys of the context have dots; ids of stages have none.
    name, _, field = (path, "", "") if kind == CONTEXT else path.rpartition(".")
    return Reference(kind, name, field, found.group(0), cut or "", int(length or 0))


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
