"""Limits: written, listed, dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from holdfast.store.limit_admission import limit_overview
from holdfast.store.rows import NewRun
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.concurrency_limits import LimitRow, flow_limit, flow_of, is_entity, root_of
from holdfast.types.status import BEGUN

_COLUMNS = "name, concurrency, rate, per, fixed, updated_at"
ALL = f"SELECT {_COLUMNS} FROM @gates ORDER BY name, fixed"
AT = f"SELECT {_COLUMNS} FROM @gates WHERE root = ANY(?::text[]) ORDER BY name, fixed"
_PUT = f"""
INSERT INTO @gates (root, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (root, name, fixed) DO UPDATE SET concurrency = excluded.concurrency, rate = excluded.rate,
    per = excluded.per, updated_at = excluded.updated_at"""
_DROP = "DELETE FROM @gates WHERE root = ? AND name = ? AND fixed = ?"
_FIXED = "SELECT 1 FROM @gates WHERE root = ? AND name = ? AND fixed"
# Runs of the flow that have no limit yet, in the order in which settles lock them too.
GATHER = """
UPDATE @runs AS runs SET gate = ? FROM (
    SELECT key FROM @runs[runs_by_status] WHERE flow = ? AND gate = '' AND NOT read_only
    AND status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable')
    ORDER BY key FOR UPDATE) AS found
WHERE runs.key = found.key"""
INSIDE = "SELECT gate, count(*) FROM @runs[runs_inside] WHERE worker IS NOT NULL AND gate <> '' GROUP BY gate"
_WAITING = """
SELECT gate, count(*) FROM @runs[runs_ready]
WHERE worker IS NULL AND ready_at <= @now(?::bigint) AND gate <> '' GROUP BY gate"""


_LIVE = ", ".join(f"'{status}'" for status in BEGUN)
# Of a run that has not begun: no other run of its entity is live. In `runs_of_entity`.
ENTITY_FREE = f"""(runs.status <> 'pending' OR strpos(runs.gate, '/entity/') = 0 OR NOT EXISTS (
    SELECT 1 FROM @runs AS live WHERE live.instance_key = runs.instance_key AND live.status IN ({_LIVE})
    AND live.tenant = runs.tenant AND live.deployment = runs.deployment AND NOT live.read_only))"""
IS_ENTITY_FREE = f"SELECT 1 FROM @runs AS runs WHERE runs.key = ? AND {ENTITY_FREE}"
OCCUPIED = f"""
SELECT 1 FROM @runs WHERE instance_key = ? AND status IN ({_LIVE}) AND tenant = ? AND deployment = ?
AND NOT read_only LIMIT 1"""


def limit_row(values: Row) -> LimitRow:
    fields = dict(zip(_COLUMNS.split(", "), values, strict=True))
    fields["fixed"] = bool(fields["fixed"])
    return LimitRow(**fields)


async def put(conn: Conn, now: int, limit: LimitRow) -> LimitRow:
    await conn.run(_PUT, limit.root, limit.name, *_limit_values(limit), limit.fixed, now)
    flow = flow_of(limit.name)
    # The flow declares no limit, so its live runs have none: without this the operator's limit would hold for
    # new runs only.
    if limit.fixed and flow is not None:
        await conn.run(GATHER, limit.name, flow)
    return msgspec.structs.replace(limit, updated_at=now)


async def declare(conn: Conn, now: int, limits: Sequence[LimitRow]) -> None:
    """Writes only what changed: nearly every run finds the rows that an earlier one wrote."""
    if not limits:
        return
    found = [limit_row(values) for values in await conn.rows(AT, sorted({limit.root for limit in limits}))]
    known = {(limit.name, limit.fixed): _limit_values(limit) for limit in found}
    news = [limit for limit in limits if known.get((limit.name, limit.fixed)) != _limit_values(limit)]
    for limit in sorted(news, key=_name):
        await put(conn, now, limit)
    if news:
        await conn.notify()


def _name(limit: LimitRow) -> str:
    return limit.name


def _limit_values(limit: LimitRow) -> tuple[int | None, int | None, int]:
    return limit.concurrency, limit.rate, limit.per


async def is_fixed(conn: Conn, flow: str) -> bool:
    """Whether an operator set a limit for the whole flow."""
    name = flow_limit(flow)
    return await conn.row(_FIXED, name, name) is not None


async def is_entity_free(conn: Conn, new: NewRun) -> bool:
    """Whether no run of the entity of this new one is live."""
    if not is_entity(new.limit):
        return True
    return await conn.row(OCCUPIED, new.instance_key, new.tenant, new.deployment) is None


async def drop(conn: Conn, _now: int, name: str, fixed: bool) -> bool:
    return await conn.run(_DROP, root_of(name), name, fixed) == 1


async def list_limits(
    conn: Conn, now: int | None, prefix: str, after: str, limit: int
) -> list[tuple[LimitRow, int, int]]:
    limits = [limit_row(values) for values in await conn.rows(ALL)]
    inside = _counts(await conn.rows(INSIDE))
    waiting = _counts(await conn.rows(_WAITING, now))
    return limit_overview(limits, inside, waiting, prefix=prefix, after=after, limit=limit)


def _counts(found: list[Row]) -> Mapping[str, int]:
    return dict(found)


class SqlLimits(SqlAccess):
    """The part of the store that keeps limits."""

    async def put_limit(self, row: LimitRow) -> LimitRow:
        return await self._write(partial(put, limit=row), wakes=True)

    async def limits(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        query = partial(list_limits, now=self._server_time(), prefix=prefix, after=after, limit=limit)
        return await self._read(query, together=True)

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        return await self._write(partial(drop, name=name, fixed=fixed), wakes=True)
