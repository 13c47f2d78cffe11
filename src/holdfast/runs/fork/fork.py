"""A fork: a new run that starts from a checkpoint of another run, which does not change (D-35)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint import Blob
from holdfast.checkpoint.read_without_code import LenientRegistry
from holdfast.errors import BlobMissingError, CheckpointNotFoundError, FlowNotFoundError, KeyReusedError
from holdfast.holds.permissions.starters import RunStarters
from holdfast.model.program import Program
from holdfast.runs.answer_fields import without_answers
from holdfast.runs.attachments import inherited_files
from holdfast.runs.concurrency_limits.run_limits import limits_for_fork
from holdfast.runs.create import new_run
from holdfast.runs.engine_moves import with_limit
from holdfast.runs.events import RunReader, reader_of
from holdfast.runs.fork.carried_decisions import fork_point, require_no_repeats
from holdfast.runs.fork.first_records import add_blobs, first_records
from holdfast.runs.fork.patch import apply_patch, partitions
from holdfast.runs.history.checkpoints import FoldedRun, fold_to, resolve
from holdfast.runs.history.versions import version_at
from holdfast.runs.hold_states import prepare_first_holds
from holdfast.runs.idempotency import branch_id, branch_of_key, comparable
from holdfast.runs.stored_program import stored_program
from holdfast.store.errors import require_live
from holdfast.store.rows import NewRun, RunRow
from holdfast.telemetry import crashpoint
from holdfast.types.ids import RunId, checkpoint_id, new_run_id
from holdfast.types.record import Record
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.types.terms import Actor


async def fork(
    service: RunAccess,
    ref: str,
    seq: int | None = None,
    *,
    patch: Mapping[str, Any] | None = None,
    given: Any = None,
    supersede: bool = False,
    run_id: str | None = None,
    started_by: str | None = None,
    actor: Actor | None = None,
    repeat_effects: bool = False,
) -> RunRow:
    """A new run from a checkpoint, with what `patch` says changed; durable when this returns.

    `patch` has the partitions input, scratch, artifacts and diagnostics; each is merged key by key. `given`
    is short for {"input": ...}. `supersede`: the source ends as cancelled in the same transaction.
    `started_by`: the initiator of the new run; by default that of the source.
    `actor`: the caller of a server, who becomes the initiator; decisions that they may not take along are
    asked again (`carried.fork_point`). The initiators of the source stay initiators. `repeat_effects`: the
    caller accepts that effects outside run again; without it such a fork raises EffectsRepeatedError.
    Where no code of the flow is loaded, the patch is checked against its stored graph. Raises
    CheckpointNotFoundError,
    StateError for a patch that does not fit, VersionMismatchError where only another version of the flow is
    loaded, FlowNotFoundError where none is and the run holds values of the flow's own types.
    """
    asked, at = await resolve(service, ref, seq)
    source = asked
    if supersede:
        require_live(source)
    changes, superseded = partitions(patch, given), source.id if supersede else None
    if actor is not None:
        started_by = actor.id
        source, at, repeats = await fork_point(service, source, at, actor)
        if not repeat_effects:
            require_no_repeats(asked.id, repeats)
    start = await fork_start(service, source, at, changes, actor)
    program, run = start.program, RunId(run_id) if run_id else new_run_id()
    if start.reader.exact:
        await service.store_flow(program)
    now = service.store.now()
    records, more = first_records(
        program, start.folded, run, now, start.reader.codec, supersedes=superseded, changes=start.changes
    )
    await service.runtime.blobs.of(source.tenant).put(start.blobs + more)
    add_blobs(records[0], await inherited_files(service.runtime.blobs, source))
    crashpoint("inside_fork")
    source = await with_limit(service.store, source)
    new = _row(program, run, records, source, at, now, supersedes=superseded, started_by=started_by)
    new.parent_run = await _waiting_parent(service, source) if supersede else None
    await _put_starters(service, new, asked, actor)
    await prepare_first_holds(service, program, new)
    row, _ = await service.add_run(program, new)
    return row


async def require_fork(
    service: RunAccess, source: RunRow, at: int, *, patch: Mapping[str, Any] | None = None
) -> None:
    """Raises what `fork` would raise for this record and patch; writes nothing."""
    await fork_start(service, source, at, partitions(patch, None), None)


class ForkStart(msgspec.Struct, frozen=True):
    """Where a fork begins: the source as it was at the record, with the changes applied."""

    program: Program
    reader: RunReader
    folded: FoldedRun
    changes: dict[str, Any]
    blobs: list[Blob]


async def fork_start(
    service: RunAccess, source: RunRow, at: int, changes: dict[str, Any], actor: Actor | None
) -> ForkStart:
    """Raises what `fork` raises for this record and these changes; writes nothing."""
    then = msgspec.structs.replace(source, version=await version_at(service, source, at))
    reader = await reader_of(service, then)
    program = _program(service, then, reader)
    if actor is not None:
        changes = without_answers(reader.graph.spec, changes, every=service.runtime.preparer.has_policies)
    folded = await fold_to(service, source, at, reader)
    if changes:
        # A patch is applied to values, so they have to be loaded.
        await service.runtime.blobs.materialise(folded.pos, folded.reader.codec.registry)
    _require_plain(reader, source)
    blobs: list[Blob] = []
    if changes:
        from holdfast.holds.forms.schema_threads import compare

        # A changed input is compared whole.
        given = folded.pos.scopes[""].tree.frames[0].over["input"] if "input" in changes else None
        slow = program.schema.is_slow_to_start([changes, given])
        blobs = await compare(source.tenant, slow, apply_patch, program, folded, changes, reader.codec)
    return ForkStart(program, reader, folded, changes, blobs)


async def _put_starters(service: RunAccess, new: NewRun, source: RunRow, actor: Actor | None) -> None:
    """Who counts as having started the new run: the caller and the initiators of the source."""
    starters = RunStarters(service.store)
    people = (*(actor.people if actor else ()), *await starters.of_source(source))
    await starters.put(new.tenant, new.id, people, started_by=new.started_by)
    if actor is not None:
        await starters.put_forked_by(new.tenant, new.id, actor.people)


async def fork_once(
    service: RunAccess,
    row: RunRow,
    seq: int | None,
    *,
    patch: Mapping[str, Any] | None = None,
    given: Any = None,
    supersede: bool = False,
    key: str | None = None,
    actor: Actor | None = None,
    repeat_effects: bool = False,
) -> tuple[RunRow, bool]:
    """A fork or rewind from a record, or from the run's latest state; once for each `key`: the same request
    again gives the same run.

    `actor`: who asks, and becomes its initiator: they must not approve their own changes where initiators
    are excluded. Raises KeyReusedError if the key was used for a fork of another run, or for one with
    another patch."""
    run = None if key is None else branch_id(row, key)
    at = row.head if seq is None else seq
    if key is not None:
        # If a decision has to be asked again, the fork may start in an ancestor of this run, to which the key
        # belongs.
        base = row if actor is None else (await fork_point(service, row, at, actor)).run
        known = await branch_of_key(service, base, key)
        if known is not None:
            await _require_same_patch(service, known, partitions(patch, given), actor, key)
            return known, False
    made = await fork(
        service,
        row.id,
        at,
        patch=patch,
        given=given,
        supersede=supersede,
        run_id=run,
        actor=actor,
        repeat_effects=repeat_effects,
    )
    return made, True


async def _require_same_patch(
    service: RunAccess, known: RunRow, changes: dict[str, Any], actor: Actor | None, key: str
) -> None:
    """The patch is applied once more where the fork began, and the values are compared. If those
    records were pruned, the request counts as the same."""
    try:
        source, at = await resolve(service, known.forked_from or "")
        if known.horizon > 0 or source.horizon > at:
            return
        asked = (await fork_start(service, source, at, changes, actor)).folded
        made = await fold_to(service, known, 0)
        for folded in (asked, made):
            await service.runtime.blobs.materialise(folded.pos, folded.reader.codec.registry)
    except (CheckpointNotFoundError, BlobMissingError):
        return
    if _values(asked) != _values(made):
        raise KeyReusedError(
            f"the key {key!r} was already used for run {known.id}, a fork with other changes.",
            hint="Give each request a key of its own, and the same key only to the same request.",
            run=known.id,
        )


def _values(folded: FoldedRun) -> Any:
    return comparable({name: dict(part) for name, part in folded.pos.scopes[""].tree.frames[0].over.items()})


async def _waiting_parent(service: RunAccess, source: RunRow) -> RunId | None:
    """A run that takes the place of a child is one; cancelling its parent cancels it."""
    parent = None if source.parent_run is None else await service.store.get_run(source.parent_run)
    return None if parent is None or parent.status in ENDED else parent.id


def _row(
    program: Program,
    run: RunId,
    records: list[Record],
    source: RunRow,
    at: int,
    now: int,
    *,
    supersedes: RunId | None,
    started_by: str | None,
) -> NewRun:
    """It gets the tenant and names of its source."""
    return new_run(
        program,
        run,
        records,
        limits_for_fork(program, source),
        now,
        lane=source.lane,
        priority=source.priority,
        tenant=source.tenant,
        thread=source.thread,
        instance_key=source.instance_key,
        started_by=started_by or source.started_by,
        deployment=source.deployment,
        forked_from=checkpoint_id(source.id, at),
        supersedes=supersedes,
    )


def _program(service: RunAccess, source: RunRow, reader: RunReader) -> Program:
    loaded = service.runtime.programs
    if not reader.exact and not any(program.graph.name == source.flow for program in loaded.values()):
        return stored_program(source, reader.graph)
    return service.runtime.program_for(source.version, source.flow)


def _require_plain(reader: RunReader, source: RunRow) -> None:
    registry = reader.codec.registry
    if isinstance(registry, LenientRegistry) and registry.met:
        raise FlowNotFoundError(
            f"run {source.id} holds values of types of flow {source.flow!r}, whose code is not loaded.",
            hint="Import the module that defines it, or name its file.",
            flow=source.flow,
        )
