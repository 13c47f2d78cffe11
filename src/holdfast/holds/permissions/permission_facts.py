"""Looks up earlier events that matter for who may act on a hold now, only if they are needed."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.holds.actions.conflicts import resolution_of
from holdfast.holds.deployments.deployments import Deployments
from holdfast.holds.permissions.assignees import DELEGATED
from holdfast.holds.permissions.check import PermissionFacts
from holdfast.holds.permissions.starters import RunStarters
from holdfast.store.protocols import Store
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.hold import HoldRow, Note
from holdfast.types.ids import checkpoint_seq, run_prefix
from holdfast.types.schedule import person_behind
from holdfast.types.status import HoldStatus

ALL = 10_000


async def permission_facts(store: Store, deployments: Deployments, row: HoldRow, now: int) -> PermissionFacts:
    approvers, last_editor, editors = await _deciders(store, row)
    owner = await _owner(deployments, row)
    return PermissionFacts(
        initiator=row.started_by,
        approvers=approvers,
        last_editor=last_editor,
        editors=editors,
        owners=frozenset({owner}) if owner else frozenset(),
        asked=await _asked(store, row),
        astray=await _astray(deployments, row, now),
    )


async def _deciders(store: Store, row: HoldRow) -> tuple[frozenset[str], str | None, frozenset[str]]:
    """The people who decided earlier holds of the run, and the last one who edited what they decided."""
    # Most holds exclude neither; the holds of the run and of its ancestors are read only for those that do.
    if not {"earlier_approvers", "last_editor"} & set(row.terms.approval.exclude):
        return frozenset(), None, frozenset()
    found, forkers = await _decided_before(store, row)
    earlier = sorted((each for each in found if each.id != row.id), key=lambda each: each.resolved_at or 0)
    edited = [each for each in earlier if resolution_of(each).get("edited_fields")]
    deciders = frozenset(by for each in earlier for by in _who_decided(each)) | forkers
    if not edited:
        return deciders, None, forkers
    return deciders, edited[-1].resolved_by, forkers | frozenset(_who_decided(edited[-1]))


async def _decided_before(store: Store, row: HoldRow) -> tuple[list[HoldRow], frozenset[str]]:
    """Holds of its run with its parents and children, and of the runs that it was forked from, up to the
    fork; and who made those forks through a server: they stand behind what they took along."""
    run, forkers, found = await store.get_run(row.run), set[str](), list[HoldRow]()
    for each in await _family(store, run) if run is not None else ():
        found += await store.holds(run=each.id, status=HoldStatus.resolved, limit=ALL)
    # A fork must not be a way around the exclusion: approvals before the fork belong to its history.
    while run is not None and run.forked_from is not None:
        makers = await RunStarters(store).forked_by(run.tenant, run.id)
        run, at = await source_of(store, run.forked_from)
        if run is not None:
            theirs = await store.holds(run=run.id, status=HoldStatus.resolved, limit=ALL)
            # Only up to the fork: later decisions of the original run are not part of this run's past.
            taken = [each for each in theirs if each.seq < at]
            found += taken
            forkers.update(makers if taken else ())
    return found, frozenset(forkers)


async def _family(store: Store, run: RunRow) -> list[RunRow]:
    """The run, those whose scripts have started it, and all that these have started: an approval may be
    split over them."""
    top = run
    while top.parent_run is not None and (above := await store.get_run(top.parent_run)) is not None:
        top = above
    found = [top]
    for each in found:
        found += await store.list_runs(RunFilter(parent_run=each.id), after=None, limit=ALL)
    return found


async def source_of(store: Store, checkpoint: str) -> tuple[RunRow | None, int]:
    """The run of a checkpoint, and the checkpoint's seq; None if that run was deleted."""
    for run in await store.find_runs(run_prefix(checkpoint)):
        seq = checkpoint_seq(checkpoint, run.id)
        if seq is not None:
            return run, seq
    return None, 0


def _who_decided(row: HoldRow) -> list[str]:
    """All voters, the people they substituted, and everybody who took part behind them."""
    resolution = resolution_of(row)
    votes: list[dict[str, Any]] = resolution.get("votes") or []
    # The absent person counts as well: otherwise they could approve twice, once through the substitute.
    names: list[str | None] = [row.resolved_by, resolution.get("on_behalf_of")]
    names += [vote.get(field) for vote in votes for field in ("person", "on_behalf_of")]
    for part in (resolution, *votes):
        names += part.get("took_part") or []
    return [name for name in names if name]


async def _owner(deployments: Deployments, row: HoldRow) -> str | None:
    if row.deployment is None:
        return None
    found = await deployments.find(row.deployment, tenant=row.tenant)
    return None if found is None else found.created_by


async def _asked(store: Store, row: HoldRow) -> frozenset[str]:
    """People with an open question asked back."""
    if row.paused_at is None:
        return frozenset()
    notes = await store.hold_notes(row.id, kinds=("question",))
    return frozenset(asked_of(note) for note in notes)


def agent_of(row: HoldRow) -> str:
    """Who answers questions to the run's agent: the service that started it, else the run itself."""
    starter = person_behind(row.started_by) or ""
    return starter if starter.startswith("service:") else f"agent:{row.run}"


def asked_of(note: Note) -> str:
    """The person whom a question was put to."""
    return str(msgspec.json.decode(note.body).get("to"))


async def _astray(deployments: Deployments, row: HoldRow, now: int) -> bool:
    if row.assignee_type != DELEGATED:
        return False
    found = await deployments.delegation(row.tenant, row.assignee_value)
    return found is None or not found.is_active(now)
