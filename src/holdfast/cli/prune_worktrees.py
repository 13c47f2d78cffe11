"""`holdfast prune --worktrees`: removes refs and worktrees of ended pipelines from the repository here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, run_label

if TYPE_CHECKING:
    from holdfast.attractor.left_worktrees import LeftWork
    from holdfast.runs.service import RunService


async def prune_worktrees(
    service: RunService, runs: Sequence[str], *, unmerged: bool, dry_run: bool, json: bool
) -> Exit:
    """`unmerged`: also work of the named runs that is on no branch."""
    from holdfast.attractor.git import GitCommandError, Repository
    from holdfast.attractor.left_worktrees import left_work, remove_left

    if unmerged and not runs:
        raise InputError(
            "--unmerged deletes work that is nowhere else.", hint="Name the runs whose work may be deleted."
        )
    try:
        repository = Repository.at(Path.cwd())
        found = left_work(repository)
        wanted = [_of_run(run, found) for run in dict.fromkeys(runs)] if runs else found
        reasons = {left.run: await _reason(service, left, unmerged=unmerged) for left in wanted}
        for left in wanted:
            if not reasons[left.run] and not dry_run:
                remove_left(repository, left)
    except GitCommandError as error:
        raise InputError(f"{error}.", hint="Call it in the repository of the pipelines.") from error
    if json:
        shown = [{**msgspec.to_builtins(each), "kept": reasons[each.run] or None} for each in wanted]
        print_json({"dry_run": dry_run, "worktrees": shown})
    else:
        _print(wanted, reasons, dry_run=dry_run)
    return Exit.ok


def _of_run(run: str, found: Sequence[LeftWork]) -> LeftWork:
    """By its id or the beginning of it, which must be that of one run: unmerged work may be deleted."""
    matching = [left for left in found if left.run.startswith(run)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InputError(
            f"{run!r} is the beginning of {len(matching)} run ids.",
            hint=f"Write more of one: {', '.join(left.run for left in matching[:10])}.",
        )
    raise InputError(
        f"no run {run!r} has left refs or worktrees in this repository.",
        hint="List them: holdfast prune --worktrees --dry-run",
    )


async def _reason(service: RunService, left: LeftWork, *, unmerged: bool) -> str:
    """Why it is kept; empty if it is removed."""
    row = await service.store.get_run(RunId(left.run))
    if row is None:
        return "this store does not have the run"
    if row.status not in ENDED:
        return f"the run is {run_label(row.status)}"
    if left.is_safe or unmerged:
        return ""
    lost = [f"{left.unmerged} unmerged commits"] if left.unmerged else []
    lost += [f"{left.changed} changed files in worktrees"] if left.changed else []
    return " and ".join(lost)


def _print(found: Sequence[LeftWork], reasons: dict[str, str], *, dry_run: bool) -> None:
    if not found:
        print_line("No pipeline has left refs or worktrees here.")
    for left in found:
        why = reasons[left.run]
        done = "kept" if why else "would be deleted" if dry_run else "deleted"
        what = f"{len(left.refs)} refs and {len(left.worktrees)} worktrees"
        print_line(f"{left.run[:8]}  {what} {done}{': ' + why if why else '.'}")
        if why and not left.is_safe:
            print_line(f"          see them: git log --glob=refs/holdfast/{left.run} --not --branches")
            print_line(f"          delete them: holdfast prune {left.run[:8]} --worktrees --unmerged")
