"""The PostgreSQL store: which connection does what. How each thing is done stands in the modules it calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet

from holdfast.errors import StoreError
from holdfast.store.limits import wait_until_open
from holdfast.store.protocols import (
    Capability,
    Claim,
    ClaimRequest,
    FlowRow,
    NewRun,
    RunFilter,
    RunHistory,
    RunRow,
    StoreFacts,
)
from holdfast.store.sql.postgres import (
    blobs,
    claim,
    inbox,
    journal,
    kept,
    losing,
    memories,
    moving,
    reclaim,
    runs,
    settle_full,
)
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.clock import ServerClock
from holdfast.store.sql.postgres.connect import Conn, Row
from holdfast.store.sql.postgres.delete import delete, vacuum
from holdfast.store.sql.postgres.examine import examine
from holdfast.store.sql.postgres.failover import Acknowledgements, FailoverCheck, log_stopped, send_counted
from holdfast.store.sql.postgres.fleet import PostgresFleet
from holdfast.store.sql.postgres.gating import PostgresLimits
from holdfast.store.sql.postgres.heartbeat import HeartbeatThread
from holdfast.store.sql.postgres.holding import PostgresHolds
from holdfast.store.sql.postgres.listen import LATEST_IDS, PostgresListener, notify
from holdfast.store.sql.postgres.open import OpenResult, prepare
from holdfast.store.sql.postgres.pool import PostgresPools, Work
from holdfast.store.sql.postgres.projections import PostgresProjections
from holdfast.store.sql.postgres.replication import durability
from holdfast.store.sql.postgres.scheduling import PostgresSchedules
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.postgres.settle import is_plain, settle_answer, settle_plain
from holdfast.telemetry import crashpoint
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ciphertext import StoredRow
from holdfast.types.clock import Clock
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.memory import Memory
from holdfast.types.record import InboxRow, Lease, Park, Record, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus

T = TypeVar("T")


class PostgresStore(PostgresHolds, PostgresLimits, PostgresSchedules, PostgresFleet, PostgresProjections):
    """Reads and writes go through a pool, heartbeats and LISTEN through connections of their own."""

    capabilities = Capability.durable | Capability.shared | Capability.notifies

    def __init__(
        self, servers: PostgresServers, clock: ServerClock, arrivals: FailoverCheck, found: OpenResult
    ) -> None:
        """Of a schema that is prepared: `PostgresStore.open` does that."""
        pooled = found.pooled
        self._clock = clock
        self._arrivals = arrivals
        servers.pooled = pooled
        self._acks = arrivals.acks
        self._pools = PostgresPools(servers, pooled=pooled, arrived=arrivals.arrived)
        self._beats = HeartbeatThread(servers, clock, pooled=pooled)
        self._listener = PostgresListener(servers, self._look, pooled=pooled)
        self._write = self._transact
        self.now = clock.now
        if pooled:
            # Nobody can be told behind a pooler: others are heard of by looking.
            self.capabilities = self.capabilities & ~Capability.notifies
        _open_stores.add(self)

    @classmethod
    async def open(cls, settings: PostgresSettings, clock: Clock | None = None) -> PostgresStore:
        """Connects, and creates or migrates the schema.

        Raises SettingsError, NotAStoreError, SchemaTooNewError, StoreUnavailableError."""
        own, servers = ServerClock(clock), PostgresServers(settings)
        arrivals = FailoverCheck(servers, own, Acknowledgements())
        return cls(servers, own, arrivals, await prepare(servers, own, arrivals))

    async def wait_change(self, timeout: float) -> bool:
        return await self._listener.wait(wait_until_open(timeout, self._opens_at, self.now()))

    async def _look(self) -> Row | None:
        return await self._pools.read(_latest_ids)

    async def close(self) -> None:
        await self._listener.close()
        await self._pools.close()
        await asyncio.to_thread(self._beats.close)
        self._listener.ring()
        _open_stores.discard(self)

    def abandon(self) -> None:
        """In a forked child. Connections stay with the parent: the child must open a store of its own."""
        self._pools.abandon()
        self._beats.abandon()

    async def _transact(self, work: Work[T], *, wakes: bool = False) -> T:
        """`wakes`: it could concern a worker, here or elsewhere."""
        if not wakes:
            return await self._pools.write(work)

        async def telling(conn: Conn) -> T:
            done = await work(conn)
            await notify(conn)
            return done

        done = await self._pools.write(telling)
        self._listener.ring()
        return done

    # Runs.

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        made = None if new.gate else await self._create(new)
        row, fresh = await self._create_at_gate(new) if made is None else made
        if fresh:
            self._acks.created(new)
            # One that is claimed as it is made goes on at once. Whoever has it finds that it was stopped.
            await self._came_back(row.id)
        return row, fresh

    async def _create(self, new: NewRun) -> tuple[RunRow, bool] | None:
        work = partial(runs.create, now=self.now(), new=new)
        # A run that is claimed as it is made is nothing for anybody else.
        if new.claimed_by is not None and runs.is_plain(new):
            return await self._pools.write_at_once(work)
        return await self._write(work, wakes=new.claimed_by is None)

    async def get_run(self, run: RunId) -> RunRow | None:
        return await self._pools.read(partial(runs.get, run=run))

    async def find_runs(self, prefix: str) -> list[RunRow]:
        return await self._pools.read(partial(runs.find, prefix=prefix))

    async def list_runs(self, where: RunFilter, *, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
        return await self._pools.read(partial(runs.select, where=where, after=after, limit=limit))

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        self._listener.mark_checked()
        if self._arrivals.settling:
            if want.run is None:
                return []
            await self._arrivals.settled()
        claims = await (self._claim_any(want) if want.run is None else self._claim_named(want))
        self._acks.claimed([each.lease for each in claims])
        return [each for each in claims if not await self._came_back(each.run.id)]

    async def _came_back(self, run: RunId | None = None) -> bool:
        """Whether that run, or any, was lost in a failover and made anew: then it is stopped."""
        known = self._acks.gone(run)
        if not known:
            return False
        behind = await self._pools.read(partial(losing.find_lost, known=known))
        stops = False
        for each in self._acks.returned(known, behind):
            row = await self.lost_history(each)
            self._acks.found(each.run)
            log_stopped(row)
            stops = stops or row is not None
        return stops

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        work = partial(claim.extend, now=self._clock.given, leases=leases, ttl=ttl)
        return (await self._pools.write_at_once(work))[1]

    def extend_now(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        """`extend` for a heartbeat thread."""
        return self._beats.extend(leases, ttl)

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        plain = [batch for batch in batches if is_plain(batch)]
        done: dict[int, tuple[int, bool]] = {}
        # Where anything needs a closer look, all of it is one transaction: one commit for all (D-6).
        if len(plain) == len(batches):
            now = self._clock.given
            done = await self._pools.write_at_once(partial(settle_plain, now=now, batches=plain))
        left = [batch for batch in batches if batch.lease.key not in done]
        answers: list[SettleAnswer] = []
        if left:
            answers = await self._pools.write(partial(settle_full.settle, now=self.now(), batches=left))
        looked_at = iter(answers)
        answers = [
            settle_answer(batch, done[batch.lease.key]) if batch.lease.key in done else next(looked_at)
            for batch in batches
        ]
        self._acks.settled(batches, answers)
        return answers

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        """Never at once: others are asked over the network."""
        return None

    def read_now(self, run: RunId, *, first: int, last: int) -> NoReturn:
        raise StoreError("A store over the network reads nothing in place.", hint="Use `read`.")

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        how = Park(status, inbox_seen, ready_at)
        work = partial(settle_full.park, now=self.now(), lease=lease, how=how)
        return await self._write(work, wakes=ready_at is not None)

    async def rest(self, lease: Lease, *, status: RunStatus) -> bool:
        work = partial(claim.set_idle, now=self.now(), lease=lease, status=status)
        return await self._pools.write_at_once(work)

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        if self._arrivals.settling:
            return []
        await self._came_back()
        given = {"given": self._clock.given, "limit": limit, "backoff": backoff}
        freed = await self._pools.write(partial(reclaim.reclaim, max_recoveries=max_recoveries, **given))
        if freed:
            await self._pools.write_at_once(notify)
            self._listener.ring()
        return freed

    async def lost_history(self, known: AcknowledgedState) -> RunRow | None:
        return await self._write(partial(losing.stop_lost_run, now=self._clock.given, known=known))

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        deleted = await self._write(partial(delete, now=self.now(), run=run, ended=ended))
        if deleted:
            self._acks.deleted(run)
        return deleted

    # The journal.

    async def read(
        self, run: RunId, *, first: int = 0, last: int | None = None, payloads: bool = True
    ) -> list[Record]:
        query = partial(journal.read, run=run, first=first, last=last, payloads=payloads)
        return await self._pools.read(query)

    async def listed(
        self, run: RunId, *, node: str | None = None, before: int | None = None, limit: int = 0
    ) -> list[Record]:
        query = partial(journal.listed, run=run, node=node, before=before, limit=limit)
        return await self._pools.read(query)

    async def last_snapshot(self, run: RunId, at_most: int) -> int | None:
        return await self._pools.read(partial(journal.last_snapshot, run=run, at_most=at_most))

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Record | EventRow]:
        return await self._pools.read_together(partial(journal.events, run=run, after=after, limit=limit))

    async def inbox_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return await self._pools.read(partial(inbox.heads, runs=runs))

    async def event_heads(self, runs: Sequence[RunId]) -> dict[RunId, int]:
        return await self._pools.read(partial(journal.event_heads, runs=runs))

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        return await self._pools.read(partial(journal.feed, after=after, limit=limit))

    async def free_room(self) -> None:
        # Behind a pooler nobody knows whether a session of the server is free for so long.
        if Capability.notifies in self.capabilities:
            await self._pools.write_at_once(vacuum)

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        work = partial(journal.trim_feed, now=self._clock.given, before=before, limit=limit)
        return await self._pools.write(work)

    async def prune(
        self,
        run: RunId,
        *,
        horizon: int,
        replace: Record | None,
        ended: bool = False,
        blobs: Sequence[bytes] | None = None,
    ) -> int:
        work = partial(journal.prune, run=run, horizon=horizon, replace=replace, ended=ended, blobs=blobs)
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
        given = {"run": run, "kind": kind, "payload": payload, "dedupe": dedupe, "event": event}
        now = self.now()
        send = partial(inbox.send, now=now, **given)
        sent, count = await self._write(partial(send_counted, run=run, send=send), wakes=True)
        if sent:
            self._acks.mailed(run, count, now)
        return sent

    async def pending(self, run: RunId) -> tuple[int, list[InboxRow]]:
        return await self._pools.read(partial(inbox.pending, run=run))

    async def fire_timers(self, *, limit: int, run: RunId | None = None) -> int:
        if not await self._pools.read(partial(inbox.any_due, now=self.now())):
            return 0
        work = partial(inbox.fire_timers, now=self.now(), limit=limit, run=run)
        fired = await self._write(work, wakes=True)
        if fired:
            crashpoint("after_timer_fired")
        return fired

    async def next_timer(self) -> int | None:
        return await self._pools.read(inbox.next_timer)

    async def report_late(self, run: RunId, seq: int, payload: bytes) -> None:
        work = partial(inbox.report_late, run=run, seq=seq, payload=payload)
        await self._pools.write_at_once(work)

    async def late_reports(self, run: RunId) -> list[tuple[int, bytes]]:
        return await self._pools.read(partial(inbox.late_reports, run=run))

    # Whole runs.

    async def history(self, run: RunId) -> RunHistory | None:
        return await self._pools.read_together(partial(moving.history, run=run))

    async def adopt(self, history: RunHistory) -> tuple[RunRow, bool]:
        return await self._write(partial(moving.adopt, history=history))

    # Flows and blobs.

    async def put_flow(self, flow: FlowRow) -> None:
        await self._pools.write_at_once(partial(blobs.put_flow, flow=flow))

    async def flow(self, name: str, version: str) -> FlowRow | None:
        return await self._pools.read(partial(blobs.flow, name=name, version=version))

    async def flows(self) -> list[FlowRow]:
        return await self._pools.read(blobs.flows)

    async def examine(self, *, deep: bool) -> StoreFacts:
        return await self._pools.read(partial(examine, now=self._clock.given, deep=deep))

    async def durability(self) -> Durability:
        return await self._pools.read(durability)

    async def put_code(self, digest: str, marks: bytes) -> None:
        await self._pools.write_at_once(partial(blobs.put_code, digest=digest, marks=marks))

    async def code(self, digest: str) -> bytes | None:
        return await self._pools.read(partial(blobs.code, digest=digest))

    async def put_memory(self, memory: Memory) -> None:
        await self._pools.write_at_once(partial(memories.put, m=memory))

    async def find_memories(self, *, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
        work = partial(memories.find, tenant=tenant, scope=scope, query=query, limit=limit)
        return await self._pools.read(work)

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        # All in the database, whatever their size: every machine of the fleet reaches it.
        await self._write(partial(blobs.put, now=self.now(), digest=digest, size=size, data=data))

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None:
        return await self._pools.read(partial(blobs.get, digest=digest))

    async def condemn_blobs(self, *, older_than: int, limit: int) -> list[bytes]:
        return await self._write(partial(blobs.condemn, older_than=older_than, limit=limit))

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        await self._pools.write_at_once(partial(blobs.drop, digests=digests))

    # Encrypting anew.

    async def kept(self, table: str, *, after: int, limit: int) -> list[StoredRow]:
        return await self._pools.read(partial(kept.stored_rows, table=table, after=after, limit=limit))

    async def rewrite(self, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
        return await self._write(partial(kept.rewrite, table=table, changes=changes))

    async def blobs_of(self, run: RunId) -> list[bytes]:
        return await self._pools.read(partial(kept.blobs_of, run=run))

    async def replace_blob_reference(self, run: RunId, old: bytes, new: bytes) -> None:
        await self._write(partial(kept.replace_blob_reference, run=run, old=old, new=new))

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        await self._pools.write_at_once(partial(kept.replace_blob, digest=digest, data=data))


async def _latest_ids(conn: Conn) -> Row | None:
    return await conn.row(LATEST_IDS)


_open_stores: WeakSet[PostgresStore] = WeakSet()


def _after_fork() -> None:
    for store in list(_open_stores):
        store.abandon()
    _open_stores.clear()


os.register_at_fork(after_in_child=_after_fork)
