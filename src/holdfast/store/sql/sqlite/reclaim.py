"""Leases that lapsed are taken away from workers that fell silent; each such death is written down."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.protocols import Claim, ClaimRequest, RunRow
from holdfast.store.recovery import PROGRESS, death_event, death_summary, recovery_delay
from holdfast.store.sql.sqlite.claim import claim
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.inbox import LEAVE_QUEUE, REVIVE, add_event
from holdfast.store.sql.sqlite.runs import COLUMNS, run_row
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.ids import RunId
from holdfast.types.status import PARKED

_FIELDS = Death.__struct_fields__
_DEATH = ", ".join(f"deaths.{name}" for name in _FIELDS)
_ANY = "SELECT 1 FROM runs WHERE worker IS NOT NULL AND lease_until <= ? LIMIT 1"
_LAPSED = """
SELECT key, recoveries, term, worker, ?1, lease_until, head, status FROM runs
WHERE worker IS NOT NULL AND lease_until <= ?1 ORDER BY lease_until LIMIT ?2"""
_DONE_SINCE = f"""
SELECT 1 FROM journal WHERE key > (
    SELECT run_key << 32 | head FROM deaths WHERE run_key = ?1 ORDER BY term DESC LIMIT 1)
AND key <= ?1 << 32 | 4294967295 AND kind IN ({", ".join(f"{kind:d}" for kind in PROGRESS)}) LIMIT 1"""
INSERT_DEATH = f"INSERT INTO deaths (run_key, {', '.join(_FIELDS)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_LAST = f"SELECT {_DEATH} FROM deaths WHERE run_key = ? ORDER BY term DESC LIMIT ?"
_OF_RUN = f"""
SELECT {_DEATH} FROM deaths JOIN runs ON runs.key = deaths.run_key WHERE runs.id = ? ORDER BY deaths.term"""
_IS_DEAD = "SELECT key FROM runs WHERE id = ? AND dead AND NOT read_only AND superseded_by IS NULL"
_FREE = """
UPDATE runs SET term = term + 1, worker = NULL, lease_until = NULL, recoveries = ?, ready_at = ?,
                status = iif(status IN ('pending', 'waiting', 'pending_input'), status, 'resumable'),
                updated_at = ?
WHERE key = ?"""
_GIVE_UP = """
UPDATE runs SET term = term + 1, recoveries = ?, worker = NULL, lease_until = NULL, ready_at = NULL,
                status = 'failed', dead = 1, error = ?, ended_at = ?, updated_at = ?
WHERE key = ?"""
_FREED = f"SELECT {COLUMNS} FROM runs WHERE key = ?"


def any_lapsed(cur: Cursor, now: int) -> bool:
    return row(cur, _ANY, (now,)) is not None


def reclaim(cur: Cursor, now: int, limit: int, max_recoveries: int, backoff: int) -> list[RunRow]:
    reclaimed: list[RunRow] = []
    for key, recoveries, *rest in rows(cur, _LAPSED, (now, limit)):
        death = Death(**dict(zip(_FIELDS, rest, strict=True)))
        if death.status in PARKED:
            cur.execute(_FREE, (recoveries, now, now, key))
        else:
            _record_death(cur, key, recoveries, death, max_recoveries, backoff)
        (freed,) = rows(cur, _FREED, (key,))
        reclaimed.append(run_row(freed))
    return reclaimed


def _record_death(cur: Cursor, key: int, recoveries: int, death: Death, bound: int, backoff: int) -> None:
    done = row(cur, _DONE_SINCE, (key,)) is not None
    recoveries = 1 if done else recoveries + 1
    cur.execute(INSERT_DEATH, values(key, death))
    if recoveries <= bound:
        ready_at = death.at + recovery_delay(recoveries, backoff)
        cur.execute(_FREE, (recoveries, ready_at, death.at, key))
        add_event(cur, key, death_event(death, recoveries, ready_at))
        return
    # Its holds and timers stay: the journal still has them open, and an operator may resume the run.
    in_a_row = _deaths(rows(cur, _LAST, (key, recoveries)))[::-1]
    cur.execute(_GIVE_UP, (recoveries, death_summary(in_a_row, bound), death.at, death.at, key))
    add_event(cur, key, death_event(death, recoveries, None))


def deaths(cur: Cursor, run: RunId) -> list[Death]:
    return _deaths(rows(cur, _OF_RUN, (run,)))


def claim_dead(cur: Cursor, now: int, want: ClaimRequest, event: EventRow | None) -> Claim | None:
    found = row(cur, _IS_DEAD, (want.run,))
    if found is None:
        return None
    cur.execute(REVIVE, found)
    cur.execute(LEAVE_QUEUE, found)
    if event is not None:
        add_event(cur, found[0], event)
    return claim(cur, now, want).claims[0]


def values(key: int, death: Death) -> tuple[object, ...]:
    """For BURY."""
    return key, *(getattr(death, name) for name in _FIELDS)


def _deaths(found: Sequence[Row]) -> list[Death]:
    return [Death(**dict(zip(_FIELDS, kept, strict=True))) for kept in found]
