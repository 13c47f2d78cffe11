"""Coming to a new primary: what was acknowledged is looked for before anything else is done there, and nobody
claims for a moment, so that all who were told something have time to look."""

from __future__ import annotations

import asyncio
import time

from holdfast.store.sql.postgres.clock import ServerClock
from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.failover__acks import Acks
from holdfast.store.sql.postgres.servers import Servers
from holdfast.telemetry import log

# The first timeline that a schema ever saw came with no failover: nothing can have been lost.
_NOTE = """
INSERT INTO @timelines (system, timeline, since)
SELECT ?, ?, CASE WHEN EXISTS (SELECT 1 FROM @timelines) THEN @now(NULL) ELSE 0 END
ON CONFLICT DO NOTHING"""
# A position in the feed begins with the number of its transaction. Numbers whose transactions were lost would
# be given again, to events that come behind a reader who has been there: so many are let pass. It takes no
# flush, and about a tenth of a second for 10,000.
_PASS = "DO $$ BEGIN FOR n IN 1..50000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
_FIRST_EVER = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM @timelines)"
_AGE = "SELECT @now(NULL) - since FROM @timelines WHERE system = ? AND timeline = ?"


class Arrivals:
    def __init__(self, servers: Servers, clock: ServerClock, acks: Acks) -> None:
        self._servers = servers
        self._clock = clock
        self.acks = acks
        self._settled_at = 0.0

    async def note(self, conn: Conn) -> None:
        """Since when this timeline is known, to whoever was first here; claims wait from then on."""
        servers = self._servers
        place = (str(servers.system), servers.timeline)
        age = await conn.row(_AGE, *place)
        if age is None:
            if await conn.row(_FIRST_EVER) is None:
                await conn.raw.execute(_PASS)
            # Only now: whoever finds the timeline noted may write.
            await conn.run(_NOTE, *place)
            age = await conn.row(_AGE, *place)
        left = servers.settings.settling - (0 if age is None else age[0] / 1e6)
        self._settled_at = time.monotonic() + left

    async def arrived(self, conn: Conn) -> None:
        await self.note(conn)
        lost = await self.acks.verify(conn, lambda: self._clock.given)
        if lost:
            said = "%d of the runs that this process touched are behind what was acknowledged to it"
            log.error(said, len({known.run for known in lost}))

    @property
    def settling(self) -> bool:
        """Whether there was a failover a moment ago: claims and the reaper wait for those who look."""
        return time.monotonic() < self._settled_at

    async def settled(self) -> None:
        await asyncio.sleep(max(0.0, self._settled_at - time.monotonic()))
