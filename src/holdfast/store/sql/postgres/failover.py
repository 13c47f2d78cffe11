"""After a failover to a new primary: acknowledged writes are looked for before anything else is done there,
and for a moment no worker claims, so that all processes have time to look.
"""

from __future__ import annotations

import asyncio
import time

from holdfast.store.sql.acknowledgements import Acknowledgements
from holdfast.store.sql.postgres.dialect import PostgresConn
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.server_clock import ServerClock
from holdfast.telemetry import log

# The first timeline of a schema is not the result of a failover: nothing can have been lost.
_NOTE = """
INSERT INTO @timelines (system, timeline, since)
SELECT ?, ?, CASE WHEN EXISTS (SELECT 1 FROM @timelines) THEN @now(NULL) ELSE 0 END
ON CONFLICT DO NOTHING"""
# A position in the feed begins with the number of its transaction. The numbers of lost transactions would be
# used again, for events that come after a reader has passed them: so this many numbers are skipped. It takes
# no flush, and about a tenth of a second for 10,000.
_PASS = "DO $$ BEGIN FOR n IN 1..50000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
_FIRST_EVER = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM @timelines)"
_AGE = "SELECT @now(NULL) - since FROM @timelines WHERE system = ? AND timeline = ?"


class FailoverCheck:
    def __init__(self, servers: PostgresServers, clock: ServerClock, acks: Acknowledgements) -> None:
        self._servers = servers
        self._clock = clock
        self.acks = acks
        self._settled_at = 0.0

    async def note(self, conn: PostgresConn) -> None:
        """Since when this timeline is known, as noted by the first process that found it; claims wait from
        then on."""
        servers = self._servers
        place = (str(servers.system), servers.timeline)
        age = await conn.row(_AGE, *place)
        if age is None:
            if await conn.row(_FIRST_EVER) is None:
                await conn.raw.execute(_PASS)
            # Last: a process that finds the timeline noted may write.
            await conn.run(_NOTE, *place)
            age = await conn.row(_AGE, *place)
        left = servers.settings.settling - (0 if age is None else age[0] / 1e6)
        self._settled_at = time.monotonic() + left

    async def arrived(self, conn: PostgresConn) -> None:
        await self.note(conn)
        lost = await self.acks.verify(conn, lambda: self._clock.given)
        if lost:
            text = "%d of the runs that this process changed lack what was acknowledged to it"
            log.error(text, len({known.run for known in lost}))

    @property
    def settling(self) -> bool:
        """Whether there was a failover a moment ago: claims and the reaper wait until all processes have
        compared."""
        return time.monotonic() < self._settled_at

    async def settled(self) -> None:
        await asyncio.sleep(max(0.0, self._settled_at - time.monotonic()))
