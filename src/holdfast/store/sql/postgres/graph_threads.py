"""Threads of graphs, many in one statement: puts under a claim, claims and releases.

A statement is a transaction by itself: one round trip. It does what is plain; what it did not take is done
one by one by the shared module, where everything can be checked and answered. Also a thread that another
transaction has locked: the others of the group do not wait for it. Claims wait, in the order of (tenant,
thread): so no two groups wait for each other.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from holdfast.store.sql.graph_rows import COLUMNS, WRITTEN
from holdfast.store.sql.graph_threads import checkpoint_values, write_values
from holdfast.store.sql.postgres.connect import PostgresConnection, Row
from holdfast.types.graph_thread import GraphBatch, GraphClaim, GraphClaimRequest, GraphExtension

_CLAIMED = """
SELECT t.number, t.family, g.nth
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::bigint[]) AS g (nth, tenant, thread, owner, term)
JOIN @graph_threads AS t ON t.tenant = g.tenant AND t.thread = g.thread
AND t.owner = g.owner AND t.term = g.term"""
_HELD = f"{_CLAIMED} ORDER BY t.tenant, t.thread"
# Those that have all values which they need. What is seen here is as of the beginning of the statement; a
# deletion changes the row, and a row that has changed until it is locked is not `seen`.
_COMPLETE = f"""{_CLAIMED}
JOIN @graph_threads AS seen ON seen.number = t.number AND seen.xmin = t.xmin
LEFT JOIN unnest(?::bigint[], ?::text[]) AS n (nth, numbers) ON n.nth = g.nth
WHERE n.nth IS NULL OR cardinality(n.numbers::bigint[]) = (
    SELECT count(*) FROM @graph_values AS v
    WHERE v.number = ANY (n.numbers::bigint[]) AND v.family = t.family)
ORDER BY t.tenant, t.thread"""
# A checkpoint that is there with the same digest is not returned: then its values are not written either.
_PLACED = f"""
INSERT INTO @graph_checkpoints AS known (thread_number, {", ".join(COLUMNS)})
SELECT held.number, {", ".join(f"c.{name}" for name in COLUMNS)}
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::boolean[], ?::bigint[], ?::text[],
            ?::text[], ?::bytea[], ?::bytea[]) AS c (nth, {", ".join(COLUMNS)}) JOIN held ON held.nth = c.nth
ON CONFLICT (thread_number, ns, id) DO UPDATE SET
{", ".join(f"{name} = excluded.{name}" for name in COLUMNS[2:])}
WHERE known.digest <> excluded.digest
RETURNING thread_number, ns, id"""
_VALUED = """
INSERT INTO @graph_values (number, family, base, channel, data)
SELECT v.number, held.family, v.base, v.channel, v.data
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::bytea[])
     AS v (nth, ns, id, number, base, channel, data)
JOIN held ON held.nth = v.nth
JOIN placed ON placed.thread_number = held.number AND placed.ns = v.ns AND placed.id = v.id"""
_WRITTEN = f"""
INSERT INTO @graph_writes AS known (thread_number, {", ".join(WRITTEN)})
SELECT held.number, {", ".join(f"w.{name}" for name in WRITTEN)}
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::bytea[])
     AS w (nth, {", ".join(WRITTEN)}) JOIN held ON held.nth = w.nth
ON CONFLICT (thread_number, checkpoint, ns, task, idx) DO UPDATE SET
path = excluded.path, channel = excluded.channel, data = excluded.data WHERE known.idx < 0"""
_CLAIM = """
INSERT INTO @graph_threads AS known (tenant, thread, family, owner, term, claimed_until, created_at)
SELECT g.tenant, g.thread, g.family, g.owner, 1, ?::bigint + g.ttl, ?::bigint
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::bigint[])
     AS g (tenant, thread, family, owner, ttl)
ON CONFLICT (tenant, thread) DO UPDATE SET owner = excluded.owner, claimed_until = excluded.claimed_until,
term = CASE WHEN known.owner = excluded.owner THEN known.term ELSE known.term + 1 END
WHERE known.owner IS NULL OR known.claimed_until <= ?::bigint OR known.owner = excluded.owner
RETURNING owner, term, claimed_until, family"""
# A thread that may be empty is left to the shared module, which deletes it under the same lock.
_RELEASE = f"""
WITH held AS ({_HELD} FOR UPDATE OF t SKIP LOCKED)
UPDATE @graph_threads AS t SET owner = NULL, claimed_until = NULL FROM held
WHERE t.number = held.number
AND EXISTS (SELECT 1 FROM @graph_checkpoints AS c WHERE c.thread_number = t.number)
RETURNING held.nth"""

_EXTEND = f"""
WITH held AS ({_HELD} FOR UPDATE OF t SKIP LOCKED)
UPDATE @graph_threads AS t SET claimed_until = ?::bigint FROM held WHERE t.number = held.number
RETURNING held.nth"""


@lru_cache
def _put(*, needs: bool, checkpoints: bool, values: bool, writes: bool) -> str:
    parts = [f"held AS ({_COMPLETE if needs else _HELD} FOR SHARE OF t SKIP LOCKED)"]
    parts += [f"placed AS ({_PLACED})"] * checkpoints
    parts += [f"valued AS ({_VALUED})"] * values
    parts += [f"written AS ({_WRITTEN})"] * writes
    return f"WITH {', '.join(parts)} SELECT nth FROM held"


async def put(conn: PostgresConnection, now: int, batches: Sequence[GraphBatch]) -> list[bool]:
    """Which of them were written. The others are refused, have a checkpoint or a write that another of them
    has, or their thread is locked."""
    threads, needs = list[tuple[Any, ...]](), list[tuple[int, str]]()
    checkpoints = dict[tuple[str, ...], tuple[Any, ...]]()
    values, writes = list[tuple[Any, ...]](), dict[tuple[Any, ...], tuple[Any, ...]]()
    for nth, batch in enumerate(batches):
        place = (batch.tenant, batch.thread)
        row = batch.checkpoints[0] if batch.checkpoints else None
        keys = [(*place, w.checkpoint, w.ns, w.task, w.idx) for w in batch.writes]
        # One of two that write the same may be of a former owner, and refused: then the other's must count.
        if batch.claim is None or (row and (*place, row.ns, row.id) in checkpoints) or writes.keys() & keys:
            continue
        threads.append((nth, *place, batch.claim.owner, batch.claim.term))
        if row is not None:
            checkpoints[*place, row.ns, row.id] = (nth, *checkpoint_values(row, now))
            refs = set(row.values)
            needed = batch.needed_values([row])
            if needed:
                needs.append((nth, f"{{{','.join(map(str, needed))}}}"))
            values += [
                (nth, row.ns, row.id, v.number, v.base, v.channel, v.data)
                for v in batch.values
                if v.number in refs
            ]
        for key, w in zip(keys, batch.writes, strict=True):
            if w.idx < 0 or key not in writes:
                writes[key] = (nth, *write_values(w))
    text = _put(needs=bool(needs), checkpoints=bool(checkpoints), values=bool(values), writes=bool(writes))
    tables = (threads, needs, checkpoints.values(), values, writes.values())
    found = await conn.rows(text, *(column for table in tables for column in _columns(table)))
    return _done(found, len(batches))


def is_plain(batch: GraphBatch) -> bool:
    """Under a claim, of one checkpoint at most, and without blobs that must be there."""
    return batch.fenced and batch.claim is not None and len(batch.checkpoints) <= 1 and (
        bool(batch.checkpoints) or not batch.values
    ) and not any(value.blob_digest for value in batch.values)  # fmt: skip


def size_of(batch: GraphBatch) -> int:
    """In bytes."""
    bodies = sum([len(row.body) for row in batch.checkpoints])
    return bodies + sum([len(row.data) for row in (*batch.values, *batch.writes)])


async def claim(
    conn: PostgresConnection, now: int, wanted: Sequence[GraphClaimRequest]
) -> list[GraphClaim | None]:
    """None: refused, or another of them is for the same thread."""
    first = {(want.tenant, want.thread): want for want in reversed(wanted)}
    rows = [(*place, secrets.randbits(62), first[place].owner, first[place].ttl) for place in sorted(first)]
    found = await conn.rows(_CLAIM, now, now, *_columns(rows), now)
    drawn = {row[2] for row in rows}
    # Each owner is unique.
    made = {owner: GraphClaim(owner, term, until, family in drawn) for owner, term, until, family in found}
    return [made.get(want.owner) for want in wanted]


async def release(conn: PostgresConnection, claims: Sequence[GraphExtension]) -> list[bool]:
    """Which of them were released. The others are not the threads' any more, or the thread may be empty, or
    is locked."""
    return _done(await conn.rows(_RELEASE, *_columns(_given(claims))), len(claims))


async def extend(conn: PostgresConnection, claims: Sequence[GraphExtension], until: int) -> list[bool]:
    """Which of them were extended. The others are not the threads' any more, or the thread is locked."""
    return _done(await conn.rows(_EXTEND, *_columns(_given(claims)), until), len(claims))


def _given(claims: Sequence[GraphExtension]) -> list[tuple[Any, ...]]:
    return [(nth, c.tenant, c.thread, c.claim.owner, c.claim.term) for nth, c in enumerate(claims)]


def _done(found: Iterable[Row], count: int) -> list[bool]:
    done = {nth for (nth,) in found}
    return [nth in done for nth in range(count)]


def _columns(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
