"""Leases: taken, extended, given back. The server's own time counts, unless a clock was given."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.base import Claim, ClaimRequest
from holdfast.store.sql.postgres.connect import Conn, Row
from holdfast.store.sql.postgres.runs import COLUMNS, run_row
from holdfast.types.record import Lease
from holdfast.types.status import RunStatus

_LAST_IN_LINE = 1 << 60
_ROUNDS = 5

_READY = """runs.worker IS NULL AND runs.ready_at <= t.now
AND runs.status NOT IN ('completed', 'failed', 'cancelled')"""
_SERVED = """(t.lanes IS NULL OR runs.lane = ANY(t.lanes))
AND (t.versions IS NULL OR runs.version = ANY(t.versions)) AND runs.key <> ALL (t.tried)"""
# First which priorities and tenants there are, one step into the index for each; then a few runs of each.
_CANDIDATES = f"""
WITH RECURSIVE t AS (
    SELECT @now(?::bigint) AS now, ?::text[] AS lanes, ?::text[] AS versions, ?::bigint[] AS tried
), groups AS (
    (SELECT runs.urgency, runs.tenant FROM @runs AS runs, t WHERE {_READY} AND {_SERVED}
     ORDER BY runs.urgency, runs.tenant LIMIT 1)
    UNION ALL
    SELECT found.urgency, found.tenant FROM groups CROSS JOIN LATERAL (
        SELECT runs.urgency, runs.tenant FROM @runs AS runs, t
        WHERE {_READY} AND {_SERVED} AND (runs.urgency, runs.tenant) > (groups.urgency, groups.tenant)
        ORDER BY runs.urgency, runs.tenant LIMIT 1) AS found
)
SELECT groups.urgency, groups.tenant, found.ready_at, found.key,
       (SELECT count(*) FROM @runs AS runs WHERE runs.worker IS NOT NULL AND runs.tenant = groups.tenant),
       coalesce((SELECT turn FROM @turns AS turns WHERE turns.tenant = groups.tenant), 0)
FROM groups CROSS JOIN LATERAL (
    SELECT runs.ready_at, runs.key FROM @runs AS runs, t
    WHERE {_READY} AND {_SERVED} AND runs.urgency = groups.urgency AND runs.tenant = groups.tenant
    ORDER BY runs.ready_at, runs.key LIMIT ?) AS found
ORDER BY groups.urgency, groups.tenant, found.ready_at, found.key"""
_TAKE = """
UPDATE @runs AS runs SET term = runs.term + 1, worker = ?::text, lease_until = @now(?::bigint) + ?::bigint,
                         status = 'running', ready_at = NULL, updated_at = @now(?::bigint)"""
_TURN = """
INSERT INTO @turns (tenant, turn)
SELECT served.tenant, turn.number * 4096 + served.nth
FROM (SELECT taken.tenant, max(array_position(?::bigint[], taken.key)) AS nth FROM taken
      GROUP BY taken.tenant ORDER BY taken.tenant) AS served,
     (SELECT nextval('@turn_numbers') AS number) AS turn
ON CONFLICT (tenant) DO UPDATE SET turn = excluded.turn"""
# Runs that another worker is just taking are passed over.
_TAKE_SOME = f"""
WITH free AS MATERIALIZED (
    SELECT runs.key FROM @runs AS runs WHERE runs.key = ANY(?::bigint[]) AND runs.worker IS NULL
    AND runs.ready_at <= @now(?::bigint) AND runs.status NOT IN ('completed', 'failed', 'cancelled')
    ORDER BY runs.key FOR UPDATE SKIP LOCKED
), taken AS (
    {_TAKE} FROM free WHERE runs.key = free.key RETURNING runs.*
), turned AS ({_TURN})
SELECT {COLUMNS} FROM taken ORDER BY array_position(?::bigint[], key)"""
_TAKE_NAMED = f"""
WITH taken AS (
    {_TAKE} WHERE id = ? AND (worker IS NULL OR lease_until <= @now(?::bigint)) AND NOT read_only
    AND status NOT IN ('completed', 'failed', 'cancelled')
    AND (?::text[] IS NULL OR version = ANY(?::text[])) RETURNING runs.*
), turned AS ({_TURN.replace("max(array_position(?::bigint[], taken.key))", "0")})
SELECT {COLUMNS} FROM taken"""

_EXTEND = """
WITH held AS (
    UPDATE @runs AS runs SET lease_until = @now(?::bigint) + ?::bigint
    FROM unnest(?::bigint[], ?::text[], ?::bigint[], ?::text[]) AS g (key, run, term, worker)
    WHERE runs.key = g.key AND runs.id = g.run AND runs.term = g.term AND runs.worker = g.worker
    RETURNING runs.key, runs.id)
SELECT @now(NULL), array(SELECT key FROM held), array(SELECT id FROM held)"""
_REST = "UPDATE @runs SET status = ?, updated_at = ? WHERE key = ? AND id = ? AND term = ? AND worker = ?"


async def claim_named(conn: Conn, now: int | None, want: ClaimRequest) -> list[Claim]:
    versions = None if want.versions is None else list(want.versions)
    taken = await conn.rows(
        _TAKE_NAMED, want.worker, now, want.ttl, now, want.run, now, versions, versions
    )  # fmt: skip
    return [_claim(values, want) for values in taken]


async def claim(conn: Conn, now: int | None, want: ClaimRequest) -> list[Claim]:
    """Chosen without locks, then taken if nobody was faster; who comes too late looks at what is left."""
    claims: list[Claim] = []
    tried: list[int] = []
    for _ in range(_ROUNDS):
        keys = await _choose(conn, now, want, tried, want.limit - len(claims))
        if not keys:
            break
        taken = await conn.rows(
            _TAKE_SOME, keys, now, want.worker, now, want.ttl, now, keys, keys
        )  # fmt: skip
        claims += [_claim(values, want) for values in taken]
        if len(claims) >= want.limit:
            break
        tried += keys
    return claims


def _claim(values: Row, want: ClaimRequest) -> Claim:
    run = run_row(values)
    return Claim(Lease(run.id, run.key, run.term, want.worker), run)


class _Tenant(msgspec.Struct):
    """A tenant with ready runs of one priority. The least one is served next."""

    name: str
    running: int
    turn: int
    ready: list[tuple[int, int]]  # (ready_at, key), the next one last

    def rank(self) -> tuple[int, int, tuple[int, int]]:
        return self.running, self.turn, self.ready[-1]


async def _choose(conn: Conn, now: int | None, want: ClaimRequest, tried: list[int], limit: int) -> list[int]:
    """By priority; within one, fair between tenants."""
    lanes = None if want.lanes is None else list(want.lanes)
    versions = None if want.versions is None else list(want.versions)
    found = await conn.rows(_CANDIDATES, now, lanes, versions, tried, limit)
    keys: list[int] = []
    taken: dict[str, int] = {}
    for urgency in dict.fromkeys(row[0] for row in found):
        level = [row for row in found if row[0] == urgency]
        _serve(_tenants(level, taken), keys, taken, limit)
    return keys


def _tenants(level: list[Row], taken: dict[str, int]) -> list[_Tenant]:
    tenants: dict[str, _Tenant] = {}
    for _, name, ready_at, key, running, turn in reversed(level):
        tenant = tenants.setdefault(name, _Tenant(name, running + taken.get(name, 0), turn, []))
        tenant.ready.append((ready_at, key))
    return list(tenants.values())


def _serve(tenants: list[_Tenant], keys: list[int], taken: dict[str, int], limit: int) -> None:
    """Each run taken counts as running, and sends its tenant to the end of the line."""
    while tenants and len(keys) < limit:
        served = min(tenants, key=_Tenant.rank)
        keys.append(served.ready.pop()[1])
        served.running += 1
        served.turn = _LAST_IN_LINE + len(keys)
        taken[served.name] = taken.get(served.name, 0) + 1
        if not served.ready:
            tenants.remove(served)


async def extend(conn: Conn, now: int | None, leases: Sequence[Lease], ttl: int) -> tuple[int, list[bool]]:
    """(the server's time, which are ours still). Even after expiry, as long as nobody took the run (D-33)."""
    columns = ([x.key for x in leases], [x.run for x in leases], [x.term for x in leases])
    found = await conn.row(_EXTEND, now, ttl, *columns, [x.worker for x in leases])
    assert found is not None
    held = set(zip(found[1], found[2], strict=True))
    return found[0], [(lease.key, lease.run) in held for lease in leases]


async def rest(conn: Conn, now: int, lease: Lease, status: RunStatus) -> bool:
    return await conn.run(_REST, status, now, lease.key, lease.run, lease.term, lease.worker) == 1
