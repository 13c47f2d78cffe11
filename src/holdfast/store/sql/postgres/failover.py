"""After a failover to a new primary: acknowledged writes are looked for before anything else is done there,
and for a moment no worker claims, so that all processes have time to look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.store.rows import RunRow
from holdfast.store.sql.acknowledgements import Acknowledgements, LossDialect
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.lost_history import stop_lost_run
from holdfast.store.sql.postgres.dialect import PostgresConn
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.server_clock import ServerClock
from holdfast.telemetry import log
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ids import RunId

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


# A record at or below the horizon was pruned or rewritten: it cannot be checked.
_BEHIND = """
FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[])
    WITH ORDINALITY AS known (run, head, term, at, mail, hold, version, nth)
LEFT JOIN @runs AS runs ON runs.id = known.run
LEFT JOIN @holds AS holds ON holds.id = known.hold
WHERE runs.id IS NULL OR NOT runs.read_only AND (
    runs.inbox_seq < known.mail
    OR known.hold IS NOT NULL AND coalesce(holds.version, 0) < known.version
    OR known.head > runs.horizon AND NOT EXISTS (
        SELECT 1 FROM @journal AS journal WHERE journal.key = runs.key << 32 | known.head
        AND journal.term = known.term AND journal.at = known.at))"""
_FIND = f"SELECT known.nth, runs.id IS NULL {_BEHIND} ORDER BY known.nth"
_FENCE = """
UPDATE @runs AS runs SET term = known.term + 1 FROM unnest(?::text[], ?::bigint[]) AS known (run, term)
WHERE runs.id = known.run AND runs.term < known.term"""


async def find_lost(conn: Conn, known: Sequence[AcknowledgedState]) -> list[tuple[AcknowledgedState, bool]]:
    """The states that the store does not have; True: not even the run exists."""
    columns = ("run", "head", "term", "at", "mail", "hold", "version")
    values = [[getattr(each, name) for each in known] for name in columns]
    return [(known[nth - 1], gone) for nth, gone in await conn.rows(_FIND, *values)]


async def fence(conn: Conn, terms: Mapping[RunId, int]) -> None:
    """Raises the term where a claim was lost: the next worker would get the same term, and the old one would
    pass for it."""
    await conn.run(_FENCE, list(terms), list(terms.values()))


async def stop(conn: PostgresConn, now: int | None, missing: AcknowledgedState) -> RunRow | None:
    raw: Any = conn.raw
    async with raw.transaction():
        return await stop_lost_run(conn, now, missing)


LOSSES = LossDialect(find=find_lost, fence=fence, stop=stop)
