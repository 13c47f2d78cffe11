"""After a failover: which of the acknowledged states the new primary does not have, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.store.rows import RunRow
from holdfast.store.sql.acknowledgements import LossDialect
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.lost_history import stop_lost_run
from holdfast.store.sql.postgres.dialect import PostgresConn
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ids import RunId

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
