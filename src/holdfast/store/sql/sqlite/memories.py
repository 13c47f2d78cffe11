"""Memories: put once by their id, found by the words of their content."""

from __future__ import annotations

from holdfast.store.sql.sqlite.connect import Cursor, rows
from holdfast.types.memory import Memory, words

_PUT = """
INSERT INTO memories (tenant, scope, id, type, content, folded, strength, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
_FIND = "SELECT id, tenant, scope, type, content, strength, at FROM memories WHERE tenant = ? AND scope = ?"
_ORDER = " ORDER BY strength DESC, number DESC LIMIT ?"


def put(cur: Cursor, m: Memory) -> None:
    cur.execute(_PUT, (m.tenant, m.scope, m.id, m.type, m.content, m.content.casefold(), m.strength, m.at))


def put_one(cur: Cursor, _now: int, memory: Memory) -> None:
    put(cur, memory)


def find(cur: Cursor, tenant: str, scope: str, query: str, limit: int) -> list[Memory]:
    wanted = words(query)
    sql = _FIND + " AND instr(folded, ?) > 0" * len(wanted) + _ORDER
    names = ("id", "tenant", "scope", "type", "content", "strength", "at")
    found = rows(cur, sql, (tenant, scope, *wanted, limit))
    return [Memory(**dict(zip(names, values, strict=True))) for values in found]
