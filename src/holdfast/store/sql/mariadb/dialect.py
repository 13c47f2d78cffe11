"""The connection that MariaDB provides to the shared modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.store.fence import OWNED, lease_values
from holdfast.store.limit_admission import Admission, CountedStart
from holdfast.store.rows import NewRun, RunRow
from holdfast.store.sql.hold_lists import HoldListDialect
from holdfast.store.sql.hold_rows import Condition
from holdfast.store.sql.mariadb import concurrency_limits
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.statement import statement
from holdfast.types.concurrency_limits import flow_limit
from holdfast.types.hold import HoldFilter
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record
from holdfast.types.status import HoldStatus

_GIVEN = (
    "id", "tenant", "flow", "version", "code", "lane", "priority", "thread", "instance_key",
    "idempotency_key", "started_by", "deployment", "parent_run", "forked_from", "created_at", "updated_at",
    "ready_at", "head", "event_seq", "status", "term", "worker", "lease_until",
)  # fmt: skip
_INSERT = f"""
INSERT INTO @runs ({", ".join(_GIVEN)}, gate) VALUES ({", ".join("?" * len(_GIVEN))}, ?)
ON CONFLICT DO NOTHING RETURNING key"""
_FIXED = "SELECT 1 FROM @gates WHERE root = ? AND name = ? AND fixed"
# Two statements in one round trip: a trigger hides what LAST_INSERT_ID was set to.
_NUMBER = """
UPDATE @runs SET {also}event_seq = event_seq + ? WHERE key = ?;
SELECT event_seq FROM @runs WHERE key = ?"""
_JOURNAL = (
    "key", "event_from", "kind", "at", "term", "node", "visit", "attempt", "scope", "effect", "outcome",
    "listed", "events", "digest", "payload",
)  # fmt: skip
APPEND = f"INSERT INTO @journal ({', '.join(_JOURNAL)}) VALUES ({', '.join('?' * len(_JOURNAL))})"
_ADVANCE = "UPDATE @runs SET head = ?, event_seq = ?, updated_at = ? WHERE key = ?"
_PARK = f"""
UPDATE @runs SET status = ?, ready_at = ?, worker = NULL, lease_until = NULL, updated_at = ?
WHERE {OWNED} AND inbox_seq = ?"""


class MariadbConn(MariadbConnection):
    """A connection of the pool, usually inside a transaction."""

    __slots__ = ()

    keeps_shared = False
    locks_rows = True

    async def notify(self) -> None:
        """Nothing to do: other processes poll."""

    async def insert_run(self, new: NewRun, row: RunRow) -> int | None:
        if not new.limit:
            # A run that names a limit does not get that of its flow.
            limit = flow_limit(new.flow)
            if await self.row(_FIXED, limit, limit) is not None:
                return None
        values = [new.idempotency_key if name == "idempotency_key" else getattr(row, name) for name in _GIVEN]
        made = await self.row(_INSERT, *values, row.limit)
        if made is None:
            return None
        key: int = made[0]
        if new.first:
            await self._write_records(key, new.first, 0)
        if row.event_seq > 0:
            self.announced.append((key, 1, row.event_seq))
        return key

    async def number_events(
        self, key: int, count: int, nth: int, also: str = "", given: Sequence[Any] = ()
    ) -> int:
        text = statement(_NUMBER.format(also=also)).filled((*given, count, key, key))
        ((last,),) = await self.send_all([text])
        self.announced.append((key, last - count + 1, last))
        return last - count + 1

    async def load_admission(self, now: int | None, roots: Iterable[str], *, lock: bool) -> Admission:
        return await concurrency_limits.load_admission(self, now, roots, lock=lock)

    async def write_starts(self, starts: Sequence[tuple[int, CountedStart]]) -> None:
        await concurrency_limits.write_starts(self, starts)

    async def append(self, now: int, nth: int, key: int, records: Sequence[Record], last: int) -> None:
        await self._write_records(key, records, last)
        events = sum([r.events for r in records])
        await self.run(_ADVANCE, records[-1].seq, last + events, now, key)
        if events:
            self.announced.append((key, last + 1, last + events))

    async def park(self, now: int, lease: Lease, how: Park) -> bool:
        fenced = (*lease_values(lease), how.inbox_seen)
        return await self.run(_PARK, how.status, how.ready_at, now, *fenced) == 1

    async def _write_records(self, key: int, records: Sequence[Record], last: int) -> None:
        await self.many(APPEND, record_values(key, records, last))


def record_values(key: int, records: Sequence[Record], last: int) -> list[tuple[Any, ...]]:
    """For APPEND. Events are numbered after `last`."""
    base, number = key << 32, last + 1
    values: list[tuple[Any, ...]] = []
    for r in records:
        values.append(
            (base | r.seq, number, r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect,
             r.outcome, r.listed, r.events, r.digest, r.payload)
        )  # fmt: skip
        number += r.events
    return values


_IN_LIST = """EXISTS (
    SELECT 1 FROM json_table(holds.{column}, '{path}' COLUMNS (
        value varchar(768) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$')) AS listed
    WHERE listed.value = ANY(?::text[]))"""
_OTHERS = "(holds.assignee_type || ':' || holds.assignee_value = ANY(?::text[])) IS NOT TRUE"
_SHARED_NOW = """holds.number IN (
    SELECT number FROM @hold_shares WHERE tenant = ? AND assignee = ANY(?::text[]))"""
_SHARED = f"holds.terms <> '{{}}' AND {_IN_LIST.format(column='terms', path='$.also_for[*]')}"


def _shared(where: HoldFilter, status: HoldStatus, own: list[str]) -> list[Condition]:
    if status is HoldStatus.pending and where.live and where.tenant is not None:
        return [(_SHARED_NOW, (where.tenant, own)), (_OTHERS, (own,))]
    return [(_SHARED, (own,)), (_OTHERS, (own,))]


LISTS = HoldListDialect(_IN_LIST.format(column="tags", path="$[*]"), _shared)
