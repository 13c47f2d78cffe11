"""Validates a pipeline: runs every rule and returns all diagnostics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Protocol

from holdfast.errors import PipelineInvalidError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.extra_rules import ADVICE
from holdfast.frontends.dot.handler_kinds import BUILT_IN
from holdfast.frontends.dot.rule_context import BEGINNING, RuleContext
from holdfast.frontends.dot.rules import RULES

_SHOWN: Final = 50
"""Maximum number of errors that one message lists."""


class PipelineRule(Protocol):
    """A custom rule; `name` is for messages about the rule itself."""

    @property
    def name(self) -> str: ...

    def apply(self, graph: Pipeline, /) -> Iterable[Diagnostic]: ...


def validate(
    pipeline: Pipeline,
    extra_rules: Sequence[PipelineRule] | None = None,
    *,
    known_types: Collection[str] = BUILT_IN,
    strict: bool = False,
) -> list[Diagnostic]:
    """All diagnostics: of the specification's rules, the additional rules, then `extra_rules`, in order."""
    view = RuleContext(pipeline, known=known_types, strict=strict)
    found = [each for rule in (*RULES, *ADVICE) for each in rule(view)]
    for extra in extra_rules or ():
        found += _apply_rule(extra, pipeline)
    return found


def validate_or_raise(
    pipeline: Pipeline,
    extra_rules: Sequence[PipelineRule] | None = None,
    *,
    known_types: Collection[str] = BUILT_IN,
    strict: bool = False,
) -> list[Diagnostic]:
    """Like `validate`, but raises PipelineInvalidError that lists every error, if there is one."""
    found = validate(pipeline, extra_rules, known_types=known_types, strict=strict)
    require_valid(pipeline.name, found)
    return found


def require_valid(name: str, diagnostics: Sequence[Diagnostic]) -> None:
    """Raises PipelineInvalidError; `facts["diagnostics"]` has warnings too."""
    errors = [each for each in diagnostics if each.severity is DiagnosticSeverity.error]
    if not errors:
        return
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    lines = [f"  - {error}" for error in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        lines.append(f"  - and {len(errors) - _SHOWN} more")
    text = "\n".join(lines)
    raise PipelineInvalidError(
        f"pipeline {name} has {count}:\n{text}", pipeline=name, diagnostics=tuple(diagnostics)
    )


def _apply_rule(rule: PipelineRule, pipeline: Pipeline) -> list[Diagnostic]:
    """A rule that raises gives an error diagnostic, and does not hide those of other rules."""
    try:
        return list(rule.apply(pipeline))
    except Exception as error:
        return [
            Diagnostic(
                rule=rule.name,
                severity=DiagnosticSeverity.error,
                message=f"the rule itself failed: {type(error).__name__}: {error}",
                fix="correct the rule, or remove it",
                place=BEGINNING,
                path=pipeline.path,
            )
        ]
