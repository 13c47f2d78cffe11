"""The MariaDB store: which connection does what. The modules it calls do the work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar, cast

from holdfast.store.limit_admission import wait_until_open
from holdfast.store.rows import Capability, Claim, ClaimRequest, NewRun, RunRow, StoreFacts
from holdfast.store.sql import reclaim, runs
from holdfast.store.sql.acknowledgements import Acknowledgements
from holdfast.store.sql.change_poller import ChangePoller
from holdfast.store.sql.connection import Conn, Row, Work
from holdfast.store.sql.mariadb import blobs, claim, claim_outbox, feed
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.delete import delete
from holdfast.store.sql.mariadb.dialect import LISTS, MariadbConn
from holdfast.store.sql.mariadb.examine import durability, examine
from holdfast.store.sql.mariadb.failover import LOSSES, PrimaryCheck
from holdfast.store.sql.mariadb.heartbeat import MariadbHeartbeat
from holdfast.store.sql.mariadb.open import ServerFacts, prepare
from holdfast.store.sql.mariadb.pool import MariadbPools
from holdfast.store.sql.mariadb.settle import settle_plain
from holdfast.store.sql.server_clock import ServerClock
from holdfast.store.sql.server_store import ServerStore, forget
from holdfast.store.sql.settle import is_plain, settle, settle_answers
from holdfast.types.clock import Clock
from holdfast.types.durability import Durability
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.outbox import OutboxRow
from holdfast.types.own_threads import in_thread
from holdfast.types.record import Park, RunBatch, SettleAnswer
from holdfast.types.status import RunStatus

T = TypeVar("T")

_LATEST_IDS = """
SELECT (SELECT max(key) FROM @runs), (SELECT max(id) FROM @inbox), (SELECT max(id) FROM @outbox),
       (SELECT min(ready_at) FROM @runs WHERE claimable = 1),
       (SELECT count(*) FROM @runs WHERE leased = 1 AND gate <> '')"""
_AT_ONCE = 200  # runs of one statement


class MariadbStore(ServerStore[MariadbPools]):
    """Reads and writes use a pool; heartbeats have their own connection. Other processes are woken by
    polling."""

    capabilities = Capability.durable | Capability.shared
    lists = LISTS

    def __init__(self, settings: MariadbSettings, clock: ServerClock, found: ServerFacts) -> None:
        """For tables that are ready: use `MariadbStore.open`."""
        self._primary = PrimaryCheck(settings, clock, Acknowledgements(LOSSES))
        pools = MariadbPools(settings, self._primary, found.packet)
        beats = MariadbHeartbeat(settings, clock, self._primary)
        super().__init__(clock, pools, beats, self._primary.acks)
        self._poller = ChangePoller(settings.poll, self._look)
        self._part = blobs.part_size(found.packet)

    @classmethod
    async def open(cls, settings: MariadbSettings, clock: Clock | None = None) -> MariadbStore:
        """Connects, and creates or migrates the tables.

        Raises SettingsError, NotAStoreError, SchemaTooNewError, StoreUnavailableError."""
        own = ServerClock(clock)
        return cls(settings, own, await prepare(settings, own))

    async def wait_change(self, timeout: float) -> bool:
        return await self._poller.wait(wait_until_open(timeout, self._opens_at, self.now()))

    async def _look(self) -> Row | None:
        return await self._pools.read(lambda conn: conn.row(_LATEST_IDS))

    async def close(self) -> None:
        await self._pools.close()
        await in_thread(self._beats.close)
        self._poller.notify()
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
        done = await self._pools.write(lambda conn: work(conn, now))
        if wakes:
            self._poller.notify()
        return done

    # Runs.

    async def create(self, new: NewRun) -> tuple[RunRow, bool]:
        wakes = new.claimed_by is None
        made = None if new.limit else await self._write(partial(runs.create, new=new), wakes=wakes)
        if made is None:
            limited = partial(runs.create_limited, new=new, given=self._clock.given)
            made = await self._write(limited, wakes=True)
        self._wake_queues(new.first)
        if made[1]:
            self._acks.created(new)
            # A run that is claimed as it is created starts at once; its worker then finds that it was
            # stopped.
            await self._came_back(made[0].id)
        return made

    async def claim(self, want: ClaimRequest) -> list[Claim]:
        self._poller.mark_checked()
        # Another process may be about to find that this run lost history: it must not be driven before that.
        if self._primary.settling:
            if want.run is None:
                return []
            await self._primary.settled()
        act = claim.claim if want.run is None else claim.claim_one
        found = await self._pools.write(partial(act, now=self._clock.given, want=want))
        if want.run is None or found.kept_out:
            self._opens_at = found.opens_at
        self._acks.claimed([each.lease for each in found.claims])
        return [each for each in found.claims if not await self._came_back(each.run.id)]

    async def extend(self, leases: Sequence[Lease], ttl: int) -> list[bool]:
        work = partial(claim.extend, now=self._clock.given, leases=leases, ttl=ttl)
        return (await self._pools.write(work))[1]

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        done: dict[int, tuple[int, bool]] = {}
        # Where anything needs a closer look, all of it is one transaction: one commit for all (D-6).
        if len(batches) <= _AT_ONCE and _size(batches) <= self._part and all(map(is_plain, batches)):
            plain = partial(settle_plain, now=self._clock.given, batches=batches)
            done = await self._pools.write_at_once(plain)
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
        now = self.now()
        parked = await self._pools.write(lambda conn: conn.park(now, lease, how))
        if ready_at is not None:
            self._poller.notify()
        return parked

    async def set_idle(self, lease: Lease, *, status: RunStatus) -> bool:
        work = partial(claim.set_idle, now=self.now(), lease=lease, status=status)
        return await self._pools.write(work)

    async def reclaim(self, *, limit: int, max_recoveries: int, backoff: int = 0) -> list[RunRow]:
        if self._primary.settling:
            return []
        await self._came_back()
        now = self.now()
        # Most sweeps end here, without a transaction.
        if not await self._read(partial(reclaim.any_lapsed, now=now)):
            return []
        given = {"limit": limit, "max_recoveries": max_recoveries, "backoff": backoff}
        freed = await self._write(partial(reclaim.reclaim, **given), server_time=True)
        if freed:
            self._poller.notify()
        return freed

    async def delete_run(self, run: RunId, *, ended: bool = False) -> bool:
        now = self.now()
        deleted = await self._pools.write(partial(delete, now=now, run=run, ended=ended))
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
        """InnoDB uses the space of deleted rows again by itself."""

    async def trim_feed(self, *, before: int, limit: int = 5000) -> int:
        return await self._write(partial(feed.trim_feed, before=before, limit=limit), server_time=True)

    # Holds and the outbox.

    async def claim_outbox(self, *, limit: int, lease: int, topics: Sequence[str] = ()) -> list[OutboxRow]:
        return await self._write(partial(claim_outbox.claim, limit=limit, lease=lease, topics=topics))

    # The database.

    async def examine(self, *, deep: bool) -> StoreFacts:
        return await self._pools.read(partial(examine, now=self._clock.given, deep=deep))

    async def durability(self) -> Durability:
        return await self._pools.read(durability)

    # Blobs: all in the database, whatever their size, because every machine of the fleet can reach it.

    async def put_blob(self, digest: bytes, size: int, data: bytes | None) -> None:
        await self._pools.write(
            partial(blobs.put, now=self.now(), digest=digest, size=size, data=data, part=self._part)
        )

    async def blob(self, digest: bytes) -> tuple[int, bytes | None] | None:
        return await self._pools.read_together(partial(blobs.get, digest=digest))

    async def drop_blobs(self, digests: Sequence[bytes]) -> None:
        await self._write(partial(blobs.drop, digests=digests))

    async def replace_blob(self, digest: bytes, data: bytes) -> None:
        await self._pools.write(partial(blobs.replace, digest=digest, data=data, part=self._part))


def _size(batches: Sequence[RunBatch]) -> int:
    return sum([len(record.payload) for batch in batches for record in batch.records])


async def _claim_named(conn: Conn, now: int | None, want: ClaimRequest) -> list[Claim]:
    assert isinstance(conn, MariadbConn)
    return await claim.claim_named(conn, now, want)
