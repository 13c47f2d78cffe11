"""Memories: written once by id, found by the words of their content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


async def find(
    conn: Conn,
    tenant: str,
    scope: str,
    query: str,
    limit: int,
    types: Sequence[str],
    min_strength: float | None,
) -> list[Memory]:
    wanted = words(query)
    sql = _FIND + " AND strpos(folded, ?) > 0" * len(wanted)
    values: list[Any] = [tenant, scope, *wanted]
    if types:
        sql += f" AND type IN ({', '.join('?' * len(types))})"
        values += types
    if min_strength is not None:
        sql += " AND strength >= ?"
        values.append(float(min_strength))
    found = await conn.rows(sql + _ORDER, *values, limit)
    return [Memory(**dict(zip(_NAMES, row, strict=True))) for row in found]
