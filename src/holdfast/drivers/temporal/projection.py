"""The store's journal of a run that an engine drives: what the workflow decided, appended in order.

Only activities append, and the server schedules those after the decision is in its history: the store never
has what the history has not.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import msgspec

from holdfast.checkpoint import Blob
from holdfast.checkpoint.read_without_code import OpaqueRegistry
from holdfast.drivers.temporal.notes_document import drop_notes
from holdfast.drivers.temporal.payloads import Draft, Unwritten, Wire
from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.engine.decision import side_of
from holdfast.errors import LeaseLostError, ProjectionConflictError, RunEndedError, RunNotFoundError
from holdfast.model.program import Program
from holdfast.model.record_bodies import EndBody
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.engine_moves import EngineRunState, drop_state, read_state, write_state
from holdfast.runs.hold_preparation import facts_of
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.protocols import Store
from holdfast.store.recovery import death_event
from holdfast.store.rows import Claim, RunRow
from holdfast.telemetry import crashpoint
from holdfast.types.fleet import Death
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.record import Kind, Record, Refusal, RunBatch
from holdfast.types.redaction import tenant_scope
from holdfast.types.status import ENDED, PARKED, RunStatus

GIVEN_UP: Final = "given_up"
"""The code of the error of a run whose workers were lost too often."""


class JournalProjector:
    """Appends to the runs of one store."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.store = runtime.store

    async def row(self, run: str) -> RunRow:
        """Raises RunNotFoundError."""
        found = await while_unavailable(lambda: self.store.get_run(RunId(run)))
        if found is None:
            raise RunNotFoundError(f"run {run} is not in the store of this worker.", run=run)
        return found

    async def append(self, program: Program, row: RunRow, unwritten: Unwritten, idle: str = "") -> RunRow:
        """All of the records are in the store when this returns. `idle`: the status of a run that now waits.
        Raises ProjectionConflictError if the store has others, RunEndedError if the run was superseded or
        moved."""
        if row.superseded_by is not None:
            raise RunEndedError(f"run {row.id} was superseded by run {row.superseded_by}.", run=row.id)
        self._require_owner(row, unwritten)
        if unwritten.drafts:
            with self._counted(unwritten.drafts):
                row = await self._append(program, row, unwritten)
                if row.status is RunStatus.failed and not row.dead:
                    await self._mark_if_dead(row, unwritten)
        if idle and row.status not in ENDED and row.status != idle:
            lease = self._lease(row, unwritten)
            await while_unavailable(lambda: self.store.set_idle(lease, status=RunStatus(idle)))
            self.runtime.notify(row.id)
        return row

    def _require_owner(self, row: RunRow, unwritten: Unwritten) -> None:
        """Raises RunEndedError for a run that was moved since, ProjectionConflictError for one that another
        engine has."""
        if row.term > unwritten.term:
            raise RunEndedError(
                f"run {row.id} was moved: it is driven by {row.worker or 'the built-in workers'}.", run=row.id
            )
        if row.status not in ENDED and (row.worker, row.term) != (unwritten.engine, unwritten.term):
            raise ProjectionConflictError(
                f"run {row.id} is driven by {row.worker or 'the built-in workers'}, not by "
                f"{unwritten.engine}.",
                hint="Nothing was written. End the other workflow: temporal workflow terminate.",
                run=row.id,
            )

    async def leave_limit(self, row: RunRow, unwritten: Unwritten, *, again: bool) -> bool:
        """A run that waits does not count against its limit; whether it has to be admitted again. `again`:
        this may have been done before."""
        if not row.limit:
            return again and bool((await while_unavailable(lambda: read_state(self.store, row))).limit)
        state = EngineRunState(engine=unwritten.engine, limit=row.limit)
        await while_unavailable(lambda: write_state(self.store, row, state))
        lease = self._lease(row, unwritten)
        return await while_unavailable(lambda: self.store.change_limit(lease, ""))

    async def enter_limit(self, row: RunRow, unwritten: Unwritten) -> bool:
        """Whether its limit admits it, now that it continues."""
        state = await while_unavailable(lambda: read_state(self.store, row))
        lease = self._lease(row, unwritten)
        if not await while_unavailable(lambda: self.store.change_limit(lease, state.limit)):
            return False
        await while_unavailable(lambda: drop_state(self.store, row))
        return True

    async def _mark_if_dead(self, row: RunRow, unwritten: Unwritten) -> None:
        """A run whose workers were lost too often is a dead letter."""
        last = unwritten.drafts[-1]
        body = RecordCodec(OpaqueRegistry()).load_body(last.kind, last.body)
        if not isinstance(body, EndBody) or body.error is None or body.error.code != GIVEN_UP:
            return
        now, failed = (
            self.store.now(),
            [d for d in unwritten.drafts if (d.kind, d.outcome) == (Kind.step, "fail")],
        )
        # Until the record of the failure, the node is running.
        head = (failed[-1] if failed else last).seq - 1
        death = Death(
            term=row.term, worker=unwritten.engine, at=now, lease_until=now, head=head, status="running"
        )
        event = death_event(death, row.recoveries, None)
        await while_unavailable(lambda: self.store.mark_dead(row.id, death=death, event=event))

    @contextmanager
    def _counted(self, drafts: list[Draft]) -> Generator[None]:
        """For metrics: what is decided and not in the store."""
        engine = self.runtime.engine
        pending = {} if engine is None else engine.figures.pending
        key = id(drafts)
        pending[key] = (len(drafts), drafts[0].at)
        try:
            yield
        finally:
            del pending[key]

    async def _append(self, program: Program, row: RunRow, unwritten: Unwritten) -> RunRow:
        wire = Wire(self.runtime.codec_for(program, row.tenant).registry)
        encoded = [self._encode(program, row, wire, draft) for draft in unwritten.drafts]
        while True:
            known = [record for record, _ in encoded if record.seq <= row.head]
            if known:
                await self._require_same(row, known)
            fresh = [(record, blobs) for record, blobs in encoded if record.seq > row.head]
            if not fresh:
                return row
            if await self._settle(program, row, fresh):
                crashpoint("after_project")
                return await self._appended(row, [record for record, _ in fresh])
            # Another activity of this run was faster.
            found = await self.row(row.id)
            if found.head == row.head:
                raise LeaseLostError(f"run {row.id} is not driven by an engine any more", run=row.id)
            row = found

    def _encode(self, program: Program, row: RunRow, wire: Wire, draft: Draft) -> tuple[Record, list[Blob]]:
        record, body = wire.record(draft)
        codec = self.runtime.codec_for(program, row.tenant)
        side = record.side
        if side is not None:
            # Its timers are the engine's.
            side.timers, side.close_timers, side.close_all_timers = [], [], False
        blobs = codec.encode(record, body, row.term)
        codec.clear()
        codec.spilled.clear()
        return record, blobs

    async def _require_same(self, row: RunRow, records: list[Record]) -> None:
        first, last = records[0].seq, records[-1].seq
        stored = await while_unavailable(lambda: self.store.read(row.id, first=first, last=last))
        there = {record.seq: record.digest for record in stored}
        for record in records:
            # What retention has pruned cannot be compared, and was once.
            if record.seq >= row.horizon and there.get(record.seq) != record.digest:
                raise ProjectionConflictError(
                    f"run {row.id}: record {record.seq} of the store is not what its workflow decided.",
                    hint="A workflow was reset, or two clusters drive one run. Nothing was written: use "
                    "`holdfast rewind` to continue from a checkpoint before the difference.",
                    run=row.id,
                    seq=record.seq,
                )

    async def _settle(self, program: Program, row: RunRow, fresh: list[tuple[Record, list[Blob]]]) -> bool:
        """False: the head of the run has moved."""
        records = [record for record, _ in fresh]
        await self._prepare(program, row, records)
        blobs = [blob for _, found in fresh for blob in found]
        if row.status in PARKED:
            side = side_of(records[0])
            side.status = side.status or RunStatus.running
        if records[-1].side is not None and records[-1].side.status is RunStatus.failed:
            await while_unavailable(lambda: keep_engine(self.store, row, program))
        batch = RunBatch(Lease(row.id, row.key, row.term, row.worker or ""), records)
        crashpoint("inside_project")
        while True:
            if blobs:
                await while_unavailable(lambda: self.runtime.blobs.put_for(row.id, blobs))
            (answer,) = await while_unavailable(lambda: self.store.settle([batch]))
            if answer.refusal is not Refusal.put_blobs_again:
                break
        if answer.refusal is None:
            self._published(batch)
        return answer.refusal is None

    def _published(self, batch: RunBatch) -> None:
        runtime = self.runtime
        runtime.settled += len(batch.records)
        if runtime.observer is not None:
            runtime.observer.committed(batch.lease, batch.records)
        rests = any(record.side is not None and record.side.status in ENDED for record in batch.records)
        runtime.notify(batch.lease.run, rests=rests)

    async def _prepare(self, program: Program, row: RunRow, records: list[Record]) -> None:
        """The holds that they open: whom they go to, until when."""
        runtime, facts = self.runtime, facts_of(row)
        with tenant_scope(row.tenant):
            for record in records:
                if record.side is None or not record.side.holds:
                    continue
                if runtime.put_hold_states is not None:
                    await runtime.put_hold_states(program, row, records, record.side)
                await runtime.preparer.prepare(record.side, facts)

    async def _appended(self, row: RunRow, records: list[Record]) -> RunRow:
        if all(record.side is None for record in records):
            # Nothing else of the row has changed.
            return msgspec.structs.replace(row, head=records[-1].seq)
        found = await self.row(row.id)
        if self.runtime.arbiter is not None:
            for record in records:
                for hold in record.side.holds if record.side is not None else ():
                    # A policy may decide it at once; the answer reaches the workflow like any other.
                    await self.runtime.arbiter.judge_here(hold.id)
        if found.status in ENDED:
            await drop_notes(self.store, found.tenant, found.id)
            if found.status is not RunStatus.failed and (found.limit or found.term > 1):
                await drop_state(self.store, found)
            if found.parent_run is not None:
                await self.runtime.tell_parent(found)
        return found

    def claim_of(self, row: RunRow) -> Claim:
        """As if a built-in worker had claimed it."""
        return Claim(Lease(row.id, row.key, row.term, row.worker or ""), row)

    def _lease(self, row: RunRow, unwritten: Unwritten) -> Lease:
        return Lease(row.id, unwritten.key, unwritten.term, unwritten.engine)


async def keep_engine(store: Store, row: RunRow, program: Program) -> None:
    """Before a run fails: when it is resumed, it continues where it was."""
    limit = row.limit or (await read_state(store, row)).limit
    state = EngineRunState(engine=row.worker or "", serial=program.budget is not None, limit=limit)
    await write_state(store, row, state)


def is_driven(row: RunRow, engine: str) -> bool:
    """Whether the workflow of this run is to advance it."""
    return row.worker == engine and row.status not in ENDED


def stripped(record: Record) -> Record:
    """Without what the engine does itself."""
    if record.side is None:
        return record
    side = msgspec.structs.replace(record.side, timers=[], close_timers=[], close_all_timers=False)
    return msgspec.structs.replace(record, side=side)
