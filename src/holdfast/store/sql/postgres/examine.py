"""The state of the database, for `holdfast doctor`. Reads only."""

from __future__ import annotations

from typing import Final

from holdfast.store.rows import StoreFacts
from holdfast.store.sql.blobs import UNUSED
from holdfast.store.sql.catalogue import expected_catalogue
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.drift import drift_of, read_catalogue
from holdfast.store.sql.postgres.migration_files import migrations
from holdfast.types.durability import Durability, Standby
from holdfast.types.ids import RunId

_MANY = 1000
_LAPSED = """
SELECT id FROM @runs WHERE worker IS NOT NULL AND lease_until <= @now(?::bigint)
ORDER BY lease_until LIMIT ?"""
_BLOBS = f"""
SELECT count(*), count(*) FILTER (WHERE condemned), count(*) FILTER (WHERE {UNUSED}) FROM @blobs AS blobs"""
_MISSING = """
SELECT used.digest FROM (
    SELECT digest FROM @blob_refs UNION
    SELECT blob_digest FROM @graph_values WHERE blob_digest IS NOT NULL) AS used
WHERE NOT EXISTS (SELECT 1 FROM @blobs AS blobs WHERE blobs.digest = used.digest) LIMIT ?"""
_OUTSIDE = "SELECT digest FROM @blobs AS blobs WHERE place = 'elsewhere' AND NOT condemned"
_IN_USE = f" AND NOT ({UNUSED}) LIMIT 1"
_IN_ORDER = " ORDER BY number"
_SCHEMA = "SELECT max(number) FROM (SELECT number FROM @migrations UNION ALL SELECT number FROM @halves) AS n"
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'"""
# A dump that was loaded into another server: transactions are numbered from the start there, and new rows of
# A dump that was loaded into another server: its transactions are numbered from the start there, so the feed
# would not advance.
_AHEAD = """
SELECT max(pos) > pg_snapshot_xmax(pg_current_snapshot())::text::bigint << 20 FROM @feed"""


async def examine(conn: PostgresConnection, now: int | None, *, deep: bool) -> StoreFacts:
    blobs = await conn.row(_BLOBS) or (0, 0, 0)
    found = await read_catalogue(conn)
    unfinished = [number for (number,) in await conn.rows("SELECT number FROM @halves ORDER BY number")]
    return StoreFacts(
        schema=await _number(conn, _SCHEMA),
        size=await _number(conn, _SIZE, conn.schema),
        problems=await _problems(conn),
        lapsed=[RunId(run) for (run,) in await conn.rows(_LAPSED, now, _MANY)],
        blobs=blobs[0],
        condemned=blobs[1],
        unreferenced=blobs[2],
        missing=[digest for (digest,) in await conn.rows(_MISSING, _MANY)],
        outside=[digest for (digest,) in await conn.rows(_OUTSIDE + (_IN_ORDER if deep else _IN_USE))],
        drift=drift_of(
            expected_catalogue("holdfast.store.sql.postgres"), found, conn.schema, _to_come(unfinished)
        ),
        unfinished=unfinished,
    )


def _to_come(unfinished: list[int]) -> str:
    """What the second halves will change: until then the schema differs, as it should."""
    return "\n".join(each.post for each in migrations() if each.number in unfinished)


async def _problems(conn: PostgresConnection) -> list[str]:
    problems: list[str] = []
    ahead = await conn.row(_AHEAD)
    if ahead is not None and ahead[0]:
        problems.append("the feed has positions ahead of this server's transactions (a restored dump?)")
    return problems


async def _number(conn: PostgresConnection, sql: str, *args: object) -> int:
    found = await conn.row(sql, *args)
    return 0 if found is None else int(found[0])


_SETTINGS = """
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names')"""
# A role without the right to see them gets empty rows.
_STANDBYS = """
SELECT coalesce(nullif(application_name, ''), host(client_addr), 'without a name'), state, sync_state,
       pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)::bigint,
       (extract(epoch FROM flush_lag) * 1000000)::bigint
FROM pg_stat_replication WHERE NOT pg_is_in_recovery() ORDER BY 1"""

_FSYNC = "fsync is off: if the machine of the server fails, the whole database can be damaged"
_PAGES = "full_page_writes is off: if the machine of the server fails, what was being written can be damaged"
_COMMIT = "synchronous_commit is off: a crash loses what was acknowledged in the last moments"
_LOCAL = "synchronous_commit is local: no commit waits for the standbys that are named as synchronous"
_REMOTE = (
    "synchronous_commit is remote_write: a standby that fails with its primary can lose the last moments"
)

_WEAK: Final = {
    ("fsync", "off"): _FSYNC,
    ("full_page_writes", "off"): _PAGES,
    ("synchronous_commit", "off"): _COMMIT,
}
_WEAK_WITH_STANDBYS: Final = {"local": _LOCAL, "remote_write": _REMOTE}


async def durability(conn: PostgresConnection) -> Durability:
    settings = dict(await conn.rows(_SETTINGS))
    weak = [reason for (name, value), reason in _WEAK.items() if settings.get(name) == value]
    waits_for = settings.get("synchronous_standby_names", "")
    if waits_for and (reason := _WEAK_WITH_STANDBYS.get(settings.get("synchronous_commit", ""))):
        weak.append(reason)
    rows = await conn.rows(_STANDBYS)
    standbys = [
        Standby(name=name, state=state, sync=sync, lag_bytes=behind, lag=lag)
        for name, state, sync, behind, lag in rows
    ]
    hidden = any(standby.state is None for standby in standbys)
    return Durability(weak=weak, standbys=standbys, waits_for=waits_for, hidden=hidden)
