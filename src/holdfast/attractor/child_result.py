"""What a child pipeline with worktrees has merged, for the stages after its manager: they work on it, as the
stages after a fan-in work on what that has merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.attractor import branch_worktree
from holdfast.attractor.branch_worktree import COMMIT, ORIGIN, SCOPE
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.worktree_requirements import needs_git
from holdfast.types.own_threads import in_thread

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit


async def with_result(visit: StageVisit, outcome: StageOutcome, context: Mapping[str, Any]) -> StageOutcome:
    """The outcome of the manager. `context`: of its child. A commit that no stage after the manager could
    have is a failure: its work would be lost."""
    commit = str(context.get(COMMIT) or "")
    if not commit:
        return outcome
    scope = visit.branch
    refused = "" if needs_git(visit.pipeline) else "is resolved late: let the manager name it"
    if visit.workspace is None and scope:
        refused = (
            "has worktrees, and the branch of its manager has none: set workspace=worktree on its fan-out"
        )
    elif visit.workspace is not None and not visit.workspace.owns:
        refused = (
            "has worktrees, and the branch of its manager shares one: set workspace=worktree on its fan-out"
        )
    if refused:
        reason = f"the child has merged {commit[:12]}, which no later stage would have: it {refused}"
        return StageOutcome(status=StageStatus.FAIL, failure_reason=reason, terminal=True)
    repository = await in_thread(branch_worktree.repository_of, visit)
    await in_thread(branch_worktree.require_commit, visit, repository, commit)
    origin = str(context.get(ORIGIN) or "")
    known = {"at": visit.ctx.now(), "commit": commit, "origin": origin}
    workspace = branch_worktree.workspace_of(visit, repository, scope, known)
    await in_thread(branch_worktree.keep_as_merged, workspace)
    if visit.workspace is not None:
        # Below its own commits are those of the branch.
        origin = visit.workspace.origin
    updates = {**outcome.context_updates, COMMIT: commit, ORIGIN: origin, SCOPE: scope}
    notes = f"{outcome.notes}; its result: {commit[:12]}"
    return msgspec.structs.replace(outcome, context_updates=updates, notes=notes)
