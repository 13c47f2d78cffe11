"""The state of the database, for `holdfast doctor`. Reads only."""

from __future__ import annotations

from typing import Final

from holdfast.store.rows import StoreFacts
from holdfast.store.sql.blobs import UNUSED
from holdfast.store.sql.catalogue import expected_catalogue
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.mariadb.drift import drift_of, read_catalogue
from holdfast.types.durability import Durability
from holdfast.types.ids import RunId

_MANY = 1000
_LAPSED = """
SELECT id FROM @runs WHERE worker IS NOT NULL AND lease_until <= @now(?::bigint)
ORDER BY lease_until LIMIT ?"""
_BLOBS = f"""
SELECT count(*), count(CASE WHEN condemned THEN 1 END), count(CASE WHEN {UNUSED} THEN 1 END)
FROM @blobs AS blobs"""
_MISSING = """
SELECT used.digest FROM (
    SELECT digest FROM @blob_refs UNION
    SELECT blob_digest FROM @graph_values WHERE blob_digest IS NOT NULL) AS used
WHERE NOT EXISTS (SELECT 1 FROM @blobs AS blobs WHERE blobs.digest = used.digest) LIMIT ?"""
_OUTSIDE = "SELECT digest FROM @blobs AS blobs WHERE place = 'elsewhere' AND NOT condemned"
_IN_USE = f" AND NOT ({UNUSED}) LIMIT 1"
_IN_ORDER = " ORDER BY number"
_SIZE = """
SELECT coalesce(sum(data_length + index_length), 0) FROM information_schema.tables
WHERE table_schema = database()"""
_AHEAD = "SELECT coalesce(max(feed.pos) > (SELECT pos FROM @feed_head), false) FROM @feed AS feed"
_ENGINES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = database() AND table_type = 'BASE TABLE' AND engine <> 'InnoDB' ORDER BY table_name"""
_SETTINGS = "SELECT @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin, @@sync_binlog"

_FLUSH: Final = (
    "innodb_flush_log_at_trx_commit is not 1: a crash loses what was acknowledged in the last moments"
)
_PAGES: Final = (
    "innodb_doublewrite is off: if the machine of the server fails, what was being written can be damaged"
)
_LOG: Final = "sync_binlog is not 1: after a crash a replica can have other last commits than this server"


async def examine(conn: Conn, now: int | None, *, deep: bool) -> StoreFacts:
    blobs = await conn.row(_BLOBS) or (0, 0, 0)
    return StoreFacts(
        schema=await _number(conn, "SELECT max(number) FROM @migrations"),
        size=await _number(conn, _SIZE),
        problems=await _problems(conn),
        lapsed=[RunId(run) for (run,) in await conn.rows(_LAPSED, now, _MANY)],
        blobs=blobs[0],
        condemned=blobs[1],
        unreferenced=blobs[2],
        missing=[digest for (digest,) in await conn.rows(_MISSING, _MANY)],
        outside=[digest for (digest,) in await conn.rows(_OUTSIDE + (_IN_ORDER if deep else _IN_USE))],
        drift=drift_of(expected_catalogue("holdfast.store.sql.mariadb"), await read_catalogue(conn)),
    )


async def _problems(conn: Conn) -> list[str]:
    problems: list[str] = []
    ahead = await conn.row(_AHEAD)
    if ahead is not None and ahead[0]:
        problems.append("the feed has positions after the last that was given out (a restored dump?)")
    others = [name for (name,) in await conn.rows(_ENGINES)]
    if others:
        problems.append(f"tables without transactions (their engine is not InnoDB): {', '.join(others)}")
    return problems


async def _number(conn: Conn, sql: str) -> int:
    found = await conn.row(sql)
    return 0 if found is None or found[0] is None else int(found[0])


async def durability(conn: Conn) -> Durability:
    """Which settings of the server weaken the promise that nothing acknowledged is lost."""
    found = await conn.row(_SETTINGS)
    assert found is not None
    flush, pages, log, sync = (str(value).upper() for value in found)
    weak = [_FLUSH] if flush != "1" else []
    if pages in ("0", "OFF"):
        weak.append(_PAGES)
    if log in ("1", "ON") and sync != "1":
        weak.append(_LOG)
    return Durability(weak=weak, standbys=[])
