"""Which server a connection leads to, and what happens at the first connection to another one; and which
acknowledged states a new primary does not have.

MariaDB does not count promotions. So the table `primaries` does: it names the server that writes, and the
first process that finds itself on another one writes that one in, with the next number. A replica that is
promoted has the row of its primary and gets a higher number; the old primary keeps the lower one, and is
refused by every process that has seen the higher.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.errors import StoreUnavailableError
from holdfast.store.rows import RunRow
from holdfast.store.sql.acknowledgements import Acknowledgements, LossDialect
from holdfast.store.sql.lost_history import stop_lost_run
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.dialect import MariadbConn
from holdfast.store.sql.mariadb.feed import announce
from holdfast.store.sql.mariadb.session import connect, drop
from holdfast.store.sql.server_clock import ServerClock
from holdfast.telemetry import log
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ids import RunId

GALERA: Final = "galera"
"""Every node of such a cluster writes: changing between them is no failover."""
_SERVER = """
SELECT CASE WHEN EXISTS (SELECT 1 FROM information_schema.global_variables
                         WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON')
            THEN 'galera' ELSE concat(@@hostname, ':', @@port, ':', @@server_id) END,
       upper(@@global.read_only)"""
_KNOWN = "SELECT server, generation, @now(NULL) - since FROM @primaries"
_FIRST = "INSERT INTO @primaries (one, server, generation, since) VALUES (1, ?, 1, 0) ON CONFLICT DO NOTHING"
_NEXT = """
UPDATE @primaries SET server = ?, generation = generation + 1, since = @now(NULL)
WHERE one = 1 AND generation = ?"""
# The positions of lost transactions would be given again, behind readers who were there.
_PASS = "UPDATE @feed_head SET pos = pos + 1000000"


class PrimaryCheck:
    """`generation`: the highest that was seen."""

    def __init__(self, settings: MariadbSettings, clock: ServerClock, acks: Acknowledgements) -> None:
        self._settings = settings
        self._clock = clock
        self.acks = acks
        self.generation = 0
        self._verified = 0
        self._settled_at = 0.0

    async def connect(self) -> tuple[Any, int]:
        """A connection to the server that writes, and its generation. Raises StoreUnavailableError for an old
        primary or a replica, and the driver's errors."""
        raw = await connect(self._settings)
        try:
            return raw, await self._arrive(MariadbConn(raw))
        except BaseException:
            drop(raw)
            raise

    async def _arrive(self, conn: MariadbConn) -> int:
        found = await conn.row(_SERVER)
        assert found is not None
        server, read_only = found
        if str(read_only) not in ("0", "OFF"):
            raise StoreUnavailableError(
                f"the server at {self._settings.shown} is read-only: it is a replica.",
                hint="Give the address of the primary.",
            )
        generation, age = await self._noted(conn, str(server))
        if generation < self.generation:
            raise StoreUnavailableError(
                f"the server at {self._settings.shown} accepts writes, but it is an old primary: it has "
                f"generation {generation}, and {self.generation} was seen.",
                hint="Stop it, or make it a replica of the new primary.",
            )
        if generation > self.generation:
            self.generation = generation
            self._settled_at = time.monotonic() + self._settings.settling - age / 1e6
        return generation

    async def _noted(self, conn: MariadbConn, server: str) -> tuple[int, int]:
        """The generation of this server, and for how many microseconds it is known."""
        while True:
            found = await conn.row(_KNOWN)
            if found is None:
                await conn.run(_FIRST, server)
                continue
            noted, generation, age = found
            if noted == server or GALERA in (noted, server):
                return generation, age
            await conn.send("BEGIN")
            if await conn.run(_NEXT, server, generation):
                await conn.run(_PASS)
            await conn.send("COMMIT")

    async def verify(self, conn: MariadbConn, generation: int) -> None:
        """Before the first work on a server: what was acknowledged to this process is looked for there."""
        if generation <= self._verified:
            return
        if self._verified:
            lost = await self.acks.verify(conn, lambda: self._clock.given)
            if lost:
                text = "%d of the runs that this process changed lack what was acknowledged to it"
                log.error(text, len({known.run for known in lost}))
        self._verified = max(self._verified, generation)

    @property
    def settling(self) -> bool:
        """Whether there was a failover a moment ago: claims and the reaper wait until all processes have
        compared."""
        return time.monotonic() < self._settled_at

    async def settled(self) -> None:
        await asyncio.sleep(max(0.0, self._settled_at - time.monotonic()))


_RUNS = "SELECT id, key, horizon, inbox_seq, read_only FROM @runs WHERE id = ANY(?::text[])"
_HOLDS = "SELECT id, version FROM @holds WHERE id = ANY(?::text[])"
_RECORDS = "SELECT key, term, at FROM @journal WHERE key = ANY(?::bigint[])"
_TERMS = "SELECT id, term FROM @runs WHERE id = ANY(?::text[])"
_FENCE = "UPDATE @runs SET term = ? WHERE id = ? AND term < ?"


async def find_lost(
    conn: MariadbConn, known: Sequence[AcknowledgedState]
) -> list[tuple[AcknowledgedState, bool]]:
    """The states that the store does not have; True: not even the run exists."""
    runs = {row[0]: row[1:] for row in await conn.rows(_RUNS, list({each.run for each in known}))}
    named = [each.hold for each in known if each.hold is not None]
    holds: dict[Any, int] = dict(await conn.rows(_HOLDS, named)) if named else {}
    # A record at or below the horizon was pruned or rewritten: it cannot be checked.
    places = {
        each: runs[each.run][0] << 32 | each.head
        for each in known
        if each.run in runs and each.head > runs[each.run][1]
    }
    there = set(await conn.rows(_RECORDS, list(places.values()))) if places else set[Any]()
    lost: list[tuple[AcknowledgedState, bool]] = []
    for each in known:
        found = runs.get(each.run)
        if found is None:
            lost.append((each, True))
            continue
        _, _, mail, read_only = found
        behind = (
            mail < each.mail
            or (each.hold is not None and holds.get(each.hold, 0) < each.version)
            or (each in places and (places[each], each.term, each.at) not in there)
        )
        if behind and not read_only:
            lost.append((each, False))
    return lost


async def fence(conn: MariadbConn, terms: Mapping[RunId, int]) -> None:
    """Raises the term where a claim was lost: the next worker would get the same term, and the old one would
    pass for it."""
    if not terms:
        return
    for run, term in await conn.rows(_TERMS, list(terms)):
        if term < terms[run]:
            await conn.run(_FENCE, terms[run] + 1, run, terms[run])


async def stop(conn: MariadbConn, now: int | None, missing: AcknowledgedState) -> RunRow | None:
    await conn.send("BEGIN")
    conn.announced.clear()
    try:
        row = await stop_lost_run(conn, now, missing)
        await conn.send_all([*announce(conn.announced), "COMMIT"])
    except BaseException:
        await conn.send("ROLLBACK")
        raise
    return row


LOSSES = LossDialect(find=find_lost, fence=fence, stop=stop)
