"""Rows as they lie, for whoever encrypts them anew; changed only as they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.store.sql.sqlite.connect import Cursor, rows
from holdfast.types.ciphertext import StoredRow
from holdfast.types.ids import RunId

_SEQ = "{t}.key & 0xffffffff"
_OF_KEY = "JOIN runs ON runs.key = {t}.key >> 32"
_OF_RUN = "JOIN runs ON runs.key = {t}.run_key"
_OF_HOLD = "JOIN holds ON holds.id = {t}.hold JOIN runs ON runs.key = holds.run_key"
# Table -> (its own key, what a row is known by, the columns that carry content, how its run is found).
_TABLES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], str]] = {
    "journal": ("key", (_SEQ,), ("payload", "digest"), _OF_KEY),
    "events": ("key", ("{t}.at", "{t}.type"), ("payload",), _OF_KEY),
    "inbox": ("id", ("{t}.kind",), ("payload",), _OF_RUN),
    "holds": (
        "number",
        ("{t}.id",),
        ("prompt", "options", "context", "schema", "request_hash", "resolution", "closed_reason", "placed"),
        _OF_RUN,
    ),
    "late_reports": ("number", ("{t}.seq",), ("payload",), _OF_RUN),
    "outbox": ("id", ("{t}.key",), ("payload",), ""),
    "hold_notes": ("number", ("{t}.hold", "{t}.kind", "{t}.slot"), ("body",), _OF_HOLD),
    "hold_keys": ("number", ("{t}.hold", "{t}.actor", "{t}.key"), ("digest",), _OF_HOLD),
    "documents": ("number", ("{t}.kind", "{t}.name"), ("body",), ""),
    "schedules": ("number", ("{t}.name",), ("body",), ""),
    "runs": ("key", (), ("error",), ""),
    "memories": ("number", ("{t}.id",), ("content", "folded"), ""),
    "blobs": ("number", ("{t}.digest",), (), ""),
}
_WHOSE = {
    "runs": ("runs.id", "runs.tenant"),
    "memories": ("''", "memories.tenant"),
    "outbox": ("''", "outbox.tenant"),
    "documents": ("''", "documents.tenant"),
    "schedules": ("''", "schedules.tenant"),
    "blobs": ("''", "''"),
}


def stored_rows(cur: Cursor, table: str, after: int, limit: int) -> list[StoredRow]:
    key, place, columns, join = _TABLES[table]
    run, tenant = _WHOSE.get(table, ("runs.id", "runs.tenant"))
    parts = [f"{table}.{key}", run, tenant, *place, *(f"{table}.{column}" for column in columns)]
    order = f"WHERE {table}.{key} > ? ORDER BY {table}.{key} LIMIT ?"
    sql = f"SELECT {', '.join(parts)} FROM {table} {join} {order}"
    width = 3 + len(place)
    return [
        StoredRow(
            row=r[0],
            run=r[1],
            tenant=r[2],
            place=tuple(r[3:width]),
            values=dict(zip(columns, r[width:], strict=True)),
        )
        for r in rows(cur, sql.format(t=table), (after, limit))
    ]


def rewrite(cur: Cursor, _now: int, table: str, changes: Sequence[tuple[StoredRow, dict[str, Any]]]) -> int:
    key, _, columns, _ = _TABLES[table]
    sets = ", ".join(f"{column} = ?" for column in columns)
    unchanged = " AND ".join(f"{column} IS ?" for column in columns)
    done = 0
    for old, new in changes:
        values = [new[column] for column in columns]
        before = [old.values[column] for column in columns]
        cur.execute(f"UPDATE {table} SET {sets} WHERE {key} = ? AND {unchanged}", (*values, old.row, *before))
        done += cur.connection.changes()
    return done


def blobs_of(cur: Cursor, run: RunId) -> list[bytes]:
    sql = "SELECT digest FROM blob_refs WHERE run_key = (SELECT key FROM runs WHERE id = ?) ORDER BY digest"
    return [digest for (digest,) in rows(cur, sql, (run,))]


_REFER = """
INSERT INTO blob_refs (run_key, digest) SELECT run_key, ? FROM blob_refs
WHERE digest = ? AND run_key = (SELECT key FROM runs WHERE id = ?) ON CONFLICT DO NOTHING"""
_DROP_REFERENCE = "DELETE FROM blob_refs WHERE digest = ? AND run_key = (SELECT key FROM runs WHERE id = ?)"
_REPLACE = "UPDATE blobs SET data = ?, size = ? WHERE digest = ? AND place = 'row'"


def replace_blob_reference(cur: Cursor, _now: int, run: RunId, old: bytes, new: bytes) -> None:
    cur.execute(_REFER, (new, old, run))
    cur.execute(_DROP_REFERENCE, (old, run))


def replace_blob(cur: Cursor, _now: int, digest: bytes, data: bytes) -> None:
    cur.execute(_REPLACE, (data, len(data), digest))
