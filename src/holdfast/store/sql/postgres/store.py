"""The PostgreSQL store: which connection does what. The modules it calls do the work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar, cast

from holdfast.store.limit_admission import ClaimResult, wait_until_open
from holdfast.store.rows import Capability, Claim, ClaimRequest, NewRun, RunRow, StoreFacts
from holdfast.store.sql import blobs, raw_rows, reclaim, runs
from holdfast.store.sql.acknowledgements import Acknowledgements
from holdfast.store.sql.connection import Conn, Row, Work
from holdfast.store.sql.postgres import (
    claim,
    claim_outbox,
    feed,
    graph_threads,
    settle_full,
)
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.call_group import CallGroup
from holdfast.store.sql.postgres.delete import delete, vacuum
from holdfast.store.sql.postgres.dialect import LISTS, PostgresConn
from holdfast.store.sql.postgres.examine import durability, examine
from holdfast.store.sql.postgres.failover import LOSSES, FailoverCheck
from holdfast.store.sql.postgres.heartbeat import PostgresHeartbeat
from holdfast.store.sql.postgres.listen import LATEST_IDS, PostgresListener, notify
from holdfast.store.sql.postgres.open import OpenResult, prepare
from holdfast.store.sql.postgres.pool import PostgresPools
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.postgres.settle import settle_plain
from holdfast.store.sql.served_versions import Crowd
from holdfast.store.sql.server_clock import ServerClock
from holdfast.store.sql.server_store import ServerStore, forget
from holdfast.store.sql.settle import is_plain, settle, settle_answers
from holdfast.types.clock import Clock
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.graph_thread import (
    GraphBatch,
    GraphClaim,
    GraphClaimRequest,
    GraphExtension,
    GraphRefusal,
)
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.outbox import OutboxRow
from holdfast.types.own_threads import in_thread
from holdfast.types.record import Park, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus

T = TypeVar("T")
_EXTENDS = 3  # attempts at claims of threads that are locked for a moment


class PostgresStore(ServerStore[PostgresPools]):
    """Reads and writes use a pool; heartbeats and LISTEN have their own connections."""

    capabilities = Capability.durable | Capability.shared | Capability.notifies
    lists = LISTS

    def __init__(
        self, servers: PostgresServers, clock: ServerClock, arrivals: FailoverCheck, found: OpenResult
    ) -> None:
        """For a schema that is ready: use `PostgresStore.open`."""
        pooled = found.pooled
        self._arrivals = arrivals
        servers.pooled = pooled
        pools = PostgresPools(servers, pooled=pooled, arrived=arrivals.arrived)
        super().__init__(clock, pools, PostgresHeartbeat(servers, clock, pooled=pooled), arrivals.acks)
        self._crowd = Crowd()
        self._listener = PostgresListener(servers, self._look, pooled=pooled)
        self._graph_puts = CallGroup(self._put_graph_batches, graph_threads.size_of)
        self._graph_claims = CallGroup(self._claim_graph_threads)
        self._graph_releases = CallGroup(self._release_graph_claims)
        if pooled:
            # Behind a pooler there are no notifications: changes are found by polling.
            self.capabilities = self.capabilities & ~Capability.notifies

    @classmethod
    async def open(cls, settings: PostgresSettings, clock: Clock | None = None) -> PostgresStore:
        """Connects, and creates or migrates the schema.

        Raises SettingsError, NotAStoreError, SchemaTooNewError, StoreUnavailableError."""
        own, servers = ServerClock(clock), PostgresServers(settings)
        arrivals = FailoverCheck(servers, own, Acknowledgements(LOSSES))
        return cls(servers, own, arrivals, await prepare(servers, own, arrivals))

    async def wait_change(self, timeout: float) -> bool:
        return await self._listener.wait(wait_until_open(timeout, self._opens_at, self.now()))

    async def _look(self) -> Row | None:
        return await self._pools.read(_latest_ids)

    async def close(self) -> None:
        await self._listener.close()
        await self._pools.close()
        await in_thread(self._beats.close)
        self._listener.notify()
        self._queue_changes.notify()
        forget(self)

    async def _write(
        self,
        work: Work[T],
        *,
        wakes: bool = False,
        single: bool = False,
        server_time: bool = False,
        flushed: bool = True,
    ) -> T:
        # With `server_time` the work passes it on to `@now(?)`, where None is the server's clock.
        now = cast("int", self._clock.given) if server_time else self.now()

        async def act(conn: Conn) -> T:
            done = await work(conn, now)
            # Inside the transaction: it is sent with the commit, so a worker that wakes finds the rows.
            if wakes:
                await conn.notify()
            return done

        if single and not wakes:
            return await self._pools.write_at_once(act)
        done = await self._pools.write(act)
        if wakes:
            self._listener.notify()
        return done

    # Runs.

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        made = None if new.limit else await self._create(new)
        row, fresh = await self._create_limited(new) if made is None else made
        if fresh:
            self._wake_queues(new.first)
            self._acks.created(new)
            # A run that is claimed as it is created starts at once; its worker then finds that it was
            # stopped.
            await self._came_back(row.id)
        return row, fresh

    async def _create(self, new: NewRun) -> tuple[RunRow, bool] | None:
        # A run that is claimed as it is created concerns no other worker.
        single = new.claimed_by is not None and runs.is_plain(new)
        return await self._write(partial(runs.create, new=new), wakes=new.claimed_by is None, single=single)

    async def _create_limited(self, new: NewRun) -> tuple[RunRow, bool]:
        return await self._write(partial(runs.create_limited, new=new, given=self._clock.given))

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        self._listener.mark_checked()
        # Another process may be about to find that this run lost history: it must not be driven before that.
        if self._arrivals.settling:
            if want.run is None:
                return []
            await self._arrivals.settled()
        claims = await (self._claim_any(want) if want.run is None else self._claim_named(want))
        self._acks.claimed([each.lease for each in claims])
        return [each for each in claims if not await self._came_back(each.run.id)]

    async def _claim_any(self, want: ClaimRequest) -> list[Claim]:
        given = self._clock.given
        found = await self._pools.write_at_once(partial(claim.claim, now=given, want=want, crowd=self._crowd))
        if not isinstance(found, ClaimResult):
            limited = partial(
                claim.claim_with_limits, now=given, want=want, lines=found.lines, crowd=self._crowd
            )
            found = await self._pools.write(limited)
        self._opens_at = found.opens_at
        return found.claims

    async def _claim_named(self, want: ClaimRequest) -> list[Claim]:
        given = self._clock.given
        claims = await self._pools.write_at_once(partial(claim.claim_named, now=given, want=want))
        if claims:
            return claims
        found = await self._pools.write(partial(claim.claim_named_with_limit, now=given, want=want))
        self._opens_at = found.opens_at
        return found.claims

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        work = partial(claim.extend, now=self._clock.given, leases=leases, ttl=ttl)
        return (await self._pools.write_at_once(work))[1]

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
            answers = await self._pools.write(partial(settle, now=self.now(), batches=left))
            for batch in left:
                self._wake_queues(batch.records)
        answers = settle_answers(batches, done, answers)
        self._acks.settled(batches, answers)
        return answers

    async def park(self, lease: Lease, *, status: RunStatus, inbox_seen: int, ready_at: int | None) -> bool:
        how = Park(status, inbox_seen, ready_at)
        work = partial(settle_full.park, lease=lease, how=how)
        return await self._write(work, wakes=ready_at is not None)

    async def set_idle(self, lease: Lease, *, status: RunStatus) -> bool:
        work = partial(claim.set_idle, now=self.now(), lease=lease, status=status)
        return await self._pools.write_at_once(work)

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        if self._arrivals.settling:
            return []
        await self._came_back()
        given = {"limit": limit, "max_recoveries": max_recoveries, "backoff": backoff}
        freed = await self._write(partial(reclaim.reclaim, **given), server_time=True)
        if freed:
            await self._pools.write_at_once(notify)
            self._listener.notify()
        return freed

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        deleted = await self._write(partial(delete, run=run, ended=ended))
        if deleted:
            self._acks.deleted(run)
        return deleted

    async def claim_dead(self, want: ClaimRequest, *, event: EventRow | None = None) -> Claim | None:
        work = partial(reclaim.claim_dead, want=want, event=event, claim=_claim_named)
        return await self._write(work, server_time=True)

    # The feed.

    async def feed(self, *, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
        return await self._read(partial(feed.feed, after=after, limit=limit))

    async def free_space(self) -> None:
        # Behind a pooler a session may not be available for that long.
        if Capability.notifies in self.capabilities:
            await self._pools.write_at_once(vacuum)

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        return await self._write(partial(feed.trim_feed, before=before, limit=limit), server_time=True)

    # The outbox.

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        work = partial(claim_outbox.claim, limit=limit, lease=lease, topics=topics)
        return await self._write(work, single=True)

    # Threads of graphs: what a group of calls leaves out is done here, so that no other call waits for it.

    async def put_graph_rows(self, batch: GraphBatch) -> GraphRefusal | None:
        if graph_threads.is_plain(batch) and await self._graph_puts.call(batch):
            return None
        return await super().put_graph_rows(batch)

    async def _put_graph_batches(self, batches: Sequence[GraphBatch]) -> list[bool]:
        work = partial(graph_threads.put, now=self.now(), batches=batches)
        return await self._pools.write_at_once(work)

    async def claim_graph_thread(self, want: GraphClaimRequest) -> GraphClaim | GraphRefusal:
        return await self._graph_claims.call(want) or await super().claim_graph_thread(want)

    async def _claim_graph_threads(self, wanted: Sequence[GraphClaimRequest]) -> list[GraphClaim | None]:
        work = partial(graph_threads.claim, now=self.now(), wanted=wanted)
        return await self._pools.write_at_once(work)

    async def extend_graph_claims(self, claims: Sequence[GraphExtension], ttl: int) -> list[bool]:
        """All that are free in one statement: one for each would lock many threads for long."""
        left: dict[int, GraphExtension] = dict(enumerate(claims))
        extended: set[int] = set()
        for _ in range(_EXTENDS):
            if left:
                work = partial(graph_threads.extend, claims=list(left.values()), until=self.now() + ttl)
                done = await self._pools.write_at_once(work)
                extended |= {nth for nth, each in zip(list(left), done, strict=True) if each}
                left = {nth: each for nth, each in left.items() if nth not in extended}
        for nth, each in left.items():
            if (await super().extend_graph_claims([each], ttl))[0]:
                extended.add(nth)
        return [nth in extended for nth in range(len(claims))]

    async def release_graph_claim(self, claim: GraphExtension) -> bool:
        return await self._graph_releases.call(claim) or await super().release_graph_claim(claim)

    async def _release_graph_claims(self, claims: Sequence[GraphExtension]) -> list[bool]:
        return await self._pools.write_at_once(partial(graph_threads.release, claims=claims))

    # The database.

    async def examine(self, *, deep: bool) -> StoreFacts:
        # Together: the description of the schema needs a search path of its own.
        return await self._pools.read_together(partial(examine, now=self._clock.given, deep=deep))

    async def durability(self) -> Durability:
        return await self._pools.read(durability)

    # Blobs: all in the database, whatever their size, because every machine of the fleet can reach it.

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        place = "elsewhere" if data is None else "row"
        await self._write(partial(blobs.put, digest=digest, size=size, place=place, data=data))

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None:
        found = await self._read(partial(blobs.get, digest=digest))
        return None if found is None else (found[0], found[2])

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        await self._write(partial(blobs.drop, digests=digests), single=True)

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        await self._write(partial(raw_rows.replace_blob, digest=digest, data=data), single=True)


async def _claim_named(conn: Conn, now: int | None, want: ClaimRequest) -> list[Claim]:
    assert isinstance(conn, PostgresConn)
    return await claim.claim_named(conn, now, want)


async def _latest_ids(conn: Conn) -> Row | None:
    return await conn.row(LATEST_IDS)
