"""Small named things of a tenant, each with a revision that its writers can demand."""

from __future__ import annotations

from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.types.document import Document

_FIELDS = ("tenant", "kind", "name", "body", "revision", "updated_at")
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM documents"
_ONE = f"{_SELECT} WHERE tenant = ? AND kind = ? AND name = ?"
_SOME = f"{_SELECT} WHERE tenant = ? AND kind = ? AND name >= ? AND name > ? ORDER BY name LIMIT ?"
_PUT = """
INSERT INTO documents (tenant, kind, name, body, revision, updated_at) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (tenant, kind, name)
DO UPDATE SET body = excluded.body, revision = revision + 1, updated_at = excluded.updated_at"""
_DROP = "DELETE FROM documents WHERE tenant = ? AND kind = ? AND name = ?"


def put(cur: Cursor, now: int, document: Document, expect: int | None) -> Document | None:
    place = (document.tenant, document.kind, document.name)
    known = get(cur, *place)
    revision = 0 if known is None else known.revision
    if expect is not None and expect != revision:
        return None
    cur.execute(_PUT, (*place, document.body, now))
    return get(cur, *place)


def get(cur: Cursor, tenant: str, kind: str, name: str) -> Document | None:
    found = row(cur, _ONE, (tenant, kind, name))
    return None if found is None else Document(**dict(zip(_FIELDS, found, strict=True)))


def select(cur: Cursor, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Document]:
    named = (
        dict(zip(_FIELDS, v, strict=True)) for v in rows(cur, _SOME, (tenant, kind, prefix, after, limit))
    )
    return [Document(**fields) for fields in named if fields["name"].startswith(prefix)]


def drop(cur: Cursor, _now: int, tenant: str, kind: str, name: str) -> bool:
    cur.execute(_DROP, (tenant, kind, name))
    return cur.connection.changes() == 1
