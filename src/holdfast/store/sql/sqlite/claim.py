"""Leases: claimed, extended, released."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import msgspec

from holdfast.store.concurrency_limits import Admission, ClaimResult
from holdfast.store.fence import OWNED, lease_values
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.store.sql.claim_priority import CandidateTenant, ClaimSelection, ReadyRun
from holdfast.store.sql.concurrency_limits import ENTITY_FREE, IS_ENTITY_FREE
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.store.sql.sqlite import concurrency_limits
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows, statement
from holdfast.types.lease import Lease
from holdfast.types.status import RunStatus

Filters = dict[str, object]

# A bound, because the write lock is held meanwhile. The next claim finds what is left.
_ROUNDS = 5

_READY = """worker IS NULL AND ready_at <= :now AND status NOT IN ('completed', 'failed', 'cancelled')
AND suspect = :suspects"""
# By its whole name, or by what is before the first hyphen (`ClaimRequest.versions`).
_CARRIED = """(:versions IS NULL OR version IN (SELECT value FROM json_each(:versions))
OR substr(version, 1, instr(version, '-') - 1) IN (SELECT value FROM json_each(:versions)))"""
_SERVED = f"""
(:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes))) AND {_CARRIED}"""

_ANY_READY = f"SELECT 1 FROM runs WHERE {_READY} AND {_SERVED} LIMIT 1"
_NEXT_PRIORITY = f"""
SELECT priority FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND (:below IS NULL OR priority < :below) ORDER BY priority DESC LIMIT 1"""
_NEXT_TENANT = f"""
SELECT tenant FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND priority = :priority AND tenant > :tenant ORDER BY tenant LIMIT 1"""
_NEXT_LINE = f"""
SELECT line FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND priority = :priority AND tenant = :tenant AND line > :line
ORDER BY line LIMIT 1"""
_OF_LINE = f"""
SELECT ready_at, key, gate, status = 'pending' FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND priority = :priority AND tenant = :tenant AND line = :line
AND (:shut IS NULL OR gate NOT IN (SELECT value FROM json_each(:shut)))
AND (:exempt IS NULL OR gate IN (SELECT value FROM json_each(:exempt)))
AND {statement(ENTITY_FREE)}
ORDER BY ready_at, key
LIMIT :limit"""
_STANDING = """
SELECT (SELECT count(*) FROM runs INDEXED BY runs_leased WHERE worker IS NOT NULL AND tenant = :tenant),
       coalesce((SELECT turn FROM turns WHERE tenant = :tenant), 0)"""
# The tenant that was served last is not written again, so a single tenant costs no write.
_SERVED_NOW = """
INSERT INTO turns (tenant, turn) VALUES (?, (SELECT coalesce(max(turn), 0) + 1 FROM turns))
ON CONFLICT (tenant) DO UPDATE SET turn = excluded.turn WHERE turns.turn < excluded.turn - 1"""
_TAKE = """
UPDATE runs SET term = term + 1, worker = :worker, lease_until = :until, status = 'running', ready_at = NULL,
                suspect = suspect AND :suspects, updated_at = :now"""
_TAKE_KEY = f"{_TAKE} WHERE key = :key RETURNING {COLUMNS}"
_TAKE_NAMED = f"""{_TAKE}
WHERE id = :run AND (worker IS NULL OR lease_until <= :now) AND NOT read_only
AND status NOT IN ('completed', 'failed', 'cancelled') AND (gate = '' OR worker IS NOT NULL OR :passes)
AND {_CARRIED} RETURNING {COLUMNS}"""
_WITH_LIMIT = "SELECT key, gate, status = 'pending' FROM runs WHERE id = ? AND gate <> '' AND worker IS NULL"

_ENTITY_IS_FREE = statement(IS_ENTITY_FREE)

_EXTEND = f"UPDATE runs SET lease_until = ? WHERE {OWNED}"
_REST = f"UPDATE runs SET status = ?, updated_at = ? WHERE {OWNED}"


def any_ready(cur: Cursor, now: int, want: ClaimRequest) -> bool:
    """Checks without the write lock: most claims of an idle worker end here."""
    return row(cur, _ANY_READY, _filters(now, want)) is not None


def claim(cur: Cursor, now: int, want: ClaimRequest) -> ClaimResult:
    filters = _filters(now, want)
    taking = {"now": now, "worker": want.worker, "until": now + want.ttl, "suspects": want.suspects}
    if want.run is not None:
        return _claim_named(cur, want, filters | taking)
    claims: list[Claim] = []
    limited = _LazyAdmission(cur, now)
    # Each round reads from more queues: it skips those whose limit the last round found reached.
    for _ in range(_ROUNDS):
        choice = _choose(cur, filters, want.limit - len(claims), limited)
        for key in choice.keys:
            since = choice.since[key]
            claims += _claims_for(cur, want, rows(cur, _TAKE_KEY, taking | {"key": key}), since)
            concurrency_limits.write_starts(cur, [(key, start) for start in choice.starts.get(key, ())])
        if not choice.keys or choice.full or not choice.refused:
            break
    return ClaimResult(claims, limited.kept_out, limited.opens_at)


def _claim_named(cur: Cursor, want: ClaimRequest, given: Filters) -> ClaimResult:
    # First without loading the limits: most runs have none.
    claims = _claims_for(cur, want, rows(cur, _TAKE_NAMED, given | {"passes": False}))
    stands = None if claims else row(cur, _WITH_LIMIT, (want.run,))
    if stands is None:
        return ClaimResult(claims)
    key, limit, starts = stands
    limited = _LazyAdmission(cur, cast("int", given["now"]))
    free = row(cur, _ENTITY_IS_FREE, (key,)) is not None
    if not (free and limited.admission.passes(limit, starts=bool(starts))):
        return ClaimResult([], True, limited.opens_at)
    claims = _claims_for(cur, want, rows(cur, _TAKE_NAMED, given | {"passes": True}))
    if claims:
        entered = limited.admission.enter(limit, starts=bool(starts))
        concurrency_limits.write_starts(cur, [(key, start) for start in entered])
    return ClaimResult(claims)


def _claims_for(cur: Cursor, want: ClaimRequest, taken: list[Row], since: int | None = None) -> list[Claim]:
    claims: list[Claim] = []
    for values in taken:
        run = run_row(values)
        cur.execute(_SERVED_NOW, (run.tenant,))
        claims.append(Claim(Lease(run.id, run.key, run.term, want.worker), run, since))
    return claims


def _filters(now: int, want: ClaimRequest) -> Filters:
    return {
        "now": now,
        "run": want.run,
        "suspects": want.suspects,
        "lanes": _json(want.lanes),
        "versions": _json(want.versions),
    }


def _json(names: Sequence[str] | None) -> str | None:
    return None if names is None else msgspec.json.encode(names).decode()


class _LazyAdmission:
    """The limits, loaded when the first run that has one is met."""

    def __init__(self, cur: Cursor, now: int) -> None:
        self.now = now
        self.kept_out = False
        self._cur = cur

    @cached_property
    def admission(self) -> Admission:
        return concurrency_limits.load_admission(self._cur, self.now)

    @property
    def opens_at(self) -> int | None:
        return self.admission.opens_at if "admission" in self.__dict__ else None

    def shut(self, line: str) -> list[str] | None:
        """Keys that are skipped in that queue; None if all of them are."""
        shut = (
            None
            if not self.admission.open_queues([line])
            else self.admission.shut(starts=line.startswith("+"))
        )
        self.kept_out = self.kept_out or shut is None or bool(shut)
        return shut


def _choose(cur: Cursor, filters: Filters, limit: int, limited: _LazyAdmission) -> ClaimSelection:
    """By priority; within a priority, fair between tenants. Reads a few rows for each tenant and queue,
    however many runs are ready."""
    choice = ClaimSelection(limit)
    below: int | None = None
    while not choice.full:
        found = row(cur, _NEXT_PRIORITY, filters | {"below": below})
        if found is None:
            break
        below = found[0]
        level = filters | {"priority": below, "limit": limit - len(choice.keys)}
        tenants = _tenants(cur, level, limited)
        if any(run.limit for tenant in tenants for run in tenant.ready):
            choice.admission = limited.admission
        choice.serve(tenants)
    limited.kept_out = limited.kept_out or choice.refused
    return choice


def _tenants(cur: Cursor, level: Filters, limited: _LazyAdmission) -> list[CandidateTenant]:
    tenants: list[CandidateTenant] = []
    found = row(cur, _NEXT_TENANT, level | {"tenant": ""})
    while found is not None:
        name = found[0]
        ((running, turn),) = rows(cur, _STANDING, {"tenant": name})
        ready = _ready(cur, level | {"tenant": name}, limited)
        tenants.append(CandidateTenant(name, running, turn, ready[::-1]))
        found = row(cur, _NEXT_TENANT, level | {"tenant": name})
    return tenants


def _ready(cur: Cursor, level: Filters, limited: _LazyAdmission) -> list[ReadyRun]:
    """Of one tenant: the runs without a limit, and the first of each queue that is admitted."""
    unlimited = {"line": "", "shut": None, "exempt": None}
    ready = [ReadyRun(r[0], r[1]) for r in rows(cur, _OF_LINE, level | unlimited)]
    found = row(cur, _NEXT_LINE, level | {"line": ""})
    if found is None:
        return ready
    while found is not None:
        line = found[0]
        shut = limited.shut(line)
        if shut is not None:
            past = {"line": line, "shut": _json(shut), "exempt": _json(limited.admission.exempt(line))}
            queued = rows(cur, _OF_LINE, level | past)
            ready += [ReadyRun(r[0], r[1], r[2], bool(r[3])) for r in queued]
            # The others of this queue may wait for the run of their entity that is live.
            limited.kept_out = limited.kept_out or len(queued) < cast("int", level["limit"])
        found = row(cur, _NEXT_LINE, level | {"line": line})
    return sorted(ready, key=_order)


def _order(run: ReadyRun) -> tuple[int, int]:
    return run.ready_at, run.key


def extend(cur: Cursor, now: int, leases: Sequence[Lease], ttl: int) -> list[bool]:
    """Even after expiry, as long as no other worker claimed the run (D-33)."""
    extended: list[bool] = []
    for lease in leases:
        cur.execute(_EXTEND, (now + ttl, *lease_values(lease)))
        extended.append(cur.connection.changes() == 1)
    return extended


def set_idle(cur: Cursor, now: int, lease: Lease, status: RunStatus) -> bool:
    cur.execute(_REST, (status, now, *lease_values(lease)))
    return cur.connection.changes() == 1
