"""Whole runs, read as of one moment and written as read-only history (D-36); and projections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.errors import ConflictError
from holdfast.store.memory.settle import MemorySettle
from holdfast.store.memory.tables import MemoryRun, MemoryTables, copy_record
from holdfast.store.rows import NewRun, RunHistory
from holdfast.types.record import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store.rows import RunRow
    from holdfast.types.hold import HoldRow
    from holdfast.types.ids import RunId
    from holdfast.types.projection import Projection
    from holdfast.types.record import Record


class MemoryRunTransfer(MemorySettle):
    async def history(self, run: RunId) -> RunHistory | None:
        with self._lock:
            found = self._ids.get(run)
            if found is None:
                return None
            holds = [self._holds[hold] for hold in found.holds]
            return RunHistory(
                run=found.row(),
                records=[_copy(record) for record in found.records],
                events=list(found.events),
                holds=sorted(holds, key=_asked_at),
                late=list(found.late),
                blobs=sorted(found.blobs),
                deaths=list(found.deaths),
            )

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        with self._lock:
            existing = self._ids.get(history.run.id)
            if existing is not None:
                return existing.row(), False
            for hold in history.holds:
                if hold.id in self._holds:
                    raise ConflictError(
                        f"the hold {hold.id} belongs to another run in this store.", hold=hold.id
                    )
            run = self._adopted(history)
            blobs = Side(blobs=history.blobs)
            self._need_blobs(run, [blobs])
            self._refer(run, blobs)
            for hold in history.holds:
                self._adopt_hold(run, hold)
            self._ids[run.id] = self._keys[run.key] = run
            return run.row(), True

    def _adopted(self, history: RunHistory) -> MemoryRun:
        row = history.run
        return MemoryRun(
            next(self._run_numbers),
            _as_new(row),
            row.id,
            row.tenant,
            status=row.status,
            term=row.term,
            head=row.head,
            event_seq=row.event_seq,
            inbox_seq=row.inbox_seq,
            superseded_by=row.superseded_by,
            updated_at=row.updated_at,
            ended_at=row.ended_at,
            recoveries=row.recoveries,
            error=row.error,
            read_only=True,
            migrated=row.migrated,
            dead=row.dead,
            deaths=list(history.deaths),
            limit=row.limit,
            records=[_copy(record) for record in history.records],
            events=list(history.events),
            late=list(history.late),
        )

    def _adopt_hold(self, run: MemoryRun, hold: HoldRow) -> None:
        self._hold_places[run.key, hold.scope, hold.node, hold.visit, hold.ordinal] = hold.id
        run.holds.append(hold.id)
        self._hold_numbers[hold.id] = next(self._numbers)
        self._holds[hold.id] = replace(hold, read_only=True)


def _as_new(row: RunRow) -> NewRun:
    """The fields that a run was created with."""
    return NewRun(
        id=row.id,
        tenant=row.tenant,
        flow=row.flow,
        version=row.version,
        code=row.code,
        lane=row.lane,
        priority=row.priority,
        thread=row.thread,
        instance_key=row.instance_key,
        started_by=row.started_by,
        deployment=row.deployment,
        parent_run=row.parent_run,
        forked_from=row.forked_from,
        created_at=row.created_at,
        ready_at=None,
        first=[],
    )


def _copy(record: Record) -> Record:
    copied = copy_record(record)
    copied.side = None
    copied.size = len(record.payload)
    return copied


def _asked_at(row: HoldRow) -> int:
    return row.created_at


class MemoryProjections(MemoryTables):
    async def projected_to(self) -> int:
        with self._lock:
            return self._projected

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        with self._lock:
            for row in rows:
                run = self._ids.get(row.run)
                if run is not None and run.horizon <= row.seq <= run.head:
                    run.projections.setdefault(row.seq, row)
            self._projected = max(self._projected, upto)

    async def projections(self, run: RunId) -> list[Projection]:
        with self._lock:
            found = self._ids.get(run)
            known = {} if found is None else found.projections
            return [row for seq, row in sorted(known.items()) if found is not None and seq >= found.horizon]

    async def blank_projections(self) -> None:
        with self._lock:
            for run in self._ids.values():
                for seq, row in run.projections.items():
                    blank = replace(row, node_states=None, original_input=None, output=None)
                    run.projections[seq] = blank
