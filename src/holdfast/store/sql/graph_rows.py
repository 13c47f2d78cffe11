"""Reading threads of graphs: how rows of checkpoints, writes and claims are selected and made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from holdfast.store.sql.connection import Conn, Row
from holdfast.types.graph_thread import (
    GraphCheckpointRow,
    GraphClaim,
    GraphFilter,
    GraphThreadRow,
    GraphWriteRow,
    facet_of,
    key_mark,
)

THREAD = (
    "SELECT number, family, owner, term, claimed_until FROM @graph_threads WHERE tenant = ? AND thread = ?"
)
COLUMNS = ("ns", "id", "parent", "run_id", "listed", "written_at", "refs", "facets", "digest", "body")
WRITTEN = ("ns", "checkpoint", "task", "idx", "path", "channel", "data")
_SELECT = f"""
SELECT c.number, t.thread, c.thread_number, {", ".join(f"c.{name}" for name in COLUMNS)}
FROM @graph_checkpoints AS c JOIN @graph_threads AS t ON t.number = c.thread_number"""
_WRITES = f"""
SELECT thread_number, {", ".join(WRITTEN)} FROM @graph_writes
WHERE thread_number = ANY(?::bigint[]) AND checkpoint = ANY(?::text[])
ORDER BY path, task, idx"""
_ANCESTORS = """
WITH RECURSIVE line AS (
    SELECT thread_number, ns, parent, 0 AS depth FROM @graph_checkpoints
    WHERE thread_number = ?::bigint AND ns = ?::text AND id = ?::text
    UNION ALL
    SELECT c.thread_number, c.ns, c.parent, line.depth + 1 FROM line JOIN @graph_checkpoints AS c
    ON c.thread_number = line.thread_number AND c.ns = line.ns AND c.id = line.parent
    WHERE line.depth < ?::bigint)
SELECT parent FROM line WHERE parent IS NOT NULL ORDER BY depth LIMIT ?"""
_THREADS = """
SELECT tenant, thread, created_at, owner, term, claimed_until FROM @graph_threads
WHERE tenant = ? AND thread > ?"""

numbers: Final = msgspec.json.Decoder(tuple[int, ...])


def claim_of(owner: str | None, term: int, until: int | None) -> GraphClaim | None:
    return None if owner is None or until is None else GraphClaim(owner, term, until)


async def select(
    conn: Conn, where: GraphFilter, after: tuple[str, int] | None, limit: int
) -> list[GraphCheckpointRow]:
    sql, args = [_SELECT, "WHERE t.tenant = ?"], list[Any]([where.tenant])
    for column, value in (("t.thread", where.thread), ("c.ns", where.ns), ("c.id", where.id)):
        if value is not None:
            sql.append(f"AND {column} = ?")
            args.append(value)
    if not where.unlisted:
        sql.append("AND c.listed")
    if where.before is not None:
        sql.append("AND c.id < ?")
        args.append(where.before)
    if where.run_ids:
        sql.append("AND c.run_id = ANY(?::text[])")
        args.append(list(where.run_ids))
    for facet in where.facets:
        sql.append("AND strpos(c.facets, ?) > 0")
        args.append(facet)
    for key in where.absent:
        sql.append("AND (strpos(c.facets, ?) = 0 OR strpos(c.facets, ?) > 0)")
        args += [key_mark(key), facet_of(key, None)]
    if after is not None:
        sql.append("AND (c.id, c.number) < (?, ?)")
        args += after
    sql.append("ORDER BY c.id DESC, c.number DESC LIMIT ?")
    return await _with_writes(conn, await conn.rows("\n".join(sql), *args, limit))


async def _with_writes(conn: Conn, found: list[Row]) -> list[GraphCheckpointRow]:
    if not found:
        return []
    threads_, ids = sorted({row[2] for row in found}), [row[4] for row in found]
    writes: dict[tuple[int, str, str], list[GraphWriteRow]] = {}
    for thread, *values in await conn.rows(_WRITES, threads_, ids):
        given: dict[str, Any] = dict(zip(WRITTEN, values, strict=True))
        given["data"] = bytes(given["data"])
        row = GraphWriteRow(**given)
        writes.setdefault((thread, row.ns, row.checkpoint), []).append(row)
    return [_checkpoint_row(row, writes) for row in found]


def _checkpoint_row(
    found: Row, writes: dict[tuple[int, str, str], list[GraphWriteRow]]
) -> GraphCheckpointRow:
    number, thread, thread_number, ns, name, parent, run_id, listed, at, refs, facets, digest, body = found
    return GraphCheckpointRow(
        number=number, thread=thread, ns=ns, id=name, parent=parent, run_id=run_id, listed=bool(listed),
        written_at=at, values=numbers.decode(refs), facets=facets, digest=bytes(digest), body=bytes(body),
        writes=tuple(writes.get((thread_number, ns, name), ())),
    )  # fmt: skip


async def ancestors(
    conn: Conn, tenant: str, thread: str, ns: str, checkpoint: str, limit: int
) -> list[GraphCheckpointRow]:
    found = await conn.row(THREAD, tenant, thread)
    if found is None:
        return []
    line = [parent for (parent,) in await conn.rows(_ANCESTORS, found[0], ns, checkpoint, limit, limit)]
    sql = f"{_SELECT} WHERE c.thread_number = ? AND c.ns = ? AND c.id = ANY(?::text[])"
    rows = await _with_writes(conn, await conn.rows(sql, found[0], ns, line))
    return sorted(rows, key=lambda row: line.index(row.id))


async def threads(
    conn: Conn, tenant: str, thread: str | None, after: str, limit: int
) -> list[GraphThreadRow]:
    only, args = ("AND thread = ?", (thread,)) if thread is not None else ("", ())
    found = await conn.rows(f"{_THREADS} {only} ORDER BY thread LIMIT ?", tenant, after, *args, limit)
    return [_thread_row(row) for row in found]


def _thread_row(found: Iterable[Any]) -> GraphThreadRow:
    tenant, thread, created_at, owner, term, until = found
    claimed = claim_of(owner, term, until)
    return GraphThreadRow(tenant=tenant, thread=thread, created_at=created_at, claim=claimed)
