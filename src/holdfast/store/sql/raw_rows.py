"""Rows as they are stored, to be encrypted with a new key; changed only if they are as they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.store.sql.connection import Conn
from holdfast.types.ciphertext import StoredRow
from holdfast.types.ids import RunId

_OF_KEY = "JOIN @runs AS runs ON runs.key = t.key >> 32"
_OF_RUN = "JOIN @runs AS runs ON runs.key = t.run_key"
_OF_HOLD = "JOIN @holds AS holds ON holds.id = t.hold JOIN @runs AS runs ON runs.key = holds.run_key"
_OF_THREAD = "JOIN @graph_threads AS threads ON threads.number = t.thread_number"
# Table -> (its own key, what identifies a row, the columns with content, how its run is found).
_TABLES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], str]] = {
    "journal": ("key", ("t.key & 4294967295",), ("payload", "digest"), _OF_KEY),
    "events": ("key", ("t.at", "t.type"), ("payload",), _OF_KEY),
    "inbox": ("id", ("t.kind",), ("payload",), _OF_RUN),
    "holds": (
        "number",
        ("t.id",),
        ("prompt", "options", "context", "schema", "request_hash", "resolution", "closed_reason", "placed"),
        _OF_RUN,
    ),
    "late_reports": ("number", ("t.seq",), ("payload",), _OF_RUN),
    "outbox": ("id", ("t.key",), ("payload",), ""),
    "hold_notes": ("number", ("t.hold", "t.kind", "t.slot"), ("body",), _OF_HOLD),
    "hold_keys": ("number", ("t.hold", "t.actor", "t.key"), ("digest",), _OF_HOLD),
    "documents": ("number", ("t.kind", "t.name"), ("body",), ""),
    "schedules": ("number", ("t.name",), ("body",), ""),
    "queue_messages": ("number", ("t.id",), ("payload", "result", "error", "digest"), ""),
    "runs": ("key", (), ("error",), ""),
    "memories": ("number", ("t.id",), ("content", "folded"), ""),
    "graph_checkpoints": ("number", ("t.ns", "t.id"), ("facets", "digest", "body"), _OF_THREAD),
    "graph_values": ("number", ("t.channel", "t.number"), ("data", "blob_digest"), ""),
    "graph_writes": ("number", ("t.ns", "t.checkpoint", "t.task", "t.idx"), ("data",), _OF_THREAD),
    "blobs": ("number", ("t.digest",), (), ""),
}
_WHOSE = {
    "runs": ("t.id", "t.tenant"),
    "memories": ("''", "t.tenant"),
    "outbox": ("''", "t.tenant"),
    "documents": ("''", "t.tenant"),
    "schedules": ("''", "t.tenant"),
    "queue_messages": ("''", "t.tenant"),
    "graph_checkpoints": ("''", "threads.tenant"),
    # Threads that share values have the same tenant.
    "graph_values": (
        "''",
        "coalesce((SELECT min(x.tenant) FROM @graph_threads AS x WHERE x.family = t.family), '')",
    ),
    "graph_writes": ("''", "threads.tenant"),
    "blobs": ("''", "''"),
}
_BLOBS_OF = """
SELECT digest FROM @blob_refs WHERE run_key = (SELECT key FROM @runs WHERE id = ?) ORDER BY digest"""
_REFER = """
INSERT INTO @blob_refs (run_key, digest) SELECT run_key, ?::bytea FROM @blob_refs
WHERE digest = ? AND run_key = (SELECT key FROM @runs WHERE id = ?) ON CONFLICT DO NOTHING"""
_DROP_REFERENCE = "DELETE FROM @blob_refs WHERE digest = ? AND run_key = (SELECT key FROM @runs WHERE id = ?)"
_REPLACE = "UPDATE @blobs SET data = ?, size = ? WHERE digest = ? AND place = 'row'"


async def stored_rows(conn: Conn, table: str, after: int, limit: int) -> list[StoredRow]:
    key, place, columns, join = _TABLES[table]
    run, tenant = _WHOSE.get(table, ("runs.id", "runs.tenant"))
    parts = [f"t.{key}", run, tenant, *place, *(f"t.{column}" for column in columns)]
    sql = f"SELECT {', '.join(parts)} FROM @{table} AS t {join} WHERE t.{key} > ? ORDER BY t.{key} LIMIT ?"
    width = 3 + len(place)
    return [
        StoredRow(
            row=r[0],
            run=r[1],
            tenant=r[2],
            place=tuple(r[3:width]),
            values=dict(zip(columns, r[width:], strict=True)),
        )
        for r in await conn.rows(sql, after, limit)
    ]


async def rewrite(
    conn: Conn, _now: int, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]
) -> int:
    key, _, columns, _ = _TABLES[table]
    sets = ", ".join(f"{column} = ?" for column in columns)
    unchanged = " AND ".join(f"{column} IS NOT DISTINCT FROM ?" for column in columns)
    done = 0
    for old, new in changes:
        values = [new[column] for column in columns]
        before = [old.values[column] for column in columns]
        sql = f"UPDATE @{table} SET {sets} WHERE {key} = ? AND {unchanged}"
        done += await conn.run(sql, *values, old.row, *before)
    return done


async def blobs_of(conn: Conn, run: RunId) -> list[bytes]:
    return [digest for (digest,) in await conn.rows(_BLOBS_OF, run)]


async def replace_blob_reference(conn: Conn, _now: int, run: RunId, old: bytes, new: bytes) -> None:
    await conn.run(_REFER, new, old, run)
    await conn.run(_DROP_REFERENCE, old, run)


async def replace_blob(conn: Conn, _now: int, digest: bytes, data: bytes) -> None:
    await conn.run(_REPLACE, data, len(data), digest)
