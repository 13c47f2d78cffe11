"""Includes other files in a pipeline: prompts by `@file`, whole pipelines by `subgraph_file`."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

from msgspec.structs import replace

from holdfast.errors import InputError, PipelineSyntaxError
from holdfast.frontends.dot.builtin_transforms import BUILT_IN_TRANSFORMS
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.files import FileAccess, FileRefusedError
from holdfast.frontends.dot.merge import embed
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.rule_context import RuleContext
from holdfast.frontends.dot.stylesheet import ATTRIBUTE

INCLUDE: Final = "subgraph_file"
DEEPEST: Final = 20
MOST: Final = 500
"""Maximum number of files that one pipeline may include; a file counts each time it is named."""
_REFUSED: Final = "this pipeline may not read files"
_FIX_REFUSED: Final = "write the text itself, or run it from a file"


class Inclusion:
    """Includes the files of one pipeline. Files that cannot be included are reported in `diagnostics`."""

    def __init__(self, files: FileAccess | None, *, strict: bool = False) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._files = files
        self._strict = strict
        self._included = 0

    def whole(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with its files included. The caller applies `$goal` and the stylesheet."""
        base = None if self._files is None else self._files.base.resolve()
        trail = () if base is None or not pipeline.path else (Path(pipeline.path).resolve(),)
        return self._texts(self._includes(pipeline, base, trail), base)

    def _includes(self, pipeline: Pipeline, folder: Path | None, trail: tuple[Path, ...]) -> Pipeline:
        found = pipeline
        for stage in pipeline.stages.values():
            if stage.text(INCLUDE) and self._included < MOST:
                child = self._child(pipeline, stage, folder, trail)
                found = found if child is None else self._embedded(found, stage, child)
        return found

    def _embedded(self, into: Pipeline, stage: Stage, child: Pipeline) -> Pipeline:
        try:
            return embed(into, stage.id, child)
        except InputError as error:
            message = f"{stage.text(INCLUDE)} cannot replace stage {stage.id}: {error.message.rstrip('.')}"
            self._add_diagnostic(into, stage, "include", message, fix=error.hint or "")
            return into

    def _child(
        self, pipeline: Pipeline, stage: Stage, folder: Path | None, trail: tuple[Path, ...]
    ) -> Pipeline | None:
        name = stage.text(INCLUDE)
        try:
            path = self._find(name, folder)
            if path in trail:
                cycle = " -> ".join(each.name for each in (*trail[trail.index(path) :], path))
                raise FileRefusedError(f"the pipelines include each other: {cycle}", "break the cycle")
            self._included += 1
            if len(trail) > DEEPEST or self._included == MOST:
                limit = f"{DEEPEST} files deep or {MOST} in all"
                raise FileRefusedError(f"including {name} exceeds the limit of {limit}", "include less")
            assert self._files is not None
            shown = str(Path(pipeline.path).parent / name) if pipeline.path else name
            parsed = parse(self._files.read(path, name), path=shown, strict=self._strict)
        except FileRefusedError as error:
            self._add_diagnostic(pipeline, stage, "include", error.message, fix=error.fix)
        except PipelineSyntaxError as error:
            self.diagnostics += cast("tuple[Diagnostic, ...]", error.facts["diagnostics"])
        else:
            self.diagnostics += parsed.diagnostics
            return self._prepared(parsed.pipeline, path, trail)
        return None

    def _prepared(self, child: Pipeline, path: Path, trail: tuple[Path, ...]) -> Pipeline:
        """Its own goal and stylesheet are applied before it becomes part of another."""
        found = self._texts(self._includes(child, path.parent, (*trail, path)), path.parent)
        for transform in BUILT_IN_TRANSFORMS:
            found = transform.apply(found)
        return found

    def _texts(self, pipeline: Pipeline, folder: Path | None) -> Pipeline:
        stages = dict(pipeline.stages)
        for name, stage in pipeline.stages.items():
            text = self._text(pipeline, stage, "prompt", folder)
            if text is not None:
                stages[name] = replace(stage, attrs={**stage.attrs, "prompt": text})
        sheet = self._text(pipeline, pipeline, ATTRIBUTE, folder)
        attrs = pipeline.attrs if sheet is None else {**pipeline.attrs, ATTRIBUTE: sheet}
        return replace(pipeline, stages=stages, attrs=attrs)

    def _text(self, pipeline: Pipeline, what: Pipeline | Stage, key: str, folder: Path | None) -> str | None:
        """The text to use instead: the content of `@file`, or `@...` for `@@...`; None to keep the text."""
        text = what.text(key)
        if text.startswith("@@"):
            return text[1:]
        name = text[1:].strip()
        if not text.startswith("@") or not name or len(name.split()) > 1:
            return None
        try:
            path = self._find(name, folder)
            assert self._files is not None
            return self._files.read(path, name)
        except FileRefusedError as error:
            escape = f"write @@{name[:40]} for a text that begins with @"
            fix = f"{error.fix}; {escape}" if error.fix else escape
            self._add_diagnostic(
                pipeline, what, "file_reference", f"{key}: {error.message}", key=key, fix=fix
            )
            return None

    def _find(self, name: str, folder: Path | None) -> Path:
        if self._files is None:
            raise FileRefusedError(f"{name}: {_REFUSED}", _FIX_REFUSED)
        return self._files.find(name, folder)

    def _add_diagnostic(
        self,
        pipeline: Pipeline,
        what: Pipeline | Stage,
        rule: str,
        message: str,
        *,
        fix: str,
        key: str = INCLUDE,
    ) -> None:
        self.diagnostics.append(
            RuleContext(pipeline).at(rule, DiagnosticSeverity.error, what, message, key=key, fix=fix)
        )
