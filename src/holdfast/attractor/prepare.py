"""From the text of a pipeline to its program, and the input of its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.attractor.backends.select import KEY
from holdfast.attractor.branch_worktree import RESERVED
from holdfast.attractor.context import storable
from holdfast.attractor.handlers.human import ANSWERS, AUTO_KEY
from holdfast.attractor.handlers.manager import SOURCE
from holdfast.attractor.program import PipelineSetup, program_for
from holdfast.attractor.run_files import LOGS_KEY
from holdfast.attractor.worktree_requirements import repository_problems, require_repository
from holdfast.errors import InputError
from holdfast.frontends.dot.diagnostics import Diagnostic
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import context_of
from holdfast.frontends.dot.transforms import AnyTransform, prepare
from holdfast.frontends.dot.validate import PipelineRule, require_valid, validate_or_raise
from holdfast.model.program import Program

PipelineSource = str | bytes | Path | Pipeline


class PreparedPipeline(msgspec.Struct, frozen=True):
    """A pipeline without errors, with its code."""

    pipeline: Pipeline
    program: Program
    diagnostics: tuple[Diagnostic, ...]


def prepare_pipeline(
    source: PipelineSource,
    setup: PipelineSetup,
    *,
    path: str = "",
    strict: bool = False,
    transforms: Iterable[AnyTransform] = (),
    extra_rules: Sequence[PipelineRule] = (),
) -> PreparedPipeline:
    """A text, a file's path, or a prepared pipeline. Raises PipelineSyntaxError and PipelineInvalidError:
    a pipeline with an error is never run."""
    known = setup.whole_registry().types
    if isinstance(source, Pipeline):
        found = validate_or_raise(source, list(extra_rules), known_types=known, strict=strict)
        return PreparedPipeline(source, program_for(source, setup), tuple(found))
    text, path = (read_source(source), path or str(source)) if isinstance(source, Path) else (source, path)
    prepared = prepare(
        text, path=path, strict=strict, transforms=transforms, extra_rules=extra_rules, known_types=known
    )
    if prepared.errors:
        # What this machine lacks is shown with what is wrong in the document.
        lacks = repository_problems(prepared.pipeline)
        require_valid(prepared.pipeline.name, [*prepared.diagnostics, *lacks])
    pipeline = prepared.pipeline
    return PreparedPipeline(pipeline, program_for(pipeline, setup), prepared.diagnostics)


def read_source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the pipeline {path} cannot be read: {error.strerror}.", hint="Check its path."
        ) from error


def input_of(
    pipeline: Pipeline,
    *,
    logs: Path | None = None,
    backend: str = "",
    auto_approve: bool = False,
    context: Mapping[str, Any] | None = None,
    here: bool = True,
) -> dict[str, Any]:
    """The input of a run: the graph's attributes, the caller's values, and the run's options, which every
    worker that resumes the run reads from there. `here`: its worker is on this machine. Raises InputError if
    it needs a repository that is not here."""
    given = {key: storable(key, value) for key, value in (context or {}).items()}
    reserved = [key for key in given if key.removeprefix("context.").startswith((RESERVED, ANSWERS))]
    if reserved:
        raise InputError(
            f"the context key {reserved[0]!r} is set by the engine only.", hint="Use another name."
        )
    how: dict[str, Any] = require_repository(pipeline, given) if here else {}
    if pipeline.path:
        how[SOURCE] = str(Path(pipeline.path).resolve())
    if logs is not None:
        how[LOGS_KEY] = str(logs.resolve())
    if backend:
        how[KEY] = backend
    if auto_approve:
        how[AUTO_KEY] = True
    return {**context_of(pipeline), **given, **how}
