"""What events say beyond their own record: the run's progress, and which questions a resume asks again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.checkpoint.run_history import begin
from holdfast.errors import StoreError
from holdfast.model.events import entity_of
from holdfast.model.migration import MIGRATED
from holdfast.runs.driver.load import load
from holdfast.runs.history.versions import migration_note
from holdfast.types.hold import options_json
from holdfast.types.ids import CheckpointId, HoldId, RunId, checkpoint_id
from holdfast.types.record import Kind, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.runs.history.versions import RunReaders
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow
    from holdfast.types.event import Event

_DONE = frozenset({"success", "partial_success", "skipped"})
_PROGRESS = frozenset({"checkpoint.created", "run.resumed"})
_ENDS = frozenset({"run.completed", "run.failed", "run.cancelled"})


async def _progress_start(
    service: RunAccess, row: RunRow, readers: RunReaders, upto: int
) -> tuple[int, dict[str, bool]]:
    """(record, completed nodes up to it), not after `upto`; True: a node of the flow itself."""
    known = service.caches.progress(row.id, upto)
    if known is not None:
        return known
    (first,) = await service.store.read(row.id, first=row.horizon, last=row.horizon)
    history = begin(first, readers.at(first.seq).codec.decode(first))
    done = {e.label: not e.scope for e in history.executions if e.settled and e.outcome in _DONE}
    return first.seq, done


async def complete(service: RunAccess, row: RunRow, readers: RunReaders, events: Sequence[Event]) -> None:
    """Add what these events say about the run as a whole (R-15 to R-17)."""
    wanted = [event for event in events if event.type in _PROGRESS]
    if wanted:
        await _fill_progress(service, row, readers, wanted)
    for event in events:
        if event.type == "hold.asked_again":
            await _fill_question(service, event)
        elif event.type in _ENDS:
            await _fill_end(service, row, readers, event)


async def _fill_end(service: RunAccess, row: RunRow, readers: RunReaders, event: Event) -> None:
    """The last event contains the run's result and its duration since creation (G-48)."""
    event.data["duration_us"] = event.at - row.created_at
    reader = readers.at(event.data["seq"])
    try:
        loaded = await load(
            service.store,
            reader.codec,
            reader.graph,
            row.id,
            blobs=service.runtime.blobs,
            upto=event.data["seq"],
        )
        await service.runtime.blobs.materialise(loaded.pos, reader.codec.registry)
    except StoreError as error:
        # The end itself is known; only the result cannot be read.
        event.data["output_unreadable"] = str(error)
        return
    event.data["output"] = loaded.pos.scopes[""].tree.merged().get("artifacts", {})


async def _fill_progress(service: RunAccess, row: RunRow, readers: RunReaders, wanted: list[Event]) -> None:
    at, done = await _progress_start(service, row, readers, wanted[0].data["seq"])
    last = wanted[-1].data["seq"]
    records = await service.store.read(row.id, first=at + 1, last=last, payloads=False) if last > at else []
    rest = iter(records)
    ahead = next(rest, None)
    for event in wanted:
        while ahead is not None and ahead.seq <= event.data["seq"]:
            if ahead.outcome == MIGRATED:
                done = await _renamed(service, row, ahead, done)
            _count(done, ahead)
            ahead = next(rest, None)
        if event.type == "run.resumed":
            event.data["skipped_nodes"] = list(done)
            event.data["checkpoint_id"] = await _newest(service, row.id, event.data["seq"])
        else:
            event.data["completed_nodes"] = sum(done.values())
    service.caches.keep_progress(row.id, max(at, last), done)


async def _renamed(service: RunAccess, row: RunRow, record: Record, done: dict[str, bool]) -> dict[str, bool]:
    """After a migration nodes have the names of the new version."""
    names: dict[str, str] = (await migration_note(service, row, record.seq)).get("renamed", {})
    return {names.get(label, label): top for label, top in done.items()}


def _count(done: dict[str, bool], record: Record) -> None:
    if record.kind == Kind.step and record.outcome in _DONE:
        done[record.scope + record.node] = not record.scope


async def _newest(service: RunAccess, run: RunId, before: int) -> CheckpointId | None:
    """The checkpoint that the run resumes from."""
    found = await service.store.checkpoint_records(run, before=before, limit=1)
    if not found:
        return None
    if found[0].kind == Kind.asked:
        named = [hold.id for hold in await service.holds(run, open_only=False) if hold.seq == found[0].seq]
        return CheckpointId(named[0]) if named else None
    return checkpoint_id(run, found[0].seq)


async def _fill_question(service: RunAccess, event: Event) -> None:
    hold = await service.store.hold(HoldId(event.data["hold_id"]))
    if hold is not None:
        event.data.update(
            entity_id=entity_of(msgspec.json.decode(hold.context), hold.node),
            type=hold.type,
            prompt=hold.prompt,
            options=options_json(hold.options),
            assignee=hold.assignee,
        )
