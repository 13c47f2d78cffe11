"""Memories: written once by id, found by the words of their content."""

from __future__ import annotations

from holdfast.store.sql.connection import Conn
from holdfast.types.memory import Memory, words

_PUT = """
INSERT INTO @memories (tenant, scope, id, type, content, folded, strength, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
_NAMES = ("id", "tenant", "scope", "type", "content", "strength", "at")
_FIND = f"SELECT {', '.join(_NAMES)} FROM @memories WHERE tenant = ? AND scope = ?"
_ORDER = " ORDER BY strength DESC, number DESC LIMIT ?"


async def put(conn: Conn, m: Memory) -> None:
    values = (m.tenant, m.scope, m.id, m.type, m.content, m.content.casefold(), m.strength, m.at)
    await conn.run(_PUT, *values)


async def find(conn: Conn, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
    wanted = words(query)
    sql = _FIND + " AND strpos(folded, ?) > 0" * len(wanted) + _ORDER
    found = await conn.rows(sql, tenant, scope, *wanted, limit)
    return [Memory(**dict(zip(_NAMES, values, strict=True))) for values in found]
