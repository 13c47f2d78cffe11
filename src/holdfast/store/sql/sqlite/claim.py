"""Leases: taken, extended, given back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.base import Claim, ClaimRequest
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.runs import COLUMNS, run_row
from holdfast.types.record import Lease
from holdfast.types.status import RunStatus

Filters = dict[str, object]

_LAST_IN_LINE = 1 << 60

_READY = "worker IS NULL AND ready_at <= :now AND status NOT IN ('completed', 'failed', 'cancelled')"
_SERVED = """
(:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))
AND (:versions IS NULL OR version IN (SELECT value FROM json_each(:versions)))"""

_ANY_READY = f"SELECT 1 FROM runs WHERE {_READY} AND {_SERVED} LIMIT 1"
_NEXT_PRIORITY = f"""
SELECT priority FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND (:below IS NULL OR priority < :below) ORDER BY priority DESC LIMIT 1"""
_NEXT_TENANT = f"""
SELECT tenant FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND priority = :priority AND tenant > :tenant ORDER BY tenant LIMIT 1"""
_OF_TENANT = f"""
SELECT ready_at, key FROM runs INDEXED BY runs_ready
WHERE {_READY} AND {_SERVED} AND priority = :priority AND tenant = :tenant
 ORDER BY ready_at, key
LIMIT :limit"""
_STANDING = """
SELECT (SELECT count(*) FROM runs INDEXED BY runs_leased WHERE worker IS NOT NULL AND tenant = :tenant),
       coalesce((SELECT turn FROM turns WHERE tenant = :tenant), 0)"""
# Whoever was served last stays so: a tenant alone writes nothing.
_SERVED_NOW = """
INSERT INTO turns (tenant, turn) VALUES (?, (SELECT coalesce(max(turn), 0) + 1 FROM turns))
ON CONFLICT (tenant) DO UPDATE SET turn = excluded.turn WHERE turns.turn < excluded.turn - 1"""
_TAKE = """
UPDATE runs SET term = term + 1, worker = :worker, lease_until = :until, status = 'running', ready_at = NULL,
                updated_at = :now"""
_TAKE_KEY = f"{_TAKE} WHERE key = :key RETURNING {COLUMNS}"
_TAKE_NAMED = f"""{_TAKE}
WHERE id = :run AND (worker IS NULL OR lease_until <= :now) AND NOT read_only
AND status NOT IN ('completed', 'failed', 'cancelled')
AND (:versions IS NULL OR version IN (SELECT value FROM json_each(:versions))) RETURNING {COLUMNS}"""

_EXTEND = "UPDATE runs SET lease_until = ? WHERE key = ? AND id = ? AND term = ? AND worker = ?"
_REST = "UPDATE runs SET status = ?, updated_at = ? WHERE key = ? AND id = ? AND term = ? AND worker = ?"


def any_ready(cur: Cursor, now: int, want: ClaimRequest) -> bool:
    """A look without the write lock: most claims of an idle worker end here."""
    return row(cur, _ANY_READY, _filters(now, want)) is not None


def claim(cur: Cursor, now: int, want: ClaimRequest) -> list[Claim]:
    filters = _filters(now, want)
    taking = {"now": now, "worker": want.worker, "until": now + want.ttl}
    if want.run is not None:
        taken = rows(cur, _TAKE_NAMED, filters | taking)
    else:
        keys = _choose(cur, filters, want.limit)
        taken = [values for key in keys for values in rows(cur, _TAKE_KEY, taking | {"key": key})]
    claims: list[Claim] = []
    for values in taken:
        run = run_row(values)
        cur.execute(_SERVED_NOW, (run.tenant,))
        claims.append(Claim(Lease(run.id, run.key, run.term, want.worker), run))
    return claims


def _filters(now: int, want: ClaimRequest) -> Filters:
    return {
        "now": now,
        "run": want.run,
        "lanes": None if want.lanes is None else msgspec.json.encode(want.lanes).decode(),
        "versions": None if want.versions is None else msgspec.json.encode(want.versions).decode(),
    }


class _Tenant(msgspec.Struct):
    """A tenant with ready runs of one priority. The least one is served next."""

    name: str
    running: int
    turn: int
    ready: list[Row]  # (ready_at, key), the next one last

    def rank(self) -> tuple[int, int, Row]:
        return self.running, self.turn, self.ready[-1]


def _choose(cur: Cursor, filters: Filters, limit: int) -> list[int]:
    """By priority; within one, fair between tenants. Reads a few rows per tenant, however many are ready."""
    keys: list[int] = []
    taken: dict[str, int] = {}
    below: int | None = None
    while len(keys) < limit:
        found = row(cur, _NEXT_PRIORITY, filters | {"below": below})
        if found is None:
            break
        below = found[0]
        tenants = _tenants(cur, filters | {"priority": below, "limit": limit - len(keys)}, taken)
        _serve(tenants, keys, taken, limit)
    return keys


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


def _tenants(cur: Cursor, level: Filters, taken: dict[str, int]) -> list[_Tenant]:
    tenants: list[_Tenant] = []
    found = row(cur, _NEXT_TENANT, level | {"tenant": ""})
    while found is not None:
        name = found[0]
        ((running, turn),) = rows(cur, _STANDING, {"tenant": name})
        ready = rows(cur, _OF_TENANT, level | {"tenant": name})
        tenants.append(_Tenant(name, running + taken.get(name, 0), turn, ready[::-1]))
        found = row(cur, _NEXT_TENANT, level | {"tenant": name})
    return tenants


def extend(cur: Cursor, now: int, leases: Sequence[Lease], ttl: int) -> list[bool]:
    """Even after expiry, as long as nobody took the run (D-33)."""
    extended: list[bool] = []
    for lease in leases:
        cur.execute(_EXTEND, (now + ttl, lease.key, lease.run, lease.term, lease.worker))
        extended.append(cur.connection.changes() == 1)
    return extended


def rest(cur: Cursor, now: int, lease: Lease, status: RunStatus) -> bool:
    cur.execute(_REST, (status, now, lease.key, lease.run, lease.term, lease.worker))
    return cur.connection.changes() == 1
