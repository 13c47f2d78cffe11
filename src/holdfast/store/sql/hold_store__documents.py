"""Small named things of a tenant, each with a revision that its writers can demand."""

from __future__ import annotations

from holdfast.store.sql.connection import Conn, Row
from holdfast.types.document import Document

_FIELDS = ("tenant", "kind", "name", "body", "revision", "updated_at")
_COLUMNS = ", ".join(_FIELDS)
_ONE = f"SELECT {_COLUMNS} FROM @documents WHERE tenant = ? AND kind = ? AND name = ?"
_SOME = f"""
SELECT {_COLUMNS} FROM @documents
WHERE tenant = ? AND kind = ? AND name >= ? AND name > ? AND substr(name, 1, length(?::text)) = ?
ORDER BY name LIMIT ?"""
_PUT = f"""
INSERT INTO @documents AS known (tenant, kind, name, body, revision, updated_at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (tenant, kind, name)
DO UPDATE SET body = excluded.body, revision = known.revision + 1, updated_at = excluded.updated_at
RETURNING {_COLUMNS}"""
_PUT_NEW = f"""
INSERT INTO @documents (tenant, kind, name, body, revision, updated_at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"""
_PUT_OVER = f"""
UPDATE @documents SET body = ?, revision = revision + 1, updated_at = ?
WHERE tenant = ? AND kind = ? AND name = ? AND revision = ? RETURNING {_COLUMNS}"""
_DROP = "DELETE FROM @documents WHERE tenant = ? AND kind = ? AND name = ?"


async def put(conn: Conn, now: int, document: Document, expect: int | None) -> Document | None:
    place = (document.tenant, document.kind, document.name)
    if expect:
        found = await conn.row(_PUT_OVER, document.body, now, *place, expect)
    else:
        found = await conn.row(_PUT if expect is None else _PUT_NEW, *place, document.body, now)
    return None if found is None else _document(found)


async def get(conn: Conn, tenant: str, kind: str, name: str) -> Document | None:
    found = await conn.row(_ONE, tenant, kind, name)
    return None if found is None else _document(found)


async def select(conn: Conn, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
    return [_document(r) for r in await conn.rows(_SOME, tenant, kind, prefix, after, prefix, prefix, limit)]


async def drop(conn: Conn, _now: int, tenant: str, kind: str, name: str) -> bool:
    return await conn.run(_DROP, tenant, kind, name) == 1


def _document(values: Row) -> Document:
    return Document(**dict(zip(_FIELDS, values, strict=True)))
