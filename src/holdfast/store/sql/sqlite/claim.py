"""Leases: claimed, extended, released."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import cast

import msgspec

from holdfast.store.fence import OWNED, lease_values
from holdfast.store.limit_admission import Admission, ClaimResult
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.store.sql.claim_priority import CandidateTenant, ClaimSelection, ReadyRun
from holdfast.store.sql.concurrency_limits import ENTITY_FREE, IS_ENTITY_FREE
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.store.sql.served_versions import Crowd, after, served_ranges
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


def _first(columns: str, condition: str, order: str) -> str:
    """Of all runs, with what tells whether the worker serves them."""
    return f"""
SELECT {columns}, lane, version FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {condition} ORDER BY {order} LIMIT :most"""


def _in_order(columns: str, condition: str, order: str) -> str:
    """Of those that are served, past all others."""
    return _first(columns, f"{_SERVED} AND {condition}", order)


def _of_version(columns: str, condition: str, order: str) -> str:
    return f"""
SELECT {columns} FROM runs INDEXED BY runs_ready_versions
WHERE {_READY} AND lane = :lane AND version = :version AND {condition} ORDER BY {order} LIMIT :most"""


class _Statements(msgspec.Struct, frozen=True):
    """What finds the ready runs one after the other."""

    priority: str
    tenant: str
    line: str
    runs: str

    @staticmethod
    def of(form: Callable[..., str]) -> _Statements:
        of_line = f"""priority = :priority AND tenant = :tenant AND line = :line
AND (:shut IS NULL OR gate NOT IN (SELECT value FROM json_each(:shut)))
AND (:exempt IS NULL OR gate IN (SELECT value FROM json_each(:exempt)))
AND {statement(ENTITY_FREE)}"""
        return _Statements(
            priority=form("priority", "(:below IS NULL OR priority < :below)", "priority DESC"),
            tenant=form("tenant", "priority = :priority AND tenant > :tenant", "tenant"),
            line=form("line", "priority = :priority AND tenant = :tenant AND line > :line", "line"),
            runs=form("ready_at, key, gate, status = 'pending'", of_line, "ready_at, key"),
        )


_FIRST = _Statements.of(_first)
_IN_ORDER = _Statements.of(_in_order)
_OF_VERSION = _Statements.of(_of_version)
# Runs of other workers that a claim walks past before it looks for its own versions one by one.
_WINDOWS = (0, 16)
# More versions than these are not asked for one by one.
_VERSIONS = 256

_ANY_READY = f"SELECT lane, version FROM runs INDEXED BY runs_ready WHERE {_READY} LIMIT :most"
_ANY_OF_VERSION = f"""
SELECT 1 FROM runs INDEXED BY runs_ready_versions
WHERE {_READY} AND lane = :lane AND version = :version LIMIT 1"""
_NEXT_LANE = """
SELECT lane FROM runs INDEXED BY runs_ready_versions
WHERE worker IS NULL AND ready_at IS NOT NULL AND suspect = :suspects AND lane >= :lane
ORDER BY lane LIMIT 1"""
_NEXT_VERSION = """
SELECT version FROM runs INDEXED BY runs_ready_versions
WHERE worker IS NULL AND ready_at IS NOT NULL AND suspect = :suspects AND lane = :lane AND version >= :version
ORDER BY version LIMIT 1"""
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


def any_ready(cur: Cursor, now: int, want: ClaimRequest, crowd: Crowd) -> bool:
    """Checks without the write lock: most claims of an idle worker end here."""
    filters = _filters(now, want)
    for window in () if crowd.claims else _WINDOWS:
        found = rows(cur, _ANY_READY, filters | {"most": 1 + window})
        served = any(_serves(want, values) for values in found)
        if served or len(found) <= window:
            return served
    return any(row(cur, _ANY_OF_VERSION, filters | one) for one in _served_versions(cur, filters, want))


def _serves(want: ClaimRequest, values: Row) -> bool:
    """`values` end with a lane and a version."""
    return (want.lanes is None or values[-2] in want.lanes) and served_ranges(want.versions).has(values[-1])


def _served_versions(cur: Cursor, filters: Filters, want: ClaimRequest) -> Iterator[Filters]:
    """Those that may have ready runs, each with its lane. Versions of other workers cost one look each at
    most, however many runs they have."""
    served = served_ranges(want.versions)
    lane = row(cur, _NEXT_LANE, filters | {"lane": ""})
    while lane is not None:
        here = filters | {"lane": lane[0]}
        version = served.next("") if want.lanes is None or lane[0] in want.lanes else None
        while version is not None:
            found = row(cur, _NEXT_VERSION, here | {"version": version})
            version = None if found is None else served.next(found[0])
            if found is not None and version == found[0]:
                yield {"lane": lane[0], "version": version}
                version = served.next(after(found[0]))
        lane = row(cur, _NEXT_LANE, filters | {"lane": after(lane[0])})


def claim(cur: Cursor, now: int, want: ClaimRequest, crowd: Crowd) -> ClaimResult:
    filters = _filters(now, want)
    taking = {"now": now, "worker": want.worker, "until": now + want.ttl, "suspects": want.suspects}
    if want.run is not None:
        return _claim_named(cur, want, filters | taking)
    claims: list[Claim] = []
    limited = _LazyAdmission(cur, now)
    ready = _ReadyRuns(cur, filters, want)
    if crowd.is_expected():
        ready.split()
    # Each round reads from more queues: it skips those whose limit the last round found reached.
    for _ in range(_ROUNDS):
        choice = _choose(ready, want.limit - len(claims), limited, crowd)
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


class _CrowdedError(Exception):
    """Too many runs that the worker does not serve are before those that it serves."""


class _ReadyRuns:
    """The ready runs that the worker serves. They are read in the order of claims; where too many others are
    between them, version by version, and merged."""

    def __init__(self, cur: Cursor, filters: Filters, want: ClaimRequest) -> None:
        self.cur = cur
        self._filters = filters
        self._want = want
        self._statements = _FIRST
        self._sources = [filters]

    def split(self) -> None:
        found = list(islice(_served_versions(self.cur, self._filters, self._want), _VERSIONS + 1))
        if len(found) > _VERSIONS:
            self._statements = _IN_ORDER
        else:
            self._statements = _OF_VERSION
            self._sources = [self._filters | one for one in found]

    def next_priority(self, below: int | None) -> int | None:
        found = self._read(self._statements.priority, {"below": below}, 1)
        return max((values[0] for values in found), default=None)

    def next_tenant(self, level: Filters, tenant: str) -> str | None:
        found = self._read(self._statements.tenant, level | {"tenant": tenant}, 1)
        return min((values[0] for values in found), default=None)

    def next_line(self, level: Filters, line: str) -> str | None:
        found = self._read(self._statements.line, level | {"line": line}, 1)
        return min((values[0] for values in found), default=None)

    def of_line(self, level: Filters, limit: int) -> list[ReadyRun]:
        found = self._read(self._statements.runs, level, limit)
        runs = [ReadyRun(each[0], each[1], each[2], bool(each[3])) for each in found]
        return runs if len(self._sources) == 1 else sorted(runs, key=_order)[:limit]

    def _read(self, sql: str, given: Filters, limit: int) -> list[Row]:
        """Of each source up to `limit` rows."""
        if self._statements is _FIRST:
            return self._first(sql, self._filters | given, limit)
        given = {**given, "most": limit}
        return [values for each in self._sources for values in rows(self.cur, sql, each | given)]

    def _first(self, sql: str, given: Filters, limit: int) -> list[Row]:
        for window in _WINDOWS:
            found = rows(self.cur, sql, given | {"most": limit + window})
            served = [values for values in found if _serves(self._want, values)]
            if len(served) >= limit or len(found) < limit + window:
                return served[:limit]
        raise _CrowdedError


def _choose(ready: _ReadyRuns, limit: int, limited: _LazyAdmission, crowd: Crowd) -> ClaimSelection:
    """By priority; within a priority, fair between tenants. Reads a few rows for each tenant and queue,
    however many runs are ready."""
    choice = ClaimSelection(limit)
    below: int | None = None
    while not choice.full:
        try:
            priority = ready.next_priority(below)
            if priority is None:
                break
            tenants = _tenants(ready, {"priority": priority}, limit - len(choice.keys), limited)
        except _CrowdedError:
            crowd.met()
            ready.split()
            continue
        below = priority
        if any(run.limit for tenant in tenants for run in tenant.ready):
            choice.admission = limited.admission
        choice.serve(tenants)
    limited.kept_out = limited.kept_out or choice.refused
    return choice


def _tenants(ready: _ReadyRuns, level: Filters, limit: int, limited: _LazyAdmission) -> list[CandidateTenant]:
    tenants: list[CandidateTenant] = []
    name = ready.next_tenant(level, "")
    while name is not None:
        ((running, turn),) = rows(ready.cur, _STANDING, {"tenant": name})
        found = _of_tenant(ready, level | {"tenant": name}, limit, limited)
        tenants.append(CandidateTenant(name, running, turn, found[::-1]))
        name = ready.next_tenant(level, name)
    return tenants


def _of_tenant(ready: _ReadyRuns, level: Filters, limit: int, limited: _LazyAdmission) -> list[ReadyRun]:
    """The runs without a limit, and the first of each queue that is admitted."""
    found = ready.of_line(level | {"line": "", "shut": None, "exempt": None}, limit)
    line = ready.next_line(level, "")
    if line is None:
        return found
    while line is not None:
        shut = limited.shut(line)
        if shut is not None:
            past = {"line": line, "shut": _json(shut), "exempt": _json(limited.admission.exempt(line))}
            queued = ready.of_line(level | past, limit)
            found += queued
            # The others of this queue may wait for the run of their entity that is live.
            limited.kept_out = limited.kept_out or len(queued) < limit
        line = ready.next_line(level, line)
    return sorted(found, key=_order)


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
