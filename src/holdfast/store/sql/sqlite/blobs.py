"""Blobs and stored flows: rows that are put once and looked up by what they are."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.protocols import FlowRow
from holdfast.store.sql.sqlite.connect import Cursor, row, rows

_PUT = """
INSERT INTO blobs (digest, size, put_at, place, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET condemned = 0, put_at = excluded.put_at, place = excluded.place,
                                   data = excluded.data, size = excluded.size
WHERE condemned OR (place = 'elsewhere' AND excluded.place <> 'elsewhere')"""
_REFRESH = "UPDATE blobs SET put_at = ? WHERE digest = ? AND NOT condemned"
_FREE = """
SELECT digest FROM blobs WHERE put_at < ?
AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob_refs.digest = blobs.digest) ORDER BY put_at LIMIT ?"""
_PUT_FLOW = """
INSERT INTO flows (name, version, created_at, graph) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"""


def put(cur: Cursor, now: int, digest: bytes, size: int, place: str, data: bytes | None) -> None:
    # A repeated put is as young as a new one: its record may be about to name it.
    cur.execute(_REFRESH, (now, digest))
    cur.execute(_PUT, (digest, size, now, place, data))


def get(cur: Cursor, digest: bytes) -> tuple[int, str, bytes | None] | None:
    found = row(cur, "SELECT size, place, data FROM blobs WHERE digest = ?", (digest,))
    return None if found is None else (found[0], found[1], found[2])


def condemn(cur: Cursor, _now: int, older_than: int, limit: int) -> list[bytes]:
    # Those condemned before come again: their collector may have died before it dropped them.
    free = [digest for (digest,) in rows(cur, _FREE, (older_than, limit))]
    cur.executemany("UPDATE blobs SET condemned = 1 WHERE digest = ?", [(digest,) for digest in free])
    return free


def condemned(cur: Cursor, digests: Sequence[bytes]) -> list[tuple[bytes, str]]:
    """Those that may be dropped, with the place of their bytes."""
    found = [
        row(cur, "SELECT digest, place FROM blobs WHERE digest = ? AND condemned", (d,)) for d in digests
    ]
    return [(r[0], r[1]) for r in found if r is not None]


def drop(cur: Cursor, digests: Sequence[bytes]) -> None:
    cur.executemany("DELETE FROM blobs WHERE digest = ? AND condemned", [(digest,) for digest in digests])


def put_flow(cur: Cursor, _now: int, flow: FlowRow) -> None:
    cur.execute(_PUT_FLOW, (flow.name, flow.version, flow.created_at, flow.graph))


def flow(cur: Cursor, name: str, version: str) -> FlowRow | None:
    sql = "SELECT name, version, graph, created_at FROM flows WHERE name = ? AND version = ?"
    found = row(cur, sql, (name, version))
    return None if found is None else _flow_row(found)


def flows(cur: Cursor) -> list[FlowRow]:
    sql = "SELECT name, version, graph, created_at FROM flows ORDER BY name, created_at, version"
    return [_flow_row(r) for r in rows(cur, sql)]


def put_code(cur: Cursor, _now: int, digest: str, marks: bytes) -> None:
    cur.execute("INSERT INTO codes (digest, marks) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, marks))


def code(cur: Cursor, digest: str) -> bytes | None:
    found = row(cur, "SELECT marks FROM codes WHERE digest = ?", (digest,))
    return None if found is None else found[0]


def _flow_row(values: tuple[str, str, bytes, int]) -> FlowRow:
    name, version, graph, created_at = values
    return FlowRow(name=name, version=version, graph=graph, created_at=created_at)
