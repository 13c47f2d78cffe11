"""Leases: claimed, extended, released. The server's own time counts, unless a clock was given.

MariaDB has no UPDATE .. RETURNING: rows are chosen without locks, locked with SKIP LOCKED, then updated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.store.fence import OWNED, lease_values
from holdfast.store.limit_admission import Admission, ClaimResult
from holdfast.store.rows import Claim, ClaimRequest
from holdfast.store.sql.claim_priority import CandidateTenant, ClaimSelection, ReadyRun
from holdfast.store.sql.concurrency_limits import ENTITY_FREE, IS_ENTITY_FREE
from holdfast.store.sql.mariadb import concurrency_limits
from holdfast.store.sql.mariadb.connect import MariadbConnection, Row
from holdfast.store.sql.mariadb.statement import literal
from holdfast.store.sql.runs import COLUMNS, run_row
from holdfast.store.sql.served_versions import after, served_ranges
from holdfast.types.concurrency_limits import root_of
from holdfast.types.lease import Lease
from holdfast.types.status import RunStatus

# A bound, because rows are locked meanwhile. The next claim finds what is left.
ROUNDS = 5
_AT_ONCE = 100  # groups that one statement asks for

# Runs of other workers that a claim walks past before it looks for its own versions one by one.
_WINDOWS = (0, 32)
# More versions than these are not asked for one by one.
_VERSIONS = 256

# One index lookup for each group, however many runs it has.
_GROUPS = """
SELECT urgency, tenant, line, NULL, min(ready_at), @now(?::bigint) FROM runs FORCE INDEX (runs_ready)
WHERE claimable = 1 AND suspect = ? GROUP BY claimable, suspect, urgency, tenant, line"""
_GROUPS_OF_VERSION = """
(SELECT urgency, tenant, line, version, min(ready_at), @now(?::bigint)
 FROM runs FORCE INDEX (runs_ready_versions) WHERE claimable = 1 AND suspect = ? AND version = ?
 GROUP BY claimable, suspect, version, urgency, tenant, line)"""
_NEXT_VERSION = """
SELECT version FROM runs FORCE INDEX (runs_ready_versions)
WHERE claimable = 1 AND suspect = ? AND version >= ? ORDER BY version LIMIT 1"""
_OF_GROUP = """
(SELECT {nth}, tenant, ready_at, key, gate, status = 'pending', lane, version FROM runs FORCE INDEX ({index})
 WHERE claimable = 1 AND suspect = ?{of_version} AND urgency = ? AND tenant = ? AND line = ?
 AND ready_at <= ?{served}
 ORDER BY {order} LIMIT ?)"""
_OF_ALL = {"index": "runs_ready", "of_version": "", "order": "ready_at, key"}
# The index is too long for MariaDB to use the key in it, by which its entries are ordered nevertheless. Asked
# for that order, it would read and sort all runs of the version.
_OF_VERSION = {"index": "runs_ready_versions", "of_version": " AND version = ?", "order": "ready_at"}
_RUNNING = "SELECT tenant, count(*) FROM runs WHERE leased = 1 GROUP BY tenant"
_LOCK_SOME = f"""
SELECT {COLUMNS}, @now(?::bigint) FROM runs FORCE INDEX (PRIMARY)
WHERE key = ANY(?::bigint[]) AND claimable = 1 AND ready_at <= @now(?::bigint) AND suspect = ?
AND (gate = '' OR ?) ORDER BY key FOR UPDATE SKIP LOCKED"""
_LOCK_NAMED = f"""
SELECT {COLUMNS}, @now(?::bigint) FROM runs
WHERE id = ? AND (worker IS NULL OR lease_until <= @now(?::bigint)) AND NOT read_only
AND status NOT IN ('completed', 'failed', 'cancelled')
AND (gate = '' OR worker IS NOT NULL OR ?) AND {{carried}} FOR UPDATE"""
_TAKE = """
UPDATE runs SET term = term + 1, worker = ?, lease_until = ?, status = 'running', ready_at = NULL,
                suspect = suspect AND ?, updated_at = ? WHERE key = ANY(?::bigint[])"""
_TURN = "INSERT INTO turns (tenant, turn) VALUES {rows} ON DUPLICATE KEY UPDATE turn = VALUES(turn)"
_WITH_LIMIT = "SELECT key, gate, status = 'pending' FROM runs WHERE id = ? AND gate <> '' AND worker IS NULL"
_HELD = """
SELECT key, id, @now(NULL), @now(?::bigint) FROM runs WHERE key = ANY(?::bigint[])
AND (key, id, term, worker) IN ({leases}) ORDER BY key FOR UPDATE"""
_EXTEND = "UPDATE runs SET lease_until = ? WHERE key = ANY(?::bigint[])"
_REST = f"UPDATE runs SET status = ?, updated_at = ? WHERE {OWNED}"


class Group(msgspec.Struct, frozen=True):
    """Runs of one priority, tenant and queue; of one version, where they are looked for by version."""

    urgency: int
    tenant: str
    line: str
    version: str | None = None


class Search(msgspec.Struct):
    """One claim's look at the runs that are ready. `window`: so many runs of other workers may be before one
    that is served, any number if None."""

    want: ClaimRequest
    groups: list[Group]
    at: int
    standing: dict[str, tuple[int, int]] | None = None
    tried: list[int] = []
    window: int | None = _WINDOWS[0]

    @property
    def lines(self) -> list[str]:
        return sorted({group.line for group in self.groups if group.line})

    def serves(self, lane: str, version: str) -> bool:
        return (self.want.lanes is None or lane in self.want.lanes) and self.want.serves(version)


class _CrowdedError(Exception):
    """Too many runs that the worker does not serve are before those that it serves."""


async def claim(conn: MariadbConnection, now: int | None, want: ClaimRequest) -> ClaimResult:
    """By priority; within a priority, fair between tenants; none whose limit is reached."""
    search = await _search(conn, now, want)
    if not search.groups:
        return ClaimResult([])
    admission = await _admission(conn, now, search.lines)
    claims: list[Claim] = []
    kept_out = False
    # Each round reads more keys: it skips those whose limit the last round found reached.
    for _ in range(ROUNDS):
        choice = ClaimSelection(want.limit - len(claims), admission)
        kept_out = await _choose(conn, search, choice) or kept_out
        if not choice.keys:
            break
        taken = await _take(conn, now, want, choice)
        choice.missed([one.run.key for one in taken])
        starts = [(key, start) for key, starts in choice.starts.items() for start in starts]
        await concurrency_limits.write_starts(conn, starts)
        claims += taken
        if len(claims) >= want.limit:
            break
        search.tried += choice.keys
    return ClaimResult(claims, kept_out, None if admission is None else admission.opens_at)


async def _search(conn: MariadbConnection, now: int | None, want: ClaimRequest) -> Search:
    found = await conn.rows(_GROUPS, now, want.suspects)
    at = found[0][5] if found else 0
    return Search(want, _ready_groups(found), at, tried=[])


def _ready_groups(found: Iterable[Row]) -> list[Group]:
    return [Group(*values[:4]) for values in found if values[4] <= values[5]]


async def _widen(conn: MariadbConnection, search: Search) -> None:
    """Looks past more runs of other workers, then for the versions that are served, one by one."""
    if search.window == _WINDOWS[0]:
        search.window = _WINDOWS[1]
        return
    search.window = None
    served = await _served_versions(conn, search.want)
    if served is None:
        return
    args = [value for version in served for value in (search.at, search.want.suspects, version)]
    text = " UNION ALL ".join([_GROUPS_OF_VERSION] * len(served))
    found = _ready_groups(await conn.rows(text, *args)) if served else []
    # The limits of queues that are new are not loaded.
    known = {"", *search.lines}
    search.groups = [group for group in found if group.line in known]


async def _served_versions(conn: MariadbConnection, want: ClaimRequest) -> list[str] | None:
    """Those that may have ready runs; None if too many versions have some."""
    ranges = served_ranges(want.versions)
    served: list[str] = []
    version = ranges.next("")
    for _ in range(_VERSIONS):
        found = None if version is None else await conn.row(_NEXT_VERSION, want.suspects, version)
        if found is None:
            return served
        version = ranges.next(found[0])
        if version == found[0]:
            served.append(found[0])
            version = ranges.next(after(found[0]))
    return None


async def _admission(conn: MariadbConnection, now: int | None, lines: list[str]) -> Admission | None:
    """Most reached limits are found without a lock. The rows of limits are locked before those of runs."""
    if not lines:
        return None
    roots = [line[1:] for line in lines]
    seen = await concurrency_limits.load_admission(conn, now, roots, lock=False)
    if not seen.open_queues(lines):
        return seen
    return await concurrency_limits.load_admission(conn, now, roots, lock=True)


async def _choose(conn: MariadbConnection, search: Search, choice: ClaimSelection) -> bool:
    """Whether a limit kept runs out."""
    admission = choice.admission
    kept_out = False
    lines = search.lines
    if admission is not None:
        open_ = set(admission.open_queues(lines))
        kept_out = len(open_) < len(lines) or bool(
            admission.shut(starts=True) or admission.shut(starts=False)
        )
        lines = [line for line in lines if line in open_]
    wanted = ["", *lines]
    chosen: int | None = None
    while not choice.full:
        left = [group.urgency for group in search.groups if chosen is None or group.urgency > chosen]
        if not left:
            break
        level = [group for group in search.groups if group.urgency == min(left) and group.line in wanted]
        try:
            tenants = await _tenants(conn, search, level, choice)
        except _CrowdedError:
            await _widen(conn, search)
            continue
        choice.serve(tenants)
        chosen = min(left)
    return kept_out or choice.refused


async def _tenants(
    conn: MariadbConnection, search: Search, level: Sequence[Group], choice: ClaimSelection
) -> list[CandidateTenant]:
    found: list[Row] = []
    for first in range(0, len(level), _AT_ONCE):
        found += await _candidates(conn, search, level[first : first + _AT_ONCE], choice)
    names = {row[0] for row in found}
    if len(names) > 1 and search.standing is None:
        search.standing = await _standing(conn)
    tenants: dict[str, CandidateTenant] = {}
    # Backwards: the next one is the last element.
    for name, ready_at, key, limit, starts in sorted(found, key=lambda row: (row[1], row[2]), reverse=True):
        running, turn = (search.standing or {}).get(name, (0, 0))
        tenant = tenants.setdefault(name, CandidateTenant(name, running, turn, []))
        tenant.ready.append(ReadyRun(ready_at, key, limit, bool(starts)))
    return list(tenants.values())


async def _standing(conn: MariadbConnection) -> dict[str, tuple[int, int]]:
    """Of each tenant: its leased runs, and when it was last served."""
    running = dict(await conn.rows(_RUNNING))
    turns = dict(await conn.rows("SELECT tenant, turn FROM turns"))
    return {name: (running.get(name, 0), turns.get(name, 0)) for name in {*running, *turns}}


async def _candidates(
    conn: MariadbConnection, search: Search, groups: Sequence[Group], choice: ClaimSelection
) -> list[Row]:
    """Of each group as many as may still be claimed: (tenant, ready_at, key, limit, starts)."""
    if not groups:
        return []
    want, left = search.want, choice.limit - len(choice.keys)
    most = left + (search.window or 0)
    texts: list[str] = []
    args: list[Any] = []
    for nth, group in enumerate(groups):
        served, given = _served(search, group, choice.admission)
        one = group.version is not None
        texts.append(_OF_GROUP.format(nth=nth, served=served, **(_OF_VERSION if one else _OF_ALL)))
        args += [want.suspects, *([group.version] if one else []), group.urgency, group.tenant, group.line]
        args += [search.at, *given, most]
    rows = await conn.rows(" UNION ALL ".join(texts), *args)
    if search.window is None:
        return [row[1:6] for row in rows]
    seen = Counter(row[0] for row in rows)
    of_group: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row[2], row[3])):
        if search.serves(row[6], row[7]):
            of_group.setdefault(row[0], []).append(row[1:6])
    if any(count == most and len(of_group.get(nth, ())) < left for nth, count in seen.items()):
        raise _CrowdedError
    return [row for found in of_group.values() for row in found[:left]]


def _served(search: Search, group: Group, admission: Admission | None) -> tuple[str, list[Any]]:
    want, line = search.want, group.line
    conditions: list[tuple[str, list[Any]]] = []
    if want.lanes is not None and search.window is None:
        conditions.append(("lane = ANY(?::text[])", [list(want.lanes)]))
    if want.versions is not None and search.window is None and group.version is None:
        conditions.append((_carried(want), [list(want.versions)] * 2))
    if search.tried:
        conditions.append(("key <> ALL(?::bigint[])", [search.tried]))
    if line and admission is not None:
        conditions.append(("gate <> ALL(?::text[])", [admission.shut(starts=line.startswith("+"))]))
        conditions.append((ENTITY_FREE, []))
        exempt = admission.exempt(line)
        if exempt is not None:
            conditions.append(("gate = ANY(?::text[])", [exempt]))
    text = "".join(f" AND {condition}" for condition, _ in conditions)
    return text, [value for _, values in conditions for value in values]


def _carried(want: ClaimRequest) -> str:
    """By its whole name, or by what is before the first hyphen (`ClaimRequest.versions`)."""
    if want.versions is None:
        return "true"
    return "(version = ANY(?::text[]) OR substring_index(version, '-', 1) = ANY(?::text[]))"


async def _take(
    conn: MariadbConnection, now: int | None, want: ClaimRequest, choice: ClaimSelection
) -> list[Claim]:
    limited = choice.admission is not None
    locked = await conn.rows(_LOCK_SOME, now, choice.keys, now, want.suspects, limited)
    claims = await _taken(conn, want, locked, choice.since)
    place = {key: nth for nth, key in enumerate(choice.keys)}
    return sorted(claims, key=lambda one: place[one.run.key])


async def _taken(
    conn: MariadbConnection, want: ClaimRequest, locked: Sequence[Row], since: dict[int, int]
) -> list[Claim]:
    if not locked:
        return []
    at: int = locked[0][-1]
    until = at + want.ttl
    await conn.run(_TAKE, want.worker, until, want.suspects, at, [values[0] for values in locked])
    claims = [_claim(values, want, until, at, since) for values in locked]
    await conn.send(_TURN.format(rows=_turns([one.run.tenant for one in claims])))
    return claims


def _turns(tenants: Iterable[str]) -> str:
    """In the order of their names, as every claim locks them; the last served has the highest number."""
    served = {tenant: nth for nth, tenant in enumerate(tenants)}
    numbers = ["NEXTVAL(turn_numbers)", *["LASTVAL(turn_numbers)"] * (len(served) - 1)]
    rows = zip(sorted(served), numbers, strict=True)
    return ", ".join(f"({literal(name)}, {number} * 4096 + {served[name]})" for name, number in rows)


def _claim(values: Row, want: ClaimRequest, until: int, at: int, since: dict[int, int]) -> Claim:
    """The row as the update left it."""
    found = run_row(values[:-1])
    run = msgspec.structs.replace(
        found, term=found.term + 1, worker=want.worker, lease_until=until, status=RunStatus.running,
        ready_at=None, suspect=found.suspect and want.suspects, updated_at=at,
    )  # fmt: skip
    return Claim(Lease(run.id, run.key, run.term, want.worker), run, since.get(run.key))


async def claim_named(
    conn: MariadbConnection, now: int | None, want: ClaimRequest, *, passes: bool = False
) -> list[Claim]:
    """`passes`: also a run with a limit. A run whose lease expired already has its place."""
    versions = [] if want.versions is None else [list(want.versions)] * 2
    text = _LOCK_NAMED.format(carried=_carried(want))
    return await _taken(conn, want, await conn.rows(text, now, want.run, now, passes, *versions), {})


async def claim_one(conn: MariadbConnection, now: int | None, want: ClaimRequest) -> ClaimResult:
    """The run that `want` names, if its limit admits it."""
    stands = await conn.row(_WITH_LIMIT, want.run)
    if stands is None:
        return ClaimResult(await claim_named(conn, now, want))
    key, limit, starts = stands[0], stands[1], bool(stands[2])
    admission = await concurrency_limits.load_admission(conn, now, [root_of(limit)], lock=True)
    free = await conn.row(IS_ENTITY_FREE, key) is not None
    if not (free and admission.passes(limit, starts=starts)):
        return ClaimResult([], True, admission.opens_at)
    claims = await claim_named(conn, now, want, passes=True)
    if claims:
        entered = admission.enter(limit, starts=starts)
        await concurrency_limits.write_starts(conn, [(key, start) for start in entered])
    return ClaimResult(claims)


async def extend(
    conn: MariadbConnection, now: int | None, leases: Sequence[Lease], ttl: int
) -> tuple[int | None, list[bool]]:
    """(the server's time if it was asked, which leases are still ours). Even after expiry, as long as no
    other worker claimed the run (D-33)."""
    given = ", ".join(f"({', '.join(map(literal, lease_values(lease)))})" for lease in leases)
    if not given:
        return None, []
    held = await conn.rows(_HELD.format(leases=given), now, [lease.key for lease in leases])
    if held:
        await conn.run(_EXTEND, held[0][3] + ttl, [key for key, *_ in held])
    ours = {(key, run) for key, run, *_ in held}
    return (held[0][2] if held else None), [(lease.key, lease.run) in ours for lease in leases]


async def set_idle(conn: MariadbConnection, now: int, lease: Lease, status: RunStatus) -> bool:
    return await conn.run(_REST, status, now, *lease_values(lease)) == 1
