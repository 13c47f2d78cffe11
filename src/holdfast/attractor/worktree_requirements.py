"""What `workspace=worktree` needs of a machine: a repository without submodules, and a newer git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from holdfast.attractor.git import repository_faults
from holdfast.errors import InputError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline

WORKTREE: Final = "worktree"
WORKDIR: Final = "internal.workdir"
"""In the run's input: the folder in which its commands run, as an absolute path; of a child pipeline that of
its manager."""
WORKTREES: Final = "internal.worktrees"
"""In the input of a child pipeline: (folder, worktree) for each repository in whose place it has a worktree
of the stages above it, the outermost first."""
PARENT: Final = "stack.parent.run_id"
"""In the input of a child pipeline."""
_REPOSITORY_HINT: Final = (
    "Start it in the working tree of a repository, with a newer git; or use workspace=shared."
)


def has_worktrees(pipeline: Pipeline) -> bool:
    return any(stage.text("workspace") == WORKTREE for stage in pipeline.stages.values())


def needs_git(pipeline: Pipeline) -> bool:
    return has_worktrees(pipeline) or any(needs_git(child) for child in pipeline.children.values())


def require_repository(pipeline: Pipeline, given: Mapping[str, Any]) -> dict[str, Any]:
    """For a run that is created here: the folder whose repository it uses, for its input. Raises InputError
    with every reason why it cannot."""
    if not needs_git(pipeline):
        return {}
    folder = _folder_of(pipeline, given)
    faults = _faults_of(folder)
    if faults:
        raise InputError(f"workspace=worktree: {'; '.join(faults)}.", hint=_REPOSITORY_HINT)
    return {WORKDIR: str(folder)}


def repository_problems(pipeline: Pipeline) -> list[Diagnostic]:
    """The same reasons beside the errors of a document, to be shown with them."""
    faults = _faults_of(_folder_of(pipeline, {})) if needs_git(pipeline) else []
    return [
        Diagnostic(
            rule="repository",
            severity=DiagnosticSeverity.error,
            message=f"workspace=worktree: {fault}",
            fix=_REPOSITORY_HINT.rstrip("."),
        )
        for fault in faults
    ]


def working_folder(pipeline: Pipeline, given: Mapping[str, Any], own: str = "") -> str:
    """Where the stages of a run work, or the one whose `cwd` is `own`; empty: in the folder of the worker.
    Relative to where the run was started, or to the folder of the manager's stage, if the run knows it: a
    worker may have been started elsewhere."""
    known, wanted = str(given.get(WORKDIR) or ""), own or pipeline.text("workdir")
    is_child = PARENT in given
    if known and not own and not is_child:
        return known
    if known and (is_child or not pipeline.text("workdir")):
        wanted = str(Path(known) / wanted)
    return _in_worktrees(wanted, given)


def _in_worktrees(folder: str, given: Mapping[str, Any]) -> str:
    """An absolute path into a repository is one into the worktree that stands for it."""
    if not Path(folder).is_absolute():
        return folder
    found: Any = given.get(WORKTREES)
    places = cast("list[list[str]]", found) if isinstance(found, list) else []
    for number, (of, at) in enumerate(places):
        path = Path(folder).resolve()
        # Worktrees may be inside of their repository.
        is_there = any(path.is_relative_to(each[1]) for each in places[number:])
        if path.is_relative_to(of) and not is_there:
            folder = str(at / path.relative_to(of))
    return folder


def _folder_of(pipeline: Pipeline, given: Mapping[str, Any]) -> Path:
    return Path(pipeline.text("workdir") or str(given.get(WORKDIR) or ".")).resolve()


def _faults_of(folder: Path) -> list[str]:
    return repository_faults(folder) if folder.is_dir() else [f"the folder {folder} does not exist"]
