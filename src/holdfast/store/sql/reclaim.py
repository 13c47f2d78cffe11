"""Takes expired leases away from workers that stopped heartbeating; each death is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from holdfast.store.recovery import (
    PROGRESS,
    death_event,
    death_summary,
    recoveries_after,
    recovery_delay,
)
from holdfast.store.rows import Claim, ClaimRequest, RunRow
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.run_inbox import LEAVE_QUEUE, REVIVE, add_events
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.types.event import EventRow
from holdfast.types.fleet import WORKER_ROW_RETENTION, Death
from holdfast.types.ids import RunId
from holdfast.types.lease import Lease
from holdfast.types.status import PARKED

_FIELDS = Death.__struct_fields__
_ANY = "SELECT 1 FROM @runs WHERE worker IS NOT NULL AND lease_until <= ? LIMIT 1"
_DEATH = ", ".join(f"deaths.{name}" for name in _FIELDS)
# Every worker has a reaper: what another one is reclaiming now is skipped.
_LAPSED = """
SELECT key, recoveries, suspect, term, worker, @now(?::bigint), lease_until, head, status FROM @runs
WHERE worker IS NOT NULL AND lease_until <= @now(?::bigint) ORDER BY lease_until LIMIT ?
FOR UPDATE SKIP LOCKED"""
# Leased by that worker when it died: still, or freed shortly before. Several workers may have had the same
# name one after the other, so a run may seem to have been beside others: then it is claimed alone, and its
# next death counts.
_BESIDE = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM @runs[runs_leased] WHERE worker = ? AND key <> ?)
OR EXISTS (SELECT 1 FROM @deaths WHERE worker = ? AND run_key <> ? AND at > ?)"""
_LAST_HEAD = "SELECT head FROM @deaths WHERE run_key = ? ORDER BY term DESC LIMIT 1"
# An intent or a new attempt does not count as progress: a run that kills its workers writes those too.
_DONE_SINCE = f"""
SELECT 1 FROM @journal WHERE key > ?::bigint AND key <= ?::bigint << 32 | 4294967295
AND kind IN ({", ".join(f"{kind:d}" for kind in PROGRESS)}) LIMIT 1"""
_VALUES = ", ".join("?" * len(_FIELDS))
INSERT_DEATH = f"INSERT INTO @deaths (run_key, {', '.join(_FIELDS)}) VALUES (?, {_VALUES})"
_LAST = f"SELECT {_DEATH} FROM @deaths AS deaths WHERE run_key = ? AND alone ORDER BY term DESC LIMIT ?"
_OF_RUN = f"""
SELECT {_DEATH} FROM @deaths AS deaths JOIN @runs AS runs ON runs.key = deaths.run_key
WHERE runs.id = ? ORDER BY deaths.term"""
_IS_DEAD = """
SELECT key FROM @runs WHERE id = ? AND dead AND NOT read_only AND superseded_by IS NULL FOR UPDATE"""
# The term grows although no worker claims the run: the old worker may live, and its writes are refused from
# now on.
_FREE = """
UPDATE @runs SET term = term + 1, worker = NULL, lease_until = NULL, recoveries = ?, ready_at = ?::bigint,
                 suspect = ?,
                 status = CASE WHEN status IN ('pending', 'waiting', 'pending_input') THEN status
                               ELSE 'resumable' END,
                 updated_at = ?::bigint
WHERE key = ?"""
_GIVE_UP = """
UPDATE @runs SET term = term + 1, recoveries = ?, worker = NULL, lease_until = NULL, ready_at = NULL,
                 status = 'failed', dead = true, error = ?, ended_at = ?::bigint, updated_at = ?::bigint
WHERE key = ?"""
# There are few of them: what serves them is decided here.
_SUSPECTS = """
SELECT ready_at, lane, version FROM @runs
WHERE suspect AND worker IS NULL AND (gate = '' OR ?::boolean) AND NOT read_only
AND ready_at <= @now(?::bigint) AND status NOT IN ('completed', 'failed', 'cancelled')
ORDER BY ready_at LIMIT 1000"""
_CLEAR = "UPDATE @runs SET suspect = false WHERE key = ? AND id = ? AND term = ? AND worker = ?"
_AHEAD = f"""
SELECT {COLUMNS} FROM @runs[runs_leased]
WHERE worker IS NOT NULL AND lease_until > @now(?::bigint) + ?::bigint
ORDER BY lease_until DESC LIMIT ?"""
_EXPIRE = """
UPDATE @runs SET lease_until = @now(?::bigint) WHERE key = ? AND id = ? AND term = ? AND worker = ?
AND lease_until = ?"""
# A second: two processes may read the clock in another order than they write.
_CORRECT_READY = """
UPDATE @runs SET ready_at = greatest(@now(?::bigint), ready_at - (updated_at - @now(?::bigint))),
                 updated_at = @now(?::bigint)
WHERE worker IS NULL AND ready_at > @now(?::bigint) AND updated_at > @now(?::bigint) + 1000000
AND status NOT IN ('completed', 'failed', 'cancelled') AND NOT read_only"""


def _earlier(column: str, written: str) -> str:
    return f"""{column} = CASE WHEN {column} > @now(?::bigint)
        THEN greatest(@now(?::bigint), {column} - ({written} - @now(?::bigint))) ELSE {column} END"""


# A claim may be of a consumer that died.
_CORRECT_MESSAGES = f"""
UPDATE @queue_messages SET {_earlier("visible_at", "updated_at")}, {_earlier("claim_until", "updated_at")},
                           updated_at = @now(?::bigint)
WHERE state IN ('ready', 'claimed') AND updated_at > @now(?::bigint) + 1000000"""
_CORRECT_OUTBOX = f"""
UPDATE @outbox SET {_earlier("due_at", "at")}, {_earlier("claimed_until", "at")}, at = @now(?::bigint)
WHERE state = 'waiting' AND at > @now(?::bigint) + 1000000"""
_DROP_STARTS = "DELETE FROM @gate_starts WHERE at > @now(?::bigint) + 1000000"
_FREED = f"SELECT {COLUMNS} FROM @runs WHERE key = ?"


async def any_lapsed(conn: Conn, now: int) -> bool:
    return await conn.row(_ANY, now) is not None


async def reclaim(conn: Conn, now: int | None, limit: int, max_recoveries: int, backoff: int) -> list[RunRow]:
    reclaimed: list[RunRow] = []
    lapsed = await conn.rows(_LAPSED, now, now, limit)
    leases = Counter(worker for _, _, _, _, worker, *_ in lapsed)
    for nth, (key, recoveries, suspect, *rest) in enumerate(lapsed):
        death = _death((*rest, True))
        # It only waited in memory: nothing that it did can have killed the worker, so no death is recorded.
        if death.status in PARKED:
            await conn.run(_FREE, recoveries, death.at, bool(suspect), death.at, key)
        else:
            # A suspect was claimed alone.
            beside = not suspect and (leases[death.worker] > 1 or await _was_beside(conn, key, death))
            death = msgspec.structs.replace(death, alone=not beside)
            event = await _record_death(conn, key, recoveries, death, max_recoveries, backoff)
            await add_events(conn, key, [event], nth)
        freed = await conn.row(_FREED, key)
        assert freed is not None
        reclaimed.append(run_row(freed))
    return reclaimed


async def _was_beside(conn: Conn, key: int, death: Death) -> bool:
    since = death.at - WORKER_ROW_RETENTION
    return await conn.row(_BESIDE, death.worker, key, death.worker, key, since) is not None


async def _record_death(
    conn: Conn, key: int, recoveries: int, death: Death, bound: int, backoff: int
) -> EventRow:
    """Returns its event."""
    last = await conn.row(_LAST_HEAD, key)
    done = last is not None and await conn.row(_DONE_SINCE, key << 32 | last[0], key) is not None
    recoveries = recoveries_after(recoveries, progressed=done, alone=death.alone)
    await conn.run(INSERT_DEATH, *values(key, death))
    if recoveries <= bound:
        ready_at = death.at + recovery_delay(recoveries, backoff)
        await conn.run(_FREE, recoveries, ready_at, last is not None and not done, death.at, key)
        return death_event(death, recoveries, ready_at)
    # Its holds and timers stay: the journal still has them open, and an operator may resume the run.
    in_a_row = _deaths(await conn.rows(_LAST, key, recoveries))[::-1]
    await conn.run(_GIVE_UP, recoveries, death_summary(in_a_row, bound), death.at, death.at, key)
    return death_event(death, recoveries, None)


async def next_suspect(conn: Conn, now: int | None, want: ClaimRequest, *, limited: bool) -> int | None:
    for since, lane, version in await conn.rows(_SUSPECTS, limited, now):
        if (want.lanes is None or lane in want.lanes) and want.serves(version):
            return since
    return None


async def end_isolation(conn: Conn, _now: int, lease: Lease) -> bool:
    return await conn.run(_CLEAR, lease.key, lease.run, lease.term, lease.worker) == 1


async def leases_ahead(conn: Conn, now: int | None, beyond: int, limit: int) -> list[RunRow]:
    return [run_row(values) for values in await conn.rows(_AHEAD, now, beyond, limit)]


async def expire_leases(conn: Conn, now: int | None, rows: Sequence[RunRow]) -> int:
    return sum(
        [await conn.run(_EXPIRE, now, row.key, row.id, row.term, row.worker, row.lease_until) for row in rows]
    )


async def correct_ready_times(conn: Conn, now: int | None) -> int:
    await conn.run(_DROP_STARTS, now)
    corrected = await conn.run(_CORRECT_READY, *[now] * 5)
    for text in (_CORRECT_MESSAGES, _CORRECT_OUTBOX):
        corrected += await conn.run(text, *[now] * 8)
    return corrected


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
    return [_death(kept) for kept in found]


def _death(kept: Row) -> Death:
    fields = dict(zip(_FIELDS, kept, strict=True))
    fields["alone"] = bool(fields["alone"])
    return Death(**fields)
