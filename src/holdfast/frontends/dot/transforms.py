"""Prepares a pipeline to run: parses its text, includes files, applies transforms, and validates it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from holdfast.frontends.dot.builtin_transforms import BUILT_IN_TRANSFORMS as BUILT_IN_TRANSFORMS
from holdfast.frontends.dot.builtin_transforms import AnyTransform as AnyTransform
from holdfast.frontends.dot.builtin_transforms import Transform as Transform
from holdfast.frontends.dot.builtin_transforms import VariableExpansionTransform as VariableExpansionTransform
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.files import FileAccess as FileAccess
from holdfast.frontends.dot.files import PipelineFiles, access_of
from holdfast.frontends.dot.handler_kinds import BUILT_IN
from holdfast.frontends.dot.include import Inclusion
from holdfast.frontends.dot.merge import embed as embed
from holdfast.frontends.dot.merge import merge as merge
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.rule_context import RuleContext
from holdfast.frontends.dot.stylesheet import StylesheetTransform as StylesheetTransform
from holdfast.frontends.dot.validate import PipelineRule, require_valid, validate


class PrepareResult(msgspec.Struct, frozen=True):
    pipeline: Pipeline
    diagnostics: tuple[Diagnostic, ...]
    """Diagnostics of parsing, including, transforming and validating."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(each for each in self.diagnostics if each.severity is DiagnosticSeverity.error)

    def require_valid(self) -> Pipeline:
        """Raises PipelineInvalidError that lists every error."""
        require_valid(self.pipeline.name, self.diagnostics)
        return self.pipeline


def prepare(
    source: str | bytes,
    *,
    path: str = "",
    strict: bool = False,
    files: PipelineFiles | None = None,
    transforms: Iterable[AnyTransform] = (),
    extra_rules: Sequence[PipelineRule] = (),
    known_types: Collection[str] = BUILT_IN,
) -> PrepareResult:
    """`transforms` run after the built-in ones, in their order. Files that the pipeline names are read with
    `files`; without it, only a pipeline with a path may name files, apart from child pipelines. Raises
    PipelineSyntaxError."""
    parsed = parse(source, path=path, strict=strict)
    inclusion = Inclusion(files or access_of(path), strict=strict)
    pipeline = inclusion.whole(parsed.pipeline)
    found = [*parsed.diagnostics, *inclusion.diagnostics]
    included = len(inclusion.diagnostics)
    for transform in (*BUILT_IN_TRANSFORMS, *transforms):
        pipeline = _transformed(pipeline, transform, found)
    found += validate(pipeline, extra_rules, known_types=known_types, strict=strict)
    pipeline = inclusion.with_children(pipeline, known_types)
    return PrepareResult(pipeline, (*found, *inclusion.diagnostics[included:]))


def _transformed(pipeline: Pipeline, transform: AnyTransform, found: list[Diagnostic]) -> Pipeline:
    """A transform that fails is skipped and reported, so that other problems are found too."""
    name = getattr(transform, "__name__", type(transform).__name__)
    try:
        apply: Any = getattr(transform, "apply", transform)
        made: object = apply(pipeline)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    else:
        if isinstance(made, Pipeline):
            return made
        problem = f"it returned {type(made).__qualname__}, not a pipeline"
    message = f"the transform {name} failed: {problem}"
    found.append(
        RuleContext(pipeline).at(
            "transform", DiagnosticSeverity.error, pipeline, message, fix="correct the transform"
        )
    )
    return pipeline
