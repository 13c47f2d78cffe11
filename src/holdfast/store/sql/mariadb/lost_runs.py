"""After a failover: which of the acknowledged states the new primary does not have, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.store.rows import RunRow
from holdfast.store.sql.acknowledgements import LossDialect
from holdfast.store.sql.lost_history import stop_lost_run
from holdfast.store.sql.mariadb.dialect import MariadbConn
from holdfast.store.sql.mariadb.feed import announce
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ids import RunId

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
