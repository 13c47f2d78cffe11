"""Takes expired leases away from workers that stopped heartbeating; each death is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.store.recovery import PROGRESS, death_event, death_summary, recovery_delay
from holdfast.store.rows import Claim, ClaimRequest, RunRow
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.run_inbox import LEAVE_QUEUE, REVIVE, add_events
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.ids import RunId
from holdfast.types.status import PARKED

_FIELDS = Death.__struct_fields__
_ANY = "SELECT 1 FROM @runs WHERE worker IS NOT NULL AND lease_until <= ? LIMIT 1"
_DEATH = ", ".join(f"deaths.{name}" for name in _FIELDS)
# Every worker has a reaper: what another one is reclaiming now is skipped.
_LAPSED = """
SELECT key, recoveries, term, worker, @now(?::bigint), lease_until, head, status FROM @runs
WHERE worker IS NOT NULL AND lease_until <= @now(?::bigint) ORDER BY lease_until LIMIT ?
FOR UPDATE SKIP LOCKED"""
# An intent or a new attempt does not count as progress: a run that kills its workers writes those too.
_DONE_SINCE = f"""
SELECT 1 FROM @journal WHERE key > (
    SELECT run_key << 32 | head FROM @deaths WHERE run_key = ? ORDER BY term DESC LIMIT 1)
AND key <= ?::bigint << 32 | 4294967295 AND kind IN ({", ".join(f"{kind:d}" for kind in PROGRESS)}) LIMIT 1"""
INSERT_DEATH = f"INSERT INTO @deaths (run_key, {', '.join(_FIELDS)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_LAST = f"SELECT {_DEATH} FROM @deaths AS deaths WHERE run_key = ? ORDER BY term DESC LIMIT ?"
_OF_RUN = f"""
SELECT {_DEATH} FROM @deaths AS deaths JOIN @runs AS runs ON runs.key = deaths.run_key
WHERE runs.id = ? ORDER BY deaths.term"""
_IS_DEAD = """
SELECT key FROM @runs WHERE id = ? AND dead AND NOT read_only AND superseded_by IS NULL FOR UPDATE"""
# The term grows although no worker claims the run: the old worker may live, and its writes are refused from
# now on.
_FREE = """
UPDATE @runs SET term = term + 1, worker = NULL, lease_until = NULL, recoveries = ?, ready_at = ?::bigint,
                 status = CASE WHEN status IN ('pending', 'waiting', 'pending_input') THEN status
                               ELSE 'resumable' END,
                 updated_at = ?::bigint
WHERE key = ?"""
_GIVE_UP = """
UPDATE @runs SET term = term + 1, recoveries = ?, worker = NULL, lease_until = NULL, ready_at = NULL,
                 status = 'failed', dead = true, error = ?, ended_at = ?::bigint, updated_at = ?::bigint
WHERE key = ?"""
_FREED = f"SELECT {COLUMNS} FROM @runs WHERE key = ?"


async def any_lapsed(conn: Conn, now: int) -> bool:
    return await conn.row(_ANY, now) is not None


async def reclaim(conn: Conn, now: int | None, limit: int, max_recoveries: int, backoff: int) -> list[RunRow]:
    reclaimed: list[RunRow] = []
    for nth, (key, recoveries, *rest) in enumerate(await conn.rows(_LAPSED, now, now, limit)):
        death = Death(**dict(zip(_FIELDS, rest, strict=True)))
        # It only waited in memory: nothing that it did can have killed the worker, so no death is recorded.
        if death.status in PARKED:
            await conn.run(_FREE, recoveries, death.at, death.at, key)
        else:
            event = await _record_death(conn, key, recoveries, death, max_recoveries, backoff)
            await add_events(conn, key, [event], nth)
        freed = await conn.row(_FREED, key)
        assert freed is not None
        reclaimed.append(run_row(freed))
    return reclaimed


async def _record_death(
    conn: Conn, key: int, recoveries: int, death: Death, bound: int, backoff: int
) -> EventRow:
    """Returns its event."""
    done = await conn.row(_DONE_SINCE, key, key) is not None
    recoveries = 1 if done else recoveries + 1
    await conn.run(INSERT_DEATH, *values(key, death))
    if recoveries <= bound:
        ready_at = death.at + recovery_delay(recoveries, backoff)
        await conn.run(_FREE, recoveries, ready_at, death.at, key)
        return death_event(death, recoveries, ready_at)
    # Its holds and timers stay: the journal still has them open, and an operator may resume the run.
    in_a_row = _deaths(await conn.rows(_LAST, key, recoveries))[::-1]
    await conn.run(_GIVE_UP, recoveries, death_summary(in_a_row, bound), death.at, death.at, key)
    return death_event(death, recoveries, None)


async def deaths(conn: Conn, run: RunId) -> list[Death]:
    return _deaths(await conn.rows(_OF_RUN, run))


async def claim_dead(
    conn: Conn,
    now: int | None,
    want: ClaimRequest,
    event: EventRow | None,
    claim: Callable[[Conn, int | None, ClaimRequest], Awaitable[list[Claim]]],
) -> Claim | None:
    """`claim`: how the dialect claims the run that `want` names."""
    found = await conn.row(_IS_DEAD, want.run)
    if found is None:
        return None
    await conn.run(REVIVE, found[0])
    await conn.run(LEAVE_QUEUE, found[0])
    if event is not None:
        await add_events(conn, found[0], [event])
    return (await claim(conn, now, want))[0]


def values(key: int, death: Death) -> tuple[object, ...]:
    """For INSERT_DEATH."""
    return key, *(getattr(death, name) for name in _FIELDS)


def _deaths(found: Sequence[Row]) -> list[Death]:
    return [Death(**dict(zip(_FIELDS, kept, strict=True))) for kept in found]
