"""Reads the other files of a pipeline: prompts by `@file`, whole pipelines by `subgraph_file`, and the child
pipelines of its managers."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final, cast

from msgspec.structs import replace

from holdfast.errors import InputError, PipelineSyntaxError
from holdfast.frontends.dot.attributes import BUDGET, NODE
from holdfast.frontends.dot.builtin_transforms import BUILT_IN_TRANSFORMS
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.files import FileAccess, FileRefusedError, PipelineFiles
from holdfast.frontends.dot.handler_kinds import BUILT_IN, kind_of
from holdfast.frontends.dot.merge import OF_INCLUSIONS, embed, with_approvals_of
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.policies import wanted_approvals
from holdfast.frontends.dot.rule_context import RuleContext
from holdfast.frontends.dot.stylesheet import ATTRIBUTE
from holdfast.frontends.dot.validate import validate

INCLUDE: Final = "subgraph_file"
CHILD: Final = "stack.child_dotfile"
RESOLVE: Final = "stack.child_resolve"
LATE: Final = "late"
"""As `stack.child_resolve`: the child is read when its manager starts it, not when the run is created."""
DEEPEST: Final = 20
MOST: Final = 500
"""Maximum number of files of one pipeline; a file counts each time it is named."""
MOST_BYTES: Final = 8 * 1024 * 1024
_REFUSED: Final = "this pipeline may not read files"
_FIX_REFUSED: Final = "write the text itself, or run it from a file"


class Inclusion:
    """Reads the files of one pipeline. Files that cannot be used are reported in `diagnostics`."""

    def __init__(self, files: PipelineFiles | None, *, strict: bool = False) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._files = files
        self._strict = strict
        self._read = 0
        self._bytes = 0

    def whole(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with its files included. The caller applies `$goal` and the stylesheet."""
        folder = None if self._files is None else self._files.root
        return self._texts(self._includes(pipeline, folder, self._trail(pipeline)), folder)

    def with_children(self, pipeline: Pipeline, known: Collection[str]) -> Pipeline:
        """The transformed pipeline with the children of its managers. A pipeline without a file names them
        relative to the current folder."""
        self._files = self._files or FileAccess(base=Path.cwd(), confined=False)
        return self._children(pipeline, self._files.root, self._trail(pipeline), known)

    def _trail(self, pipeline: Pipeline) -> tuple[Path, ...]:
        return () if self._files is None or not pipeline.path else (Path(pipeline.path).resolve(),)

    def _includes(self, pipeline: Pipeline, folder: Path | None, trail: tuple[Path, ...]) -> Pipeline:
        found = pipeline
        for stage in pipeline.stages.values():
            if stage.text(INCLUDE) and self._read < MOST:
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
            _require_no_cycle(path, trail, "include")
            parsed = parse(
                self._text_of(path, name, len(trail)), path=_shown(pipeline, name), strict=self._strict
            )
        except FileRefusedError as error:
            self._add_diagnostic(pipeline, stage, "include", error.message, fix=error.fix)
        except PipelineSyntaxError as error:
            self.diagnostics += cast("tuple[Diagnostic, ...]", error.facts["diagnostics"])
        else:
            self.diagnostics += parsed.diagnostics
            self._note_budgets(pipeline, stage, parsed.pipeline)
            self._note_ignored(pipeline, stage)
            return self._prepared(parsed.pipeline, path, trail)
        return None

    def _note_budgets(self, pipeline: Pipeline, stage: Stage, child: Pipeline) -> None:
        for key in sorted(BUDGET & child.attrs.keys() - pipeline.attrs.keys()):
            message = f"{key} of {stage.text(INCLUDE)} has no effect: a budget is that of the whole run"
            view, fix = RuleContext(pipeline), f"write graph [{key}=...] here"
            warning = DiagnosticSeverity.warning
            self.diagnostics.append(view.at("include", warning, stage, message, key=INCLUDE, fix=fix))

    def _note_ignored(self, pipeline: Pipeline, stage: Stage) -> None:
        for key in sorted((NODE & stage.explicit) - OF_INCLUSIONS):
            message = f"{key} has no effect on stage {stage.id}, which {stage.text(INCLUDE)} replaces"
            # Without them somebody is not asked.
            is_guard = key.removeprefix("human.") in ("assignee", "excluded")
            severity = DiagnosticSeverity.error if is_guard else DiagnosticSeverity.warning
            fix = "write it on the stages of that file"
            view = RuleContext(pipeline)
            self.diagnostics.append(view.at("include", severity, stage, message, key=key, fix=fix))

    def _prepared(self, child: Pipeline, path: Path, trail: tuple[Path, ...]) -> Pipeline:
        """Its managers name their children relative to the outermost file, before it becomes part of another.
        Those of files that it includes do so already."""
        found = self._transformed(child, path, trail)
        stages = {
            stage.id: replace(stage, attrs={**stage.attrs, CHILD: self._from_root(name, path.parent)})
            for stage, name in managed_children(found)
            if not stage.origin
        }
        return replace(found, stages={**found.stages, **stages}) if stages else found

    def _transformed(self, pipeline: Pipeline, path: Path, trail: tuple[Path, ...]) -> Pipeline:
        """With the files that it includes, and its own goal and stylesheet."""
        found = self._texts(self._includes(pipeline, path.parent, (*trail, path)), path.parent)
        for transform in BUILT_IN_TRANSFORMS:
            found = transform.apply(found)
        return found

    def _from_root(self, name: str, folder: Path) -> str:
        """The name of a file in `folder` as seen from the outermost file; unchanged if it is not there."""
        assert self._files is not None
        try:
            return os.path.relpath(self._files.find(name, folder), self._files.root)
        except FileRefusedError:
            return name

    def _children(
        self, pipeline: Pipeline, folder: Path, trail: tuple[Path, ...], known: Collection[str]
    ) -> Pipeline:
        found: dict[str, Pipeline] = {}
        for stage, name in managed_children(pipeline):
            if name in found or not stage.flag("stack.child_autostart", default=True):
                continue
            if LATE not in (stage.text(RESOLVE), pipeline.text(RESOLVE)) and self._read < MOST:
                child = self._managed(pipeline, stage, name, folder, trail, known)
                found |= {} if child is None else {name: child}
        return replace(pipeline, children=found) if found else pipeline

    def _managed(
        self,
        pipeline: Pipeline,
        stage: Stage,
        name: str,
        folder: Path,
        trail: tuple[Path, ...],
        known: Collection[str],
    ) -> Pipeline | None:
        """The child of the manager `stage`, with its own children; None if it has an error."""
        try:
            path = self._find_child(name, folder)
            _require_no_cycle(path, trail, "start")
            text = self._text_of(path, name, len(trail))
            parsed = parse(text, path=_shown(pipeline, name), strict=self._strict)
        except FileRefusedError as error:
            what, message = stage if CHILD in stage.attrs else pipeline, f"{CHILD}: {error.message}"
            self._add_diagnostic(pipeline, what, "child_dotfile", message, fix=error.fix, key=CHILD)
            return None
        except PipelineSyntaxError as error:
            self.diagnostics += cast("tuple[Diagnostic, ...]", error.facts["diagnostics"])
            return None
        child = with_approvals_of(
            self._transformed(parsed.pipeline, path, trail), asked_of_child(pipeline, name)
        )
        faults = [*parsed.diagnostics, *validate(child, (), known_types=known, strict=self._strict)]
        self.diagnostics += [each for each in faults if each.severity is DiagnosticSeverity.error]
        return self._children(child, path.parent, (*trail, path), known)

    def _find_child(self, name: str, folder: Path) -> Path:
        """Relative to the file that names it, else to the current folder."""
        assert self._files is not None
        try:
            return self._files.find(name, folder)
        except FileRefusedError:
            if self._files.confined or not Path(name).is_file():
                raise
            return Path(name).resolve()

    def _text_of(self, path: Path, name: str, depth: int = 0) -> str:
        """Raises FileRefusedError."""
        assert self._files is not None
        self._read += 1
        text = self._files.read(path, name)
        self._bytes += len(text.encode())
        if depth > DEEPEST or self._read == MOST:
            limit = f"{DEEPEST} files deep or {MOST} in all"
            raise FileRefusedError(f"including {name} exceeds the limit of {limit}", "include less")
        if self._bytes > MOST_BYTES:
            self._read = MOST
            limit = f"{MOST_BYTES // 1024 // 1024} MB for all files of a pipeline"
            raise FileRefusedError(f"including {name} exceeds the limit of {limit}", "include less")
        return text

    def _texts(self, pipeline: Pipeline, folder: Path | None) -> Pipeline:
        stages = dict(pipeline.stages)
        for name in pipeline.stages:
            for key in ("prompt", "output_schema"):
                text = self._text(pipeline, stages[name], key, folder)
                if text is not None:
                    stages[name] = replace(stages[name], attrs={**stages[name].attrs, key: text})
        sheet = self._text(pipeline, pipeline, ATTRIBUTE, folder)
        attrs = pipeline.attrs if sheet is None else {**pipeline.attrs, ATTRIBUTE: sheet}
        return replace(pipeline, stages=stages, attrs=attrs)

    def _text(self, pipeline: Pipeline, what: Pipeline | Stage, key: str, folder: Path | None) -> str | None:
        """The text to use instead: the content of `@file`, or `@...` for `@@...`; None to keep the text."""
        text = what.text(key)
        if text.startswith("@@"):
            return text[1:]
        name = text[1:].strip()
        if not text.startswith("@") or not name or len(name.split()) > 1 or self._read >= MOST:
            return None
        try:
            return self._text_of(self._find(name, folder), name)
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


def managed_children(pipeline: Pipeline) -> list[tuple[Stage, str]]:
    """The managers, each with the name of its child pipeline."""
    return [
        (stage, name)
        for stage in pipeline.stages.values()
        if kind_of(stage, BUILT_IN) == "stack.manager_loop"
        and (name := stage.text(CHILD) or pipeline.text(CHILD))
    ]


def asked_of_child(pipeline: Pipeline, name: str) -> frozenset[str]:
    """What any manager of that child asks about: they share it."""
    managers = [stage for stage, child in managed_children(pipeline) if child == name]
    return frozenset(tool for stage in managers for tool in wanted_approvals(stage, pipeline))


def _require_no_cycle(path: Path, trail: tuple[Path, ...], verb: str) -> None:
    if path in trail:
        cycle = " -> ".join(each.name for each in (*trail[trail.index(path) :], path))
        words = "include each other" if verb == "include" else "start each other in a cycle"
        raise FileRefusedError(f"the pipelines {words}: {cycle}", "break the cycle")


def _shown(pipeline: Pipeline, name: str) -> str:
    return str(Path(pipeline.path).parent / name) if pipeline.path else name
