"""Threads of other frameworks' graphs: their checkpoints, values, writes and claims.

Each write to a thread locks its row first, shared: so a claim cannot change hands in between.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.blobs import missing_blob
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.graph_rows import (
    COLUMNS,
    THREAD,
    WRITTEN,
    ancestors,
    claim_of,
    numbers,
    select,
    threads,
)
from holdfast.types.graph_thread import (
    GraphBatch,
    GraphCheckpointRow,
    GraphClaim,
    GraphClaimRequest,
    GraphCopy,
    GraphDrop,
    GraphExtension,
    GraphFilter,
    GraphRefusal,
    GraphThreadRow,
    GraphValueRow,
    GraphWriteRow,
)

_MAKE = """
INSERT INTO @graph_threads (tenant, thread, family, term, created_at) VALUES (?, ?, ?, 0, ?)
ON CONFLICT DO NOTHING"""
_CLAIM = "UPDATE @graph_threads SET owner = ?, term = ?, claimed_until = ? WHERE number = ?"
_EXTEND = """
UPDATE @graph_threads SET claimed_until = ? WHERE tenant = ? AND thread = ? AND owner = ? AND term = ?"""
_RELEASE = """
UPDATE @graph_threads SET owner = NULL, claimed_until = NULL
WHERE tenant = ? AND thread = ? AND owner = ? AND term = ?"""
_DROP_EMPTY = """
DELETE FROM @graph_threads WHERE number = ?
AND NOT EXISTS (SELECT 1 FROM @graph_checkpoints AS c WHERE c.thread_number = ?)
AND NOT EXISTS (SELECT 1 FROM @graph_writes AS w WHERE w.thread_number = ?)"""
# With the namespace, as in the index: without it all checkpoints of the thread would be looked at.
_DIGEST = "SELECT digest FROM @graph_checkpoints WHERE thread_number = ? AND ns = ? AND id = ?"
_VALUE = (
    "INSERT INTO @graph_values (number, family, base, channel, data, blob_digest) VALUES (?, ?, ?, ?, ?, ?)"
)
_CHECKPOINT = f"""
INSERT INTO @graph_checkpoints (thread_number, {", ".join(COLUMNS)})
VALUES (?, {", ".join("?" * len(COLUMNS))})
ON CONFLICT (thread_number, ns, id) DO UPDATE SET
{", ".join(f"{name} = excluded.{name}" for name in COLUMNS[2:])}"""
_WRITE = f"""
INSERT INTO @graph_writes (thread_number, {", ".join(WRITTEN)}) VALUES (?, {", ".join("?" * len(WRITTEN))})
"""
_WRITE_ONCE = f"{_WRITE}ON CONFLICT DO NOTHING"
_WRITE_AGAIN = f"""{_WRITE}ON CONFLICT (thread_number, checkpoint, ns, task, idx) DO UPDATE SET
path = excluded.path, channel = excluded.channel, data = excluded.data"""
_HAS_VALUES = "SELECT number FROM @graph_values WHERE family = ? AND number = ANY(?::bigint[])"
# In the order in which claims lock threads.
_LOCK_FAMILY = "SELECT number FROM @graph_threads WHERE family = ? ORDER BY tenant, thread FOR UPDATE"
# For statements that began before this transaction ended: they see that the row is another one.
_TOUCH_FAMILY = "UPDATE @graph_threads SET created_at = created_at WHERE family = ?"
_END_EXPIRED = "UPDATE @graph_threads SET owner = NULL, claimed_until = NULL WHERE number = ?"
_VALUES = """
WITH RECURSIVE chain AS (
    SELECT number, base FROM @graph_values WHERE number = ANY(?::bigint[])
    UNION
    SELECT v.number, v.base FROM chain JOIN @graph_values AS v ON v.number = chain.base)
SELECT v.number, v.channel, v.data, v.base, v.blob_digest
FROM chain JOIN @graph_values AS v ON v.number = chain.number
WHERE v.family = (SELECT family FROM @graph_threads WHERE tenant = ? AND thread = ?)"""
_COPY_CHECKPOINTS = f"""
INSERT INTO @graph_checkpoints (thread_number, {", ".join(COLUMNS)})
SELECT ?::bigint, {", ".join(COLUMNS)} FROM @graph_checkpoints WHERE thread_number = ?"""
_COPY_WRITES = f"""
INSERT INTO @graph_writes (thread_number, {", ".join(WRITTEN)})
SELECT ?::bigint, {", ".join(WRITTEN)} FROM @graph_writes WHERE thread_number = ?"""
_REFS_OF_FAMILY = """
SELECT c.refs FROM @graph_checkpoints AS c JOIN @graph_threads AS t ON t.number = c.thread_number
WHERE t.family = ?"""


class SqlGraphThreads(SqlAccess):
    """The part of the store that keeps threads of graphs."""

    async def put_graph_rows(self, batch: GraphBatch) -> GraphRefusal | None:
        return await self._write(partial(put, batch=batch))

    async def graph_checkpoint(
        self, tenant: str, thread: str, ns: str, checkpoint: str | None = None
    ) -> GraphCheckpointRow | None:
        where = GraphFilter(tenant=tenant, thread=thread, ns=ns, id=checkpoint)
        found = await self._peek(partial(select, where=where, after=None, limit=1))
        return found[0] if found else None

    async def graph_checkpoints(
        self, where: GraphFilter, *, after: tuple[str, int] | None = None, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        return await self._read(partial(select, where=where, after=after, limit=limit), together=True)

    async def graph_ancestors(
        self, tenant: str, thread: str, ns: str, checkpoint: str, *, limit: int = 100
    ) -> list[GraphCheckpointRow]:
        work = partial(ancestors, tenant=tenant, thread=thread, ns=ns, checkpoint=checkpoint, limit=limit)
        return await self._read(work, together=True)

    async def graph_values(self, tenant: str, thread: str, numbers: Sequence[int]) -> list[GraphValueRow]:
        found = await self._peek(lambda conn: conn.rows(_VALUES, list(numbers), tenant, thread))
        return [
            GraphValueRow(
                number=n, channel=c, data=bytes(d), base=b, blob_digest=None if at is None else bytes(at)
            )
            for n, c, d, b, at in found
        ]

    async def graph_threads(
        self, tenant: str, *, thread: str | None = None, after: str = "", limit: int = 100
    ) -> list[GraphThreadRow]:
        return await self._read(partial(threads, tenant=tenant, thread=thread, after=after, limit=limit))

    async def drop_graph_rows(self, drop: GraphDrop) -> GraphRefusal | None:
        return await self._write(partial(delete, drop=drop))

    async def copy_graph_thread(self, copy: GraphCopy) -> GraphRefusal | None:
        return await self._write(partial(copied, copy=copy))

    async def claim_graph_thread(self, want: GraphClaimRequest) -> GraphClaim | GraphRefusal:
        # As with the lease of a run: it concerns live processes only.
        return await self._write(partial(claim, want=want), flushed=False)

    async def extend_graph_claims(self, claims: Sequence[GraphExtension], ttl: int) -> list[bool]:
        return await self._write(partial(extend, claims=claims, ttl=ttl), flushed=False)

    async def release_graph_claim(self, claim: GraphExtension) -> bool:
        return await self._write(partial(release, given=claim), flushed=False)


# ---------------------------------------------------------------------- claims


async def _locked(
    conn: Conn, now: int, tenant: str, thread: str, given: GraphClaim | None, *, fenced: bool, lock: str
) -> Row | GraphRefusal | None:
    """The thread's (number, family), unless the caller may not write to it; None if it is not there."""
    found = await conn.row(f"{THREAD} FOR {lock}", tenant, thread)
    current = None if found is None else claim_of(*found[2:])
    if fenced and given is not None:
        if current is None or (current.owner, current.term) != (given.owner, given.term):
            return GraphRefusal(current, lost=True)
    elif fenced and current is not None and current.until > now:
        return GraphRefusal(current)
    return None if found is None else found[:2]


async def _make(conn: Conn, now: int, tenant: str, thread: str, family: int | None = None) -> None:
    await conn.run(_MAKE, tenant, thread, family or secrets.randbits(62), now)


async def claim(conn: Conn, now: int, want: GraphClaimRequest) -> GraphClaim | GraphRefusal:
    found, family = await conn.row(f"{THREAD} FOR UPDATE", want.tenant, want.thread), None
    if found is None:
        family = secrets.randbits(62)
        await _make(conn, now, want.tenant, want.thread, family)
        found = await conn.row(f"{THREAD} FOR UPDATE", want.tenant, want.thread)
    assert found is not None
    current = claim_of(*found[2:])
    if current is not None and current.until > now and current.owner != want.owner:
        return GraphRefusal(current)
    same = current is not None and current.owner == want.owner
    term = found[3] if same else found[3] + 1
    taken = GraphClaim(want.owner, term, now + want.ttl, new_thread=found[1] == family)
    await conn.run(_CLAIM, taken.owner, taken.term, taken.until, found[0])
    return taken


async def extend(conn: Conn, now: int, claims: Sequence[GraphExtension], ttl: int) -> list[bool]:
    done: list[bool] = []
    for each in claims:
        given = (each.tenant, each.thread, each.claim.owner, each.claim.term)
        done.append(await conn.run(_EXTEND, now + ttl, *given) == 1)
    return done


async def release(conn: Conn, _now: int, given: GraphExtension) -> bool:
    place = (given.tenant, given.thread)
    done = await conn.run(_RELEASE, *place, given.claim.owner, given.claim.term)
    found = await conn.row(THREAD, *place) if done else None
    if found is not None:
        await conn.run(_DROP_EMPTY, *[found[0]] * 3)
    return done == 1


# ---------------------------------------------------------------------- writing


async def put(conn: Conn, now: int, batch: GraphBatch) -> GraphRefusal | None:
    given = (now, batch.tenant, batch.thread, batch.claim)
    found = await _locked(conn, *given, fenced=batch.fenced, lock="SHARE")
    if found is None:
        if batch.needed_values(batch.checkpoints):
            return GraphRefusal(missing=True)
        await _make(conn, now, batch.tenant, batch.thread)
        found = await _locked(conn, *given, fenced=batch.fenced, lock="SHARE")
    if isinstance(found, GraphRefusal):
        return found
    assert found is not None
    number, family = found
    fresh = await _without_repeats(conn, number, batch.checkpoints)
    if not await _has_values(conn, family, batch.needed_values(fresh)):
        return GraphRefusal(missing=True)
    if fresh or not batch.checkpoints:
        refs = {value for row in fresh for value in row.values}
        values = [v for v in batch.values if not fresh or v.number in refs]
        if await missing_blob(conn, [v.blob_digest for v in values if v.blob_digest is not None]) is not None:
            return GraphRefusal(missing=True)
        if values:
            rows = [(v.number, family, v.base, v.channel, v.data, v.blob_digest) for v in values]
            await conn.many(_VALUE, rows)
        for row in fresh:
            await conn.run(_CHECKPOINT, number, *checkpoint_values(row, now))
    once = [(number, *write_values(w)) for w in batch.writes if w.idx >= 0]
    if once:
        await conn.many(_WRITE_ONCE, once)
    for w in batch.writes:
        if w.idx < 0:
            await conn.run(_WRITE_AGAIN, number, *write_values(w))
    return None


async def _without_repeats(
    conn: Conn, thread: int, rows: Sequence[GraphCheckpointRow]
) -> list[GraphCheckpointRow]:
    fresh: list[GraphCheckpointRow] = []
    for row in rows:
        known = await conn.row(_DIGEST, thread, row.ns, row.id)
        if known is None or bytes(known[0]) != row.digest:
            fresh.append(row)
    return fresh


async def _has_values(conn: Conn, family: int, wanted: set[int]) -> bool:
    return not wanted or len(await conn.rows(_HAS_VALUES, family, sorted(wanted))) == len(wanted)


def checkpoint_values(row: GraphCheckpointRow, now: int) -> tuple[Any, ...]:
    refs = msgspec.json.encode(row.values).decode()
    at = row.written_at or now
    return (row.ns, row.id, row.parent, row.run_id, row.listed, at, refs, row.facets, row.digest, row.body)


def write_values(row: GraphWriteRow) -> tuple[Any, ...]:
    return (row.ns, row.checkpoint, row.task, row.idx, row.path, row.channel, row.data)


async def delete(conn: Conn, now: int, drop: GraphDrop) -> GraphRefusal | None:
    await _lock_family(conn, drop.tenant, drop.thread)
    found = await _locked(conn, now, drop.tenant, drop.thread, drop.claim, fenced=drop.fenced, lock="UPDATE")
    if found is None or isinstance(found, GraphRefusal):
        return found if isinstance(found, GraphRefusal) else None
    number, family = found
    if drop.places is None:
        for table in ("graph_checkpoints", "graph_writes"):
            await conn.run(f"DELETE FROM @{table} WHERE thread_number = ?", number)
        await conn.run("DELETE FROM @graph_threads WHERE number = ?", number)
    else:
        places = [(number, *place) for place in drop.places]
        for table, column in (("graph_checkpoints", "id"), ("graph_writes", "checkpoint")):
            sql = f"DELETE FROM @{table} WHERE thread_number = ? AND ns = ? AND {column} = ?"
            await conn.many(sql, places)
        unlist = "UPDATE @graph_checkpoints SET listed = false WHERE thread_number = ? AND ns = ? AND id = ?"
        await conn.many(unlist, [(number, *place) for place in drop.unlisted])
        if drop.fenced and drop.claim is None:
            await conn.run(_END_EXPIRED, number)
    await _collect(conn, family)
    await conn.run(_TOUCH_FAMILY, family)
    return None


async def _lock_family(conn: Conn, tenant: str, thread: str) -> None:
    """Threads that share values: none of them refers to one again while those that no thread needs are
    deleted."""
    found = await conn.row(THREAD, tenant, thread)
    if found is not None:
        await conn.rows(_LOCK_FAMILY, found[1])


async def _collect(conn: Conn, family: int) -> None:
    """Deletes the values of a family that no checkpoint refers to, nor is built from."""
    bases = dict(await conn.rows("SELECT number, base FROM @graph_values WHERE family = ?", family))
    needed: set[int] = set()
    for (refs,) in await conn.rows(_REFS_OF_FAMILY, family):
        for number in numbers.decode(refs):
            at: int | None = number
            while at is not None and at not in needed:
                needed.add(at)
                at = bases.get(at)
    unused = [number for number in bases if number not in needed]
    if unused:
        await conn.run("DELETE FROM @graph_values WHERE number = ANY(?::bigint[])", unused)


async def copied(conn: Conn, now: int, copy: GraphCopy) -> GraphRefusal | None:
    source = await _locked(conn, now, copy.tenant, copy.source, copy.claim, fenced=copy.fenced, lock="UPDATE")
    if source is None or isinstance(source, GraphRefusal):
        return source if isinstance(source, GraphRefusal) else None
    if await conn.row(THREAD, copy.tenant, copy.target) is not None:
        return GraphRefusal(exists=True)
    await _make(conn, now, copy.tenant, copy.target, source[1])
    target = await conn.row(f"{THREAD} FOR UPDATE", copy.tenant, copy.target)
    assert target is not None
    if target[1] != source[1]:
        return GraphRefusal(exists=True)  # made by another transaction meanwhile
    await conn.run(_COPY_CHECKPOINTS, target[0], source[0])
    await conn.run(_COPY_WRITES, target[0], source[0])
    return None
