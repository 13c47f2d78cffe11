"""Blobs: in their row, or in parts if one packet would not carry them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql import blobs
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.dialect import MariadbConn

_DROP_PARTS = "DELETE FROM @blob_parts WHERE digest = ANY(?::bytea[])"
_PUT_PART = "INSERT INTO @blob_parts (digest, nth, data) VALUES (?, ?, ?)"
_COUNT = "SELECT count(*) FROM @blob_parts WHERE digest = ?"
_PART = "SELECT data FROM @blob_parts WHERE digest = ? AND nth = ?"
_PLACE = "SELECT place FROM @blobs WHERE digest = ? FOR UPDATE"
_RESIZE = "UPDATE @blobs SET place = ?, size = ?, data = ? WHERE digest = ?"


def part_size(packet: int) -> int:
    """How many bytes go into one statement of a server with this `max_allowed_packet`: escaping may double
    them."""
    return max(1 << 16, min(4 << 20, packet // 4))


async def put(conn: MariadbConn, now: int, digest: bytes, size: int, data: bytes | None, part: int) -> None:
    whole = data is not None and len(data) <= part
    place = "elsewhere" if data is None else "row" if whole else "parts"
    await blobs.put(conn, now, digest, size, place, data if whole else None)
    if data is not None and not whole:
        await put_parts(conn, digest, data, part)


async def put_parts(conn: MariadbConnection, digest: bytes, data: bytes, part: int) -> None:
    await conn.run(_DROP_PARTS, [digest])
    for nth, first in enumerate(range(0, len(data), part)):
        await conn.run(_PUT_PART, digest, nth, data[first : first + part])


async def get(conn: MariadbConnection, digest: bytes) -> tuple[int, bytes | None] | None:
    found = await conn.row("SELECT size, place, data FROM @blobs WHERE digest = ?", digest)
    if found is None:
        return None
    size, place, data = found
    if place == "parts":
        ((count,),) = await conn.rows(_COUNT, digest)
        parts = [(await conn.row(_PART, digest, nth) or (b"",))[0] for nth in range(count)]
        data = b"".join(parts)
    return size, data


async def drop(conn: Conn, now: int, digests: Sequence[bytes]) -> None:
    condemned = "SELECT digest FROM @blobs WHERE digest = ANY(?::bytea[]) AND condemned FOR UPDATE"
    gone = [digest for (digest,) in await conn.rows(condemned, list(digests))]
    if gone:
        await conn.run(_DROP_PARTS, gone)
        await blobs.drop(conn, now, gone)


async def replace(conn: MariadbConn, digest: bytes, data: bytes, part: int) -> None:
    found = await conn.row(_PLACE, digest)
    if found is None or found[0] == "elsewhere":
        return
    await conn.run(_DROP_PARTS, [digest])
    if len(data) <= part:
        await conn.run(_RESIZE, "row", len(data), data, digest)
        return
    await conn.run(_RESIZE, "parts", len(data), None, digest)
    await put_parts(conn, digest, data, part)
