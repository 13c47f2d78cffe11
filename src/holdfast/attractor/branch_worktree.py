"""A worktree for each branch of a fan-out with `workspace=worktree`, and a commit for each settled stage.

A commit is known by the context alone (`workspace.commit`): refs, worktrees and bundles can be made again
from it. Worktrees are in the run's directory, refs below `refs/holdfast/RUN/`; the user's branch, index and
files are only read.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.attractor.branch_files import FOLDER as BRANCHES
from holdfast.attractor.branch_files import branch_name
from holdfast.attractor.branch_refs import Level, fan_name, levels, ref_name, refs_prefix
from holdfast.attractor.continuation import Continuation
from holdfast.attractor.detached_commands import CHILD
from holdfast.attractor.directory_owner import read_owner
from holdfast.attractor.git import Commit, GitCommandError, Repository, git_fault
from holdfast.attractor.machine_requirements import require_allowed
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.run_files import OWNER, is_refused_here, make_private
from holdfast.attractor.worktree_folders import (
    FOLDER,
    INDEX,
    add_folder,
    admin_folder,
    adopt_folder,
    alone,
    point_to,
)
from holdfast.attractor.worktree_requirements import WORKTREE, working_folder
from holdfast.errors import RunFileMissingError
from holdfast.frontends.dot.policies import RESULTS
from holdfast.telemetry import current_node
from holdfast.types.own_threads import in_thread
from holdfast.types.text import one_line

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit

COMMIT: Final = "workspace.commit"
"""In the context: the last commit of this branch, or of the run. Only the engine sets it."""
ORIGIN: Final = "workspace.origin"
"""In the context: the user's commit below the run's; empty if the repository had none."""
SCOPE: Final = "workspace.scope"
"""In the context: the scope whose worktree has that commit; a merge sets it."""
RESERVED: Final = "workspace."
STEP: Final = "commit"
"""The sub-step under which the journal records the commit of a stage, and what it changed."""
BUNDLE: Final = "branch.bundle"
RESULT_BUNDLE: Final = "result.bundle"
_MAIN: Final = "result"


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """Where a stage works. `owns`: whether its scope has the worktree; a shared fan-out inside a worktree has
    none of its own, and what its branches do is part of the next commit."""

    repository: Repository
    path: Path
    """The worktree."""
    scope: str
    owns: bool
    refs: str
    """The beginning of the names of the run's refs."""
    root: Path
    commit: str
    origin: str
    at: int
    """When the stage began, by its record: the date of its commit."""

    @property
    def folder(self) -> Path:
        """The working folder in the worktree."""
        return self.path / self.repository.prefix

    @property
    def ref(self) -> str:
        return f"{self.refs}branches/{ref_name(self.scope)}" if self.scope else f"{self.refs}{_MAIN}"

    @property
    def bundle(self) -> Path:
        if not self.scope:
            return self.root / RESULT_BUNDLE
        return self.root / BRANCHES / branch_name(self.scope) / BUNDLE

    @property
    def place(self) -> list[str]:
        """What it stands for, and where it is."""
        return [str(self.repository.top.resolve()), str(self.path.resolve())]

    def inside(self, folder: str) -> Path:
        """A folder of the user's working tree, in the worktree; others are what they are."""
        wanted = Path(folder).resolve()
        top = self.repository.top.resolve()
        return self.path / wanted.relative_to(top) if wanted.is_relative_to(top) else wanted

    def keep(self, commit: str) -> None:
        """The ref and the bundle of the branch."""
        self.repository.set_ref(self.ref, commit)
        if is_refused_here():
            return
        make_private(self.bundle.parent)
        # With the bases: a branch that has not begun is nowhere else.
        refs = [self.ref, f"--glob={self.refs}base/*"]
        self.repository.bundle(self.bundle, refs, without=self.origin)


def owner_of(visit: StageVisit) -> str | None:
    """The scope whose worktree a stage uses; None: the user's working tree. Of pipelines with worktrees."""
    found = None
    for level in levels(visit.branch):
        stage = visit.pipeline.stages.get(level.fan)
        if stage is not None and stage.text("workspace") == WORKTREE:
            found = level.scope
    if visit.context.get_string(COMMIT):
        merged = visit.context.get_string(SCOPE)
        if visit.branch.startswith(merged) and (found is None or len(merged) > len(found)):
            return merged
    return found


def _unmerged_scope(visit: StageVisit) -> str | None:
    """The scope of a fan-out that was to be merged, and was not: the stages after it do not work in the
    user's folder either."""
    results: Any = visit.context.get(RESULTS)
    for result in cast("list[Any]", results) if isinstance(results, list) else ():
        for level in list(levels(_scope_of(result)))[-1:]:
            fan = visit.pipeline.stages.get(level.fan)
            around = level.scope.removesuffix("/").rpartition("/")[0]
            scope = f"{around}/" if around else ""
            merges = fan is not None and fan.text("workspace") == WORKTREE and fan.text("merge") != "none"
            if merges and visit.branch.startswith(scope):
                return scope
    return None


def _has_begun_outside(visit: StageVisit) -> bool:
    """Whether an older version has started it in the user's folder: its effects must not happen again."""
    if visit.ctx.recorded("workspace") is not None:
        return False
    return any(visit.ctx.recorded(call) not in (None, "budget") for call in (0, 1, 2, "begin"))


def _scope_of(result: Any) -> str:
    """Of the worktree of a branch, by its result."""
    updates: Any = (
        cast("Mapping[str, Any]", result).get("context_updates") if isinstance(result, Mapping) else 0
    )
    found: Any = cast("Mapping[str, Any]", updates).get(SCOPE) if isinstance(updates, Mapping) else ""
    return found if isinstance(found, str) else ""


async def enter(visit: StageVisit, *, joins: bool = False) -> Worktree | None:
    """The worktree of a stage, made if it is not there; None: the user's working tree. `joins`: it is a
    fan-in, which may merge. Raises RunFileMissingError if this machine does not have the repository, or a
    commit of the run."""
    scope = owner_of(visit)
    if scope is None and not joins and not _has_begun_outside(visit):
        scope = _unmerged_scope(visit)
    if scope is None:
        return None
    require_allowed(visit)
    repository = await in_thread(repository_of, visit)

    async def start() -> dict[str, Any]:
        commit, origin = await in_thread(_start, visit, repository, scope)
        return {"at": visit.ctx.now(), "commit": commit, "origin": origin}

    # Outside of the sub-step: that this machine lacks something is no result of it.
    known = await start() if visit.ctx.recorded("workspace") is None else None

    async def begin() -> dict[str, Any]:
        await visit.show_settled()
        return known or await start()

    # As an effect: what was settled before is committed when it begins.
    kept = await visit.ctx.step("workspace", begin, effect="external", idempotent=True, key="workspace")
    await in_thread(require_commit, visit, repository, kept["commit"])
    workspace = workspace_of(visit, repository, scope, kept)
    await in_thread(_prepare_alone, workspace)
    return workspace


def workspace_of(visit: StageVisit, repository: Repository, scope: str, known: Mapping[str, Any]) -> Worktree:
    return Worktree(
        repository=repository,
        path=visit.logs.resolve() / FOLDER / (branch_name(scope) if scope else _MAIN),
        scope=scope,
        owns=visit.branch == scope,
        refs=refs_of(visit),
        root=visit.logs,
        **known,
    )


async def settle(visit: StageVisit, workspace: Worktree, outcome: StageOutcome) -> tuple[dict[str, str], str]:
    """Commits what the stage left: the changes of the context, and the difference as text."""
    if not workspace.owns:
        return {}, ""

    async def commit() -> dict[str, str]:
        return await in_thread(_commit, visit, workspace, outcome)

    # With the difference, so that the directory can be made again from the journal.
    made = await visit.ctx.step(STEP, commit, effect="read", key=STEP)
    known = {COMMIT: made["commit"], ORIGIN: workspace.origin, SCOPE: workspace.scope}
    return known, made["diff"]


def _commit(visit: StageVisit, workspace: Worktree, outcome: StageOutcome) -> dict[str, str]:
    repository, admin = workspace.repository, admin_folder(workspace.path)
    index = admin / INDEX
    # All processes of the stage have ended: a lock is left from one that was killed.
    for lock in (admin / "index.lock", admin / f"{INDEX}.lock", admin / "HEAD.lock"):
        lock.unlink(missing_ok=True)
    _copied(admin / "index", index)
    unresolved = repository.unresolved(workspace.path, index)
    if unresolved:
        shown = ", ".join(one_line(name, 60) for name in unresolved[:3])
        raise GitCommandError(f"the stage left a merge with conflicts in {workspace.path} ({shown})")
    tree = repository.tree_of_files(workspace.path, index)
    links = repository.new_links(workspace.commit, tree)
    if links:
        # Their files would be in no commit, and lost with the worktree.
        shown = ", ".join(one_line(name, 60) for name in links[:3])
        raise GitCommandError(
            f"the stage left a git repository inside its worktree ({shown}), whose files cannot be part of a "
            f"commit; delete its .git, or let .gitignore name it. They stay in {workspace.path}"
        )
    made = commit_of(
        visit, workspace, tree, (workspace.commit,), f"{visit.stage.id}: {outcome.status}", outcome
    )
    commit = repository.commit(made)
    workspace.keep(commit)
    # Commits that an agent made itself are part of this one: its files count, not its history.
    repository.git("update-ref", "--no-deref", "HEAD", commit, at=workspace.path)
    index.replace(admin / "index")
    return {"commit": commit, "diff": repository.diff(workspace.commit, commit)}


def commit_of(
    visit: StageVisit,
    workspace: Worktree,
    tree: str,
    parents: tuple[str, ...],
    title: str,
    outcome: StageOutcome | None = None,
) -> Commit:
    """All of it from the record."""
    run = visit.ctx.run_id
    notes = "" if outcome is None else outcome.failure_reason or outcome.notes
    body = [one_line(notes, 500)] if notes else []
    place = f"{visit.branch}{visit.stage.id}"
    lines = [one_line(title, 100), "", *body, *([""] if body else []), f"Run: {run}", f"Stage: {place}"]
    return Commit(
        tree=tree,
        parents=parents,
        message="\n".join([*lines, f"Visit: {visit.ctx.visit}"]) + "\n",
        author=_row().started_by or "Holdfast",
        email=f"{run}@holdfast.invalid",
        at=workspace.at,
    )


def repository_of(visit: StageVisit) -> Repository:
    folder = working_folder(visit.pipeline, visit.given) or "."
    try:
        fault = git_fault()
        if fault:
            raise GitCommandError(fault)
        return Repository.at(Path(folder).resolve())
    except GitCommandError as error:
        raise RunFileMissingError(
            f"this run waits for a worker with the repository {folder}: {one_line(error, 300)}.",
            hint="Start a worker in the working tree of the repository.",
            missing=[f"repository:{Path(folder).resolve().name}"],
        ) from error


def _start(visit: StageVisit, repository: Repository, scope: str) -> tuple[str, str]:
    """The commit on which the stage works, and the user's commit below it."""
    _take_bases(visit, repository)
    commit = visit.context.get_string(COMMIT)
    if commit:
        return commit, visit.context.get_string(ORIGIN)
    return _base(visit, repository, list(levels(scope))[-1] if scope else None)


def _base(visit: StageVisit, repository: Repository, level: Level | None) -> tuple[str, str]:
    """HEAD with the uncommitted work, once for all branches of a fan-out: the ref is its record."""
    fan = "start" if level is None else fan_name(level)
    ref = f"{refs_of(visit)}base/{fan}"
    found = repository.commit_at(ref)
    if not found:
        found = _snapshot(visit, repository)
        try:
            repository.set_ref(ref, found, new=True)
        except GitCommandError:
            # Another branch was first.
            found = repository.commit_at(ref)
            if not found:
                raise
    return found, repository.commit_at(f"{found}^")


def _take_bases(visit: StageVisit, repository: Repository) -> None:
    """From the run whose directory this one continues, by the repository or by its bundles, or of which it is
    a fork: all of them, because this run replaces its bundles."""
    known, restarts = Continuation.of(visit.given), visit.ctx.restarts
    run = known.run if known is not None and known.restarts == restarts else _row().forked_from
    if not run:
        return
    own, former = f"{refs_of(visit)}base/", f"{refs_prefix(run, restarts)}base/"
    if repository.refs(own):
        return
    found = repository.refs(former)
    for path in () if found else _bundles(visit):
        with suppress(GitCommandError):
            found |= repository.take_bundle(path)
    for ref, commit in found.items():
        if ref.startswith(former):
            with suppress(GitCommandError):
                # Another branch may do the same.
                repository.set_ref(own + ref.removeprefix(former), commit, new=True)


def _snapshot(visit: StageVisit, repository: Repository) -> str:
    top = repository.top
    own = Path(
        repository.git("rev-parse", "--path-format=absolute", "--git-path", "index").removesuffix("\n")
    )
    folder = visit.logs.resolve() / FOLDER
    make_private(folder)
    index = folder / f".base-{branch_name(visit.branch)}.index"
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    try:
        _copied(own, index)
        left = [visit.logs.resolve(), *_run_directories(repository), *repository.nested(top)]
        tree = repository.tree_of_files(top, index, without=left)
    finally:
        index.unlink(missing_ok=True)
    head, row = repository.commit_at("HEAD"), _row()
    return repository.commit(
        Commit(
            tree=tree,
            parents=(head,) if head else (),
            message=f"The work in progress\n\nRun: {visit.ctx.run_id}\n",
            author=row.started_by or "Holdfast",
            email=f"{visit.ctx.run_id}@holdfast.invalid",
            at=row.created_at,
        )
    )


def _run_directories(repository: Repository) -> list[Path]:
    """New files, but no work of the user: of this run, if it was restarted, and of other runs."""
    found = (path.parent for path in repository.untracked(OWNER))
    return [folder for folder in found if read_owner(folder) is not None]


def require_commit(visit: StageVisit, repository: Repository, commit: str) -> None:
    """From the bundles of the run's directory, if the repository does not have it. Raises
    RunFileMissingError."""
    if repository.has(commit):
        return
    fault = "no bundle of its directory has it"
    for path in _bundles(visit):
        try:
            repository.take_bundle(path)
        except GitCommandError as error:
            fault = one_line(error, 300)
            continue
        if repository.has(commit):
            return
    raise RunFileMissingError(
        f"this run waits for a worker with the commit {commit[:12]}: {repository.top} does not have it, "
        f"and {fault}.",
        hint="Fetch the commits on which the run was started, and keep its directory whole.",
        missing=[f"commit:{commit[:12]}"],
    )


def _bundles(visit: StageVisit) -> list[Path]:
    known = Continuation.of(visit.given)
    roots = [visit.logs, *([] if known is None else [Path(known.folder)])]
    # A manager may need those of its child.
    stages = [visit.folder, *([] if known is None else [known.stage_folder(visit)])]
    roots += [folder for stage in stages for folder in sorted(stage.glob(f"{CHILD}*"))]
    return [
        path
        for root in roots
        for path in (*sorted((root / BRANCHES).glob(f"*/{BUNDLE}")), root / RESULT_BUNDLE)
        if path.is_file()
    ]


def _prepare_alone(workspace: Worktree) -> None:
    """Branches that share a worktree may enter it at the same time."""
    make_private(workspace.path.parent)
    with alone(workspace.path.parent):
        _prepare(workspace)


def _prepare(workspace: Worktree) -> None:
    """The worktree at its commit. Files that are there stay: they are of this stage, or of nobody's else."""
    repository, path = workspace.repository, workspace.path
    if path.is_dir():
        adopt_folder(repository, path, workspace.commit)
        if not _is_at(repository, path, workspace.commit):
            point_to(repository, path, workspace.commit)
    else:
        add_folder(repository, path, workspace.commit)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    if workspace.owns and not is_refused_here() and not workspace.bundle.exists():
        # Before its first commit too: without it another machine could not begin the branch.
        workspace.keep(workspace.commit)


def _is_at(repository: Repository, path: Path, commit: str) -> bool:
    """Whether a worktree has the commit, or commits after it: those of an agent that was interrupted, whose
    index has files that git ignores otherwise. Git makes no index for a folder that was adopted."""
    if not (admin_folder(path) / "index").exists():
        return False
    head = repository.git("rev-parse", "--verify", "HEAD", at=path, ok=(0, 128)).strip()
    return head == commit or (bool(head) and repository.is_ancestor(commit, head))


def advance(workspace: Worktree, commit: str) -> None:
    """The files of the worktree as in the commit. Repeated after a crash, it ends the same."""
    path, repository = workspace.path, workspace.repository
    (admin_folder(path) / "index.lock").unlink(missing_ok=True)
    repository.git("reset", "--hard", "--quiet", commit, at=path)
    workspace.keep(commit)


def keep_as_merged(workspace: Worktree) -> None:
    """Its commit is what the following stages work on; where there is a worktree, its files too."""
    if workspace.path.is_dir():
        advance(workspace, workspace.commit)
    else:
        workspace.keep(workspace.commit)


def refs_of(visit: StageVisit) -> str:
    return refs_prefix(visit.ctx.run_id, visit.ctx.restarts)


def _copied(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        # With its time: by it git knows which files may have changed since it was written.
        shutil.copy2(source, target)


def _row() -> Any:
    at: Any = current_node.get()
    assert at is not None, "outside of a stage"
    return at[0].row


def without_reserved(updates: Mapping[str, Any]) -> dict[str, Any]:
    """An agent must not choose by its status file on which commit the next stage works."""
    return {key: value for key, value in updates.items() if not key.startswith(RESERVED)}
