"""What a new version of a flow means for the live runs of other versions: reported, tried, or done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.decision import Decision
from holdfast.engine.messages import Message, ResumeRequested, RunRecovered
from holdfast.engine.step import step
from holdfast.errors import HoldfastError, InputError
from holdfast.model.shown_names import shown_name
from holdfast.runs.driver.run_inbox import message_of
from holdfast.runs.engine_report import is_of_engine
from holdfast.runs.migrate.blockers import MigrationBlocker
from holdfast.runs.migrate.migrate import MigrationPlan, move, plan
from holdfast.store.rows import RunFilter
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.model.graph import Graph
    from holdfast.model.program import Program
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

LIVE = tuple(status for status in RunStatus if status not in ENDED)
_BATCH = 200


class MigrationReport(msgspec.Struct, kw_only=True):
    """About one run: whether it fits, the result of migrating it, what it would do next."""

    run: RunId
    flow: str
    status: RunStatus
    version: str
    fits: bool
    served: bool  # whether this process serves the run's present version
    misfits: list[MigrationBlocker] = []
    migrated: bool = False
    refused: str = ""
    renamed: dict[str, str] = {}
    forced: list[str] = []
    next: list[str] = []


async def check(service: RunAccess, program: Program) -> list[MigrationReport]:
    """Each live run of that flow on another version, oldest first: whether it would fit; then those of this
    version that its code cannot resume, inside of a script that has changed. Changes nothing."""
    return [
        *[_verdict(service, await plan(service, row, program)) async for row in _others(service, program)],
        *[found async for found in _changed_under(service, program)],
    ]


async def migrate(
    service: RunAccess,
    program: Program,
    *,
    runs: Sequence[str] = (),
    dry_run: bool = False,
    force: bool = False,
) -> list[MigrationReport]:
    """Migrate these runs (default: every live one on another version; a failed one only by its id, and then
    it may be resumed). A run that does not fit, or that a worker has, is not changed and is reported; the
    others continue. `force`: named runs are migrated despite reasons that the operator may accept."""
    if force and not runs:
        raise InputError("force needs the ids of runs.", hint="Name them: --run RUN.")
    rows = (
        [row async for row in _others(service, program)] if not runs else await _named(service, program, runs)
    )
    act = _try if dry_run else _move
    return [await act(service, row, program, force) for row in rows]


async def _changed_under(service: RunAccess, program: Program) -> AsyncIterator[MigrationReport]:
    """A script's functions are not part of its version, but it is not resumed in the middle by others."""
    if not _has_script(program):
        return
    async for row in _live(service, program):
        if row.version == program.version:
            found = await plan(service, row, program)
            if found.misfits:
                yield _verdict(service, found)


def _has_script(program: Program) -> bool:
    return any(node.script for node in program.graph.nodes) or any(
        map(_has_script, program.children.values())
    )


async def _others(service: RunAccess, program: Program) -> AsyncIterator[RunRow]:
    async for row in _live(service, program):
        if row.version != program.version:
            yield row


async def _live(service: RunAccess, program: Program) -> AsyncIterator[RunRow]:
    where = RunFilter(flow=program.graph.name, status=LIVE)
    found: list[RunRow] = []
    after: tuple[int, int] | None = None
    while rows := await service.store.list_runs(where, after=after, limit=_BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        found += (row for row in rows if not row.read_only)
    for row in reversed(found):
        yield row


async def _named(service: RunAccess, program: Program, runs: Iterable[str]) -> list[RunRow]:
    """Raises InputError for a run that cannot be migrated to this flow."""
    found: list[RunRow] = []
    for name in runs:
        row = await service.get(name)
        why = _unfit(row, program)
        if why:
            raise InputError(
                f"run {row.id} {why}.", hint="`holdfast flows check` lists those that can be moved."
            )
        found.append(row)
    return found


def _unfit(row: RunRow, program: Program) -> str:
    if row.flow != program.graph.name:
        return f"belongs to flow {row.flow!r}, not to {program.graph.name!r}"
    if row.read_only:
        return "is imported history"
    ends = {RunStatus.completed: "has already completed", RunStatus.cancelled: "has already been cancelled"}
    return ends.get(row.status, "")


def _verdict(service: RunAccess, found: MigrationPlan) -> MigrationReport:
    row = found.row
    return MigrationReport(
        run=row.id,
        flow=row.flow,
        status=row.status,
        version=row.version,
        fits=not found.misfits,
        served=row.version in service.runtime.programs,
        misfits=found.misfits,
        refused=_kept_by_engine(row),
        renamed=dict(found.note.get("renamed", {})),
        forced=list(found.note.get("forced", ())),
    )


def _kept_by_engine(row: RunRow) -> str:
    if not is_of_engine(row.worker):
        return ""
    return f"{row.worker} drives it, and keeps it on its version: fork it instead (`holdfast fork`)"


async def _move(service: RunAccess, row: RunRow, program: Program, force: bool) -> MigrationReport:
    if row.version == program.version:
        return _settled(service, row)
    why = _kept_by_engine(row)
    if why:
        return msgspec.structs.replace(_settled(service, row), refused=why)
    try:
        found = await move(service, row, program, force=force)
    except HoldfastError as error:
        return msgspec.structs.replace(_settled(service, row), refused=str(error))
    verdict = _verdict(service, found)
    verdict.migrated = not found.misfits
    verdict.status = (await service.get(row.id)).status
    return verdict


def _settled(service: RunAccess, row: RunRow) -> MigrationReport:
    return MigrationReport(
        run=row.id,
        flow=row.flow,
        status=row.status,
        version=row.version,
        fits=True,
        served=row.version in service.runtime.programs,
    )


# ---------------------------------------------------------------------- a dry run


async def _try(service: RunAccess, row: RunRow, program: Program, force: bool) -> MigrationReport:
    """On a copy in memory: migrated, checked, and advanced by one decision. The store is only read."""
    found = await plan(service, row, program, force=force)
    verdict = _verdict(service, found)
    if not found.misfits and not verdict.refused:
        verdict.next = await _foreseen(service, found, program.graph)
    return verdict


async def _foreseen(service: RunAccess, found: MigrationPlan, graph: Graph) -> list[str]:
    _, rows = await service.store.pending(found.row.id)
    unread = [message for row in rows if (message := await message_of(service.store, row)) is not None]
    failed = found.row.status is RunStatus.failed
    messages: list[Message] = [ResumeRequested() if failed else RunRecovered(), *unread]
    decision = step(graph, found.pos, messages, service.store.now())
    return list(_moves_text(decision))


def _moves_text(decision: Decision) -> Iterable[str]:
    pos: Any = decision.pos

    def label(scope: str, node: int) -> str:
        inner = pos.scope_graph(decision.graph, pos.scopes[scope])
        return shown_name(scope + inner.nodes[node].id, decision.graph)

    if decision.ended:
        yield f"it ends: {pos.status}"
        return
    for execution in decision.starts:
        yield f"node {label(execution.scope, execution.node)} starts"
    for wait in pos.holds.values():
        yield f"it waits for an answer at {label(wait.scope, wait.node) if wait.node >= 0 else 'its code'}"
    for scope, node in pos.timers.values():
        if not any((w.scope, w.node) == (scope, node) for w in pos.holds.values()):
            yield f"it waits for a time at {label(scope, node)}"
