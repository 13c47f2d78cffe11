"""Blobs and stored flows: rows that are written once and read by digest or name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.store.rows import FlowRow
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.ids import RunId

# A repeated put resets the age: a record may be about to refer to the blob.
_PUT = """
INSERT INTO @blobs (digest, size, put_at, place, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET put_at = excluded.put_at"""
# The collector may have deleted the bytes of a condemned row already: so they are written again as well.
_REVIVE = """
UPDATE @blobs SET condemned = false, place = ?::text, data = ?, size = ?
WHERE digest = ? AND (condemned OR (place = 'elsewhere' AND ?::text <> 'elsewhere'))"""
UNUSED = """NOT EXISTS (SELECT 1 FROM @blob_refs AS refs WHERE refs.digest = blobs.digest)
AND NOT EXISTS (SELECT 1 FROM @graph_values AS kept WHERE kept.blob_digest = blobs.digest)"""
"""Of a row of `blobs`: nothing refers to it."""
# Locked first and checked in a second statement, which sees a reference that was added meanwhile.
_OLD = f"""
SELECT digest FROM @blobs AS blobs WHERE put_at < ? AND {UNUSED}
ORDER BY put_at, number LIMIT ? FOR UPDATE SKIP LOCKED"""
_CONDEMN = f"""
UPDATE @blobs AS blobs SET condemned = true WHERE digest = ANY(?::bytea[]) AND {UNUSED} RETURNING digest"""
# Locked, so that the collector skips them until this transaction has added its references.
_STANDING = "SELECT digest FROM @blobs WHERE digest = ANY(?::bytea[]) AND NOT condemned FOR SHARE"
_KEEP = """
INSERT INTO @blob_refs (run_key, digest) SELECT key, ?::bytea FROM @runs WHERE id = ?
ON CONFLICT DO NOTHING"""
_PUT_FLOW = """
INSERT INTO @flows (name, version, created_at, graph) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_FLOW = "SELECT name, version, graph, created_at FROM @flows"
_FLOW_NAMES = "SELECT name, version, NULL, created_at FROM @flows"


async def put(conn: Conn, now: int, digest: bytes, size: int, place: str, data: bytes | None) -> None:
    """`place`: where the bytes are: `row`, `file` (beside the database) or `elsewhere`."""
    await conn.run(_PUT, digest, size, now, place, data)
    await conn.run(_REVIVE, place, data, size, digest, place)


async def get(conn: Conn, digest: bytes) -> tuple[int, str, bytes | None] | None:
    found = await conn.row("SELECT size, place, data FROM @blobs WHERE digest = ?", digest)
    return None if found is None else (found[0], found[1], found[2])


async def missing_blob(conn: Conn, named: Iterable[bytes]) -> bytes | None:
    """The first of them that is not stored, or condemned (D-37)."""
    digests = list(dict.fromkeys(named))
    if not digests:
        return None
    there = {digest for (digest,) in await conn.rows(_STANDING, digests)}
    return next((digest for digest in digests if digest not in there), None)


async def keep(conn: Conn, _now: int, run: RunId, digest: bytes) -> bool:
    if await missing_blob(conn, [digest]) is not None:
        return False
    await conn.run(_KEEP, digest, run)
    return True


async def condemn(conn: Conn, _now: int, older_than: int, limit: int) -> list[bytes]:
    # Rows condemned before are returned again: their collector may have died before it dropped them.
    free = [digest for (digest,) in await conn.rows(_OLD, older_than, limit)]
    condemned = {digest for (digest,) in await conn.rows(_CONDEMN, free)}
    return [digest for digest in free if digest in condemned]


async def drop(conn: Conn, _now: int, digests: Sequence[bytes]) -> None:
    await conn.run("DELETE FROM @blobs WHERE digest = ANY(?::bytea[]) AND condemned", list(digests))


async def put_flow(conn: Conn, _now: int, flow: FlowRow) -> None:
    await conn.run(_PUT_FLOW, flow.name, flow.version, flow.created_at, flow.graph)


async def flow(conn: Conn, name: str, version: str) -> FlowRow | None:
    found = await conn.row(f"{_FLOW} WHERE name = ? AND version = ?", name, version)
    return None if found is None else _flow_row(found)


async def flows(conn: Conn, since: int, graphs: bool) -> list[FlowRow]:
    columns = _FLOW if graphs else _FLOW_NAMES
    found = await conn.rows(f"{columns} WHERE created_at >= ? ORDER BY name, created_at, version", since)
    return [_flow_row(r) for r in found]


async def put_code(conn: Conn, _now: int, digest: str, marks: bytes) -> None:
    await conn.run("INSERT INTO @codes (digest, marks) VALUES (?, ?) ON CONFLICT DO NOTHING", digest, marks)


async def code(conn: Conn, digest: str) -> bytes | None:
    found = await conn.row("SELECT marks FROM @codes WHERE digest = ?", digest)
    return None if found is None else found[0]


def _flow_row(values: Row) -> FlowRow:
    name, version, graph, created_at = values
    return FlowRow(name=name, version=version, graph=graph or b"", created_at=created_at)
