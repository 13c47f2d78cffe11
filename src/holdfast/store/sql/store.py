"""The methods that every SQL store shares. What differs is in the store of each dialect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store.rows import FlowRow, RunFilter, RunHistory, RunRow, ThreadRow
from holdfast.store.sql import blobs, journal, memories, raw_rows, run_inbox, runs, transfer
from holdfast.store.sql.concurrency_limits import SqlLimits
from holdfast.store.sql.engine_runs import SqlEngineRuns
from holdfast.store.sql.fleet import SqlFleet
from holdfast.store.sql.graph_threads import SqlGraphThreads
from holdfast.store.sql.hold_store import SqlHolds
from holdfast.store.sql.projections import SqlProjections
from holdfast.store.sql.queues import SqlQueues
from holdfast.store.sql.schedules import SqlSchedules
from holdfast.telemetry import crashpoint
from holdfast.types.ciphertext import StoredRow
from holdfast.types.event import EventRow
from holdfast.types.hold import ChangeRefusal, HoldChange, HoldRow
from holdfast.types.ids import RunId
from holdfast.types.memory import Memory
from holdfast.types.record import InboxRow, Record
from holdfast.types.status import RunStatus

FEW = 64  # records: so many are read as rows that were probably written just now


class SqlStore(
    SqlHolds, SqlQueues, SqlLimits, SqlSchedules, SqlFleet, SqlEngineRuns, SqlProjections, SqlGraphThreads
):
    async def change_hold(self, change: HoldChange) -> HoldRow | ChangeRefusal:
        done = await super().change_hold(change)
        if isinstance(done, HoldRow) and done.terms.queue is not None:
            self._queue_changes.notify()
        return done

    # Runs.

    async def get_run(self, run: RunId) -> RunRow | None:
        return await self._peek(partial(runs.get, run=run))

    async def find_runs(self, prefix: str) -> list[RunRow]:
        return await self._read(partial(runs.find, prefix=prefix))

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        return await self._read(partial(runs.select, where=where, after=after, limit=limit))

    async def count_runs(self, where: RunFilter) -> dict[RunStatus, int]:
        return await self._read(partial(runs.count, where=where))

    async def list_threads(
        self, tenant: str, *, after: tuple[int, str] | None, limit: int
    ) -> list[ThreadRow]:
        return await self._read(partial(runs.threads, tenant=tenant, after=after, limit=limit))

    # The journal.

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        read = self._peek if last is not None and last - first < FEW else self._read
        return await read(partial(journal.read, run=run, first=first, last=last, payloads=payloads))

    async def checkpoint_records(
        self, run: RunId, *, node: str | None = None, before: int | None = None, limit: int = 0
    ) -> list[Record]:
        return await self._read(
            partial(journal.checkpoint_records, run=run, node=node, before=before, limit=limit)
        )

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        return await self._read(partial(journal.last_snapshot, run=run, at_most=at_most))

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        return await self._read(partial(journal.events, run=run, after=after, limit=limit), together=True)

    async def inbox_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return await self._read(partial(run_inbox.heads, runs=runs))

    async def event_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return await self._read(partial(journal.event_heads, runs=runs))

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        later: Sequence[Record] = (),
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        work = partial(
            journal.prune,
            run=run,
            horizon=horizon,
            replace=replace,
            later=later,
            ended=ended,
            blobs=blobs,
        )
        return await self._write(work)

    # The inbox.

    async def send(
        self,
        run: RunId,
        kind: str,
        payload: bytes,
        *,
        dedupe: str | None = None,
        event: EventRow | None = None,
    ) -> bool:
        work = partial(run_inbox.send, run=run, kind=kind, payload=payload, dedupe=dedupe, event=event)
        return await self._write(work, wakes=True)

    async def add_events(self, run: RunId, events: Sequence[EventRow]) -> None:
        await self._write(partial(run_inbox.add_events_of, run=run, events=events), wakes=True)

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        return await self._peek(partial(run_inbox.pending, run=run))

    async def fire_timers(self, *, limit: int, run: RunId | None = None) -> int:
        # Most sweeps end here, without a transaction.
        if not await self._read(partial(run_inbox.any_due, now=self.now())):
            return 0
        fired = await self._write(partial(run_inbox.fire_timers, limit=limit, run=run), wakes=True)
        if fired:
            crashpoint("after_timer_fired")
        return fired

    async def next_timer(self) -> int | None:
        return await self._read(run_inbox.next_timer)

    async def wake_times(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return await self._read(partial(run_inbox.wake_times, runs=runs))

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        await self._write(partial(run_inbox.report_late, run=run, seq=seq, payload=payload), single=True)

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]:
        return await self._read(partial(run_inbox.late_reports, run=run))

    # Whole runs.

    async def history(self, run: RunId) -> RunHistory | None:
        return await self._read(partial(transfer.history, run=run), together=True)

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        return await self._write(partial(transfer.adopt, history=history))

    # Flows and blobs.

    async def put_flow(self, flow: FlowRow) -> None:
        await self._write(partial(blobs.put_flow, flow=flow), single=True)

    async def flow(self, name: str, version: str) -> FlowRow | None:
        return await self._read(partial(blobs.flow, name=name, version=version))

    async def flows(self, since: int = 0, *, graphs: bool = True) -> list[FlowRow]:
        return await self._read(partial(blobs.flows, since=since, graphs=graphs))

    async def put_code(self, digest: str, marks: bytes) -> None:
        await self._write(partial(blobs.put_code, digest=digest, marks=marks), single=True)

    async def code(self, digest: str) -> bytes | None:
        return await self._read(partial(blobs.code, digest=digest))

    async def put_memory(self, memory: Memory) -> None:
        await self._write(lambda conn, _: memories.put(conn, memory), single=True)

    async def find_memories(
        self,
        *,
        tenant: str,
        scope: str,
        query: str,
        limit: int,
        types: Sequence[str] = (),
        min_strength: float | None = None,
    ) -> list[Memory]:
        return await self._read(
            partial(
                memories.find,
                tenant=tenant,
                scope=scope,
                query=query,
                limit=limit,
                types=types,
                min_strength=min_strength,
            )
        )

    async def keep_blob(self, run: RunId, digest: bytes) -> bool:
        return await self._write(partial(blobs.keep, run=run, digest=digest))

    async def condemn_blobs(self, *, older_than: int, limit: int) -> list[bytes]:
        return await self._write(partial(blobs.condemn, older_than=older_than, limit=limit))

    # Encrypting with a new key.

    async def stored_rows(self, table: str, *, after: int, limit: int) -> list[StoredRow]:
        return await self._read(partial(raw_rows.stored_rows, table=table, after=after, limit=limit))

    async def rewrite(self, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
        return await self._write(partial(raw_rows.rewrite, table=table, changes=changes))

    async def blobs_of(self, run: RunId) -> list[bytes]:
        return await self._read(partial(raw_rows.blobs_of, run=run))

    async def replace_blob_reference(self, run: RunId, old: bytes, new: bytes) -> None:
        await self._write(partial(raw_rows.replace_blob_reference, run=run, old=old, new=new))
