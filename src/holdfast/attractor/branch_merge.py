"""Merges the commits of branches at their fan-in. Trees and commits are made without a working tree: a merge
that is not finished leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.attractor import branch_worktree
from holdfast.attractor.branch_refs import levels, ref_name
from holdfast.attractor.branch_worktree import COMMIT, ORIGIN, SCOPE, Worktree
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.stage_outputs import middle_cut
from holdfast.attractor.worktree_folders import FOLDER, is_committed, remove_worktree
from holdfast.attractor.worktree_requirements import WORKTREE
from holdfast.frontends.dot.document import Stage
from holdfast.types.own_threads import in_thread
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit

ALL, BEST, NONE = "all", "best", "none"
ASK, FAIL = "ask", "fail"
LEAVE_OUT, TAKE, BY_HAND, GIVE_UP = "leave it out", "take it alone", "use my merge", "fail"
MERGED: Final = "parallel.fan_in.merged"
_SHOWN: Final = 20_000
_FILES: Final = 20
_FAILED: Final = frozenset({StageStatus.FAIL, StageStatus.RETRY, StageStatus.SKIPPED})


class BranchCommit(NamedTuple):
    id: str
    commit: str
    origin: str


class Conflict(NamedTuple):
    ours: str
    branch: BranchCommit
    merged: tuple[str, ...]
    """The branches that are merged so far."""
    files: tuple[str, ...]


def fan_out_of(visit: StageVisit) -> Stage | None:
    """The fan-out with worktrees whose branches end at this stage."""
    name = visit.ctx.came_by.removesuffix(f"->{visit.stage.id}")
    stage = visit.pipeline.stages.get(name)
    return stage if stage is not None and stage.text("workspace") == WORKTREE else None


async def merge_branches(
    visit: StageVisit, results: Sequence[Mapping[str, Any]], best: Mapping[str, Any], chosen: StageOutcome
) -> StageOutcome:
    """The outcome of the fan-in with the merged commit: the following stages work on it."""
    fan = fan_out_of(visit)
    how = "" if fan is None else fan.text("merge") or ALL
    if fan is None or how == NONE:
        return chosen
    branches = [found for each in results if each["outcome"] not in _FAILED and (found := _branch(each))]
    # Not by its id: several branches may begin with one stage.
    alone = None if best["outcome"] in _FAILED else _branch(best)
    if how == BEST:
        branches = [] if alone is None else [alone]
    if not branches:
        # No stage of them could have changed a file.
        return chosen
    return await _Merge(visit, fan, branches, alone, chosen).perform()


def _branch(result: Mapping[str, Any]) -> BranchCommit | None:
    updates: Mapping[str, Any] = result.get("context_updates") or {}
    commit = str(updates.get(COMMIT) or "")
    return BranchCommit(str(result["id"]), commit, str(updates.get(ORIGIN) or "")) if commit else None


class _Merge:
    def __init__(
        self,
        visit: StageVisit,
        fan: Stage,
        branches: Sequence[BranchCommit],
        best: BranchCommit | None,
        chosen: StageOutcome,
    ) -> None:
        """`best`: None if no stage of the best branch could have changed a file."""
        self._visit, self._fan, self._branches = visit, fan, branches
        self._best, self._chosen = best, chosen
        self._at = 0
        self._repository = branch_worktree.repository_of(visit)

    async def perform(self) -> StageOutcome:
        visit = self._visit

        async def begin() -> int:
            await visit.show_settled()
            return visit.ctx.now()

        # As an effect: the results of the branches are committed when it begins.
        self._at = await visit.ctx.step("merge", begin, effect="external", idempotent=True, key="merge")
        commit, merged = self._branches[0].commit, (self._branches[0].id,)
        for branch in self._branches:
            await in_thread(branch_worktree.require_commit, visit, self._repository, branch.commit)
        for branch in self._branches[1:]:
            found = await in_thread(self._joined, commit, branch, merged)
            if isinstance(found, Conflict):
                found = await self._decide(found)
            if isinstance(found, StageOutcome):
                return found
            commit, merged, ends = found
            if ends:
                break
        return await self._finish(commit, merged)

    def _joined(
        self, ours: str, branch: BranchCommit, merged: tuple[str, ...]
    ) -> Conflict | tuple[str, tuple[str, ...], bool]:
        tree, files = self._repository.merge(ours, branch.commit)
        if files:
            return Conflict(ours, branch, merged, files)
        made = branch_worktree.commit_of(
            self._visit, self._workspace("", ""), tree, (ours, branch.commit), f"Merge {branch.id}"
        )
        return self._repository.commit(made), (*merged, branch.id), False

    async def _decide(self, found: Conflict) -> StageOutcome | tuple[str, tuple[str, ...], bool]:
        policy = self._fan.text("on_conflict") or ASK
        names = ", ".join(clean_text(name, 80) for name in found.files[:_FILES])
        what = f"branch {found.branch.id} and {', '.join(found.merged)} changed the same lines of {names}"
        if policy == FAIL:
            return _failed(f"merge conflict: {what}")
        if policy == BEST:
            return self._chosen if self._best is None else (self._best.commit, (self._best.id,), True)
        number = 1
        while True:
            answer = await self._ask(found, what, number)
            if answer == LEAVE_OUT:
                return found.ours, found.merged, False
            if answer == TAKE:
                return found.branch.commit, (found.branch.id,), False
            if answer != BY_HAND:
                return _failed(f"merge conflict: {what}")

            async def by_hand() -> str:
                return await in_thread(self._by_hand, found)

            key = f"by_hand.{found.branch.id}.{number}"
            made = await self._visit.ctx.step("merge by hand", by_hand, effect="read", key=key)
            if made:
                return made, (*found.merged, found.branch.id), False
            number += 1

    async def _ask(self, found: Conflict, what: str, number: int) -> str:
        """A person decides, who sees what both sides changed."""
        shown = await in_thread(self._diffs, found)
        again = "" if number == 1 else " The ref does not have a merge of both commits."
        more = {
            "files": list(found.files[:_FILES]),
            "commits": [found.ours, found.branch.commit],
            "ref of my merge": self._hand_ref(found),
        }
        reply = await self._visit.ctx.ask(
            # The text is compared with the recorded one: a changed text would stop runs that wait here.
            f"The branches of {self._fan.id!r} cannot be merged: {what}.{again} What now?",
            options=[LEAVE_OUT, TAKE, BY_HAND, GIVE_UP],
            context={**shown, **more},
            key=f"conflict.{found.branch.id}.{number}",
        )
        return str(reply.decision)

    def _diffs(self, found: Conflict) -> dict[str, str]:
        repository = self._repository
        base = repository.git("merge-base", found.ours, found.branch.commit).strip()
        ours = repository.diff(base, found.ours, *found.files)
        theirs = repository.diff(base, found.branch.commit, *found.files)
        return {
            f"diff of {', '.join(found.merged)}": middle_cut(ours, _SHOWN),
            f"diff of {found.branch.id}": middle_cut(theirs, _SHOWN),
        }

    def _hand_ref(self, found: Conflict) -> str:
        visit = self._visit
        place = ref_name(f"{visit.branch}{visit.stage.id}.{visit.ctx.visit}[0]/")
        return f"{branch_worktree.refs_of(visit)}merge/{place}/{found.branch.commit[:12]}"

    def _by_hand(self, found: Conflict) -> str:
        """The commit that a person made, if it has both."""
        repository = self._repository
        made = repository.commit_at(self._hand_ref(found))
        sides = (found.ours, found.branch.commit)
        return made if made and all(repository.is_ancestor(side, made) for side in sides) else ""

    async def _finish(self, commit: str, merged: tuple[str, ...]) -> StageOutcome:
        origin, scope = self._branches[0].origin, self._visit.branch
        workspace = self._workspace(commit, origin)
        await in_thread(self._write, workspace)
        notes = f"{self._chosen.notes}; merged: {', '.join(merged)} ({commit[:12]})"
        updates = {**self._chosen.context_updates, MERGED: list(merged)}
        updates |= {COMMIT: commit, ORIGIN: origin, SCOPE: scope}
        return StageOutcome(context_updates=updates, notes=notes)

    def _write(self, workspace: Worktree) -> None:
        branch_worktree.keep_as_merged(workspace)
        self._remove_branches()

    def _remove_branches(self) -> None:
        """If their commits have everything."""
        visit = self._visit
        folder = visit.logs.resolve() / FOLDER
        for path in folder.glob("*") if folder.is_dir() else ():
            for level in levels(path.name.replace("~", "/") + "/"):
                inside = level.scope.removeprefix(visit.branch)
                if inside.count("/") == 1 and level.fan == self._fan.id:
                    if is_committed(path):
                        remove_worktree(path)
                    break

    def _workspace(self, commit: str, origin: str) -> Worktree:
        """That of the scope around the branches."""
        visit = self._visit
        return branch_worktree.workspace_of(
            visit, self._repository, visit.branch, {"at": self._at, "commit": commit, "origin": origin}
        )


def _failed(reason: str) -> StageOutcome:
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason, terminal=True)
